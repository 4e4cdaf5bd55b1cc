"""How often a sketch passes what a comparison of all elements refuses: `python -m migrate_agent.evals.bench.sketches [--count N]`.

Arrays are perturbed in ways that wrong rewrites have, so that their error is 1 to 100 times the limit; each is judged both ways.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from migrate_agent.evals.bench.measure import report
from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import compare, quiet, rms
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.sketches import sketch

SHAPES = ((512, 515), (768, 3072), (64, 128, 3, 3, 4), (300_007,))
STRONGEST = 100.0


def _sparse(value: Array, generator: np.random.Generator) -> Array:
    error = np.zeros_like(value)
    error.reshape(-1)[generator.choice(value.size, 1 + value.size // 10_000, replace=False)] = 1.0
    return error


def _rows(value: Array, generator: np.random.Generator) -> Array:
    error = np.zeros_like(value)
    error[generator.integers(len(value))] = generator.standard_normal(value.shape[1:])
    return error


def _swapped(value: Array, generator: np.random.Generator) -> Array:
    other = value.copy()
    one, two = generator.choice(len(value), 2, replace=False)
    other[[one, two]] = other[[two, one]]
    return np.asarray(other - value)


PERTURBATIONS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "rounding": lambda value, generator: np.asarray(generator.standard_normal(value.shape)),
    "scale": lambda value, generator: value,
    "offset": lambda value, generator: np.ones_like(value),
    "sparse": _sparse,
    "one row": _rows,
    "two rows swapped": _swapped,
    "largest clipped": lambda value, generator: np.clip(value, -2.0, 2.0) - value,
    "reversed": lambda value, generator: value[::-1] - value,
}
"""The direction of an error, by what is wrong; it is scaled to a multiple of the limit."""


def judged(name: str, seed: int, shape: Sequence[int], strength: float = 0.0) -> tuple[bool, bool]:
    """Whether a comparison of all elements refuses a perturbed array, and whether one of sketches does.

    The RMS of the error is `strength` times the limit, or, of 0, drawn from 1.05 to `STRONGEST` times it.
    """
    generator = np.random.default_rng([seed, *map(ord, name)])
    value = generator.standard_normal(tuple(shape))
    error = PERTURBATIONS[name](value, generator)
    strength = strength or 1.05 * float(STRONGEST ** generator.uniform())
    actual = value + error * (strength * tolerances.FLOOR_FP64 * rms(value) / rms(error))
    whole = compare("", value, actual, quiet, tolerances.FLOOR_FP64).failed
    return whole, compare("", sketch(value), sketch(actual), quiet, tolerances.FLOOR_FP64).failed


def rates(count: int) -> dict[str, Any]:
    """Of `count` perturbed arrays: how many all elements refuse, and of these, by perturbation, how many the sketch passes."""
    names = sorted(PERTURBATIONS)
    verdicts = [(names[seed % len(names)], *judged(names[seed % len(names)], seed, SHAPES[seed % len(SHAPES)])) for seed in range(count)]
    refused = [row for row in verdicts if row[1]]
    passed = {name: sum(not by_sketch for other, _, by_sketch in refused if other == name) for name in names}
    return {"arrays": count, "refused": len(refused), "passed_by_sketch": sum(passed.values()), "by_perturbation": passed}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description="How often a sketch passes what a comparison of all elements refuses.")
    parser.add_argument("--count", type=int, default=1000)
    report("sketches", [rates(parser.parse_args().count)])


if __name__ == "__main__":
    main()
