"""On which topologies a unit in its real configuration fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.tools.portable.units import ahead, needs_compiler
from migrate_agent.tools.portable.ahead import Target, Variant
from migrate_agent.tools.portable.chips import topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.full import full_costs, smallest_fitting, split_specs
from migrate_agent.tools.portable.refusal import Refusal

REFUSED = Refusal("hbm", "", "too much", "")
ROWS = (
    {"path": "fc/kernel", "role": "parameter", "shape": [6, 8]},
    {"path": "fc/bias", "role": "parameter", "shape": [8]},
    {"path": "0", "role": "input", "shape": [4, 6]},
)


def test_the_first_topology_that_fits_is_told_for_each_program() -> None:
    costs = [
        Cost("v5e:1x1", "forward", refused=REFUSED),
        Cost("v5e:1x1", "train", refused=REFUSED),
        Cost("v5e:2x2", "forward"),
        Cost("v5e:2x2", "train", refused=REFUSED),
        Cost("v5e:4x4", "forward"),
    ]
    assert smallest_fitting(costs) == {"forward": "v5e:2x2", "train": ""}


def test_parameters_and_batch_are_split_over_all_devices() -> None:
    target = Target(topology("v5e:2x2"), {"fsdp": 4})
    assert split_specs({"fc": ["Linear"]})(ROWS, 4, target) == [[None, "fsdp"], None, [["fsdp"]]]


def test_a_batch_that_cannot_be_split_is_refused() -> None:
    refusal = split_specs({"fc": ["Linear"]})(ROWS, 3, Target(topology("v5e:2x2"), {"fsdp": 4}))
    assert isinstance(refusal, Refusal)
    assert refusal.kind == "batch"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_training_that_one_chip_has_no_memory_for_fits_on_four(tmp_path: Path, sandbox: Sandbox) -> None:
    needs_compiler()
    with ahead(tmp_path, sandbox, "plain", shape="1, 20480", width=20480) as unit:  # 1.7 billion parameters
        costs = full_costs(unit, Variant(), [topology("v5e:1x1"), topology("v5e:2x2")], ("forward", "train"))
    assert smallest_fitting(costs) == {"forward": "v5e:1x1", "train": "v5e:2x2"}
    assert [(cost.topology, cost.refused.kind) for cost in costs if cost.refused] == [("v5e:1x1", "hbm")]
    assert all(cost.batch == (4 if cost.topology == "v5e:2x2" else 1) for cost in costs)
