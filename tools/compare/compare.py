"""One decision over all that two sides share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from migrate_agent.tools.compare.align import Aligned, Unaligned, align, common_axis
from migrate_agent.tools.compare.finding import Decision, Finding, percent
from migrate_agent.tools.compare.kinds import kind_of
from migrate_agent.tools.compare.limits import Limits
from migrate_agent.tools.compare.log import Log
from migrate_agent.tools.compare.serving import serving_findings
from migrate_agent.tools.compare.training import curve_findings, speed_finding

NOTABLE = 0.01
"""A metric that is judged by nothing, such as the learning rate, is noted from this relative difference on."""
_QUALITY = ("loss", "quality")


@dataclass(frozen=True)
class Comparison:
    """`line` says the decision with its reason. `curves` are the shared metrics on `axis`, for plots."""

    decision: Decision
    line: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    axis: str = ""
    curves: Mapping[str, Aligned] = field(default_factory=dict)


def compare(a: Sequence[Log], b: Sequence[Log], limits: Limits) -> Comparison:
    """Compare the runs of both sides. What cannot be compared makes the decision `cannot say`, with the reason; nothing is raised."""
    shared = sorted(set.intersection(*(set(log.metrics) for log in (*a, *b))))
    missing = [metric for metric in limits.metrics if metric not in shared]
    if missing:
        return _undecided(f"{missing[0]} is not in every log; all have {', '.join(shared) or 'no metric in common'}")
    serving = all(log.requests for log in (*a, *b))
    if not shared and not serving:
        names = [", ".join(sorted({name for log in side for name in log.metrics})) or "served requests" for side in (a, b)]
        return _undecided(f"the logs share no metric: A has {names[0]}; B has {names[1]}")
    try:
        axis, note = common_axis(a, b, limits) if shared else ("", "")
    except Unaligned as error:
        return _undecided(str(error))
    findings = tuple(_findings(a, b, shared, axis, limits))
    decision, line = _decide(findings, bool(shared))
    curves = dict(_curves(a, b, shared, axis))
    notes = [note] if note else []
    return Comparison(decision, line, findings, (*notes, *_notes(a, b, findings, curves, limits)), axis, curves)


def _findings(a: Sequence[Log], b: Sequence[Log], shared: Sequence[str], axis: str, limits: Limits) -> Iterator[Finding]:
    judged = limits.metrics or tuple(metric for metric in shared if kind_of(metric) in _QUALITY)
    for metric in judged:
        if kind_of(metric) not in ("throughput", "step_time", "latency", "error_rate"):
            yield from curve_findings(a, b, metric, axis, limits)
    rest = [metric for metric in shared if not limits.metrics or metric in limits.metrics]
    speed = (
        speed_finding(a, b, rest, limits)
        if rest and (not limits.metrics or any(kind_of(m) in ("throughput", "step_time") for m in rest))
        else None
    )
    if speed is not None:
        yield speed
    yield from serving_findings(a, b, rest, limits)


def _undecided(reason: str) -> Comparison:
    return Comparison("cannot say", f"cannot say: {reason}", ())


def _decide(findings: Sequence[Finding], training: bool) -> tuple[Decision, str]:
    """A reason to go back outweighs what cannot be said, and that outweighs what is fine."""
    order: tuple[Decision, ...] = ("roll back", "cannot say")
    for decision in order:
        reasons = [finding.detail for finding in findings if finding.decision == decision]
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return decision, f"{decision}: {reasons[-1]}{more}"
    kinds = {finding.kind for finding in findings}
    if not kinds & {*_QUALITY, "other", "latency", "error_rate"}:
        return "cannot say", "cannot say: the logs share no loss and no other measure of quality"
    return "go", f"go: {_summary(findings)}"


def _summary(findings: Sequence[Finding]) -> str:
    curves = [finding for finding in findings if finding.kind in (*_QUALITY, "other")]
    parts = []
    if curves:
        worst = max(curves, key=lambda finding: abs(finding.change or 0))
        names = ", ".join(dict.fromkeys(finding.metric for finding in curves))
        parts.append(
            f"{names} at {len(curves)} place{'s' if len(curves) > 1 else ''}: at most {percent(abs(worst.change or 0))} apart ({worst.metric} at {worst.at})"
        )
    return "; ".join([*parts, *(finding.detail for finding in findings if finding not in curves)])


def _curves(a: Sequence[Log], b: Sequence[Log], shared: Sequence[str], axis: str) -> Iterator[tuple[str, Aligned]]:
    for metric in shared:
        try:
            yield metric, align(a, b, metric, axis, 1)
        except Unaligned:
            continue


def _notes(a: Sequence[Log], b: Sequence[Log], findings: Sequence[Finding], curves: Mapping[str, Aligned], limits: Limits) -> Iterator[str]:
    judged = {finding.metric for finding in findings}
    for metric, curve in curves.items():
        before, after = float(np.mean(curve.a)), float(np.mean(curve.b))
        if metric not in judged and abs(after - before) > NOTABLE * abs(before):
            yield f"not judged: {metric} is {before:.4g} and {after:.4g} on average"
    if not any(finding.kind == "throughput" for finding in findings) and curves and not limits.metrics:
        yield "not judged: the speed, since the logs have no clock or rate in common"
    if curves and len(a) + len(b) == 2 and limits.noise is None:
        yield "the noise between seeds is not known: give several runs a side, or --noise"
