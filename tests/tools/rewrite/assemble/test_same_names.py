"""A module and what it defines may have one name: which of them an import gives is Python's rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan

BLUR = """from torch import nn

{imports}


class Blur(nn.Module):
    def forward(self, x):
        return {call}(x)
"""
OP = """import torch


def blur(x):
    return torch.relu(x)


def other(x):
    return torch.tanh(x)
"""


@pytest.mark.parametrize(
    ("package", "imports", "call", "line"),
    [
        ("from .blur import blur\n", "from op import blur", "blur", "from .blur import blur"),
        ("from .blur import *\n", "from op import blur", "blur", "from .blur import *"),
        ("from .blur import blur\n", "import op", "op.blur", "from .blur import blur"),
        ("from .blur import blur as blur, other\n", "from op import blur as b", "b", "from .blur import blur as blur"),
        ("from .blur import blur\n", "from op.blur import blur", "blur", ""),
        ("", "from op import blur", "blur.blur", ""),
        ("from . import blur\n", "from op import blur", "blur.blur", ""),
        ("from .blur import other\n", "from op import blur", "blur.blur", ""),
    ],
)
def test_module_or_what_it_defines(tmp_path: Path, package: str, imports: str, call: str, line: str) -> None:
    (tmp_path / "op").mkdir()
    files = {"op/__init__.py": package, "op/blur.py": OP, "model.py": BLUR.format(imports=imports, call=call)}
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    draft = compose(scan(tmp_path), {}, ["model.py:Blur"])
    assert not draft.holes
    assert "def blur(x)" in draft.files["op_jax/blur.py"] and "def other" not in draft.files["op_jax/blur.py"]
    assert line in draft.files["op_jax/__init__.py"]


@pytest.mark.parametrize("spelling", ["from pkg.util import double", "from util import double"])
def test_a_file_imported_under_two_names_has_one_mirror(tmp_path: Path, spelling: str) -> None:
    files = {
        "pkg/util.py": "def double(x):\n    return 2 * x\n",
        "pkg/other.py": "def same(x):\n    return x\n",
        "pkg/net.py": f"{BLUR.format(imports=f'{spelling}{chr(10)}from other import same', call='double')}        same(x)\n",
        "pkg/train.py": "import net, util, other\n",
    }
    (tmp_path / "pkg").mkdir()
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    draft = compose(scan(tmp_path), {}, ["pkg/net.py:Blur"])
    assert not draft.holes and {"pkg/net_jax.py", "pkg/util_jax.py"} <= draft.files.keys()
    assert "from util_jax import double" in draft.files["pkg/net_jax.py"]
