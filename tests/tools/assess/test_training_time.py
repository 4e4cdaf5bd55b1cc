"""The law of training time against numbers worked out by hand."""

from __future__ import annotations

import pytest

from migrate_agent.tools.assess.accelerators import accelerators
from migrate_agent.tools.assess.training_time import training_line, training_time


def test_a_model_of_seven_billion_on_a_trillion_tokens() -> None:
    """4.2e22 operations over 256 chips of 197e12 a second: 231.3 hours at the peak."""
    time = training_time(7e9, 1e12, accelerators("v5e:16x16"), price=2.0)
    assert time.operations == pytest.approx(4.2e22)
    assert (time.hours.low, time.hours.likely, time.hours.high) == pytest.approx((462.7, 578.3, 771.1), rel=1e-3)
    assert time.cost is not None and time.cost.likely == pytest.approx(578.3 * 512, rel=1e-3)


@pytest.mark.parametrize(("shape", "fits"), [("v5e:2x2", False), ("v5e:4x4", True)])
def test_the_state_fits_or_not(shape: str, fits: bool) -> None:
    """7e9 × 16 bytes are 104 GiB; four chips of 16 GiB have 64, sixteen 256."""
    time = training_time(7e9, 1e12, accelerators(shape), price=None)
    assert time.fits is fits and time.cost is None
    assert ("does NOT fit" in training_line(time)) is not fits
