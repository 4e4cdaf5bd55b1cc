"""Closures: a change shows where something depends on it, and nowhere else; formatting never does."""

from __future__ import annotations

import pytest

from migrate_agent.tools.closure import Closure, Closures, Name
from migrate_agent.tools.scan.layout import layout

BLOCKS = '''"""Blocks."""
import torch
from torch import nn
import torch.nn.functional as F
from pkg.helpers import scale as rescale, SIZES
from pkg import tables

WIDTH = 4
torch.set_default_dtype(torch.float32)


class Mlp(nn.Module):
    """A layer."""

    def forward(self, x):
        """Docstring."""
        return F.gelu(x)  # a comment


class Block(nn.Module):
    def __init__(self, width=WIDTH):
        self.mlp = Mlp()

    def forward(self, x):
        from pkg.late import shift
        return rescale(self.mlp(x), SIZES["a"]) + shift(x) + tables.of("relu")(x)


class Other(nn.Module):
    pass


@tables.enter("other")
def other(x):
    return x


if __name__ == "__main__":
    model = Block()
'''
HELPERS = """def inner(x):
    return x

def scale(x, by):
    return inner(x) * by

def unused(x):
    return x

SIZES = {}
SIZES["a"] = 1
"""
TABLES = """TABLE = {}

def enter(name):
    def wrap(f):
        TABLE[name] = f
        return f
    return wrap

@enter("relu")
def relu(x):
    return x

def of(name):
    return TABLE[name]
"""
FILES = {
    "pkg/__init__.py": "from pkg.blocks import Block\n",
    "pkg/blocks.py": BLOCKS,
    "pkg/helpers.py": HELPERS,
    "pkg/tables.py": TABLES,
    "pkg/late.py": "def shift(x):\n    return x + 1\n",
    "main.py": "from pkg import Block\nfrom os import path\n\nclass Net(Block):\n    name = path.join('a')\n",
}


def closure(root: str, *changes: tuple[str, str, str]) -> Closure:
    files = dict(FILES)
    for path, old, new in changes:
        assert old in files[path], old
        files[path] = files[path].replace(old, new, 1)
    path, _, name = root.partition(":")
    return Closures(layout(sorted(files), files), files).of([Name(path, name)])


def changed(root: str, *changes: tuple[str, str, str]) -> list[str]:
    """The names whose digests differ after these changes."""
    before, after = closure(root).digests, closure(root, *changes).digests
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def test_closure_holds_what_is_reached_and_no_more() -> None:
    assert closure("main.py:Net").digests.keys() == {
        *(f"pkg/blocks.py:{name}" for name in ("Block", "Mlp", "WIDTH")),
        *(f"pkg/helpers.py:{name}" for name in ("SIZES", "inner", "scale")),
        *(f"pkg/tables.py:{name}" for name in ("TABLE", "enter", "of")),
        "pkg/late.py:shift",
        "pkg/blocks.py:TABLE of pkg/tables.py",
        "pkg/blocks.py",
        "main.py:Net",
    }
    assert closure("main.py:Net").packages == {"torch"}


B, H, T = "pkg/blocks.py", "pkg/helpers.py", "pkg/tables.py"


@pytest.mark.parametrize(
    ("root", "change", "expected"),
    [
        (f"{B}:Block", (B, "F.gelu(x)", "F.relu(x)"), [f"{B}:Mlp"]),
        (f"{B}:Other", (B, "F.gelu(x)", "F.relu(x)"), []),
        (f"{B}:Mlp", (B, "WIDTH = 4", "WIDTH = 5"), []),
        (f"{B}:Block", (B, "WIDTH = 4", "WIDTH = 4.0"), [f"{B}:WIDTH"]),
        (f"{B}:Block", (B, "WIDTH = 4", "WIDTH = True"), [f"{B}:WIDTH"]),
        ("main.py:Net", (H, "    return x\n", "    return 2 * x\n"), [f"{H}:inner"]),
        (f"{B}:Block", (H, "def unused(x):\n    return x", "def unused(x):\n    return 2 * x"), []),
        (f"{B}:Block", (H, 'SIZES["a"] = 1', 'SIZES["a"] = 2'), [f"{H}:SIZES"]),
        (f"{B}:Block", (T, "def relu(x):\n    return x", "def relu(x):\n    return -x"), [f"{T}:TABLE"]),
        (f"{B}:Block", (B, "def other(x):\n    return x", "def other(x):\n    return -x"), [f"{B}:TABLE of {T}"]),
        (f"{B}:Block", (B, '@tables.enter("other")\n', ""), [f"{B}:TABLE of {T}"]),
        (f"{B}:other", (B, 'tables.enter("other")', 'tables.enter("another")'), [f"{B}:other"]),
        (f"{B}:other", (T, "def relu(x):\n    return x", "def relu(x):\n    return -x"), []),
        (f"{T}:of", (B, "def other(x):\n    return x", "def other(x):\n    return -x"), [f"{B}:TABLE of {T}"]),
        (f"{T}:relu", (T, "    return TABLE[name]", "    return TABLE.get(name)"), []),
        (f"{B}:Block", ("pkg/late.py", "+ 1", "+ 2"), ["pkg/late.py:shift"]),
        (f"{B}:Mlp", (B, "torch.float32", "torch.float64"), [B]),
        (f"{B}:Mlp", (B, "import torch.nn.functional as F", "import jax.nn as F"), [f"{B}:Mlp"]),
        (f"{B}:Block", (B, "import scale as rescale", "import inner as rescale"), [f"{B}:Block", f"{H}:scale"]),
        (f"{B}:Mlp", (B, "class Mlp(nn.Module)", "class Gone(nn.Module)"), [f"{B}:Mlp"]),
        (f"{B}:Mlp", (B, "class Block(nn.Module):", "class Block(nn.Module:"), [B, f"{B}:Mlp"]),
        # what does not matter
        (f"{B}:Block", (B, "# a comment", "# another"), []),
        (f"{B}:Block", (B, '"""Docstring."""', "'''Another.'''"), []),
        (f"{B}:Block", (B, '"""A layer."""', ""), []),
        (f"{B}:Block", (B, "return F.gelu(x)", "return (F.gelu(\n            x,\n        ))"), []),
        (f"{B}:Block", (B, "model = Block()", "model = Block(3)"), []),
        (f"{B}:Block", (B, "class Other(nn.Module):\n    pass\n", ""), []),
        (f"{B}:Block", (B, "WIDTH = 4", "from os import path\n\nWIDTH = 4"), []),
    ],
)
def test_a_change_shows_where_it_matters(root: str, change: tuple[str, str, str], expected: list[str]) -> None:
    assert changed(root, change) == expected


def test_order_of_a_file_does_not_matter() -> None:
    mlp = BLOCKS[BLOCKS.index("class Mlp") : BLOCKS.index("class Block")]
    assert changed(f"{B}:Block", (B, mlp, ""), (B, "class Other", f"{mlp}class Other")) == []


def test_a_module_used_as_a_value_counts_whole() -> None:
    value = (B, "F.gelu(x)", "getattr(tables, 'of')('relu')(x)")
    assert closure(f"{B}:Mlp", value).digests.keys() >= {f"{T}:of", f"{T}:relu"}
    named = (B, "F.gelu(x)", "globals()['other'](x)")
    assert f"{B}:other" in closure(f"{B}:Mlp", named).digests


def test_a_text_of_the_file_reads_names() -> None:
    closures = Closures(layout(sorted(FILES), FILES), FILES)
    assert closures.read("main.py", "from pkg.helpers import scale\nNet(scale, Block)") == (
        Name(B, "Block"),
        Name("main.py", "Net"),
        Name(H, "scale"),
    )


REGISTRY = {
    "reg/__init__.py": "from .table import BLOCKS, register\n",
    "reg/table.py": """from reg.kinds import Registry

BLOCKS = Registry()
SHAPES = {}
UNREAD = {}

def register(f):
    SHAPES[f.__name__] = f
    return f
""",
    "reg/kinds.py": "class Registry(dict):\n    def register(self, name):\n        return lambda f: self.setdefault(name, f)\n",
    "reg/round.py": """import reg
from reg import BLOCKS, register
from reg.table import SHAPES, UNREAD
from reg.sizes import SIZE

@BLOCKS.register("round")
class Round:
    size = SIZE

@register
def circle():
    return 1

def oval():
    return 2

SHAPES["oval"] = oval
reg.table.BLOCKS.add(oval)
UNREAD["oval"] = oval
""",
    "reg/sizes.py": "SIZE = 4\n",
    "net.py": "from reg.table import BLOCKS\n\nclass Net:\n    kind = BLOCKS['round']\n\nclass Plain:\n    pass\n",
    "shapes.py": "from reg import table\n\ndef shape(name):\n    return table.SHAPES[name]\n",
    "alone.py": "from reg.table import UNREAD\n\nUNREAD['alone'] = 1\n",
}


@pytest.mark.parametrize(
    ("root", "old", "new", "expected"),
    [
        ("net.py:Net", "size = SIZE", "size = 2 * SIZE", {"reg/round.py:BLOCKS of reg/table.py"}),
        ("net.py:Net", '@BLOCKS.register("round")', "", {"reg/round.py:BLOCKS of reg/table.py", "reg/sizes.py:SIZE"}),
        (
            "net.py:Net",
            "BLOCKS.add(oval)",
            "BLOCKS.add(circle)",
            {f"reg/round.py:{name}" for name in ("BLOCKS of reg/table.py", "circle", "oval")},
        ),
        ("net.py:Net", "return 2", "return 3", {"reg/round.py:oval"}),
        ("net.py:Net", "SIZE = 4", "SIZE = 5", {"reg/sizes.py:SIZE"}),
        ("net.py:Net", "return 1", "return 3", set()),
        ("net.py:Plain", "size = SIZE", "size = 2 * SIZE", set()),
        ("shapes.py:shape", "return 1", "return 3", {"reg/round.py:SHAPES of reg/table.py"}),
        ("shapes.py:shape", 'SHAPES["oval"]', 'SHAPES["egg"]', {"reg/round.py:SHAPES", "reg/round.py:SHAPES of reg/table.py"}),
        ("shapes.py:shape", "size = SIZE", "size = 2 * SIZE", set()),
        ("shapes.py:shape", "= 1", "= 2", set()),
    ],
)
def test_entries_of_other_files_count_with_their_table(root: str, old: str, new: str, expected: set[str]) -> None:
    files = {path: text.replace(old, new) for path, text in REGISTRY.items()}
    assert files != REGISTRY
    path, _, name = root.partition(":")
    before, after = (Closures(layout(sorted(texts), texts), texts).of([Name(path, name)]).digests for texts in (REGISTRY, files))
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == expected


def test_entries_of_other_files_may_be_left_out() -> None:
    files = layout(sorted(REGISTRY), REGISTRY)
    names = Closures(files, REGISTRY, entries=False).of([Name("net.py", "Net")]).digests
    assert not any("reg/round.py" in name for name in names)
