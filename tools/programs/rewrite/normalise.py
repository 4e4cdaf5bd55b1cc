"""Brings what has no meaning on one device in one precision into its plain form: autocast, loss scaling, `torch.compile`, `DataParallel`, several
statements on a line.

with autocast():                      output = model(x)
    output = model(x)          →      loss.backward()
scaler.scale(loss).backward()         optimizer.step()
scaler.step(optimizer)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.configured import Construction, configured
from migrate_agent.tools.programs.rewrite.core import blocks, body, call_of, is_optimizer, method_of
from migrate_agent.tools.programs.rewrite.method_optimizers import Inlined
from migrate_agent.tools.programs.rewrite.names import Imports, bound, code, read, text_of
from migrate_agent.tools.programs.rewrite.opened_checkpoints import CALLS, opened_path, without_open
from migrate_agent.tools.programs.rewrite.passes.begun_schedules import begun
from migrate_agent.tools.programs.rewrite.passes.gradient_loops import zeroed
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

CONTEXTS = ("autocast", "nullcontext")
SCALERS = "GradScaler"
PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
FLOATS = ("torch.FloatTensor", "torch.cuda.FloatTensor")
NOTE = "autocast is left out: the rewrite computes in the dtype of its parameters"


class Normalise(ScriptPass):
    """One pass over a script. `origin` says of each new expression which one it was; `notes` are for the reader."""

    def __init__(
        self,
        module: cst.Module,
        imports: Imports,
        kinds: Callable[[cst.CSTNode], Sequence[str]] = lambda node: (),
        construction: Callable[[cst.Call, str], Inlined | None] = lambda call, torch: None,
        constructed: Callable[[cst.CSTNode], Sequence[Construction]] = lambda node: (),
    ) -> None:
        super().__init__()
        self.imports, self._kinds, self._construction, self._constructed = imports, kinds, construction, constructed
        self._guards: list[cst.BaseStatement] = []
        self.notes: list[str] = []
        self._inlined: set[str] = set()
        """Functions whose groups of parameters are written out."""
        assigned = dict(_assigned(module))
        self._reads_underscore = any(
            isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, ast.Load)
            for node in ast.walk(ast.parse(text_of(module)))
        )
        self.scalers = {name for name, value in assigned.items() if self._last(value) == SCALERS}
        self.contexts = {name for name, value in assigned.items() if self._is_context(value)}
        self.floats = {name for name, value in assigned.items() if self._is_float_tensor(value)}

    def _last(self, node: cst.BaseExpression) -> str:
        return self.imports.of(node.func).rpartition(".")[2] if isinstance(node, cst.Call) else ""

    def _is_context(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.IfExp):
            return self._is_context(node.body) and self._is_context(node.orelse)
        return self._last(node) in CONTEXTS or (isinstance(node, cst.Name) and node.value in getattr(self, "contexts", ()))

    def _is_float_tensor(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.IfExp):
            return self._is_float_tensor(node.body) and self._is_float_tensor(node.orelse)
        return self.imports.of(node) in FLOATS

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """A function whose groups are written out goes where nothing else calls it."""
        others = [s for s in updated_node.body if not (isinstance(s, cst.FunctionDef) and s.name.value in self._inlined)]
        used = {name for statement in others for name in read(statement)}
        lines = [s for s in updated_node.body if s in others or (isinstance(s, cst.FunctionDef) and s.name.value in used)]
        return updated_node.with_changes(body=lines) if len(lines) < len(updated_node.body) else updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`with autocast(): …` → its statements."""
        if (opened := without_open(updated_node, self.imports, self.origin)) is not None:
            return cst.FlattenSentinel(opened)
        if not all(self._is_context(item.item) for item in original_node.items):
            return updated_node
        if any("autocast" in code(item.item) for item in original_node.items):
            self.notes.append(NOTE)
        lines = list(updated_node.body.body)
        if lines and hasattr(lines[0], "leading_lines"):
            lines[0] = lines[0].with_changes(leading_lines=[*updated_node.leading_lines, *lines[0].leading_lines])
            self.origin.setdefault(lines[0], original_node.body.body[0])
        return cst.FlattenSentinel(lines)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """`for p in model.parameters(): p.grad = None` → `model.zero_grad()`."""
        owner = zeroed(updated_node)
        if not owner:
            return updated_node
        line = cst.ensure_type(cst.parse_statement(f"{owner}.zero_grad()"), cst.SimpleStatementLine)
        new = line.with_changes(leading_lines=updated_node.leading_lines)
        self.origin[new] = original_node
        return new

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        """`if loss.requires_grad: loss.backward()` and `if torch.is_grad_enabled(): optimizer.zero_grad()` of a closure → their statements."""
        lines = body(updated_node.body)
        receiver, method = method_of(lines[0]) if len(lines) == 1 and updated_node.orelse is None else (None, "")
        test = updated_node.test
        takes = (
            isinstance(test, cst.Attribute)
            and test.attr.value == "requires_grad"
            and receiver is not None
            and test.value.deep_equals(receiver)
        )
        enabled = isinstance(test, cst.Call) and self.imports.of(test.func) == "torch.is_grad_enabled"
        if not (takes and method == "backward") and not (enabled and method == "zero_grad"):
            return updated_node
        return cst.FlattenSentinel(lines)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """`scaler.scale(loss)` → `loss`, `scaler.step(optimizer)` → `optimizer.step()`, `FloatTensor(…)` → `torch.tensor(…)`."""
        if (plain := configured(updated_node, self.imports, self._constructed(original_node))) is not None:
            self._guards.append(plain.guard())
            return plain.call
        if (first := begun(updated_node, self.imports)) is not None:
            self._guards.append(first.guard)
            return first.call
        function = updated_node.func
        if self.imports.of(original_node.func) in CALLS:
            paths = [(argument, opened_path(argument.value)) for argument in updated_node.args]
            return updated_node.with_changes(args=[a if path is None else a.with_changes(value=path) for a, path in paths])
        kinds = self._kinds(original_node)
        if self.imports.of(original_node.func) == "torch.compile" and updated_node.args and updated_node.args[0].keyword is None:
            # The step is compiled.
            return updated_node.args[0].value
        if self.imports.of(original_node.func) in PARALLEL and updated_node.args and updated_node.args[0].keyword is None:
            # Batches are not parted on one device.
            return updated_node.args[0].value
        by_function = is_optimizer(self.imports.of(original_node.func)) and self._is_own_call(original_node)
        if (
            kinds
            and all(kind.startswith("object:torch.optim.") for kind in kinds)
            and (by_function or not self.imports.of(original_node.func))
        ):
            torch = next((name for name, dotted in self.imports.dotted.items() if dotted == "torch"), "")
            inlined = self._construction(original_node, torch) if torch else None
            if inlined is not None:
                maker = cst.ensure_type(original_node.args[0].value, cst.Call).func if by_function else original_node.func
                lines = map(cst.parse_statement, inlined.printed) if by_function else self._lines_about(original_node, inlined.printed)
                self._guards += lines
                self._inlined |= {code(maker)} if by_function else set()
                self.notes.append(f"the groups of {code(maker)} are told apart as the recorded run had them")
                return cst.parse_expression(inlined.text)
        if isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name) and function.value.value in self.scalers:
            if function.attr.value == "scale":
                return updated_node.args[0].value
            if function.attr.value == "step":
                return cst.Call(cst.Attribute(updated_node.args[0].value, cst.Name("step")))
        if (
            isinstance(function, cst.Attribute)
            and function.attr.value == "float"
            and not updated_node.args
            and self._is_module(original_node)
        ):
            return function.value
        float_tensor = self.imports.of(original_node.func) in FLOATS or code(original_node.func) in self.floats
        return self._float_tensor(original_node, updated_node) if float_tensor else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`model.module` of what is wrapped for several devices → `model`."""
        kinds = self._kinds(original_node.value) if original_node.attr.value == "module" else ()
        wrapped = bool(kinds) and all(kind.startswith("module:torch.") and kind.endswith(".DataParallel") for kind in kinds)
        return updated_node.value if wrapped else updated_node

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:
        """`loss.backward(weight)` → `(loss * weight).sum().backward()`, which has the same gradients."""
        call = updated_node.value
        function = call.func if isinstance(call, cst.Call) else None
        if not isinstance(call, cst.Call) or not isinstance(function, cst.Attribute) or function.attr.value != "backward":
            return updated_node
        weights = [a for a in call.args if not a.star and (a.keyword is None or a.keyword.value == "gradient")]
        others = [a for a in call.args if a not in weights]
        if len(weights) != 1 or any(a.star or a.keyword is None for a in others):
            return updated_node
        weight, loss = weights[0].value, function.value
        if code(weight) != "None":
            product = cst.BinaryOperation(_in_product(loss), cst.Multiply(), _in_product(weight), [cst.LeftParen()], [cst.RightParen()])
            # It is a tensor as the loss is, and so is its sum.
            self.origin[product] = self.origin.get(loss, loss)
            loss = cst.Call(cst.Attribute(product, cst.Name("sum")))
        new = call.with_changes(func=function.with_changes(value=loss), args=others)
        return updated_node.with_changes(value=new)

    def _is_own_call(self, call: cst.Call) -> bool:
        """Whether the first argument is what a function of the repository gives."""
        argument = call.args[0].value if call.args else None
        return (
            isinstance(argument, cst.Call)
            and isinstance(argument.func, cst.Name)
            and not self.imports.of(argument.func).startswith("torch")
        )

    def _lines_about(self, call: cst.Call, printed: Sequence[str]) -> list[cst.BaseStatement]:
        return [self._about(cst.ensure_type(call.func, cst.Attribute).value, call, line) for line in printed]

    def _about(self, receiver: cst.BaseExpression, call: cst.Call, line: str) -> cst.BaseStatement:
        """A line about the object of a method's call, which is what it was seen to be there."""
        statement = cst.parse_statement(line)
        same = m.findall(statement, m.MatchIfTrue(lambda node: isinstance(node, cst.CSTNode) and receiver.deep_equals(node)))
        self.origin |= dict.fromkeys(same, cst.ensure_type(call.func, cst.Attribute).value)
        return statement

    def _is_module(self, call: cst.Call) -> bool:
        """Whether the object of a method was seen to be a module: its parameters are float32 from the start."""
        kinds = self._kinds(call.func.value) if isinstance(call.func, cst.Attribute) else ()
        return bool(kinds) and all(kind.startswith("module:") for kind in kinds)

    def _float_tensor(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        torch = next((name for name, dotted in self.imports.dotted.items() if dotted == "torch"), "")
        if not torch or not original.args or any(a.star or a.keyword for a in original.args):
            return updated
        # Sizes, unless it is one sequence or array.
        first = original.args[0].value
        kinds = self._kinds(first)
        values = bool(kinds) and all(kind in ("tensor", "ndarray", "list", "tuple") for kind in kinds)
        single = len(original.args) == 1 and (values or isinstance(first, (cst.Call, cst.List, cst.Tuple, cst.ListComp)))
        if not single or code(first).endswith((".size(0)", "len()")):
            return updated.with_changes(func=cst.parse_expression(f"{torch}.zeros"))
        kept = [updated.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
        dtype = cst.Arg(
            cst.parse_expression(f"{torch}.float32"),
            cst.Name("dtype"),
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
        )
        return updated.with_changes(func=cst.parse_expression(f"{torch}.as_tensor"), args=[*kept, dtype])

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """Scalers and contexts go; each statement gets a line."""
        if len(original_node.body) > 1:
            return cst.FlattenSentinel(self._lines(original_node, updated_node))
        if self._guards:
            guards, self._guards = self._guards, []
            guards[0] = guards[0].with_changes(leading_lines=updated_node.leading_lines)
            line = updated_node.with_changes(leading_lines=())
            self.origin.setdefault(line, original_node)
            return cst.FlattenSentinel([*guards, line])
        return cst.RemoveFromParent() if self._goes(original_node) else self._places(updated_node)

    def _places(self, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """`_, predicted = outputs.max(1)` → `predicted = outputs.argmax(1)`, where nothing reads the largest values."""
        small = line.body[0]
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if (
            not isinstance(target, cst.Tuple)
            or len(target.elements) != 2
            or code(target.elements[0].value) != "_"
            or self._reads_underscore
        ):
            return line
        assert isinstance(small, cst.Assign)
        function = small.value.func if isinstance(small.value, cst.Call) else None
        if not isinstance(function, cst.Attribute) or function.attr.value not in ("max", "min") or not isinstance(small.value, cst.Call):
            return line
        of_torch = self.imports.of(function) in ("torch.max", "torch.min")
        options = small.value.args[of_torch:]
        if not options or not re.fullmatch(r"(dim ?= ?)?-?\d+(, keepdim ?= ?\w+)?", ", ".join(code(one).rstrip(", ") for one in options)):
            return line
        value = small.value.with_changes(func=function.with_changes(attr=cst.Name(f"arg{function.attr.value}")))
        indices: Any = target.elements[1].value
        targets = [cst.AssignTarget(indices)]
        return line.with_changes(body=[small.with_changes(targets=targets, value=value)])

    def _goes(self, line: cst.SimpleStatementLine) -> bool:
        call, names = call_of(line), bound(line)
        if names and set(names) <= self.scalers | self.contexts:
            return True
        function = call.func if call is not None else None
        of_scaler = isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name) and function.value.value in self.scalers
        return of_scaler and isinstance(function, cst.Attribute) and function.attr.value in ("update", "unscale_")

    def _lines(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> Iterator[cst.SimpleStatementLine]:
        for number, small in enumerate(updated.body):
            plain = small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            self.origin.setdefault(plain, small)
            last = number == len(updated.body) - 1
            yield cst.SimpleStatementLine(
                [plain],
                leading_lines=updated.leading_lines if not number else (),
                trailing_whitespace=updated.trailing_whitespace if last else cst.TrailingWhitespace(),
            )


def _in_product(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as a factor."""
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or node.lpar
    return node if simple else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _assigned(module: cst.Module) -> Iterator[tuple[str, cst.BaseExpression]]:
    for block, _ in blocks(module):
        for statement in body(block):
            small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
            if isinstance(small, cst.Assign) and len(small.targets) == 1:
                yield code(small.targets[0].target), small.value
