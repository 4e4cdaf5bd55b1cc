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

REPORT_VERSION = 1


@dataclass(frozen=True)
class Found:
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


def told(found: Found) -> list[str]:
    """What is said below the table."""
    return [
        *tables.lines(found.costs),
        *(tpu_mesh.lines(found.sharded) if found.sharded else ()),
        *tables.fits(found.fits, found.remedies),
        *(tpu_kernels.lines(found.substituted) if found.substituted else ()),
        *(tpu_recompile.lines(found.recompiled) if found.recompiled else ()),
    ]


def report(found: Found) -> dict[str, Any]:
    """All that was found, as JSON (version 1)."""
    rows = [_row(cost) for cost in found.costs]
    return {
        "version": REPORT_VERSION,
        "unit": found.unit,
        "target": found.target,
        "costs": rows,
        "mesh": _mesh(found.sharded),
        **_fits(found),
        "recompilation": _again(found.recompiled),
        "kernels": _kernels(found.substituted),
    }


def _mesh(found: Sharded | None) -> dict[str, Any] | None:
    if found is None:
        return None
    placed = [plain(each) for each in found.proposal.placed]
    kept = {"axes": dict(found.proposal.axes), "parameters": placed, "activations": list(found.proposal.activations)}
    return {**kept, "check": plain(found.check), "notes": list(found.notes), "written": list(found.written)}


def _kernels(found: Substituted | None) -> dict[str, Any] | None:
    if found is None:
        return None
    told = {"tried": plain(found.adoption.tried), "adopted": list(found.adoption.kernels), "check": plain(found.adoption.check)}
    return {**told, "written": list(found.written)}


def _fits(found: Found) -> dict[str, Any]:
    helped = {place: [{"name": each.name, "helps": each.helps, **_row(each.cost)} for each in rows] for place, rows in found.remedies}
    return {"fits": plain(found.fits), "remedies": helped}


def _row(cost: Cost) -> dict[str, Any]:
    return {**plain(cost), "peak": cost.peak, "intensity": cost.intensity}


def _again(found: Recompiled | None) -> dict[str, Any] | None:
    return None if found is None else dict(plain(tpu_recompile.smaller(found)))
