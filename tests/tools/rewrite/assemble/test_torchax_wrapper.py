"""The wrapper that runs a class through torchax: its text, the classes that can have none, and that nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from migrate_agent.tools.rewrite import Unwrappable, compose, wrapped, wrapper
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Inventory

SOURCE = """
import torch
from torch import nn


class Base(nn.Module):
    def encode(self, x, *, scale=2):
        return x * scale


class Odd(Base):
    expansion = 4

    def __init__(self, width: int, act=nn.GELU, *sizes, rate: float = 0.1, **rest):
        super().__init__()

    def forward(self, x: torch.Tensor, dtype=torch.float32, mask=None):
        return self._inner(x)

    def _inner(self, x):
        return torch.unique(x)
"""
WRAPPER = '''

class Odd(TorchaxModule):
    """The original `model.Odd`, run through torchax: not rewritten."""

    expansion = 4

    def __init__(self, width, *, rate=0.1, rngs: nnx.Rngs, **rest):
        from model import Odd as TorchOdd

        super().__init__(TorchOdd, width, rate=rate, rngs=rngs, **rest)

    def __call__(self, x, dtype=TORCH_DEFAULT, mask=None):
        return self.call_torch("forward", x, dtype=dtype, mask=mask)

    def encode(self, x, *, scale=2):
        return self.call_torch("encode", x, scale=scale)
'''
PLAIN = SOURCE.replace("act=nn.GELU, *sizes, rate", "*, rate")


def scanned(tmp_path: Path, text: str) -> Inventory:
    (tmp_path / "model.py").write_text(dedent(text))
    return scan(tmp_path)


def test_wrapper_has_the_interface_of_the_original(tmp_path: Path) -> None:
    assert wrapper(scanned(tmp_path, PLAIN), "model.py:Odd") == WRAPPER


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        (SOURCE, "model.py:Odd", "the defaults of Odd.__init__ are no plain values"),
        (SOURCE.replace("width: int, act=nn.GELU, *sizes", "rngs, *"), "model.py:Odd", "cannot be passed on"),
        (SOURCE.replace("width: int, act=nn.GELU, *sizes", "width, /, *"), "model.py:Odd", "cannot be passed on"),
        ("import torch\n\n\ndef odd(x):\n    return torch.unique(x * 2) + 1\n", "model.py:odd", "classes at the top of a file alone"),
    ],
)
def test_what_cannot_be_passed_on_has_no_wrapper(tmp_path: Path, text: str, unit: str, reason: str) -> None:
    with pytest.raises(Unwrappable, match=reason):
        wrapper(scanned(tmp_path, text), unit)


@pytest.mark.ci
def test_parent_is_rewritten_around_a_wrapper_and_only_the_wrapper_names_torch(tmp_path: Path) -> None:
    parent = "\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.odd = Odd(3)\n\n"
    inventory = scanned(tmp_path, f"{PLAIN}{parent}    def forward(self, x):\n        return self.odd(x) + 1\n")
    draft = compose(inventory, {}, ["model.py:Odd", "model.py:Net"], {"model.py:Odd": WRAPPER})
    assert draft.holes == ()
    assert "self.odd = Odd(3, rngs=rngs)" in draft.files["model_jax.py"]
    assert "TorchaxModule" in draft.files["nnx_layers_jax.py"]
    assert [unit.id for unit in wrapped(inventory, draft.files)] == ["model.py:Odd"]
    lines = {line.strip() for text in draft.files.values() for line in text.splitlines() if "import" in line and "torch" in line.lower()}
    top = [
        line
        for text in draft.files.values()
        for line in text.splitlines()
        if line.startswith(("import torch", "from torch", "from model "))
    ]
    assert (top, "from model import Odd as TorchOdd" in lines) == ([], True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from model import Odd as", "from model import Base as"),
        ("rate=rate, rngs", "rate=0.0, rngs"),
        ('call_torch("forward", x,', 'call_torch("forward", 2 * x,'),
        ("TorchaxModule", "TorchaxPart"),
        ("    expansion = 4\n", "    expansion = 4\n    import torch\n"),
        ("mask=mask)\n", "mask=mask)\n\n    def extra(self):\n        return 1\n"),
    ],
)
def test_anything_else_is_no_wrapper(tmp_path: Path, old: str, new: str) -> None:
    assert old in WRAPPER
    assert wrapped(scanned(tmp_path, PLAIN), {"model_jax.py": WRAPPER.replace(old, new)}) == ()
