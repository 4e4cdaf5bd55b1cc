"""Functions that only construct a module need no run, where both sides say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.programs.judge.beside import Beside, Missed
from migrate_agent.tools.programs.judge.constructions import constructions, split_constructions

HEAD = "from nets import Net\n"
SMALL = "def small(depth=2, **kwargs):\n    return Net(8, depth=depth, **kwargs)\n"


@pytest.mark.parametrize(
    ("original", "rewrite", "same"),
    [
        (SMALL, SMALL.replace("depth, **", "depth, rngs=default_generator.rngs(), **"), True),
        (SMALL, SMALL.replace("**kwargs):", "*, rngs: nnx.Rngs, **kwargs) -> Net:").replace("depth, **", "depth, rngs=rngs, **"), True),
        (SMALL, SMALL.replace("8", "9"), False),
        (SMALL, SMALL.replace("depth=2", "depth=3"), False),
        (SMALL, SMALL.replace("Net(", "Other("), False),
        (SMALL, SMALL.replace(", **kwargs)\n", ")\n"), False),
        (SMALL, SMALL.replace("    return", "    depth = 4\n    return"), False),
    ],
)
def test_the_same_words_but_for_streams(tmp_path: Path, original: str, rewrite: str, same: bool) -> None:
    (tmp_path / "models.py").write_text(HEAD + original)
    (tmp_path / "models_jax.py").write_text(HEAD + rewrite)
    row = Missed(Beside("models.py", "models_jax.py", ("small",)), (3,), (3,))
    assert split_constructions([row], tmp_path, tmp_path) == (((), ("models_jax.py: small",)) if same else ((row,), ()))


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("    return Net([2, 2], act='relu', rate=-1.5)\n", True),
        ("    options = dict(width=4)\n    options.update(kwargs)\n    net = Net(**options)\n    return net\n", True),
        # Values of another file, numbers that are computed, torch's own class, and what is done beside.
        ("    return Net(WIDTH)\n", False),
        ("    return Net(int(4.5))\n", False),
        ("    return Linear(4, 4)\n", False),
        ("    print('small')\n    return Net(4)\n", False),
        ("    net = Net(4)\n    net.load(path)\n    return net\n", False),
    ],
)
def test_what_only_constructs(text: str, only: bool) -> None:
    script = "from nets import Net, WIDTH\nfrom torch.nn import Linear\n\ndef small(**kwargs):\n" + text
    assert bool(constructions(script)) is only
