"""Python control flow on tensor values, which cannot be traced: `lax.cond` where both sides fit, else a hole."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.calls.reduced import is_reduced
from migrate_agent.tools.rewrite.rules.calls.traced_integers import is_traced_integer
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.templates import wrap
from migrate_agent.tools.types import Observed

CONCRETE = frozenset({"int", "float", "bool", "range"})
SIZED = frozenset(f"torch.{name}" for name in ("arange", "zeros", "ones", "empty", "eye", "rand", "randn"))
"""Functions all of whose positional arguments say how large a new tensor is."""


ITEM = "item() needs the tensor's value while JAX traces: keep it an array, bound what it sizes, or pass the number as an argument"


class ReplaceTensorBranches(Rule):
    """Branch on tensors by `lax.cond`: `if x.sum() > 0: y = a` `else: y = b` → two functions and `lax.cond`.

    A conditional expression becomes `lax.cond` too, and checks that raise are removed with a note. Declines (a
    hole of class `tensor-branch`) where a branch does anything but assign local names or return.
    """

    CHECKS = ("leave_Call",)
    KEEP = ("def f(x: int):\n    if x > 0:\n        return 1\n    return 2\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    assert (x > 0).all()\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    assert torch.all(x >= 0).item()\n    if len(torch.unique(x)) > 1:\n        raise ValueError\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        x = x * 2\n    return x\n",
            "def f(x: jax.Array):\n    def if_true(x):\n        x = x * 2\n        return x\n\n    def if_false(x):\n        return x\n\n"
            "    x = lax.cond(jnp.sum(x) > 0, if_true, if_false, x)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x * 2 if x.sum().item() else x + 1\n",
            "def f(x: jax.Array):\n    return lax.cond(jnp.sum(x), lambda: x * 2, lambda: x + 1)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x * 2 if x.sum() > 0 else x + 1\n",
            "def f(x: jax.Array):\n    return lax.cond(jnp.sum(x) > 0, lambda: x * 2, lambda: x + 1)\n",
        ),
    )

    # -- statements -------------------------------------------------------------------------------------------------
    def leave_If(
        self, original: cst.If, updated: cst.If
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        if self.context.constructing:
            return None
        read = self._read_out(original.test)
        if self._raises(original) and (read or self._tensor(original.test)):
            self._note(original, "a check on tensor values was dropped")
            return cst.RemoveFromParent()
        self._forget_items(original.test)
        if not self._tensor(original.test):
            if read and not self._unfinished(original.test):
                self.context.hole(original.test, "a branch on a tensor's value, read out by item()", "tensor-branch")
            return None
        result = None if isinstance(self.context.parent(), cst.If) or isinstance(original.orelse, cst.If) else self._cond(original, updated)
        if result is None:
            self.context.hole(original.test, "a branch on tensor values", "tensor-branch")
        return result

    def leave_While(self, original: cst.While, updated: cst.While) -> None:
        if self._tensor(original.test) and not self.context.constructing:
            self._forget_items(original.test)
            self.context.hole(original.test, "a loop on tensor values", "tensor-branch")

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.RemovalSentinel | None:
        if self._tensor(original.test) or (self._read_out(original.test) and not self.context.constructing):
            self._note(original, "an assertion on tensor values was dropped")
            return cst.RemoveFromParent()
        return None

    def _note(self, node: cst.CSTNode, text: str) -> None:
        self.context.notes.append(f"{self.context.file.file.path}:{self.context.span(node).line}: {text}")

    def _raises(self, node: cst.If) -> bool:
        body = node.body.body
        last = body[-1] if body else None
        return node.orelse is None and isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise)

    def _cond(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.SimpleStatementLine | None:
        bodies = [_lines(updated.body), _lines(updated.orelse.body) if isinstance(updated.orelse, cst.Else) else []]
        if any(body is None or any(map(_gives_none, body)) for body in bodies):
            return None
        true, false = bodies[0] or [], bodies[1] or []
        if len(true) == len(false) == 1 and (value := _returned(true[0])) is not None and (other := _returned(false[0])) is not None:
            return cst.SimpleStatementLine(
                [cst.Return(self._call(original.test, updated.test, value, other))], leading_lines=updated.leading_lines
            )
        names = [_assigned(body) for body in (true, false)]
        if names[0] is None or names[1] is None:
            return None
        return self._functions(original, updated, (true, false), (names[0], names[1]))

    def _functions(
        self, original: cst.If, updated: cst.If, bodies: tuple[list[cst.SimpleStatementLine], ...], names: tuple[list[str], list[str]]
    ) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        every = list(dict.fromkeys([*names[0], *names[1]]))
        outputs = [name for name in every if self._read_outside(original, name)]
        before = [name for name in every if self._bound_before(original, name)]
        if not outputs or any(name not in before and not (name in names[0] and name in names[1]) for name in outputs):
            return None
        inputs = [name for name in every if name in before]
        result = ", ".join(outputs)
        parts: list[cst.BaseStatement] = []
        for label, body in zip(("if_true", "if_false"), bodies, strict=True):
            head = f"def {label}({', '.join(inputs)}):\n    return {result}\n"
            function = cst.parse_statement(head)
            assert isinstance(function, cst.FunctionDef)
            leading = [] if parts else list(updated.leading_lines)
            inner = function.body.with_changes(body=[*body, *function.body.body])
            parts.append(function.with_changes(body=inner, leading_lines=leading or [cst.EmptyLine(indent=False)]))
        test = self._predicate(original.test, updated.test)
        call = self.context.build("lax.cond({test}, if_true, if_false)", test=test)
        assert isinstance(call, cst.Call)
        call = call.with_changes(args=[*call.args, *(cst.Arg(cst.Name(name)) for name in inputs)])
        target = cst.parse_statement(f"{result} = 0\n")
        assert isinstance(target, cst.SimpleStatementLine) and isinstance(target.body[0], cst.Assign)
        parts.append(target.with_changes(body=[target.body[0].with_changes(value=call)], leading_lines=[cst.EmptyLine(indent=False)]))
        return cst.FlattenSentinel(parts)

    def _function(self) -> ast.AST | None:
        return self.context.function

    def _read_outside(self, node: cst.If | cst.While, name: str) -> bool:
        span, function = self.context.span(node), self._function()
        return function is None or any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and not span.line <= n.lineno <= span.end_line
            for n in ast.walk(function)
        )

    def _bound_before(self, node: cst.If | cst.While, name: str) -> bool:
        line, function = self.context.span(node).line, self._function()
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        return any(a.arg == name for a in arguments) or any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n.lineno < line for n in ast.walk(function)
        )

    # -- expressions ------------------------------------------------------------------------------------------------
    def leave_IfExp(self, original: cst.IfExp, updated: cst.IfExp) -> cst.BaseExpression | None:
        if not self._tensor(original.test) or self.context.constructing:
            return None
        self._forget_items(original.test)
        return self._call(original.test, updated.test, updated.body, updated.orelse)

    def leave_CompIf(self, original: cst.CompIf, updated: cst.CompIf) -> None:
        if self._tensor(original.test) and not self.context.constructing:
            self._forget_items(original.test)
            self.context.hole(original.test, "what a comprehension keeps depends on tensor values: keep all, and mask", "tensor-branch")

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        func = original.func
        if self.context.constructing or is_traced_integer(self.context, original):
            return
        if isinstance(func, cst.Name) and func.value in CONCRETE and any(is_tensor(self.context.observed(a.value)) for a in original.args):
            self.context.hole(original, f"{func.value}() of a tensor needs its value while tracing", "tensor-branch")
        elif self._item(original) is not None and self.context.cls and self.context.repo.is_module_class(self.context.cls):
            parent = self.context.parent(2)
            whole = isinstance(parent, cst.Call) and isinstance(parent.func, cst.Name) and parent.func.value in ("int", "range")
            self.context.hole(original, ITEM, "dynamic-shape" if whole else "tensor-value")
        elif self._sized(original) and self.context.cls and self.context.repo.is_module_class(self.context.cls):
            self.context.hole(
                original, "how many numbers there are depends on a tensor's value: bound it, or compute it from sizes", "dynamic-shape"
            )

    def _sized(self, call: cst.Call) -> bool:
        """Whether a tensor says how large the result of `torch.arange`, `torch.zeros` and the like is."""
        if self.context.dotted(call.func) not in SIZED:
            return False
        sizes = [
            a.value
            for a in call.args
            if not a.star and (a.keyword is None or a.keyword.value in ("start", "end", "step", "size", "n", "m"))
        ]
        return any(is_tensor(self.context.observed(size)) for size in sizes)

    def _call(
        self, test: cst.BaseExpression, new: cst.BaseExpression, true: cst.BaseExpression, false: cst.BaseExpression
    ) -> cst.BaseExpression:
        predicate = self._predicate(test, new)
        if any(isinstance(arm, (cst.Integer, cst.Float, cst.UnaryOperation)) for arm in (true, false)):
            return self.context.build("jnp.where({test}, {true}, {false})", test=predicate, true=true, false=false)
        arms = [cst.Lambda(cst.Parameters(), wrap(arm, None) if isinstance(arm, cst.Tuple) else arm) for arm in (true, false)]
        return cst.Call(cst.Attribute(cst.Name("lax"), cst.Name("cond")), [cst.Arg(predicate), *(cst.Arg(arm) for arm in arms)])

    def _predicate(self, test: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """The test as one boolean array."""
        if isinstance(test, cst.BooleanOperation) and isinstance(new, cst.BooleanOperation):
            name = "logical_and" if isinstance(test.operator, cst.And) else "logical_or"
            sides = self._predicate(test.left, new.left), self._predicate(test.right, new.right)
            return self.context.build(f"jnp.{name}({{a}}, {{b}})", a=sides[0], b=sides[1])
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) and isinstance(new, cst.UnaryOperation):
            return self.context.build("jnp.logical_not({x})", x=self._predicate(test.expression, new.expression))
        receiver = self._item(test)
        result = new.visit(_WithoutItems()) if receiver is not None or self._compares_items(test) else new
        assert isinstance(result, cst.BaseExpression)
        fact = self.context.observed(test if receiver is None else receiver)
        if is_tensor(fact) and fact and not set(fact.dtypes) <= {"bool"} and not isinstance(test, cst.Comparison):
            result = self.context.build("{x} != 0", x=result)
        if is_tensor(fact) and fact and any(fact.shapes):
            result = self.context.build("{x}.reshape(())", x=wrap(result, None))
        return result

    # -- questions --------------------------------------------------------------------------------------------------
    def _read_out(self, test: cst.BaseExpression) -> bool:
        """Whether a test asks for a tensor's value, by `item()`, or for something whose shape depends on values."""
        finder = _Items()
        test.visit(finder)
        return any(is_tensor(self.context.observed(node)) for node in finder.receivers) or self._unfinished(test)

    def _unfinished(self, test: cst.BaseExpression) -> bool:
        span = self.context.span(test)
        inside = [h for h in self.context.holes if (span.line, span.column) <= h.span[:2] <= (span.end_line, span.end_column)]
        return any(hole.code == "dynamic-shape" for hole in inside)

    def _tensor(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.BooleanOperation):
            return self._tensor(node.left) or self._tensor(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self._tensor(node.expression)
        if _always_tensor(self.context.observed(node)) or is_reduced(self.context, node):
            return True
        return self._item(node) is not None or self._compares_items(node)

    def _item(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What `item()` is called on, where that is a tensor."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
            return node.func.value if is_tensor(self.context.observed(node.func.value)) else None
        return None

    def _compares_items(self, node: cst.BaseExpression) -> bool:
        """Whether this compares a tensor without axes, read out by `item()`, with something."""
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return False
        receivers = [receiver for side in (node.left, node.comparisons[0].comparator) if (receiver := self._item(side)) is not None]
        return bool(receivers) and all((fact := self.context.observed(r)) and not any(fact.shapes) for r in receivers)

    def _forget_items(self, test: cst.BaseExpression) -> None:
        """The holes of `item()` inside a test: it is asked as an array, or is a hole itself."""
        span = self.context.span(test)
        inside = [h for h in self.context.holes if h.code == "tensor-value" and span[:2] <= h.span[:2] <= span[2:]]
        self.context.holes[:] = [hole for hole in self.context.holes if hole not in inside]


class _WithoutItems(cst.CSTTransformer):
    """`x.item()` → `x`."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if isinstance(func, cst.Attribute) and func.attr.value == "item" and not updated_node.args:
            return func.value
        return updated_node


class _Items(cst.CSTVisitor):
    """What `item()` is called on."""

    def __init__(self) -> None:
        super().__init__()
        self.receivers: list[cst.BaseExpression] = []

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
            self.receivers.append(node.func.value)


def _always_tensor(fact: Observed | None) -> bool:
    return fact is not None and "tensor" in fact.kinds and set(fact.kinds) <= {"tensor", "parameter"}


def _gives_none(line: cst.SimpleStatementLine) -> bool:
    """Whether a statement assigns or returns `None`, which is no array."""
    values = [small.value for small in line.body if isinstance(small, (cst.Assign, cst.Return))]
    return any(isinstance(value, cst.Name) and value.value == "None" for value in values)


def _lines(body: cst.BaseSuite) -> list[cst.SimpleStatementLine] | None:
    """The statements of a suite where all are simple."""
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(list(body.body))]
    lines = [s for s in body.body if isinstance(s, cst.SimpleStatementLine)]
    return lines if len(lines) == len(body.body) else None


def _returned(line: cst.SimpleStatementLine) -> cst.BaseExpression | None:
    only = line.body[0] if len(line.body) == 1 else None
    return only.value if isinstance(only, cst.Return) else None


def _assigned(lines: Sequence[cst.SimpleStatementLine]) -> list[str] | None:
    """The local names that statements assign, or `None` where they do anything else."""
    names: list[str] = []
    for line in lines:
        for statement in line.body:
            if isinstance(statement, cst.Assign):
                targets = [t.target for t in statement.targets]
            elif isinstance(statement, cst.AugAssign):
                targets = [statement.target]
            elif isinstance(statement, cst.Pass):
                continue
            else:
                return None
            for target in targets:
                found = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
                if not all(isinstance(one, cst.Name) for one in found):
                    return None
                names += [one.value for one in found if isinstance(one, cst.Name)]
    return names
