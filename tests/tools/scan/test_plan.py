"""The order of work, and what is in scope."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_agent.tools.scan.plan import UnknownUnit, leaf_first, plan
from migrate_agent.tools.types import Inventory, SourceFile, Unit


def unit(name: str, *needs: str, source: str = "m.py") -> Unit:
    return Unit(source, name, "m_jax.py", "rewrite", needs=tuple(need if ":" in need else f"{source}:{need}" for need in needs))


@pytest.mark.parametrize(
    ("units", "order"),
    [
        ([unit("A", "B"), unit("B", "C"), unit("C")], "CBA"),
        ([unit("C"), unit("A"), unit("B")], "CAB"),
        ([unit("A", "C"), unit("B"), unit("C")], "BCA"),
        ([unit("A", "B"), unit("B", "A"), unit("C", "A"), unit("D")], "ABCD"),
        ([unit("A", "C"), unit("B", "A"), unit("C", "B"), unit("D")], "ABCD"),
        ([unit("A", "A"), unit("B", "elsewhere.py:Z")], "AB"),
        ([], ""),
    ],
)
def test_leaf_first(units: list[Unit], order: str) -> None:
    assert "".join(each.name for each in leaf_first(units)) == order


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_every_unit_comes_after_its_needs_unless_they_go_in_circles(pairs: list[tuple[int, int]]) -> None:
    downhill = [unit(f"U{number}", *(f"U{low}" for high, low in pairs if high == number and low > number)) for number in range(13)]
    order = {each.id: place for place, each in enumerate(leaf_first(downhill))}
    assert len(order) == 13
    assert all(order[need] < order[each.id] for each in downhill for need in each.needs)


def inventory() -> Inventory:
    units = (
        unit("Leaf", source="pkg/blocks.py"),
        unit("Block", "Leaf", source="pkg/blocks.py"),
        unit("GPT", "pkg/blocks.py:Block"),
        unit("Other"),
    )
    paths = ("model.py", "m.py", "pkg/blocks.py", "broken.py")
    files = [
        SourceFile(path, path[:-3], path, path[:-3], True, error="line 3: invalid syntax" if path == "broken.py" else "") for path in paths
    ]
    return Inventory(Path("/repo"), tuple(files), units)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ([], ["Leaf", "Block", "GPT", "Other"]),
        (["m.py"], ["Leaf", "Block", "GPT", "Other"]),
        (["m.py:Other"], ["Other"]),
        (["./pkg/blocks.py:Block"], ["Leaf", "Block"]),
        (["/repo/pkg/blocks.py:Leaf"], ["Leaf"]),
        (["pkg\\blocks.py:Leaf"], ["Leaf"]),
        (["m.py:Other", "m.py:GPT", "m.py:Other"], ["Leaf", "Block", "GPT", "Other"]),
    ],
)
def test_scope(wanted: list[str], names: list[str]) -> None:
    assert [each.name for each in plan(inventory(), wanted)] == names


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("m.py:GTP", "m.py has no module or function GTP to migrate; did you mean m.py:GPT?"),
        ("m.py:Block", "m.py has no module or function Block to migrate; did you mean pkg/blocks.py:Block?"),
        ("pkg/block.py:Leaf", "no Python file pkg/block.py in the repository; did you mean pkg/blocks.py?"),
        ("zzz.py", "no Python file zzz.py in the repository"),
        ("model.py", "model.py has no module and no function to migrate"),
        ("broken.py:Net", "broken.py cannot be read (line 3: invalid syntax)"),
        ("/elsewhere/m.py", "no Python file /elsewhere/m.py in the repository"),
        ("GPT", "no Python file GPT in the repository; did you mean m.py:GPT?"),
        ("", "--module is empty: it takes FILE or FILE:NAME"),
    ],
)
def test_unknown(wanted: str, message: str) -> None:
    with pytest.raises(UnknownUnit) as error:
        plan(inventory(), [wanted])
    assert str(error.value).startswith(message)
    assert isinstance(error.value, KeyError)
