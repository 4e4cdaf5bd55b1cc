"""Stars: names that `from module import *` brings, torch's own among them, and arguments that a call of torch spreads."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.scan import scan

FILES = {
    "__init__.py": "",
    "base.py": "import torch\nfrom torch import nn as nn\nfrom torch.nn import functional as F\n\n_hidden = 1\n\ndef swish(x):\n    return x * x.sigmoid()\n",
    "middle.py": "from .base import *\n",
    "named.py": '__all__ = ["shown"]\nimport torch\n\ndef shown(x):\n    return x\n',
    "user.py": "from .middle import *\nfrom .named import *\n\nACTIVATIONS = {'relu': F.relu, 'swish': swish}\nDTYPE = torch.float32\n",
}


def test_torchs_names_come_through_star_imports(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    space = Workspace(scan(tmp_path), {})
    text = "".join(statement.text for statement in space.statements("pkg/user.py"))
    assert "'relu': jax.nn.relu, 'swish': swish" in text and "DTYPE = jnp.float32" in text
    assert not space.rewritten("pkg/user.py").holes
    bindings = space.repo.files["pkg/user.py"].bindings
    assert bindings["swish"] == "pkg.middle.swish" and bindings["shown"] == "pkg.named.shown" and "_hidden" not in bindings


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("F.conv2d(x, w, **options)", "conv2d(x, w, **options)"),
        ("F.pad(x, *sizes)", "pad(x, *sizes)"),
        ("F.interpolate(x, scale_factor=2, **options)", "interpolate(x, scale_factor=2, **options)"),
        ("F.softmax(x, **options)", ""),  # `dtype` may be among them
        ("torch.sum(x, **options)", ""),
        ("F.batch_norm(x, *sizes)", ""),
    ],
)
def test_spread_arguments_are_passed_on_where_they_mean_the_same(call: str, expected: str, tmp_path: Path) -> None:
    text, holes = rewrite_snippet(
        tmp_path, f"import torch\nimport torch.nn.functional as F\n\ndef f(x, w, sizes, options):\n    return {call}\n"
    )
    assert (f"return {expected}\n" in text) if expected else [hole.code for hole in holes] == ["unbound-call"]
