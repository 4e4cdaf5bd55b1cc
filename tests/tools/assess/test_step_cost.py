"""Steps on accelerators against numbers worked out by hand."""

from __future__ import annotations

import pytest

from migrate_agent.tools.assess.accelerators import accelerators
from migrate_agent.tools.assess.step_cost import compiled_cost, counted_cost, step_lines, traffic_of
from migrate_agent.tools.portable.chips import TopologyError
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.refusal import Refusal

COUNTED = {"flops": 8e15, "bytes": 50e9, "peak": 100e9, "kept": 20e9}


def test_a_step_shared_by_eight_gpus() -> None:
    """1e15 operations each at 989.5e12 a second; 20 GB on each of them, and an eighth of the other 80."""
    cost = counted_cost(accelerators("h100:8"), COUNTED, batch=16, steps=3600, price=2.0)
    assert (cost.peak, cost.moved) == (30e9, 20e9 + 30e9 / 8) and cost.bound_by == "compute" and cost.fits
    assert cost.bound == pytest.approx(1e15 / 989.5e12)
    assert cost.hours is not None and cost.hours == pytest.approx((cost.bound / 0.5, cost.bound / 0.4, cost.bound / 0.3))
    assert cost.cost is not None and cost.cost.likely == pytest.approx(cost.hours.likely * 16)


def test_a_step_bound_by_memory_takes_the_bound() -> None:
    cost = counted_cost(accelerators("l4"), {**COUNTED, "flops": 1e9}, batch=1, steps=3600, price=None)
    assert cost.bound_by == "memory" and not cost.fits and cost.hours is not None and set(cost.hours) == {50e9 / 300e9}


@pytest.mark.parametrize(("flops", "expected"), [(4e12, 4e12), (1e12, 8e15 / 4)])
def test_compiled_operations_unless_loops_hide_some(flops: float, expected: float) -> None:
    """Two devices to a chip of v4: a chip has the figures of both."""
    compiled = Cost("v4:2x2x1", "train", devices=8, flops=flops / 2, bytes=1e9, hbm=16 * 2**30, memory={"temp": 2**30, "alias": 0})
    cost = compiled_cost(accelerators("v4:2x2x1"), compiled, {"flops": 8e15 if flops == 1e12 else 0.0}, 0, None)
    assert (cost.flops, cost.moved, cost.hours) == (expected, 2e9, None) and cost.fits


def test_gpus_move_what_was_compiled_for_a_tpu() -> None:
    """30 GB on each of four devices, of which 20 GB are parameters on each: 40 GB to split."""
    assert traffic_of([Cost("v5e:2x2", "train", refused=Refusal("hbm", "", "", ""))], COUNTED) == {}
    counted = {**COUNTED, **traffic_of([Cost("v5e:2x2", "train", devices=4, bytes=30e9)], COUNTED)}
    cost = counted_cost(accelerators("h100:8"), counted, 8, 0, None)
    assert cost.moved == 25e9 and "v5e:2x2" in cost.by


def test_lines_name_what_is_best_of_what_fits_and_what_is_refused() -> None:
    refused = Cost("v5e:1x1", "train", refused=Refusal("hbm", "", "too large", "a smaller batch"))
    costs = [counted_cost(accelerators(name), COUNTED, 8, 10, price) for name, price in (("h200:8", 9.0), ("h100:8", 1.0), ("a100:8", 1.0))]
    costs += [compiled_cost(accelerators("v5e:1x1"), refused, COUNTED, 10, None), counted_cost(accelerators("l4:3"), COUNTED, 8, 10, 1.0)]
    lines = step_lines(costs, 10)
    assert lines[3:] == [
        "v5e:1x1: no figures: hbm: too large",
        "l4:3: no figures: a batch of 8 cannot be shared by 3 devices",
        "fastest of those that fit: h200:8",
        "cheapest of those that fit, of 3 with a price: h100:8",
    ]


@pytest.mark.parametrize("text", ["h100:0", "h900:8", "v5e:0x2", ""])
def test_no_accelerator_is_one_line(text: str) -> None:
    with pytest.raises(TopologyError) as raised:
        accelerators(text)
    assert "\n" not in str(raised.value)
