"""Tuple assignments with stars (`a, *rest, b = *x.shape, y`): which value each target gets, and how
to drop some.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst


def matching_index(others: Sequence[bool], own: Sequence[bool], index: int) -> int | None:
    """The index on the other side of an assignment that belongs to the element at `index` on this
    side.

    `own` and `others` tell for each element of the two sides whether it has a star. The index is
    counted from the end that has no star before the element; `None` where there are stars on both
    sides of it.
    """
    if not any(others[: index + 1]) and not any(own[:index]):
        return index
    # A star takes a number of values known only at run time, so that only the far end is fixed.
    from_end = len(own) - index
    return len(others) - from_end if not any(others[-from_end:]) and not any(own[-from_end:]) else None


def star_flags(node: cst.Tuple) -> list[bool]:
    """Whether each element has a star."""
    return [isinstance(element, cst.StarredElement) for element in node.elements]


def drop_elements(node: cst.Assign, targets: Collection[int], values: Collection[int]) -> cst.Assign:
    """The assignment of a tuple to a tuple without the targets and values at these indices. Some
    must remain on both sides.
    """
    target, value = node.targets[0].target, node.value
    assert isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple)
    if not targets:
        return node
    names = [e for i, e in enumerate(target.elements) if i not in targets]
    remaining = [e for i, e in enumerate(value.elements) if i not in values]
    if len(remaining) == 1 and isinstance(remaining[0], cst.StarredElement):  # `b, *_, device = *x.shape, x.device` → `b, *_ = x.shape`
        unpacked = cst.Tuple(names) if len(names) == 1 else _tuple(names, target)
        return node.with_changes(targets=[node.targets[0].with_changes(target=unpacked)], value=remaining[0].value)
    return node.with_changes(targets=[node.targets[0].with_changes(target=_tuple(names, target))], value=_tuple(remaining, value))


def _tuple(elements: list[cst.BaseElement], old: cst.Tuple) -> cst.BaseExpression:
    if len(elements) == 1:
        only = elements[0]
        if isinstance(only, cst.Element):
            return only.value
        return cst.Tuple([only.with_changes(comma=cst.Comma())], lpar=old.lpar, rpar=old.rpar)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = len(elements) - 1
    return old.with_changes(
        elements=[e.with_changes(comma=comma if i < last else cst.MaybeSentinel.DEFAULT) for i, e in enumerate(elements)]
    )
