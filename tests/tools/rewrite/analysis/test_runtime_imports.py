"""Names got from functions that import at run time become imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Observed, Span

LOADER = "def optional(name, attribute):\n    return getattr(__import__(name), attribute), True\n"
MODEL = """from torch import nn

from pkg.loader import optional

{name}, _ = optional({module}, "prod")

class {unit}(nn.Module):
    def forward(self, x):
        return x * {name}((2, 3))
"""
READ = {"One": Span(9, 19, 9, 23), "Two": Span(9, 19, 9, 26)}


def drafted(folder: Path, seen: dict[str, str], module: str = '"math"') -> Draft:
    """Two files that make the same call; what its result was seen to be in each."""
    (folder / "pkg").mkdir()
    (folder / "pkg/__init__.py").write_text("")
    (folder / "pkg/loader.py").write_text(LOADER)
    for unit, name in (("One", "prod"), ("Two", "product")):
        (folder / f"pkg/{unit.lower()}.py").write_text(MODEL.format(unit=unit, name=name, module=module))
    observations = {f"pkg/{unit.lower()}.py": {READ[unit]: Observed((kind,))} for unit, kind in seen.items()}
    observations["pkg/loader.py"] = {Span(2, 11, 2, 50): Observed(("object:x.Y",))}  # it ran
    return compose(scan(folder), observations, ["pkg/one.py:One", "pkg/two.py:Two"])


def test_what_one_file_saw_holds_for_the_same_call_elsewhere(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"One": "function:math.prod"})
    assert not draft.holes and "pkg_jax/loader.py" not in draft.files
    assert "from math import prod\n" in draft.files["pkg_jax/one.py"]
    assert "from math import prod as product\n" in draft.files["pkg_jax/two.py"]


@pytest.mark.parametrize(
    ("seen", "module"),
    [
        ({}, '"math"'),
        ({"One": "int"}, '"math"'),
        ({"One": "function:math.prod", "Two": "function:numpy.prod"}, '"math"'),
        ({"One": "function:math.prod"}, "__name__"),
    ],
)
def test_nothing_is_bound_where_that_is_not_sure(tmp_path: Path, seen: dict[str, str], module: str) -> None:
    assert {hole.code for hole in drafted(tmp_path, seen, module).holes} == {"reaches-out"}


def test_layers_that_are_found_are_rewritten(tmp_path: Path) -> None:
    text = MODEL.format(unit="One", name="Linear", module='"torch.nn"').replace("x * Linear((2, 3))", "Linear(2, 3)(x)")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/loader.py").write_text(LOADER)
    (tmp_path / "pkg/one.py").write_text(text)
    observations = {"pkg/one.py": {Span(9, 15, 9, 21): Observed(("class:torch.nn.Linear",))}}
    draft = compose(scan(tmp_path), observations, ["pkg/one.py:One"])
    assert not draft.holes
    assert "Linear(2, 3, rngs=self.rngs)" in draft.files["pkg_jax/one.py"] and "torch" not in draft.files["pkg_jax/one.py"]
