"""Findings about serving: percentiles of the latency, and the share of requests that failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from migrate_agent.tools.compare.finding import Decision, Finding, decide, percent
from migrate_agent.tools.compare.kinds import kind_of
from migrate_agent.tools.compare.limits import Limits
from migrate_agent.tools.compare.log import Array, Log
from migrate_agent.tools.compare.noise import margin, share_bounds

PERCENTILES = (50, 95, 99)
TAIL = 10
"""Requests beyond a percentile that it needs to be known by."""


def serving_findings(a: Sequence[Log], b: Sequence[Log], shared: Sequence[str], limits: Limits) -> Iterator[Finding]:
    """Of logs with a row for each request; and of logs that hold latencies and error rates over time."""
    yield from _latencies(a, b, limits)
    yield from _errors(a, b, limits)
    for metric in shared:
        if kind_of(metric) == "latency":
            yield _latency(metric, "", _medians(a, metric), _medians(b, metric), None, limits)
        elif kind_of(metric) == "error_rate":
            yield _rate(metric, float(np.concatenate([log.metrics[metric].values for log in b]).mean()), limits)


def _medians(side: Sequence[Log], metric: str) -> Array:
    return np.array([float(np.median(log.metrics[metric].values)) for log in side])


def _samples(side: Sequence[Log]) -> list[Array]:
    values = [np.array([request.latency for request in log.requests], np.float64) for log in side]
    return [sample[np.isfinite(sample)] for sample in values]


def _latencies(a: Sequence[Log], b: Sequence[Log], limits: Limits) -> Iterator[Finding]:
    samples = (_samples(a), _samples(b))
    if not all(any(len(run) for run in side) for side in samples):
        return
    fewest = min(len(run) for side in samples for run in side)
    for percentile in PERCENTILES:
        if fewest * (100 - percentile) / 100 >= TAIL:
            before, after = (np.array([float(np.percentile(run, percentile)) for run in side]) for side in samples)
            yield _latency("latency", f"p{percentile}", before, after, _margin(samples, (before, after), percentile), limits)
    if fewest * (100 - PERCENTILES[0]) / 100 < TAIL:
        needed = round(TAIL / (1 - PERCENTILES[0] / 100))
        yield Finding("latency", "latency", "cannot say", f"latency: too few points: a run has {fewest} requests, and {needed} are needed")


def _margin(samples: Sequence[Sequence[Array]], values: Sequence[Array], percentile: int) -> float | None:
    """Between runs where a side has several, else within the run: half the interval that order statistics give, of both sides together."""
    if any(len(side) > 1 for side in values):
        return margin(values[0], values[1], None)
    halves = [_half_interval(side[0], percentile) / float(value[0]) for side, value in zip(samples, values, strict=True)]
    return math.hypot(*halves)


def _half_interval(sample: Array, percentile: int) -> float:
    from scipy import stats  # type: ignore[import-untyped]

    interval = stats.quantile_test(sample, q=0, p=percentile / 100).confidence_interval(0.95)
    return float(interval.high - interval.low) / 2


def _latency(metric: str, at: str, a: Array, b: Array, noise: float | None, limits: Limits) -> Finding:
    mean_a, mean_b = float(a.mean()), float(b.mean())
    name = f"{metric} {at}".strip()
    if not (np.isfinite([mean_a, mean_b]).all() and mean_a > 0):
        return Finding(metric, "latency", "cannot say", f"{name} is not a positive number in every run", at)
    change = mean_b / mean_a - 1
    noise = margin(a, b, None) if noise is None else noise
    decision, reason = decide(change, noise, limits.latency, limits.latency)
    detail = f"{name}: {mean_a:.4g} and {mean_b:.4g}, {percent(change)}: {reason}"
    return Finding(metric, "latency", decision, detail, at, mean_a, mean_b, change, noise, limits.latency, limits.latency)


def _errors(a: Sequence[Log], b: Sequence[Log], limits: Limits) -> Iterator[Finding]:
    sides = [[request.failed for log in side for request in log.requests if request.failed is not None] for side in (a, b)]
    if not sides[1]:
        return
    failures, requests = sum(sides[1]), len(sides[1])
    before = sum(sides[0]) / len(sides[0]) if sides[0] else None
    lower, upper = share_bounds(failures, requests)
    share = failures / requests
    decision: Decision = "roll back" if lower > limits.error_rate else "go" if upper <= limits.error_rate else "cannot say"
    detail = f"{failures} of {requests} requests of B failed, {percent(share)} (95 %: {percent(lower)} to {percent(upper)}); "
    detail += {
        "go": f"at most {percent(limits.error_rate)}",
        "roll back": f"beyond {percent(limits.error_rate)}",
        "cannot say": f"too few to tell from {percent(limits.error_rate)}",
    }[decision]
    yield Finding("error rate", "error_rate", decision, detail, "", before, share, None, None, limits.error_rate, limits.error_rate)


def _rate(metric: str, rate: float, limits: Limits) -> Finding:
    decision: Decision = "cannot say" if not np.isfinite(rate) else "roll back" if rate > limits.error_rate else "go"
    relation = "beyond" if decision == "roll back" else "at most"
    detail = (
        f"{metric} of B is {percent(rate)}: {relation} {percent(limits.error_rate)}"
        if np.isfinite(rate)
        else f"{metric} of B is not finite"
    )
    return Finding(metric, "error_rate", decision, detail, "", None, rate, None, None, limits.error_rate, limits.error_rate)
