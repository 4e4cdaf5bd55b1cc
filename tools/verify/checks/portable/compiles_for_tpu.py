"""Forward pass and training step compile for the configured TPUs, and fit into their memory. Judged only where a topology is configured."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.tools.portable.ahead import EXTRA, ExtraMissing, PortableError, has_compiler
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.tpu import compile_programs

NAME = "compiles_for_tpu"


def judge(results: Results) -> Verdict | None:
    """`measured` is the highest peak of device memory in bytes, `limit` the memory of that device."""
    if not results.portable.topologies:
        return None
    # Before the costs, which would export the programs for nothing.
    if not has_compiler():
        return Verdict("portable", NAME, "unverified", detail=EXTRA)
    if results.port:
        return Verdict("portable", NAME, "unverified", detail="only modules of Flax NNX are compiled ahead of time")
    try:
        costs = compile_programs(results)
    except ExtraMissing:
        return Verdict("portable", NAME, "unverified", detail=EXTRA)
    except PortableError as error:
        return Verdict("portable", NAME, "unverified", detail=str(error))
    return _judged(costs)


def _judged(costs: Sequence[Cost]) -> Verdict:
    for cost in costs:
        if (refused := cost.refused) is not None:
            location = f" at {refused.line}" if refused.line else ""
            detail = f"{cost.topology} {cost.program}: refused ({refused.kind}){location}: {refused.text}; {refused.advice}"
            return Verdict("portable", NAME, "fail", detail=detail)
    # Every program compiled, so the one nearest to its limit stands for all of them.
    tightest = max(costs, key=lambda cost: cost.peak / cost.hbm)
    return Verdict("portable", NAME, "pass", float(tightest.peak), float(tightest.hbm), "; ".join(map(_told, costs)))


def _told(cost: Cost) -> str:
    collectives = "".join(f", {collective.count} {collective.kind}" for collective in cost.collectives)
    return f"{cost.topology} {cost.program}: {cost.peak / 2**20:.4g} MiB, {cost.flops:.3g} FLOPs, {cost.bytes:.3g} bytes{collectives}"


CHECK = Check("portable", NAME, judge, cost=NEW_PROCESS)
