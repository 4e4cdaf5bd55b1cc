"""Classes that no example runs are stubs in the mirror: nobody judged them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from flax import nnx

from migrate_agent.tools.record.instrument import Columns
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.rewrite.assemble.compose import mentions
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Inventory, Observations, Observed

SOURCE = """import torch
from torch import nn


def odd(x):
    return torch.unique(x)


def register(name):
    def keep(cls):
        TABLE[name] = cls
        return cls
    return keep


TABLE = {}


class Base(nn.Module):
    def forward(self, x):
        return self.change(x)

    def change(self, x):
        return x


class Used(Base):
    def change(self, x):
        return x * 2


class Marker(nn.ReLU):
    pass


@register("other")
class Other(Base):
    gain: float = 2.0

    def __init__(self, width):
        super().__init__()
        self.width = width

    def change(self, x):
        return odd(x)


class Twice(Other):
    pass


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kinds = {"used": Used, "other": Other, "marker": Marker, "twice": Twice}
        self.part = self.kinds[kind]()

    def forward(self, x):
        return x if isinstance(x, Other) else self.part(x)
"""
NET = "model.py:Net"


def repository(folder: Path) -> Inventory:
    (folder / "model.py").write_text(SOURCE)
    return scan(folder)


def ran(*names: str, kinds: tuple[str, ...] = ("object:x.Y",)) -> Observations:
    """What one sees where all methods of these classes ran, and their parts were `kinds`."""
    columns, seen = Columns(SOURCE), {}
    classes = (node for node in ast.parse(SOURCE).body if isinstance(node, ast.ClassDef) and node.name in names)
    methods = (method for node in classes for method in node.body if isinstance(method, ast.FunctionDef))
    for node in (part for method in methods for line in method.body for part in ast.walk(line)):
        if isinstance(node, ast.Attribute):
            seen[columns.span(node)] = Observed(kinds if node.attr == "part" else ("object:x.Y",))
        elif isinstance(node, ast.BinOp):
            seen[columns.span(node)] = Observed(("tensor",))
        elif isinstance(node, ast.Subscript) and "Used" in names:
            seen[columns.span(node)] = Observed(("class:model.Used",))
    return {"model.py": seen}


def stubs(folder: Path, seen: Observations, refused: tuple[str, ...] = ()) -> set[str]:
    draft = compose(repository(folder), seen, [NET], refused=refused)
    return {identifier.partition(":")[2] for identifier in draft.postponed}


CASES = [
    pytest.param(ran("Net", "Used"), (), {"Other", "Marker", "Twice"}, id="neither run nor seen"),
    pytest.param(ran("Net", "Used", "Other"), (), {"Marker", "Twice"}, id="run"),
    pytest.param(ran("Net", kinds=("module:model.Marker",)), (), {"Used", "Other", "Twice"}, id="an instance was seen"),
    pytest.param(ran("Net", "Used", kinds=("module:model.Twice",)), (), {"Marker"}, id="its base is what an instance was seen of"),
    pytest.param(ran("Net", "Used"), ("model.py:Used",), {"Used", "Other", "Marker", "Twice"}, id="refused"),
    pytest.param(ran("Net", "Used"), ("model.py:Base",), {"Other", "Marker", "Twice"}, id="refused, but a base of what ran"),
    pytest.param({}, (), set(), id="nothing was observed"),
]


@pytest.mark.parametrize(("seen", "refused", "expected"), CASES)
def test_which_classes_are_put_off(tmp_path: Path, seen: Observations, refused: tuple[str, ...], expected: set[str]) -> None:
    assert stubs(tmp_path, seen, refused) == expected


def test_a_stub_says_why_and_needs_nothing(tmp_path: Path) -> None:
    draft = compose(repository(tmp_path), ran("Net", "Used"), [NET])
    text = draft.files["model_jax.py"]
    assert not draft.holes and "odd" not in text and "Base(nnx.Module)" in text
    assert "model.py:32: Marker is not migrated, an error once one is made: no example runs it" in draft.notes
    names: dict[str, type] = {}
    exec(compile(text.replace("from nnx_layers_jax", "from migrate_agent.tools.vendored.layers"), "model_jax.py", "exec"), names)
    net = names["Net"]("used", rngs=nnx.Rngs(0))
    assert net(3) == 6 and vars(names["Other"])["gain"] == 2.0
    with pytest.raises(NotImplementedError, match="Other is not migrated: no example runs it"):
        names["Net"]("other", rngs=nnx.Rngs(0))


def test_a_registered_stub_is_found_in_its_table(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE.replace('{"used": Used, "other": Other, "marker": Marker, "twice": Twice}', "TABLE"))
    draft = compose(scan(tmp_path), ran("Net"), [NET])
    assert draft.postponed == ("model.py:Other",) and '@register("other")' in draft.files["model_jax.py"].replace("'", '"')


def test_once_it_is_wanted_it_is_there(tmp_path: Path) -> None:
    draft = compose(repository(tmp_path), ran("Net", "Used", "Other"), [NET, "model.py:Twice"])
    assert draft.postponed == ("model.py:Marker",) and "class Twice(Other):\n    pass" in draft.files["model_jax.py"]


def test_what_a_unit_holds_of_others(tmp_path: Path) -> None:
    inventory = repository(tmp_path)
    assert mentions(inventory, ran("Net", "Used"), NET) == ("model.py:Base", "model.py:Used")
    assert mentions(inventory, ran("Net", "Used"), "model.py:Used") == ("model.py:Base",)
    assert mentions(inventory, ran("Net", "Used"), NET, refused=("model.py:Used",)) == ()


FUNCTION = """import torch
from torch import nn


def thin(layers, share):
    keep = torch.empty(len(layers)).uniform_(0, 1) < share
    return [layer for layer, kept in zip(layers, keep) if kept]


class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.drop = drop

    def forward(self, x):
        for layer in thin(self.layers, self.drop) if self.drop > 0 else self.layers:
            x = layer(x)
        return x
"""


def test_a_refused_function_with_a_hole_is_a_stub_too(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(FUNCTION)
    assert compose(scan(tmp_path), {}, [NET]).holes
    draft = compose(scan(tmp_path), {}, [NET], refused=["model.py:thin"])
    assert (draft.holes, draft.postponed) == ((), ("model.py:thin",))
    assert (
        'def thin(*args, **kwargs):\n    raise NotImplementedError("thin is not migrated: it is not verified")'
        in draft.files["model_jax.py"]
    )
