"""Training curves agree in float32 to half a per cent: SGD with momentum and AdamW from the same weights on the same batches."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.curves import curve_verdict
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within half a per cent of torch's own float32 curve. Applies where the unit is trained."""
    return curve_verdict(results, "curves_fp32", "native", tolerances.CURVE_FP32)


CHECK = Check("behavioural", "curves_fp32", judge, cost=NEW_PROCESS)
