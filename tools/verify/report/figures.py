"""What was measured but is not judged, and the weight map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrate_agent.tools.types import Weight
from migrate_agent.tools.verify.contract.scenario import MALFORMED
from migrate_agent.tools.verify.evidence.candidate import Results


def figures(results: Results) -> dict[str, float]:
    """Peak memory in bytes of both sides, seconds of a step, what the check at full size took, and what TPU programs cost; what is zero is left out."""
    theirs = results.original.peak_memory_bytes if results.original is not None else 0
    values = {"candidate_peak_memory_bytes": float(results.peak_memory_bytes), "original_peak_memory_bytes": float(theirs)}
    values |= {f"{key}_seconds": value for key, value in results.seconds.items()}
    values |= results.full_size
    for cost in results.tpu_costs:
        quantities = {"peak_bytes": cost.peak, "hbm_bytes": cost.hbm, "flops": cost.flops, "moved_bytes": cost.bytes}
        values |= {f"tpu/{cost.topology}/{cost.program}/{name}": float(value) for name, value in quantities.items()}
    return {key: value for key, value in values.items() if value}


def weight_map(results: Results) -> tuple[Weight, ...]:
    """The weight map, in the original's order and with its names and shapes alone; none where what the candidate's process wrote is no map."""
    if "exact" not in results.runs:
        return ()
    try:
        rows = {row.name: row for row in map(_weight, results.exact.get("spec", {}).get("weights") or ())}
        state = results.described()["state"]
        return tuple(rows[name] for name in state if name in rows and list(rows[name].shape) == state[name])
    except MALFORMED:  # the candidate's process may write anything
        return ()


def _weight(row: Mapping[str, Any]) -> Weight:
    axes = None if row["axes"] is None else tuple(map(int, row["axes"]))
    return Weight(str(row["name"]), str(row["path"]), tuple(map(int, row["shape"])), axes)
