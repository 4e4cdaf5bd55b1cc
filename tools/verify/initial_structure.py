"""What a pooled comparison of initial values does not see: where in a parameter they lie, repetitions, orthogonality, copies of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from migrate_agent.tools.verify import arrays, limits
from migrate_agent.tools.verify.sampling import Array


def distribution_problem(theirs: Array, ours: Array, alpha: float) -> tuple[str, float]:
    """What tests of Kolmogorov and Smirnov, and of means and spreads, say of two samples (constructions × elements), and the smaller p-value."""
    from scipy.stats import ks_2samp  # type: ignore[import-untyped]

    p = min(float(ks_2samp(_independent(theirs), _independent(ours), method="asymp").pvalue), _moments(theirs, ours))
    if p >= alpha / 2:
        return "", p
    return f"another distribution (mean {ours.mean():.3g}, deviation {ours.std():.3g}; torch's {theirs.mean():.3g}, {theirs.std():.3g})", p


def _moments(theirs: Array, ours: Array) -> float:
    """The p-value of Welch's tests of the constructions' means and mean squares, where these differ noticeably: a width that is off by a tenth
    moves no quantile far."""
    from scipy.stats import ttest_ind

    if theirs.shape[1] < limits.INIT_MOMENT_ELEMENTS or not (np.isfinite(theirs).all() and np.isfinite(ours).all()):
        return 1.0
    centre, width, smallest = float(theirs.mean()), float(theirs.std()), 1.0
    for power in (1, 2):
        one, other = ((((value - centre) / (width or 1.0)) ** power).mean(axis=1) for value in (theirs, ours))
        if abs(one.mean() - other.mean()) > limits.INIT_MOMENT_SHARE:
            smallest = min(smallest, 2 * float(ttest_ind(one, other, equal_var=False).pvalue))
    return smallest


def structure_problem(theirs: Array, ours: Array, shape: Sequence[int], alpha: float) -> str:
    """What differs in one parameter (constructions × sampled elements of `shape`, real); nothing where nothing does."""
    if _distinct(ours) < limits.INIT_DISTINCT * _distinct(theirs):
        return "values repeat within it, unlike torch's"
    found = list(_blocks(shape))
    for name, chosen in found:
        problem, _ = distribution_problem(_part(theirs, chosen), _part(ours, chosen), alpha / len(found))
        if problem:
            return f"in {name} {problem}"
    return _gram_problem(theirs, ours, shape)


def copies(values: Mapping[str, Array]) -> set[tuple[str, ...]]:
    """Groups of parameters that start as multiples of each other."""
    groups: dict[bytes, list[str]] = {}
    for name, rows in values.items():
        row = rows[0]
        deviation = float(row.std()) if row.size > 1 else 0.0
        if row.dtype.kind == "f" and deviation > 0 and np.unique(row[: limits.INIT_COPIED]).size > 2:
            standard = np.round((row[: limits.INIT_COPIED] - row.mean()) / deviation, 3) + 0.0
            groups.setdefault(standard.tobytes() + str(row.size).encode(), []).append(name)
    return {tuple(names) for names in groups.values() if len(names) > 1}


def _independent(values: Array) -> Array:
    """The values in one row; what is repeated within a construction (tiled, say) but once, unless other constructions have the same values."""
    if _distinct(values) > limits.INIT_TILED:
        return values.reshape(-1)
    once = np.concatenate([np.unique(row) for row in values])
    return once if np.unique(once).size > limits.INIT_TILED * once.size else values.reshape(-1)


def _distinct(values: Array) -> float:
    """Share of distinct values in a construction, the least of all."""
    ordered = np.sort(values, axis=1)
    one, next_one = ordered[:, :-1], ordered[:, 1:]
    steps = (one != next_one) & ~((one != one) & (next_one != next_one))
    return float((1 + steps.sum(axis=1)).min(initial=values.shape[1]) / max(values.shape[1], 1))


def _blocks(shape: Sequence[int]) -> Iterator[tuple[str, Array]]:
    """Slices along each axis: which of the sampled elements lie in them."""
    if not shape:
        return
    size = int(np.prod(shape))
    places = np.unravel_index(arrays.sample_indices(size, limits.INIT_SAMPLE), tuple(shape))
    for axis, (length, position) in enumerate(zip(shape, places, strict=True)):
        count = min(length, limits.INIT_BLOCKS)
        for number in range(count if count > 1 else 0):
            low, high = length * number // count, length * (number + 1) // count
            yield f"[{low}:{high}] of axis {axis}", np.flatnonzero((position >= low) & (position < high))


def _part(values: Array, chosen: Array) -> Array:
    return values[:, chosen[:: max(len(values) * chosen.size // limits.INIT_ELEMENTS_BLOCK, 1)]]


def _gram_problem(theirs: Array, ours: Array, shape: Sequence[int]) -> str:
    """Whether rows are as orthogonal as torch's, for parameters of which all elements are there."""
    if len(shape) < 2 or theirs.shape[1] != int(np.prod(shape)) or len(theirs) < limits.INITS[0]:
        return ""
    one, other = (np.array([_gram(row.reshape(shape[0], -1)) for row in values]) for values in (theirs, ours))
    spread = float(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one)))
    if abs(one.mean() - other.mean()) <= limits.INIT_GRAM_SIGMAS * spread + limits.INIT_GRAM_SHARE * one.mean():
        return ""
    return "rows are orthogonal to each other in another measure than torch's"


def _gram(rows: Array) -> float:
    total = float(np.sum(rows**2))
    return float(np.sum((rows @ rows.T) ** 2)) / total**2 if total else 0.0
