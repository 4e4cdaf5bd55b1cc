"""Writes PyTorch's operator samples as source: one function a call, in each spelling that the operator has."""

from __future__ import annotations

import ast
import dataclasses
import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from migrate_agent.evals.operators.op_table import ARGUMENTS, EXCLUDED, INTERNAL, NAMES, OPERATORS, WRAPS, Wrap
from migrate_agent.tools.record.observe import is_whole
from migrate_agent.tools.types import Observed, Span

SHARES = {torch.int64: 0.5, torch.bool: 0.25, torch.float32: 0.125, torch.bfloat16: 0.125}
"""The part of the limit on samples that each dtype after the first (exact) one gets; at least two samples."""


class Unspelled(Exception):
    """A sample holds a value that has no source text, or its spelling does something else."""


@dataclass(frozen=True)
class Call:
    """One call: a function of `x0, x1, …` as statements, the values of these names, and what kind of spelling it is."""

    entry: str
    spelling: str
    dtype: str
    body: str
    tensors: tuple[torch.Tensor, ...]
    differentiable: bool

    @property
    def names(self) -> dict[str, torch.Tensor]:
        """Argument → tensor."""
        return {f"x{index}": tensor for index, tensor in enumerate(self.tensors)}

    def function(self, name: str) -> str:
        """The definition under this name."""
        return f"def {name}({', '.join(self.names)}):\n{self.body}"


def full_name(entry: Any) -> str:
    """Name and variant of an `op_db` entry."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def excluded(entry: Any) -> str:
    """Why the entry is out of scope, or nothing."""
    if any(part.startswith("_") and not part.startswith("__") for part in entry.name.split(".")):
        return INTERNAL
    return EXCLUDED.get(full_name(entry)) or EXCLUDED.get(entry.name, "")


def calls(entry: Any, limit: int | None) -> Iterator[Call | Unspelled]:
    """The entry's samples in all spellings, of each dtype at most its share of `limit` (None: all of them)."""
    for dtype in dtypes(entry):
        for sample in chosen(inputs(entry, dtype), share(entry, dtype, limit)):
            arguments = [sample.input, *sample.args]
            reorder = ARGUMENTS.get(full_name(entry)) or ARGUMENTS.get(entry.name)
            try:
                yield from _spellings(entry, dtype, reorder(arguments) if reorder else arguments, dict(sample.kwargs))
            except Unspelled as error:
                yield error


def share(entry: Any, dtype: torch.dtype, limit: int | None) -> int | None:
    """How many samples of this dtype are taken at most; None: all."""
    if limit is None or dtype is dtypes(entry)[0]:
        return limit
    return max(2, math.ceil(limit * SHARES[dtype]))


def chosen(samples: Sequence[Any], limit: int | None) -> list[Any]:
    """At most `limit` of the samples in their order, drawn at random (always the same ones), since neighbours are alike."""
    if limit is None or len(samples) <= limit:
        return list(samples)
    return [samples[i] for i in sorted(random.Random(0).sample(range(len(samples)), limit))]


def inputs(entry: Any, dtype: torch.dtype) -> list[Any]:
    """All samples of a dtype."""
    torch.manual_seed(0)
    gradients = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(entry.sample_inputs("cpu", dtype, requires_grad=gradients))


def dtypes(entry: Any) -> list[torch.dtype]:
    """float64 (or the nearest to it that the entry has), int64, bool, float32 and bfloat16, as far as the entry has them."""
    supported = entry.supported_dtypes("cpu")
    floats = [dtype for dtype in (torch.float64, torch.complex128, torch.float32) if dtype in supported][:1]
    return floats + [dtype for dtype in SHARES if dtype in supported and dtype not in floats]


def _spellings(entry: Any, dtype: torch.dtype, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Iterator[Call]:
    writer = Writer()
    texts = [writer.write(argument) for argument in arguments]
    named = [f"{key}={writer.write(value)}" for key, value in keywords.items()]
    wrap = WRAPS.get(full_name(entry), Wrap())
    gradients = any(tensor.requires_grad for tensor in writer.tensors)
    expressions = list(_expressions(NAMES.get(full_name(entry), entry.name), arguments, texts, named))
    if not expressions:
        raise Unspelled(f"{entry.name} has no spelling for these arguments")
    for spelling, expression in expressions:
        lines = [wrap.before, f"y = {expression}", f"return {wrap.after}"] if wrap != Wrap() else [f"return {expression}"]
        if spelling == "in-place" or (entry.name.endswith("_") and not entry.name.endswith("__")):
            lines = ["x0 = x0.clone()", expression, "return x0"]
        body = "".join(f"    {line}\n" for line in lines if line)
        call = Call(full_name(entry), spelling, str(dtype).removeprefix("torch."), body, tuple(writer.tensors), gradients)
        if _runs(call, optional=spelling != expressions[0][0]):
            yield call


def _expressions(name: str, arguments: Sequence[Any], texts: Sequence[str], named: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, expression) for each public spelling: function, method, property, in-place method, operator."""
    inside = ", ".join([*texts, *named])
    if name == "__getitem__":
        index = arguments[1] if len(arguments) > 1 else ()
        yield "operator", f"{texts[0]}[{_index_text(index, texts[1])}]"
        return
    if name.startswith("__r"):
        yield "operator", f"{texts[1]} {OPERATORS[name]} {texts[0]}"
        return
    if callable(_function(name)):
        yield "function", f"torch.{name}({inside})"
    tensor_first = bool(arguments) and isinstance(arguments[0], torch.Tensor)
    rest = ", ".join([*texts[1:], *named])
    method = getattr(torch.Tensor, name, None)
    if tensor_first and callable(method):
        yield "method", f"{texts[0]}.{name}({rest})"
    elif tensor_first and method is not None and not rest:
        yield "property", f"{texts[0]}.{name}"
    if tensor_first and hasattr(torch.Tensor, f"{name}_") and not name.endswith("_"):
        yield "in-place", f"{texts[0]}.{name}_({rest})"
    if len(texts) == 2 and not named and name in OPERATORS:
        yield "operator", f"{texts[0]} {OPERATORS[name]} {texts[1]}"


def _function(name: str) -> Any:
    value: Any = torch
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _index_text(index: Any, text: str) -> str:
    """An index as it stands between brackets."""
    return text[1:-1].rstrip(",") if isinstance(index, tuple) and len(index) > 1 else text


def _runs(call: Call, optional: bool) -> bool:
    """Whether torch runs it. Spellings that need not exist for every input (an in-place result must fit) may fail; the first may not."""
    try:
        torch_result(call)
    except Exception as error:
        if optional:
            return False
        raise Unspelled(f"torch does not run `{call.body.strip()}`: {error}") from error
    return True


def torch_result(call: Call) -> Any:
    """What torch gives for the call."""
    names: dict[str, Any] = {"torch": torch}
    exec(call.function("f"), names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return names["f"](*call.tensors)


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as a leaf of its own, since samples may share what they differentiate by; one that is a part of another stays."""
    return tensor.detach().clone().requires_grad_() if tensor.requires_grad and is_whole(tensor) else tensor


class Writer:
    """Writes values as source; tensors become the names `x0, x1, …` (or another letter). Raises `Unspelled` for what has no text."""

    def __init__(self, letter: str = "x") -> None:
        self.letter = letter
        self.tensors: list[torch.Tensor] = []

    def write(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            self.tensors.append(_alone(value))
            return f"{self.letter}{len(self.tensors) - 1}"
        if isinstance(value, (list, tuple)):
            items = ", ".join(self.write(item) for item in value)
            if isinstance(value, list):
                return f"[{items}]"
            return f"({items},)" if len(value) == 1 else f"({items})"
        if isinstance(value, slice):
            return self._slice(value)
        if isinstance(value, (float, complex)) and not math.isfinite(abs(value)):
            return f"float('{value}')"
        if isinstance(value, torch.device):
            return repr(str(value))
        if value is Ellipsis:
            return "..."
        if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype, torch.layout, torch.memory_format)):
            return repr(value)
        return self.other(value)

    def other(self, value: Any) -> str:
        """The text of anything else: public functions and classes of torch by their names."""
        name = getattr(value, "__name__", "")
        if callable(value) and _function(f"nn.functional.{name}") is value:
            return f"torch.nn.functional.{name}"
        if isinstance(value, torch.nn.PairwiseDistance) and value.extra_repr() == torch.nn.PairwiseDistance().extra_repr():
            return "torch.nn.PairwiseDistance()"
        if dataclasses.is_dataclass(value) and getattr(torch.nn, type(value).__name__, None) is type(value):
            fields = [f for f in dataclasses.fields(value) if getattr(value, f.name) != f.default]
            return f"torch.nn.{type(value).__name__}({', '.join(f'{f.name}={self.write(getattr(value, f.name))}' for f in fields)})"
        raise Unspelled(f"a {type(value).__name__} as an argument has no source text")

    def _slice(self, value: slice) -> str:
        return f"slice({', '.join(self.write(part) for part in (value.start, value.stop, value.step))})"


def observe(text: str, tensors: Mapping[str, Mapping[str, torch.Tensor]]) -> dict[Span, Observed]:
    """What recording would note: each use of these names, in the function or class of that name, with shape and dtype."""
    observations: dict[Span, Observed] = {}
    for definition in ast.parse(text).body:
        values = tensors.get(getattr(definition, "name", ""), {})
        for node in ast.walk(definition):
            if isinstance(node, ast.Name) and node.id in values and isinstance(node.ctx, ast.Load):
                span = Span(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
                tensor = values[node.id]
                observations[span] = Observed(
                    ("tensor",), (tuple(tensor.shape),), (str(tensor.dtype).removeprefix("torch."),), is_whole(tensor)
                )
    return observations
