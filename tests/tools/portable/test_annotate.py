"""Shardings written into a rewrite: where they stand, that NNX reads them, and what is left out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.tools.portable.units import ahead
from migrate_agent.tools.portable.ahead import Variant
from migrate_agent.tools.portable.annotate import annotate
from migrate_agent.tools.portable.sharding import PlacedParameter, Proposal, parse_mesh, propose

TEXT = textwrap.dedent("""
    class Block:
        def __init__(self, *, rngs):
            self.fc = Linear(2, 4)  # wide
            self.parts = nnx.Dict({"a": Linear(4, 2)})

        def __call__(self, x):
            return x

    class Early:
        def __init__(self, *, rngs):
            self.fc = Linear(2, 4)
            return
    """)
LAYERS = {"0/parts": ["Dict", "Module"], "1/parts": ["Dict", "Module"]}
OWNERS = {"0": ["m.py", "Block"], "1": ["m.py", "Block"], "2": ["m.py", "Early"]}


def placed(path: str, *spec: str | None) -> PlacedParameter:
    return PlacedParameter(path, (2,) * len(spec), "Linear", spec if any(spec) else (), "")


def proposal(*rows: PlacedParameter) -> Proposal:
    return Proposal(parse_mesh("model=2"), rows)


def test_statements_stand_at_the_end_of_the_constructor_and_are_replaced() -> None:
    rows = [placed(f"{index}/{path}", None, "model") for index in (0, 1) for path in ("fc/kernel", "parts/a/kernel")]
    once = annotate({"m.py": TEXT}, proposal(*rows), OWNERS, LAYERS).files["m.py"]
    lines = [line.strip() for line in once.splitlines()]
    start = lines.index("# Which axis of the mesh each axis of a parameter lies on.")
    assert lines[start + 1 : start + 3] == [
        'self.fc.kernel.set_metadata(out_sharding=(None, "model"))',
        'self.parts["a"].kernel.set_metadata(out_sharding=(None, "model"))',
    ]
    assert lines[start - 1].startswith("self.parts =")
    assert annotate({"m.py": once}, proposal(*rows), OWNERS, LAYERS).files == {}
    moved = annotate({"m.py": once}, proposal(placed("0/fc/kernel", "model", None), placed("1/fc/kernel", "model", None)), OWNERS, LAYERS)
    assert moved.files["m.py"].count("set_metadata") == 1


def test_what_instances_do_not_agree_on_is_left_out_and_told() -> None:
    found = annotate({"m.py": TEXT}, proposal(placed("0/fc/kernel", None, "model"), placed("1/fc/kernel", None, None)), OWNERS, LAYERS)
    assert (found.files, found.notes) == ({}, ("Block: its instances do not agree on self.fc.kernel, which stays whole",))


def test_a_constructor_that_returns_is_left_alone() -> None:
    found = annotate({"m.py": TEXT}, proposal(placed("2/fc/kernel", None, "model")), OWNERS, LAYERS)
    assert found.files == {} and "Early" in found.notes[0]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_nnx_reads_what_was_written(tmp_path: Path, sandbox: Sandbox) -> None:
    with ahead(tmp_path, sandbox, "plain") as unit:
        (facts,) = unit.facts([Variant()], ["forward"])
        wanted = propose(facts["forward"]["arguments"], facts["layers"], parse_mesh("data=4,model=2"))
        file = unit.candidate / "model_jax.py"
        file.write_text(annotate({"model_jax.py": file.read_text()}, wanted, facts["owners"], facts["layers"]).files["model_jax.py"])
        unit.forget()
        (after,) = unit.facts([Variant()], ["forward"])
    assert after["annotations"] == {each.path: list(each.spec) for each in wanted.placed if each.spec} != {}
