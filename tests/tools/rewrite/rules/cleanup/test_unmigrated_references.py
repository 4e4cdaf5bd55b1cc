"""What a file names when it is imported, and that has no counterpart, is an error once it is used, and holds nothing up before."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import pytest
from flax import nnx

from migrate_agent.tools.record.instrument import Columns
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.rewrite.assemble.import_errors import names_used
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Observations, Observed, Span
from migrate_agent.tools.vendored.unmigrated import NoLayer, NotMigrated

MODEL = """import functools
import torch
from functools import partial
from torch import nn
from torch.optim import Adam

from pkg.other import Known, Warm, make

{top}

class Unit(nn.Module):
    def __init__(self, width{parameter}):
        super().__init__()
        self.width = width
        self.keep = {reads}

    def forward(self, x):
        return x * self.width
"""
OTHER = """import torch
from torch import nn


class Known(nn.Module):
    def forward(self, x):
        return x.relu()


class Warm(torch.optim.Optimizer):
    def step(self):
        return None


class Warmer(Warm):
    pass


def make(x):
    return torch.unique(x)
"""
ERROR = "NotMigrated('torch.optim.Adam has no counterpart in JAX')"
BASE = "NotMigrated('torch.optim.Optimizer has no counterpart in JAX')"


def drafted(folder: Path, top: str, reads: str = "None", parameter: str = "", seen: str = "") -> Draft:
    """A unit of which every expression that `Unit` holds was observed; `seen` is what was seen to be called in its constructor."""
    (folder / "pkg").mkdir()
    (folder / "pkg/__init__.py").write_text("")
    (folder / "pkg/other.py").write_text(OTHER)
    source = MODEL.format(top=top, reads=reads, parameter=parameter)
    (folder / "pkg/one.py").write_text(source)
    return compose(scan(folder), {"pkg/one.py": observed(source, seen)}, ["pkg/one.py:Unit"])


def observed(source: str, seen: str) -> dict[Span, Observed]:
    unit = ast.parse(source).body[-1]
    columns = Columns(source)
    found: dict[Span, Observed] = {}
    for method in unit.body:  # type: ignore[attr-defined]
        for node in (n for statement in method.body for n in ast.walk(statement)):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                called = isinstance(node, ast.Subscript)
                found[columns.span(node)] = Observed((seen if called and seen else "object:x.Y",))
    return found


KEPT = [
    ('TABLE = {"adam": Adam, "known": Known}', "TABLE", f'TABLE = {{"adam": {ERROR}, "known": Known}}'),
    (
        'TABLE = {"adam": torch.optim.Adam(), "two": 2}',
        "TABLE",
        'TABLE = {"adam": NotMigrated(\'no rule for torch.optim.Adam\'), "two": 2}',
    ),
    ("TABLE = (Known, torch.nn.LazyLinear)", "TABLE", "TABLE = (Known, NoLayer('torch.nn.LazyLinear has no counterpart in JAX'))"),
    ("TABLE = [Known, (Adam, 3)]", "TABLE", f"TABLE = [Known, ({ERROR}, 3)]"),
    ("TABLE = dict(one=partial(Adam, lr=0.1))", "TABLE", f"TABLE = dict(one=partial({ERROR}, lr=0.1))"),
    ("TABLE = {'f': lambda p: Adam(p)}", "TABLE", "TABLE = {'f': NotMigrated('no rule for torch.optim.Adam')}"),
    ("TABLE = {'warm': Warm}\nFIRST = TABLE['warm']", "FIRST", "TABLE = {'warm': Warm}\nFIRST = TABLE['warm']"),
    ("TABLE = {'make': make}", "TABLE", "TABLE = {'make': make}"),
    ("HELD = Adam\nTABLE = {'held': HELD}", "TABLE", f"HELD = {ERROR}\nTABLE = {{'held': HELD}}"),
    ("HELD = Warm\nNAME = HELD.__name__\nTABLE = {'name': NAME}", "TABLE", f"NAME = {BASE}"),
    ("A, B = sorted([Adam, Known])\nTABLE = {'a': A}", "TABLE", f"A = B = {ERROR}"),
]
"""What stands at the top of the file, what the constructor reads of it, and what becomes of it."""


@pytest.mark.parametrize(("top", "reads", "expected"), KEPT)
def test_an_error_once_it_is_used(tmp_path: Path, top: str, reads: str, expected: str) -> None:
    draft = drafted(tmp_path, top, reads)
    assert not draft.holes
    assert _plain(expected) in _plain(draft.files["pkg_jax/one.py"])
    assert any("not migrated" in note for note in draft.notes)
    for text in draft.files.values():
        assert "torch" not in {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_a_default_of_a_parameter(tmp_path: Path) -> None:
    draft = drafted(tmp_path, "", "rule", ", rule=Adam")
    assert not draft.holes and _plain(f"rule={ERROR}") in _plain(draft.files["pkg_jax/one.py"])


def test_classes_derived_from_an_error_are_errors(tmp_path: Path) -> None:
    draft = drafted(tmp_path, "from pkg.other import Warmer\nTABLE = {'warm': Warmer}", "TABLE")
    assert not draft.holes
    assert _plain(f"Warmer = {BASE}") in _plain(draft.files["pkg_jax/other.py"])


REFUSED = [
    ("USED = Adam", "USED", ""),
    ("USED = Adam.__name__", "USED", ""),
    ("USED = torch.version.cuda", "None if USED is None else 1", ""),
    ("TABLE = {'cuda': torch.version.cuda}", "TABLE", ""),
    ('TABLE = {"adam": Adam}', 'TABLE["adam"]', "class:torch.optim.adam.Adam"),
    ("TABLE = sorted([Adam])", "TABLE", ""),
]
"""Here an example used it, or code asks whether it is None."""


@pytest.mark.parametrize(("top", "reads", "seen"), REFUSED)
def test_what_is_used_stays_a_hole(tmp_path: Path, top: str, reads: str, seen: str) -> None:
    draft = drafted(tmp_path, top, f"{reads}()" if seen else reads, seen=seen)
    assert draft.holes and "NotMigrated" not in draft.files["pkg_jax/one.py"]


def test_without_observations_nothing_is_put_off(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "import torch\n\nTABLE = {'adam': torch.optim.Adam}\n\n\ndef f():\n    return TABLE\n\n\nclass U(torch.nn.Module):\n    t = TABLE\n"
    )
    none: Observations = {}
    assert compose(scan(tmp_path), none, ["one.py:U"]).holes


USES = [
    (lambda it: it(), "call"),
    (lambda it: it.width, "attribute"),
    (lambda it: it["a"], "item"),
    (lambda it: list(it), "iteration"),
    (lambda it: bool(it), "truth"),
    (lambda it: isinstance(3, it), "instance"),
    (lambda it: type(it).__mro_entries__(it, (it,)), "base"),
]


@pytest.mark.parametrize("use", [use for use, _ in USES], ids=[name for _, name in USES])
def test_using_it_says_why(use: object) -> None:
    with pytest.raises(NotImplementedError, match="the reason"):
        use(NotMigrated("the reason"))  # type: ignore[operator]


def test_nothing_is_an_instance_of_a_layer_that_is_not_there() -> None:
    layer = NoLayer("the reason")
    assert not isinstance(3, (str, layer))  # type: ignore[arg-type]
    assert not issubclass(int, (str, layer))  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="the reason"):
        layer(3)


def test_it_may_be_kept_in_a_module() -> None:
    class Holder(nnx.Module):
        def __init__(self) -> None:
            self.kind = NotMigrated("the reason")

        def __call__(self, x: jax.Array) -> jax.Array:
            return x * 2

    double = nnx.jit(lambda module, x: module(x))
    holder = Holder()
    assert double(holder, 2.0) == 4 and double(holder, 3.0) == 6


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = B", set()),
        ("A = {B: C, 'd': [D]}", {"B"}),
        ("A = dict(B, c=C)", {"B"}),
        ("A = partial(B, C, d=D)", set()),
        ("A = f(B)", {"f", "B"}),
        ("@d\ndef f(a=B, b=C.x):\n    return D", {"d", "C"}),
        ("class A(B):\n    c = C\n    d = D()\n    def f(self):\n        return E", {"B", "D"}),
    ],
)
def test_names_used_while_importing(source: str, names: set[str]) -> None:
    assert names_used(ast.parse(source).body) == names


def _plain(text: str) -> str:
    """Without layout and kinds of quotes."""
    return "".join(text.replace('"', "'").split()).replace(",)", ")").replace(",}", "}").replace(",]", "]")
