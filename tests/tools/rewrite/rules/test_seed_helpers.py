"""Functions that seed torch's stream: what they may do, and who may call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rewrite.snippets import rewrite_snippet

HEAD = "import os\nimport random\nimport numpy as np\nimport torch\nfrom torch import nn\n\n"
HELPER = "def seeded(seed):\n    torch.manual_seed(seed)\n\n"


def _module(lines: str, method: str = "    def forward(self, x: torch.Tensor):\n        return self.f(x)\n") -> str:
    body = "".join(f"        {line}\n" for line in lines.splitlines())
    return f"class M(nn.Module):\n    def __init__(self, n, seed):\n        super().__init__()\n{body}        self.f = nn.Linear(n, n)\n\n{method}"


@pytest.mark.parametrize(
    ("body", "mirror"),
    [
        ("torch.manual_seed(seed)", "pass"),
        ("'''Seed.'''\n    torch.manual_seed(seed)", "'''Seed.'''"),
        ("torch.manual_seed(seed)\n    np.random.seed(seed)", "np.random.seed(seed)"),
        (
            "os.environ['PYTHONHASHSEED'] = str(seed)\n    random.seed(seed)\n    torch.manual_seed(seed)\n    torch.backends.cudnn.benchmark = False",
            "random.seed(seed)",
        ),
        ("torch.manual_seed(seed)\n    if torch.cuda.is_available():\n        torch.cuda.manual_seed_all(seed)", "pass"),
        ("torch.manual_seed(seed)\n    torch.use_deterministic_algorithms(True)", "pass"),
    ],
)
def test_what_is_left_of_a_helper(tmp_path: Path, body: str, mirror: str) -> None:
    text, holes = rewrite_snippet(tmp_path, f"{HEAD}def seeded(seed):\n    {body}\n\n{_module('seeded(seed)')}")
    assert not holes
    assert mirror.strip("'") in text and "torch" not in text and "environ" not in text
    assert "        seeded(seed)\n        rngs = nnx.Rngs(seed)\n" in text


@pytest.mark.parametrize(
    ("helper", "lines"),
    [
        (HELPER, "seeded(seed=n)"),
        (HELPER, "if seed is not None:\n    seeded(n)"),
        ("def seeded(x, *, seed=1): ...\ndef seeded(seed, n):\n    torch.manual_seed(n)\n\n", "seeded(seed, n)"),
    ],
)
def test_arguments_of_calls(tmp_path: Path, helper: str, lines: str) -> None:
    text, holes = rewrite_snippet(tmp_path, f"{HEAD}{helper}{_module(lines)}")
    assert not holes and "rngs = nnx.Rngs(n)\n" in text


FORWARD = "    def forward(self, x: torch.Tensor):\n        seeded(3)\n        return self.f(x)\n"


@pytest.mark.parametrize(
    "source",
    [
        # whose seed is not the argument alone, or that do something else
        "def seeded(seed):\n    torch.manual_seed(seed + 1)\n\n" + _module("seeded(seed)"),
        "def seeded(seed):\n    torch.manual_seed(seed)\n    print(seed)\n    return torch.initial_seed()\n\n" + _module("seeded(seed)"),
        "def seeded(seed):\n    if seed > 0:\n        torch.manual_seed(seed)\n\n" + _module("seeded(seed)"),
        "def seeded(seed):\n    torch.manual_seed(seed)\n    torch.manual_seed(3)\n\n" + _module("seeded(seed)"),
        # that others than constructors call, or that are values
        HELPER + _module("seeded(seed)", FORWARD),
        HELPER + _module("", FORWARD),
        HELPER + _module("seeded(seed)") + "\nreseed = seeded\n\ndef f():\n    reseed(1)\n",
        HELPER + _module("self.seeding = seeded(seed)"),
        HELPER + "def outer(seed):\n    seeded(seed)\n\n" + _module("outer(seed)"),
        # what cannot be said twice
        HELPER + _module("seeded(random.randint(0, seed))"),
        HELPER + _module("seeded(*[seed])"),
        HELPER + _module("seeded(seed); seeded(n)"),
        HELPER + _module("if seed: seeded(seed)"),
    ],
)
def test_helpers_that_stay_open(tmp_path: Path, source: str) -> None:
    _, holes = rewrite_snippet(tmp_path, HEAD + source)
    assert holes
