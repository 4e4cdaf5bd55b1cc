"""Slices whose bounds are tensors: as many places as the axis has, of which those outside lie beyond the end, so that writes leave them out."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context


def with_padded_ranges(context: Context, target: cst.Subscript, new: cst.Subscript, base: cst.BaseExpression) -> cst.Subscript | None:
    """`new` with `padded_range` in the place of such a slice, for a write of one number; `None` where there is none, or where its axis is not sure."""
    moving = [_moves(context, element.slice) for element in target.slice]
    plain = [isinstance(element.slice, cst.Slice) or _takes_one_axis(context, element.slice) for element in target.slice]
    # Two arrays of indices would be paired, and select no rectangle.
    if context.constructing or sum(moving) != 1 or not all(plain):
        return None
    axis = moving.index(True)
    bounds = cst.ensure_type(new.slice[axis].slice, cst.Slice)
    parts = {"x": base.deep_clone(), "axis": cst.Integer(str(axis)), "start": bounds.lower or cst.Integer("0")}
    template = "vendored.padded_range({x}.shape[{axis}], {start}" + (", {stop})" if bounds.upper else ")")
    places = context.build(template, **parts, **({"stop": bounds.upper} if bounds.upper else {}))
    element = new.slice[axis].with_changes(slice=cst.Index(places))
    return new.with_changes(slice=[element if i == axis else one for i, one in enumerate(new.slice)])


def _moves(context: Context, part: cst.BaseSlice) -> bool:
    if not isinstance(part, cst.Slice) or part.step is not None:
        return False
    return any(bound is not None and is_tensor(context.observed(bound)) for bound in (part.lower, part.upper))


def _takes_one_axis(context: Context, part: cst.BaseSlice) -> bool:
    """Whether this is one number, in a tensor or not."""
    fact = context.observed(part.value) if isinstance(part, cst.Index) else None
    if fact is None:
        return isinstance(part, cst.Index) and isinstance(part.value, cst.Integer)
    return set(fact.kinds) == {"int"} or (is_tensor(fact) and bool(fact.shapes) and not any(fact.shapes))
