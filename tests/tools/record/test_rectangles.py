"""Images that are not square."""

import pytest

from migrate_agent.tools.record.guessing.sizes.rectangles import rectangles
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage
from migrate_agent.tools.record.guessing.values import Tensor

CASES = [
    ((2, 3, 32, 32), 2048, 21504, (2, 3, 112, 96)),
    ((2, 1, 64, 32), 512, 768, (2, 1, 64, 48)),
    ((2, 3, 32, 32), 2048, 2049, None),
    ((2, 3, 32), 96, 192, None),
]


@pytest.mark.parametrize(("shape", "left", "wanted", "expected"), CASES)
def test_sides_leave_what_a_layer_takes(shape: tuple[int, ...], left: int, wanted: int, expected: tuple[int, ...] | None) -> None:
    outcome = Outcome(Stage.CALL, error=f"RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x{left} and {wanted}x512)")
    found = [dict(one.call or ())["x"].shape for one in rectangles(Attempt((), (("x", Tensor(shape)),)), outcome)]  # type: ignore[union-attr]
    assert (expected in found) if expected is not None else not found
