"""Tensors that a constructor was given, such as an adjacency matrix: with the size that a call needs them to have, or as arrays of NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from migrate_agent.tools.record.guessing.trials.other_kinds import OF_ARRAYS
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome

MADE = re.compile(r"torch\.(?:ones|zeros|rand|randn|eye)\([^()]*\)")
"""A tensor in the text of an argument."""
OF_TORCH = re.compile(rf"({MADE.pattern})(?!\.numpy\(\))")
DIFFERING = re.compile(
    r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    r"|cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)"
    r"|to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]"
)
"""Two sizes that an operation wanted to be equal."""


def made_sizes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with the tensors that its constructor was given of one of two sizes in the place of the other."""
    match = DIFFERING.search(outcome.error)
    sizes = [size for size in match.groups() if size is not None] if match else []
    for now, other in permutations(sizes, 2) if len(set(sizes)) == 2 else ():
        init = tuple(
            (name, MADE.sub(lambda match: re.sub(rf"\b{now}\b", other, match[0]), value) if isinstance(value, str) else value)  # noqa: B023
            for name, value in attempt.init
        )
        if init != attempt.init:
            yield replace(attempt, init=init)


OF_NUMPY = re.compile(r"unexpected keyword argument '(axis|out|keepdims|dtype)'")
"""What torch says where a function of NumPy was given a tensor, and calls a method of it with words of its own."""


def arrays_in_constructor(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """NumPy's arrays in the place of tensors that a constructor was given, where functions of NumPy are called on them."""
    if OF_NUMPY.search(outcome.error) or OF_ARRAYS.search(outcome.error):
        init = tuple((name, OF_TORCH.sub(r"\1.numpy()", value) if isinstance(value, str) else value) for name, value in attempt.init)
        if init != attempt.init:
            yield replace(attempt, init=init)
