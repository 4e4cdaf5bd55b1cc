"""Compares initial values: distributions of all values and of blocks, repetitions, orthogonality, and copies of other parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from migrate_agent.tools.harness.common import budgets, tensor_files, tolerances
from migrate_agent.tools.harness.common.input_sampling import Array


def prepare() -> None:
    """Import scipy, which takes longer than the tests do: called in a thread while the original runs."""
    import scipy.stats  # type: ignore[import-untyped]  # noqa: F401


@dataclass(frozen=True)
class Sample:
    """One side's real values of a parameter or a part of it, [constructions, elements]."""

    values: Array

    @cached_property
    def sortable(self) -> Array:
        """The values in float32 where that is exact, because those sort in half the time."""
        with np.errstate(over="ignore"):
            narrow = self.values.astype(np.float32)
        return narrow if np.array_equal(narrow, self.values, equal_nan=True) else self.values

    @cached_property
    def distinct(self) -> float:
        """The share of distinct values that all but a few constructions reach.

        Few are excused, because two of eight numbers of 23 random bits are equal by chance in some of 512
        constructions.
        """
        ordered = np.sort(self.sortable, axis=1)
        one, next_one = ordered[:, :-1], ordered[:, 1:]
        steps = (one != next_one) & ~((one != one) & (next_one != next_one))
        shares = (1 + steps.sum(axis=1)) / max(self.values.shape[1], 1)
        return float(np.quantile(shares, tolerances.INIT_REPEATED, method="higher"))

    @cached_property
    def independent(self) -> Array:
        """The values [n] that are draws of their own: values repeated within a construction (tiled ones) count once, unless the draws are discrete."""
        if self.distinct > tolerances.INIT_TILED:
            return self.sortable.reshape(-1)
        once = np.concatenate([np.unique(row) for row in self.sortable])
        return once if np.unique(once).size > tolerances.INIT_TILED * once.size else self.sortable.reshape(-1)

    @cached_property
    def effect(self) -> float:
        """The design effect (Kish, Survey Sampling, 1965): how many values tell as much as one independent value would; 1 where chance explains more.

        Elements of an outer product of draws depend on each other, so that the share below a bound varies more between constructions. Copies
        within a construction count once already (`independent`).
        """
        from scipy.stats import chi2

        count, size = self.values.shape
        if count < 2 or size < 2 or self.distinct <= tolerances.INIT_TILED:
            return 1.0
        some = self.sortable.reshape(-1)[:: max(self.values.size // tolerances.INIT_ELEMENTS_BLOCK, 1)]  # any bounds will do
        below = [(self.sortable <= bound).mean(axis=1) for bound in np.quantile(some, tolerances.INIT_SHARES)]
        effects = [float(share.var(ddof=1)) * size / float(usual * (1 - usual)) for share in below if 0 < (usual := share.mean()) < 1]
        chance = chi2.ppf(tolerances.INIT_DEPENDENT, count - 1) / (count - 1)
        return max(effects) if effects and sum(effects) / len(effects) > chance else 1.0

    def part(self, chosen: Array) -> Sample:
        """These elements of every construction, thinned out where they are many."""
        return Sample(self.values[:, chosen[:: max(len(self.values) * chosen.size // tolerances.INIT_ELEMENTS_BLOCK, 1)]])


def distribution_problem(theirs: Sample, ours: Sample, alpha: float) -> tuple[str, float]:
    """A message where a Kolmogorov-Smirnov test, or one of means and mean squares, rejects equal distributions; and the smaller p-value."""
    # Only torch's own constructions say how far elements depend on each other.
    p = min(_same_distribution(theirs.independent, ours.independent, theirs.effect), _moments(theirs.values, ours.values))
    if p >= alpha / 2:
        return "", p
    one, other = theirs.values, ours.values
    return f"another distribution (mean {other.mean():.3g}, deviation {other.std():.3g}; torch's {one.mean():.3g}, {one.std():.3g})", p


def _same_distribution(one: Array, other: Array, effect: float) -> float:
    """The p-value of `scipy.stats.ks_2samp(one, other, method="asymp")`, whose statistic takes several times as long.

    `effect` values tell as much as one independent value.
    """
    from scipy.stats import kstwo

    size = max(np.round(one.size * other.size / (one.size + other.size) / effect), 1)
    p = float(np.clip(kstwo.sf(_largest_gap(one, other), size), 0, 1))
    # Rounding only matters where the plain test rejects, so the slower statistic is seldom
    # computed.
    if p >= tolerances.INIT_ALPHA:
        return p
    return float(np.clip(kstwo.sf(_gap_beyond_rounding(one, other), size), 0, 1))


def _largest_gap(one: Array, other: Array) -> float:
    """The Kolmogorov-Smirnov statistic: the largest distance of two samples' distribution functions. NaN where a value is NaN."""
    one, other = np.sort(one), np.sort(other)
    if np.isnan(one[-1]) or np.isnan(other[-1]):
        return float("nan")
    both = np.concatenate([one, other])
    order = np.argsort(both, kind="stable")  # merges what is sorted
    below, both = np.cumsum(order < one.size), both[order]
    last = np.flatnonzero(both[1:] != both[:-1])  # of those that are equal
    below = below[last]
    return float(np.abs(below / one.size - (last + 1 - below) / other.size).max(initial=0.0))


def _gap_beyond_rounding(one: Array, other: Array) -> float:
    """The statistic with a tolerance of rounding for each value: a bound that many draws are clipped to differs in its last digits."""
    one, other = np.sort(one).astype(np.float64), np.sort(other).astype(np.float64)
    if np.isnan(one[-1]) or np.isnan(other[-1]):
        return float("nan")
    usual, largest = float(np.median(np.abs(one))), 0.0
    for first, second in ((one, other), (other, one)):
        beyond = np.searchsorted(second, first + tolerances.INIT_CONSTANT * (np.abs(first) + usual), side="right")
        largest = max(largest, float((np.arange(1, first.size + 1) / first.size - beyond / second.size).max()))
    return largest


def _moments(theirs: Array, ours: Array) -> float:
    """The p-value of Welch's tests of the constructions' means and mean squares: a width that is off by a tenth moves no quantile far."""
    from scipy.stats import ttest_ind

    if theirs.shape[1] < tolerances.INIT_MOMENT_ELEMENTS or not (np.isfinite(theirs).all() and np.isfinite(ours).all()):
        return 1.0
    centre, width = float(theirs.mean()), float(theirs.std()) or 1.0
    distances = [value - centre for value in (theirs, ours)]
    means = [value.mean(axis=1) / width for value in distances]
    squares = [np.einsum("ij,ij->i", value, value) / value.shape[1] / width**2 for value in distances]
    apart = [(one, other) for one, other in (means, squares) if abs(one.mean() - other.mean()) > tolerances.INIT_MOMENT_SHARE]
    return min((2 * float(ttest_ind(one, other, equal_var=False).pvalue) for one, other in apart), default=1.0)


def structure_problem(theirs: Sample, ours: Sample, shape: Sequence[int], alpha: float) -> str:
    """A message on the first difference of structure in one parameter (sampled elements of `shape`); "" where there is none."""
    if ours.distinct < tolerances.INIT_DISTINCT * theirs.distinct:
        return "values repeat within it, unlike torch's"
    blocks = list(_blocks(shape))
    for name, chosen in blocks:
        problem, _ = distribution_problem(theirs.part(chosen), ours.part(chosen), alpha / len(blocks))
        if problem:
            return f"in {name} {problem}"
    # The remaining tests need every element, which a sample of a large parameter does not have.
    if theirs.values.shape[1] != int(np.prod(shape)) or len(theirs.values) < budgets.INITS[0]:
        return ""
    return _gram_problem(theirs.values, ours.values, shape) or _parts_problem(theirs.values, ours.values, shape)


def copies(values: Mapping[str, Array]) -> set[frozenset[str]]:
    """Pairs of parameters whose standardised values are equal in each of several constructions, in their order or, where all of a parameter are there,
    in another one (transposed): they were drawn with one key."""
    whole = {name: np.sort(rows, axis=1) for name, rows in values.items() if rows.dtype.kind == "f" and rows.shape[1] < budgets.INIT_SAMPLE}
    spread = {
        name: rows[:, np.linspace(0, rows.shape[1] - 1, min(rows.shape[1], tolerances.INIT_COPIED)).astype(int)]
        for name, rows in whole.items()
    }
    return _equal_pairs(values) | _equal_pairs(spread)


def _equal_pairs(values: Mapping[str, Array]) -> set[frozenset[str]]:
    sizes: dict[tuple[int, ...], list[str]] = {}
    standard = {name: standardised for name, rows in values.items() if (standardised := _standard(rows)) is not None}
    for name, standardised in standard.items():
        sizes.setdefault((values[name].shape[1], standardised.size), []).append(name)
    pairs = set()
    for names in sizes.values():
        every = np.stack([standard[name] for name in names])
        for position, name in enumerate(names):
            near = position + 1 + np.flatnonzero(np.abs(every[position + 1 :, 0] - every[position, 0]) <= tolerances.INIT_COPIED_WITHIN)
            alike = near[np.abs(every[near] - every[position]).max(axis=1, initial=0.0) <= tolerances.INIT_COPIED_WITHIN]
            pairs |= {frozenset([name, names[other]]) for other in alike}
    return pairs


def _standard(rows: Array) -> Array | None:
    """Some values of a few constructions, standardised, [n]; None for constants, and for too few values to judge."""
    some = rows[: budgets.INITS[0], : tolerances.INIT_COPIED]
    axis = 1 if some.shape[1] > 2 else None
    free = len(some) * (some.shape[1] - 2) if axis else some.size
    if some.dtype.kind != "f" or free < tolerances.INIT_COPIED_LEAST or not np.isfinite(some).all() or (some == some[0]).all():
        return None
    some = some.astype(np.float64)
    deviation = some.std(axis=axis, keepdims=True)
    if (deviation <= tolerances.INIT_COPIED_WITHIN * np.abs(some).max(axis=axis, keepdims=True)).any() or np.unique(some).size <= 2:
        return None
    return np.asarray((some - some.mean(axis=axis, keepdims=True)) / deviation).ravel()


def _blocks(shape: Sequence[int]) -> Iterator[tuple[str, Array]]:
    """(name, indices of sampled elements) of slices along each axis."""
    if not shape:
        return
    size = int(np.prod(shape))
    positions = np.unravel_index(tensor_files.sample_indices(size, budgets.INIT_SAMPLE), tuple(shape))
    for axis, (length, position) in enumerate(zip(shape, positions, strict=True)):
        count = min(length, tolerances.INIT_BLOCKS)
        for number in range(count if count > 1 else 0):
            low, high = length * number // count, length * (number + 1) // count
            yield f"[{low}:{high}] of axis {axis}", np.flatnonzero((position >= low) & (position < high))


def _parts_problem(theirs: Array, ours: Array, shape: Sequence[int]) -> str:
    """A message where lengths or sums along axes are fixed in all constructions of one side alone (normalised values)."""
    rows = max(budgets.INITS[0], tolerances.INIT_PARTS // theirs.shape[1])
    one, other = (values[:rows].reshape(-1, *shape).astype(np.float64) for values in (theirs, ours))
    for axes in _summed(shape):
        squares, others = (np.square(values).sum(axes) for values in (one, other))
        measures = {"length": (squares, others, squares.mean()), "sum": (one.sum(axes), other.sum(axes), np.sqrt(squares.mean()))}
        for name, (expected, actual, scale) in measures.items():
            fixed, fixed_here = (float(value.std()) <= tolerances.INIT_FIXED * scale for value in (expected, actual))
            apart, axis_names = tolerances.INIT_NOT_FIXED * scale, ", ".join(str(axis - 1) for axis in axes)
            if fixed and (float(actual.std()) > apart or abs(float(actual.mean() - expected.mean())) > apart):
                return f"along axis {axis_names} torch's constructions all have the same {name}, unlike those here"
            if fixed_here and float(expected.std()) > apart:
                return f"along axis {axis_names} the constructions all have the same {name}, unlike torch's"
    return ""


def _summed(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Axes to sum over (0 counts constructions): each, all but each, and all, where they have two elements at least."""
    every = tuple(range(1, len(shape) + 1))
    single = [(axis,) for axis in every]
    but_one = [tuple(axis for axis in every if axis != omitted) for omitted in every]
    for axes in dict.fromkeys([*single, *but_one, every]):
        if np.prod([shape[axis - 1] for axis in axes]) > 1:
            yield axes


def _gram_problem(theirs: Array, ours: Array, shape: Sequence[int]) -> str:
    """A message where rows are not as orthogonal as torch's; "" where they are."""
    if len(shape) < 2:
        return ""
    one, other = (_gram(values.reshape(len(values), shape[0], -1)) for values in (theirs, ours))
    spread = float(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one)))
    if abs(one.mean() - other.mean()) <= tolerances.INIT_GRAM_SIGMAS * spread + tolerances.INIT_GRAM_SHARE * one.mean():
        return ""
    return "rows are orthogonal to each other in another measure than torch's"


def _gram(matrices: Array) -> Array:
    """The squared norm of each matrix's Gram matrix, relative to that of parallel rows, [constructions]."""
    turned = matrices.swapaxes(1, 2)
    # Both Gram matrices have the same norm; the smaller one costs less.
    gram = matrices @ turned if matrices.shape[1] < matrices.shape[2] else turned @ matrices
    total = (matrices**2).sum(axis=(1, 2), dtype=np.float64)
    return np.asarray((gram**2).sum(axis=(1, 2), dtype=np.float64) / np.where(total, total, 1.0) ** 2)
