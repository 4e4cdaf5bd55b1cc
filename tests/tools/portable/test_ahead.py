"""A unit exported on the candidate's side and compiled by the real TPU compiler, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.sandbox.bubblewrap import missing
from migrate_agent.tests.tools.portable.units import ahead, needs_compiler
from migrate_agent.tools.portable import ahead as module
from migrate_agent.tools.portable.ahead import ExtraMissing, Target, Variant
from migrate_agent.tools.portable.chips import topology

ONE = Target(topology("v5e:1x1"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_programs_are_exported_with_what_their_arguments_are(tmp_path: Path, sandbox: Sandbox) -> None:
    with ahead(tmp_path, sandbox, "plain") as unit:
        (facts,) = unit.facts([Variant(batch=32, dtype="bf16")])
        assert {path.name for path in (unit.folder / "exported").iterdir()} == {"b32-l0-bf16-forward.bin", "b32-l0-bf16-train.bin"}
    rows = facts["train"]["arguments"]
    assert [(row["path"], row["shape"], row["dtype"]) for row in rows if row["role"] == "input"] == [("0", [32, 128], "bfloat16")]
    assert [row["path"] for row in rows if row["role"] == "parameter"] == ["first/bias", "first/kernel", "second/bias", "second/kernel"]
    assert facts["layers"]["first"][0] == "Linear"
    assert facts["forward"]["largest"][0]["line"].startswith("model_jax.py:")


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_compiler", lambda: False)
    with ahead(tmp_path, sandbox, "plain") as unit, pytest.raises(ExtraMissing, match=r"^install migrate-agent\[tpu\]$"):
        unit.costs(Variant(), [ONE])


def test_a_kernel_s_bad_block_shape_is_refused_when_it_is_lowered(tmp_path: Path, sandbox: Sandbox) -> None:
    needs_compiler()
    with ahead(tmp_path, sandbox, "bad block") as unit:
        (found,) = unit.costs(Variant(), [ONE], ["forward"])
    assert found.refused is not None
    assert (found.refused.kind, found.refused.line) == ("block shape", "model_jax.py:16")


def test_costs_of_both_programs(tmp_path: Path, sandbox: Sandbox) -> None:
    needs_compiler()
    with ahead(tmp_path, sandbox, "plain") as unit:
        forward, train = unit.costs(Variant(batch=256), [ONE])
    flops = 2 * 2 * 256 * 128 * 256
    assert forward.refused is None and train.refused is None
    assert flops <= forward.flops < 1.1 * flops < 2 * flops <= train.flops
    assert 0 < forward.peak < train.peak < train.hbm == 16 * 2**30
    assert forward.bound > 0 and not forward.collectives


def test_the_compiler_runs_where_only_a_part_of_the_host_is_seen(tmp_path: Path) -> None:
    needs_compiler()
    if reason := missing():
        pytest.skip(f"bubblewrap: {reason}")
    with closing(open_sandbox("bubblewrap")) as apart, ahead(tmp_path, apart, "plain") as unit:
        (forward,) = unit.costs(Variant(), [ONE], ["forward"])
    assert forward.refused is None and forward.peak > 0


def test_sixteen_chips_share_the_batch_and_reduce_the_gradients(tmp_path: Path, sandbox: Sandbox) -> None:
    needs_compiler()
    with ahead(tmp_path, sandbox, "plain") as unit:
        (train,) = unit.costs(Variant(batch=64), [Target(topology("v5e:4x4"))], ["train"])
        (refused,) = unit.costs(Variant(batch=20), [Target(topology("v5e:4x4"))], ["train"])
    assert train.devices == 16
    assert "all-reduce" in {found.kind for found in train.collectives}
    assert refused.refused is not None and refused.refused.kind == "batch"


@pytest.mark.parametrize(
    ("body", "shape", "width", "kind", "line"),
    [
        ("too much vmem", "8192, 8192", 8192, "vmem", 16),
        ("half", "32, 128", 128, "float16", 16),
        ("too much hbm", "512, 4096", 4096, "hbm", 27),
    ],
)
def test_refusals_tell_the_line(tmp_path: Path, sandbox: Sandbox, body: str, shape: str, width: int, kind: str, line: int) -> None:
    needs_compiler()
    with ahead(tmp_path, sandbox, body, shape, width) as unit:
        (found,) = unit.costs(Variant(), [ONE], ["forward"])
    assert found.refused is not None, found
    assert (found.refused.kind, found.refused.line) == (kind, f"model_jax.py:{line}")
