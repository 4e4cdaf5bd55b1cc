"""Draws with bounds, or with a mean and a deviation, as draws of standard numbers, which the generator with torch's own stream gives.

x = torch.empty(20, 2).uniform_(-1, 1)                x = 2 * torch.rand(20, 2) - 1
z = torch.normal(0.5, 0.1, (20, 2))            →      z = 0.5 + 0.1 * torch.randn((20, 2))
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import Imports, code
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

NEW = frozenset({"torch.empty", "torch.zeros", "torch.ones"})
"""Functions that give a new tensor of a size."""
CLASSES = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.cuda.FloatTensor"})
"""The same, where they are not called with data."""
STANDARD = {"uniform_": "rand", "normal_": "randn"}
PLAIN = (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.UnaryOperation)
"""Expressions that may be evaluated twice."""


class StandardDraws(ScriptPass):
    """One pass over a script. `kinds` says what expressions were seen to be, `floats` whether they were tensors of float32 and nothing else."""

    def __init__(self, imports: Imports, kinds: Callable[[cst.CSTNode], Sequence[str]], floats: Callable[[cst.CSTNode], bool]) -> None:
        super().__init__()
        self._imports, self._kinds, self._floats = imports, kinds, floats
        self._torch = next((name for name, dotted in imports.dotted.items() if dotted == "torch"), "")

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """A draw in its standard form."""
        if not self._torch or not self._floats(original_node):
            return updated_node
        function = updated_node.func
        text = None
        if self._imports.of(original_node.func) == "torch.normal":
            text = self._sized(updated_node)
        elif isinstance(function, cst.Attribute) and function.attr.value in STANDARD and isinstance(original_node.func, cst.Attribute):
            text = self._in_place(function, original_node.func.value, updated_node.args)
        if text is None:
            return updated_node
        new = cst.parse_expression(text)
        sum_of = isinstance(new, cst.BinaryOperation)
        return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) if sum_of else new

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """What is all that is assigned needs no parentheses."""
        return updated_node.with_changes(value=self._bare(original_node.value, updated_node.value))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Nor does an argument."""
        return updated_node.with_changes(value=self._bare(original_node.value, updated_node.value))

    def _bare(self, original: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        if not isinstance(original, cst.Call) or not isinstance(new, cst.BinaryOperation):
            return new
        bare = new.with_changes(lpar=[], rpar=[])
        self.origin[bare] = original
        return bare

    def _sized(self, call: cst.Call) -> str | None:
        """`torch.normal` of numbers and a size."""
        named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
        values = [argument.value for argument in call.args if argument.keyword is None]
        mean, deviation, size = (
            *values,
            *[named[name] for name in ("mean", "std", "size")[len(values) :] if name in named],
            None,
            None,
            None,
        )[:3]
        if size is None or mean is None or deviation is None or named.keys() - {"mean", "std", "size", "device"}:
            return None
        return _scaled(f"{self._torch}.randn({code(size)}{_device(named)})", code(mean), code(deviation))

    def _in_place(self, function: cst.Attribute, tensor: cst.BaseExpression, args: Sequence[cst.Arg]) -> str | None:
        """`uniform_` or `normal_` of a new tensor."""
        if len(args) > 2 or any(argument.star or (argument.keyword and argument.keyword.value not in ("mean", "std")) for argument in args):
            return None
        values = [code(argument.value) for argument in args]
        if any(argument.keyword is not None for argument in args):
            named = {argument.keyword.value if argument.keyword else "mean": code(argument.value) for argument in args}
            values = [named.get("mean", "0"), named.get("std", "1")]
        first, second = (*values, *("0", "1")[len(values) :])
        draw, receiver = STANDARD[function.attr.value], function.value
        if isinstance(receiver, cst.Call) and isinstance(tensor, cst.Call) and self._is_new(tensor):
            sizes = ", ".join(code(argument.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for argument in receiver.args)
            return self._of(draw, f"{draw}({sizes})", first, second, args)
        return None

    def _of(self, draw: str, call: str, first: str, second: str, args: Sequence[cst.Arg]) -> str | None:
        drawn = f"{self._torch}.{call}"
        if draw == "randn":
            return _scaled(drawn, first, second)
        return _between(drawn, first, second) if all(isinstance(argument.value, PLAIN) for argument in args) else None

    def _is_new(self, call: cst.Call) -> bool:
        """Whether a call gives a new tensor of the default dtype, and its arguments say the size alone."""
        names = {argument.keyword.value for argument in call.args if argument.keyword is not None}
        dotted = self._imports.of(call.func)
        if dotted in NEW:
            return not names - {"device"} and bool(call.args)
        return dotted in CLASSES and not names and bool(call.args) and all(self._is_size(argument.value) for argument in call.args)

    def _is_size(self, node: cst.BaseExpression) -> bool:
        kinds = set(self._kinds(node))
        return isinstance(node, cst.Integer) or (bool(kinds) and kinds <= {"int", "size"})


def _device(named: dict[str, Any]) -> str:
    return f", device={code(named['device'])}" if "device" in named else ""


def _scaled(drawn: str, mean: str, deviation: str) -> str:
    scaled = drawn if _number(deviation) == 1 else f"{_factor(deviation)} * {drawn}"
    return scaled if _number(mean) == 0 else f"{_factor(mean)} + {scaled}"


def _between(drawn: str, low: str, high: str) -> str:
    first, last = _number(low), _number(high)
    if first is None or last is None:
        scaled = f"{_factor(high)} * {drawn}" if first == 0 else f"({high} - {_factor(low)}) * {drawn}"
        return scaled if first == 0 else f"{_factor(low)} + {scaled}"
    # 0.3, not 0.30000000000000004, from -0.1 to 0.2.
    width = last - first if isinstance(last - first, int) else float(f"{last - first:.15g}")
    scaled = drawn if width == 1 else f"{width} * {drawn}"
    return scaled if first == 0 else f"{scaled} - {-first}" if first < 0 else f"{first} + {scaled}"


def _number(text: str) -> float | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _factor(text: str) -> str:
    """The text of a factor or a summand, in parentheses where it needs them."""
    node = ast.parse(text, mode="eval").body
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)) else f"({text})"
