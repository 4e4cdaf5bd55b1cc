"""Sizes that the equation of a failed `torch.einsum` asks of its operands: `'ncvl,vw->ncwl'` wants a matrix, of as many rows as the other has at `v`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from migrate_agent.tools.record.guessing.trials.origins import Operand, Operation

PLAIN = re.compile(r"[A-Za-z]+(,[A-Za-z]+)*(->[A-Za-z]*)?")
"""An equation without `...`."""
SIZE = 8
"""Of an axis that no operand tells."""


def shapes_asked(operation: Operation) -> Iterator[tuple[Operand, tuple[int, ...]]]:
    """The operands of a failed `einsum` that do not fit its equation, each with the shape that it should have. The first operand that fits tells its
    sizes first; an axis that no other operand has is as long as the one before it: what goes from nodes to nodes is square."""
    equation = operation.equation.replace(" ", "")
    subscripts = equation.partition("->")[0].split(",")
    if not PLAIN.fullmatch(equation) or len(subscripts) != len(operation.operands):
        return
    sizes: dict[str, int] = {}
    unfit: list[tuple[Operand, str]] = []
    for operand, letters in zip(operation.operands, subscripts, strict=True):
        if len(operand.shape) == len(letters) and _agrees(operand.shape, letters, sizes):
            sizes |= dict(zip(letters, operand.shape, strict=True))
        else:
            unfit.append((operand, letters))
    for operand, letters in unfit:
        shape: list[int] = []
        for letter in letters:
            size = sizes.setdefault(letter, shape[-1] if shape else next((sizes[one] for one in letters if one in sizes), SIZE))
            shape.append(size)
        yield operand, tuple(shape)


def _agrees(shape: Sequence[int], letters: str, sizes: dict[str, int]) -> bool:
    sizes_so_far = dict(sizes)
    return all(sizes_so_far.setdefault(letter, size) == size for letter, size in zip(letters, shape, strict=True))
