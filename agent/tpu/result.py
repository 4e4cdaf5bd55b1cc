"""What `migrate-agent tpu` found out about one unit, as lines for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrate_agent.agent.config.json_files import plain
from migrate_agent.agent.tpu import kernels as tpu_kernels
from migrate_agent.agent.tpu import mesh as tpu_mesh
from migrate_agent.agent.tpu import recompile as tpu_recompile
from migrate_agent.agent.tpu import tables
from migrate_agent.agent.tpu.kernels import Substituted
from migrate_agent.agent.tpu.mesh import Sharded
from migrate_agent.agent.tpu.recompile import Recompiled
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.fit import Fit, Remedy
from migrate_agent.tools.portable.full import smallest_fitting

REPORT_VERSION = 1


@dataclass(frozen=True)
class TpuResult:
    """What is told in the end, in text, JSON and HTML."""

    unit: str
    target: str
    costs: tuple[Cost, ...] = ()
    sharded: Sharded | None = None
    fits: tuple[Fit, ...] = ()
    remedies: tuple[tuple[str, tuple[Remedy, ...]], ...] = ()
    """By topology, where the size that was asked about does not fit."""
    recompiled: Recompiled | None = None
    substituted: Substituted | None = None
    full: bool = False
    """Whether the costs are those of the example's real configuration, split over all devices."""


def result_lines(result: TpuResult) -> list[str]:
    """What is said below the table."""
    return [
        *tables.cost_lines(result.costs),
        *(tables.full_lines(result.costs) if result.full else ()),
        *(tpu_mesh.mesh_lines(result.sharded) if result.sharded else ()),
        *tables.fit_lines(result.fits, result.remedies),
        *(tpu_kernels.kernel_lines(result.substituted) if result.substituted else ()),
        *(tpu_recompile.recompilation_lines(result.recompiled) if result.recompiled else ()),
    ]


def report_json(result: TpuResult) -> dict[str, Any]:
    """All that was found, as JSON (version 1)."""
    rows = [_row(cost) for cost in result.costs]
    return {
        "version": REPORT_VERSION,
        "unit": result.unit,
        "target": result.target,
        "costs": rows,
        "mesh": _mesh(result.sharded),
        **_fits(result),
        "recompilation": _again(result.recompiled),
        "kernels": _kernels(result.substituted),
        "full": smallest_fitting(result.costs) if result.full else None,
    }


def _mesh(sharded: Sharded | None) -> dict[str, Any] | None:
    if sharded is None:
        return None
    placed = [plain(parameter) for parameter in sharded.proposal.placed]
    proposal = {"axes": dict(sharded.proposal.axes), "parameters": placed, "activations": list(sharded.proposal.activations)}
    return {**proposal, "check": plain(sharded.check), "notes": list(sharded.notes), "written": list(sharded.written)}


def _kernels(substituted: Substituted | None) -> dict[str, Any] | None:
    if substituted is None:
        return None
    adoption = {
        "tried": plain(substituted.adoption.tried),
        "adopted": list(substituted.adoption.kernels),
        "check": plain(substituted.adoption.check),
    }
    return {**adoption, "written": list(substituted.written)}


def _fits(result: TpuResult) -> dict[str, Any]:
    helped = {
        chips: [{"name": remedy.name, "helps": remedy.helps, **_row(remedy.cost)} for remedy in rows] for chips, rows in result.remedies
    }
    return {"fits": plain(result.fits), "remedies": helped}


def _row(cost: Cost) -> dict[str, Any]:
    return {**plain(cost), "peak": cost.peak, "intensity": cost.intensity}


def _again(recompiled: Recompiled | None) -> dict[str, Any] | None:
    return None if recompiled is None else dict(plain(tpu_recompile.smaller(recompiled)))
