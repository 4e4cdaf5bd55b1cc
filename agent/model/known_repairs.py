"""Deterministic repairs: known causes of a refusal, each by its signature in the verdict and a small change of the text. They cost no tokens.

A repair is a guess like any other proposal: the verifier decides. So a row may be generous, as long as it offers few variants.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from migrate_agent.tools.types import Evidence, Verdict

NORMS = ("LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm", "InstanceNorm")
TORCH_EPSILON = 1e-5
"""The default of torch's normalisation layers (https://docs.pytorch.org/docs/stable/nn.html#normalization-layers)."""

UNEXERCISED = "code that no example runs"
"""The name of the repair of such a crash."""
RANK = 5
"""Of the tensors that most code has, at most: larger numbers are sizes."""


class Edit(NamedTuple):
    """Characters from `start` to `end` of a text become `new`."""

    start: int
    end: int
    new: str


class Text(NamedTuple):
    """A text with its tree and the offset of each line."""

    text: str
    tree: ast.Module
    offsets: tuple[int, ...]

    def at(self, line: int, column: int) -> int:
        """The character offset of a position as `ast` gives it (its columns count bytes)."""
        start = self.offsets[line - 1]
        return start + len(self.text[start:].encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """Where a node stands."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def of(self, node: ast.expr) -> str:
        """A node's text."""
        start, end = self.span(node)
        return self.text[start:end]


@dataclass(frozen=True)
class Mend:
    """A known cause. `signature` says whether a failed verdict may come of it; `variants` gives ways to change the text, each as its edits."""

    name: str
    signature: Callable[[Verdict], bool]
    variants: Callable[[Text, Text], Iterator[list[Edit]]]


def repairs(text: str, source: str, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """(Name, changed text) for each known cause that the evidence and the text agree with, the likeliest first."""
    failed = [verdict for verdict in evidence.verdicts if verdict.status == "fail"]
    draft, original = parsed(text), parsed(source)
    for verdict in failed:
        raised = verdict.raised
        # In another configuration than the examples' the rewrite crashes on a line that no example runs.
        if verdict.changes and raised is not None and raised.code:
            error = f"{raised.type}: {raised.message}"[:300]
            yield from ((UNEXERCISED, applied(text, [edit])) for edit in _unexercised(draft, error, raised.code.strip()))
    for mend in ROWS:
        if any(mend.signature(verdict) for verdict in failed):
            for edits in mend.variants(draft, original):
                yield mend.name, applied(text, edits)


def parsed(text: str) -> Text:
    """A text and its tree. Raises `SyntaxError`."""
    offsets, total = [], 0
    for line in text.splitlines(keepends=True):
        offsets.append(total)
        total += len(line)
    return Text(text, ast.parse(text), tuple(offsets))


def applied(text: str, edits: list[Edit]) -> str:
    """The text after all edits, which do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def _unexercised(draft: Text, error: str, code: str) -> Iterator[Edit]:
    """The blocks around each line of this code, the innermost first, raise `NotImplementedError` instead.

    What no example runs need not be migrated, but must say so. The verifier refuses this where an example does run it, and notes it elsewhere.
    """
    lines = [number for number, line in enumerate(draft.text.splitlines(), 1) if line.strip() == code]
    reason = f"not migrated, since no example runs it: {error}"
    for number in lines:
        for block in reversed(_blocks(draft.tree, number)):
            start, end = draft.at(block[0].lineno, block[0].col_offset), draft.at(block[-1].end_lineno or 0, block[-1].end_col_offset or 0)
            if not draft.text.startswith("elif", start):
                yield Edit(start, end, f"raise NotImplementedError({reason!r})")


def _blocks(tree: ast.AST, line: int) -> list[list[ast.stmt]]:
    """The blocks that a line stands in, from the outermost one on, of which it is known neither that all examples run it nor that it is a class's."""
    found: list[list[ast.stmt]] = []
    for node in ast.walk(tree):  # outer nodes come before inner ones
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or not block[0].lineno <= line <= block[-1].end_lineno:
                continue
            if not isinstance(node, (ast.Module, ast.ClassDef)) and getattr(node, "name", "") not in ("__init__", "__call__"):
                documented = isinstance(node, ast.FunctionDef) and len(block) > 1 and ast.get_docstring(node) is not None
                found.append(block[documented:])
    return found


def _epsilon(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """Small constants that the original does not have become those that it has; norms without an epsilon get torch's."""
    theirs = sorted({value for value, _ in _small(original)}) or [TORCH_EPSILON]
    wrong = [node for value, node in _small(draft) if value not in theirs]
    bare = [node for node in _calls(draft) if _name(node) in NORMS and not _keyword(node, "epsilon") and not _keyword(node, "eps")]
    bare = [node for node in bare if ast.unparse(node.func).startswith("nnx.")]
    for value in theirs:
        edits = [Edit(*draft.span(node), repr(value)) for node in wrong]
        edits += [_added(draft, node, f"epsilon={value!r}") for node in bare]
        if edits:
            yield edits


def _approximate(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """`jax.nn.gelu` as exact as the original's: exact unless that says `tanh`."""
    tanh = any("tanh" in ast.unparse(node) for node in _calls(original) if _name(node) in ("gelu", "GELU"))
    edits = []
    for node in _calls(draft):
        if _name(node) != "gelu" or not ast.unparse(node.func).startswith(("jax.nn", "nnx")):
            continue
        keyword = _keyword(node, "approximate")
        if keyword is None:
            edits += [] if tanh else [_added(draft, node, "approximate=False")]
        elif ast.unparse(keyword.value) != str(tanh):
            edits.append(Edit(*draft.span(keyword.value), str(tanh)))
    if edits:
        yield edits


def _dtype(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """Casts to a dtype that the original never names go."""
    named = {node.attr for node in ast.walk(original.tree) if isinstance(node, ast.Attribute)}
    if named & {"float32", "float"}:
        return
    edits = []
    for node in _calls(draft):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and ast.unparse(node.args[0]).endswith("float32"):
            edits.append(Edit(draft.span(node.func.value)[1], draft.span(node)[1], ""))
    if edits:
        yield edits


def _smaller_index(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """`jnp.take_along_axis(x, i, axis=-1)` takes of `x` as much as `i` has along the other axes: in torch the index may be smaller."""
    for node in _calls(draft):
        axis = _keyword(node, "axis")
        if _name(node) == "take_along_axis" and len(node.args) == 2 and axis is not None and _integer(axis.value) == -1:
            array, index = node.args
            match index:
                case ast.Call(func=ast.Attribute(attr="expand_dims"), args=[rows, last]) if _integer(last) == -1:
                    sizes = f"{draft.of(rows)}.shape"
                case _:
                    sizes = f"{draft.of(index)}.shape[:-1]"
            yield [Edit(*draft.span(array), f"{draft.of(array)}[tuple(map(slice, {sizes}))]")]


def _axis(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """One `axis=` at a time becomes each other axis that the original names."""
    named = {_integer(key.value) for node in _calls(original) for key in node.keywords if key.arg in ("dim", "axis")}
    named |= {_integer(each) for node in _calls(original) if _name(node).islower() for each in node.args[-1:]}
    for node in _calls(draft):
        keyword = _keyword(node, "axis")
        now = _integer(keyword.value) if keyword else None
        if keyword is not None and now is not None:
            for axis in sorted(each for each in {*named, -1} if each is not None and each != now and -RANK <= each < RANK):
                yield [Edit(*draft.span(keyword.value), str(axis))]


def _mask(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """One `jnp.where(m, a, b)` at a time with its values exchanged, one `~m` at a time without its sign."""
    for node in _calls(draft):
        if _name(node) == "where" and len(node.args) == 3:
            first, second = node.args[1:]
            yield [Edit(*draft.span(first), draft.of(second)), Edit(*draft.span(second), draft.of(first))]
    for each in ast.walk(draft.tree):
        if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Invert):
            yield [Edit(*draft.span(each), draft.of(each.operand))]


def _transposed(draft: Text, original: Text) -> Iterator[list[Edit]]:
    """One matrix product at a time with its second factor transposed, or no longer so."""
    for node in ast.walk(draft.tree):
        right = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            right = node.right
        elif isinstance(node, ast.Call) and _name(node) in ("matmul", "dot") and len(node.args) == 2:
            right = node.args[1]
        if isinstance(right, ast.Attribute) and right.attr in ("T", "mT"):
            yield [Edit(*draft.span(right), draft.of(right.value))]
        elif right is not None:
            yield [Edit(*draft.span(right), f"{draft.of(right)}.T" if _plain(right) else f"({draft.of(right)}).T")]


def numeric(verdict: Verdict) -> bool:
    """Whether numbers differ."""
    return verdict.stage in ("numeric", "behavioural")


def of_shapes(verdict: Verdict) -> bool:
    """Whether shapes differ, or jax refused an operation for the shapes of its operands."""
    traced = verdict.raised is not None and "trace" in verdict.raised.message.lower()
    return verdict.error in ("shape", "tree") or (
        not traced and _jax_says(verdict, r"shape|dot_general|matmul|contract|incompatible|broadcast")
    )


def of_dtypes(verdict: Verdict) -> bool:
    """Whether numbers or dtypes differ, or jax refused an operation for a dtype."""
    return verdict.error == "dtype" or numeric(verdict) or _jax_says(verdict, r"dtype|float32|float64")


def of_the_first_pass(verdict: Verdict) -> bool:
    """Whether the numbers of forward passes in float64 differ, which come before all others. What passed there has the right axes and masks."""
    return verdict.check == "forward_fp64" and verdict.error == "values"


def of_axes(verdict: Verdict) -> bool:
    """Whether numbers of forward passes or shapes differ, or jax refused an axis."""
    return of_the_first_pass(verdict) or of_shapes(verdict) or _jax_says(verdict, r"\baxis\b")


def _jax_says(verdict: Verdict, pattern: str) -> bool:
    """Whether the message of an exception matches: jax's own words, for which it has no finer class."""
    return verdict.raised is not None and bool(re.search(pattern, verdict.raised.message, re.IGNORECASE))


ROWS = (
    Mend("epsilon", numeric, _epsilon),
    Mend("approximate function", numeric, _approximate),
    Mend("dtype", of_dtypes, _dtype),
    Mend("transposed weight", of_shapes, _transposed),
    Mend("mask sense", of_the_first_pass, _mask),
    Mend("smaller index", of_axes, _smaller_index),
    Mend("axis", of_axes, _axis),
)
"""Known causes, in the order in which they are tried."""


def _calls(text: Text) -> list[ast.Call]:
    return [node for node in ast.walk(text.tree) if isinstance(node, ast.Call)]


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""


def _keyword(node: ast.Call, name: str) -> ast.keyword | None:
    return next((key for key in node.keywords if key.arg == name), None)


def _small(text: Text) -> list[tuple[float, ast.Constant]]:
    """Positive floats of at most a hundredth: epsilons, and little else."""
    return [
        (node.value, node)
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= 1e-2
    ]


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _added(text: Text, node: ast.Call, argument: str) -> Edit:
    """An argument more at the end of a call."""
    arguments = [*node.args, *(key.value for key in node.keywords)]
    end = max((text.span(part)[1] for part in arguments), default=text.span(node)[1] - 1)
    return Edit(end, end, f", {argument}" if arguments else argument)


def _plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
