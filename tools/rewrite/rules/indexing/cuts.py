"""Cuts out of an array that begin where a tensor says and have a length that is known: `x[:, s : s + n]`."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

NOTE = "a cut that reaches beyond the end is moved back inside, where PyTorch gives a shorter one"


class Cut(NamedTuple):
    """A part of an index, its axis in what the other parts leave, and where and how long the cut is."""

    part: int
    axis: int
    start: cst.BaseExpression
    length: cst.BaseExpression


class CutAtPlaces(Rule):
    """Cut by `dynamic_slice_in_dim` where slices begin at tensors: `x[:, s : s + n]` → `jax.lax.dynamic_slice_in_dim(x, s, n, axis=1)`.

    The end may have a name or be a part of one (`e = s + n`, `x[s[i] : e[i]]`). Declines where the length is not sure to be one whole number, and where
    one that is written out was seen to differ.
    """

    KEEP = ("def f(x, s, n):\n    return x[:, s : s + n]\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, s: torch.Tensor, n: int):\n    return x[:, s : s + n], x[0, s : s + 4, ..., None]\n",
            "def f(x: jax.Array, s: jax.Array, n: int):\n"
            "    return jax.lax.dynamic_slice_in_dim(x, s, n, axis=1), x[0, s : s + 4, ..., None]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, s: torch.Tensor, n: int):\n    e = s + n\n"
            "    return [x[i, :, s[i, 1] : e[i, 1], s[i, 0] : e[i, 0]] for i in range(3)]\n",
            "def f(x: jax.Array, s: jax.Array, n: int):\n"
            "    return [\n        jax.lax.dynamic_slice_in_dim(\n"
            "            jax.lax.dynamic_slice_in_dim(x[i], s[i, 1], n, axis=1), s[i, 0], n, axis=2\n        )\n        for i in range(3)\n    ]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, s: torch.Tensor, e: torch.Tensor, n: int):\n    return x[s:e], x[n : n + 1]\n",
            "def f(x: jax.Array, s: jax.Array, e: jax.Array, n: int):\n    return x[s:e], x[n : n + 1]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, s: torch.Tensor, n: int):\n    e = s + n\n    e = e + 1\n    return x[s:e]\n",
            "def f(x: jax.Array, s: jax.Array, n: int):\n    e = s + n\n    e = e + 1\n    return x[s:e]\n",
        ),
    )

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        context = self.context
        if context.constructing or context.at_host or context.is_target(original) or not is_tensor(context.observed(original.value)):
            return None
        if len(updated.slice) != len(original.slice):
            return None  # another rule has written another index
        cuts = self._cuts(original, updated)
        if not cuts or self._differs(original, cuts):
            return None
        context.notes.append(f"{context.file.file.path}:{context.span(original).line}: {NOTE}")
        result = _without_cuts(updated, [cut.part for cut in cuts])
        for _, axis, start, length in cuts:
            parts = {"x": result, "start": start, "length": length}
            result = context.build(f"jax.lax.dynamic_slice_in_dim({{x}}, {{start}}, {{length}}, axis={axis})", **parts)
        return result

    def _cuts(self, original: cst.Subscript, updated: cst.Subscript) -> list[Cut]:
        """The cuts of an index that has no parts but these, plain slices and single places."""
        cuts: list[Cut] = []
        axis = 0
        for part, (element, new) in enumerate(zip(original.slice, updated.slice, strict=True)):
            if isinstance(element.slice, cst.Index):
                if not self._is_place(element.slice.value):
                    return []
                continue
            if not isinstance(element.slice, cst.Slice):
                return []
            bounds = [bound for bound in (element.slice.lower, element.slice.upper) if bound is not None]
            if any(is_tensor(self.context.observed(bound)) for bound in bounds):
                length = self._length(element.slice)
                if length is None or not isinstance(new.slice, cst.Slice) or new.slice.lower is None:
                    return []
                cuts.append(Cut(part, axis, new.slice.lower, length))
            axis += 1
        return cuts

    def _is_place(self, node: cst.BaseExpression) -> bool:
        """Whether part of an index is one number, so that its axis goes."""
        fact = self.context.observed(node)
        return isinstance(node, cst.Integer) or (fact is not None and set(fact.kinds) == {"int"})

    def _length(self, bounds: cst.Slice) -> cst.BaseExpression | None:
        """The length of a slice whose end is its begin and a whole number."""
        lower, upper = bounds.lower, bounds.upper
        if lower is None or upper is None or bounds.step is not None or not is_tensor(self.context.observed(lower)):
            return None
        if isinstance(upper, cst.BinaryOperation) and isinstance(upper.operator, cst.Add):
            return upper.right if upper.left.deep_equals(lower) and self._is_place(upper.right) else None
        begin, end = (bound.value if isinstance(bound, cst.Subscript) else bound for bound in (lower, upper))
        if isinstance(lower, cst.Subscript) != isinstance(upper, cst.Subscript):
            return None
        if isinstance(lower, cst.Subscript) and isinstance(upper, cst.Subscript):
            parts = [cst.Subscript(cst.Name("_"), bound.slice) for bound in (lower, upper)]
            if not parts[0].deep_equals(parts[1]):
                return None
        return self._added(begin.value, end.value) if isinstance(begin, cst.Name) and isinstance(end, cst.Name) else None

    def _added(self, begin: str, end: str) -> cst.BaseExpression | None:
        """`n` where the function says `end = begin + n` once, binds none of the names again and `n` is a name of a whole number."""
        function = self.context.function
        if function is None:
            return None
        stored = [node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        for node in walk(function):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=target)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=ast.Name(id=right) as added)
                ) if (target, left) == (end, begin):
                    fact = self.context.facts.observed.get(span_of(added, self.context.file.lines))
                    whole = fact is not None and set(fact.kinds) == {"int"}
                    once = stored.count(end) == 1 and stored.count(begin) <= 1 and not stored.count(right)
                    return cst.Name(right) if whole and once else None
        return None

    def _differs(self, original: cst.Subscript, cuts: list[Cut]) -> bool:
        """Whether the cut was seen with several lengths, or a bound with an axis of its own."""
        fact = self.context.observed(original)
        shapes = fact.shapes if fact is not None else ()
        bounds = [bound for part in original.slice if isinstance(part.slice, cst.Slice) for bound in (part.slice.lower, part.slice.upper)]
        facts = [self.context.observed(bound) for bound in bounds if bound is not None]
        wide = any(is_tensor(seen) and any(seen.shapes) for seen in facts if seen is not None)
        # A name may stand for other lengths in other calls; one that is written out may not.
        written = [cut.axis for cut in cuts if isinstance(cut.length, cst.Integer)]
        return wide or any(len({shape[axis] for shape in shapes}) > 1 for axis in written)


def _without_cuts(updated: cst.Subscript, moving: Collection[int]) -> cst.BaseExpression:
    """What is indexed, with all of each axis that is cut: those parts of the index."""
    whole = cst.SubscriptElement(cst.Slice(None, None))
    parts = [whole if i in moving else part for i, part in enumerate(updated.slice)]
    while parts and isinstance(last := parts[-1].slice, cst.Slice) and last.lower is last.upper is last.step is None:
        parts.pop()
    if not parts:
        return updated.value
    return updated.with_changes(slice=[part.with_changes(comma=cst.MaybeSentinel.DEFAULT) for part in parts])
