"""Training curves agree in float64: SGD with momentum and AdamW from the same weights on the same batches."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.curves import curve_verdict
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the floor, or 64 times the change of torch's own curve by rounding noise. Applies where the unit is trained."""
    return curve_verdict(results, "curves_fp64", "exact", tolerances.FLOOR_GRADIENT_FP64)


CHECK = Check("behavioural", "curves_fp64", judge)
