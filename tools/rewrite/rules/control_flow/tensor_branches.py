"""Python control flow on tensor values, which cannot be traced: `lax.cond` and `lax.while_loop` where both sides fit, else a hole.

`ReplaceTensorBranches` looks at every test first, and notes a hole where it cannot express the branch. The rules after it look for that hole:
chains of `elif`, branches that change a module's state or return early, and loops.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.apply_tables import bare
from migrate_agent.tools.rewrite.rules.calls.array_reductions import is_reduced
from migrate_agent.tools.rewrite.rules.calls.chosen_modules import chooses_module
from migrate_agent.tools.rewrite.rules.calls.host_draws import is_conversion
from migrate_agent.tools.rewrite.rules.calls.pointers import reads_pointer
from migrate_agent.tools.rewrite.rules.calls.traced_integers import is_traced_float, is_traced_integer
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.changed_modules import changed_modules, drawing_modules
from migrate_agent.tools.rewrite.rules.control_flow.computed_numbers import computes_with_arrays
from migrate_agent.tools.rewrite.rules.control_flow.handed_back import hands_back
from migrate_agent.tools.rewrite.rules.indexing.known_numbers import reads_known_numbers
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.templates import wrap
from migrate_agent.tools.scan.nodes import other_branches
from migrate_agent.tools.types import Observed

CONCRETE = frozenset({"int", "float", "bool", "range"})
SIZED = frozenset(f"torch.{name}" for name in ("arange", "zeros", "ones", "empty", "eye", "rand", "randn"))
"""Functions all of whose positional arguments say how large a new tensor is."""

ITEM = "item() needs the tensor's value while JAX traces: keep it an array, bound what it sizes, or pass the number as an argument"
STEP = "step"
"""The name of the function that is a step of a loop which may have been left."""
HELPERS = frozenset({"if_true", "if_false", STEP})
"""The functions that a branch on tensors becomes."""


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
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x, y):\n"
            "        if not self.training or torch.rand(1).item() < 0.5:\n            return x + y\n        else:\n            return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n        self.rngs = rngs\n\n"
            "    def __call__(self, x, y):\n        if self.deterministic:\n            return x + y\n"
            "        return lax.cond(jax.random.uniform(self.rngs(), 1) < 0.5, lambda: x + y, lambda: x)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x, y):\n"
            "        return x if self.training and torch.rand(1).item() < 0.5 else y\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n        self.rngs = rngs\n\n"
            "    def __call__(self, x, y):\n"
            "        return lax.cond(jax.random.uniform(self.rngs(), 1) < 0.5, lambda: x, lambda: y) if not self.deterministic else y\n",
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
        # A constructor is not traced: values are there.
        if self.context.constructing:
            return None
        read = self._reads_value(original.test)
        # Compiled code cannot raise, and the examples passed the check.
        if self._only_raises(original) and (read or self._is_tensor_test(original.test)):
            self._note(original, "a check on tensor values was dropped")
            return cst.RemoveFromParent()
        self._forget_items(original.test)
        if (present := self._present(original, updated)) is not None:
            return present
        if not self._is_tensor_test(original.test):
            if read and not self._has_dynamic_hole(original.test):
                self.context.hole(original.test, "a branch on a tensor's value, read out by item()", "tensor-branch")
            return None
        chained = isinstance(self.context.parent(), cst.If) or isinstance(original.orelse, cst.If)
        result = None if chained else self._guarded(original, updated) or self._build_cond(original, updated, original.test, updated.test)
        if result is None:
            self.context.hole(original.test, "a branch on tensor values", "tensor-branch")
        return result

    def _decided(self, test: cst.BaseExpression) -> bool:
        """Whether tracing decides the first operand of `and`, and Python evaluates the other one only where it holds."""
        return isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And) and not self._is_tensor_test(test.left)

    def _guarded(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        """`if not self.training or torch.rand(()) < p: …` with a first operand that tracing decides: Python's own branch around `lax.cond`.

        Python leaves the second operand alone where the first one decides, and so does this: evaluation draws no number.
        """
        old, new = original.test, updated.test
        if not isinstance(old, cst.BooleanOperation) or not isinstance(new, cst.BooleanOperation):
            return None
        either = isinstance(old.operator, cst.Or)
        if self._is_tensor_test(old.left):
            return None
        inner = self._build_cond(original, updated, old.right, new.right)
        if inner is None or not isinstance(updated.body, cst.IndentedBlock):
            return None
        statements = _without_blank_start(list(inner.nodes) if isinstance(inner, cst.FlattenSentinel) else [inner])
        decided = updated.body if either else cst.IndentedBlock(statements)
        other = updated.orelse.body if isinstance(updated.orelse, cst.Else) else None
        after = [line for line in other.body if isinstance(line, cst.BaseStatement)] if other is not None else []
        rest = statements if either else after
        if isinstance(inner, cst.SimpleStatementLine):  # it returns, and so do both sides
            return cst.FlattenSentinel([updated.with_changes(test=new.left, body=decided, orelse=None), *rest])
        if not either and original.orelse is None:
            return cst.FlattenSentinel([updated.with_changes(test=new.left, body=decided)])
        return cst.FlattenSentinel([updated.with_changes(test=new.left, body=decided, orelse=cst.Else(cst.IndentedBlock(rest)))])

    def _present(self, original: cst.If, updated: cst.If) -> cst.If | None:
        """`if scale:` of None or a tensor of one element: Python's own test of `scale is not None`, and the branch on the tensor inside."""
        fact = self.context.observed(original.test)
        if (
            not isinstance(original.test, cst.Name)
            or original.orelse is not None
            or isinstance(self.context.parent(), cst.If)
            or fact is None
        ):
            return None
        if set(fact.kinds) != {"none", "tensor"} or not fact.shapes or any(math.prod(shape) != 1 for shape in fact.shapes):
            return None
        inner = self._build_cond(original, updated, original.test, updated.test)
        if not isinstance(inner, cst.FlattenSentinel):
            return None
        block = cst.IndentedBlock(_without_blank_start(list(inner.nodes)))
        return updated.with_changes(test=self.context.build("{x} is not None", x=updated.test), body=block)

    def leave_While(self, original: cst.While, updated: cst.While) -> None:
        if self._is_tensor_test(original.test) and not self.context.constructing:
            self._forget_items(original.test)
            self.context.hole(original.test, "a loop on tensor values", "tensor-branch")

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.RemovalSentinel | None:
        if self._is_tensor_test(original.test) or (self._reads_value(original.test) and not self.context.constructing):
            self._note(original, "an assertion on tensor values was dropped")
            return cst.RemoveFromParent()
        return None

    def _note(self, node: cst.CSTNode, text: str) -> None:
        self.context.notes.append(f"{self.context.file.file.path}:{self.context.span(node).line}: {text}")

    def _only_raises(self, node: cst.If) -> bool:
        body = node.body.body
        last = body[-1] if body else None
        return node.orelse is None and isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise)

    def _build_cond(
        self, original: cst.If, updated: cst.If, test: cst.BaseExpression, new: cst.BaseExpression
    ) -> cst.FlattenSentinel[cst.BaseStatement] | cst.SimpleStatementLine | None:
        bodies = [_simple_statements(updated.body), _simple_statements(updated.orelse.body) if isinstance(updated.orelse, cst.Else) else []]
        if any(body is None or any(map(_gives_none, body)) for body in bodies):
            return None
        # `ReplaceBranchChains` hands modules to the branch, and lets tracing decide what it can.
        if changed_modules(self.context, original, updated) != [] or (original.orelse is None and self._decided(test)):
            return None
        true, false = bodies[0] or [], bodies[1] or []
        if len(true) == len(false) == 1 and (value := _returned(true[0])) is not None and (other := _returned(false[0])) is not None:
            return cst.SimpleStatementLine([cst.Return(self._call(test, new, value, other))], leading_lines=updated.leading_lines)
        names = [_assigned_names(body) for body in (true, false)]
        if names[0] is None or names[1] is None:
            return None
        return self._functions(original, updated, self._predicate(test, new), (true, false), (names[0], names[1]))

    def _functions(
        self,
        original: cst.If,
        updated: cst.If,
        test: cst.BaseExpression,
        bodies: tuple[list[cst.SimpleStatementLine], ...],
        names: tuple[list[str], list[str]],
    ) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        every = list(dict.fromkeys([*names[0], *names[1]]))
        outputs = [name for name in every if self._read_outside(original, name)]
        before = [name for name in every if self._bound_before(original, name)]
        # `lax.cond` gives the same names on both sides: one that is bound on one side alone has no value on the other.
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
        cond = "vendored.cond_of_numbers" if any(map(self._may_be_number, inputs)) else "lax.cond"
        call = self.context.build(f"{cond}({{test}}, if_true, if_false)", test=test)
        assert isinstance(call, cst.Call)
        call = call.with_changes(args=[*call.args, *(cst.Arg(cst.Name(name)) for name in inputs)])
        self.context.traced |= {(self.context.function_key, name) for name in outputs}
        target = cst.parse_statement(f"{result} = 0\n")
        assert isinstance(target, cst.SimpleStatementLine) and isinstance(target.body[0], cst.Assign)
        parts.append(target.with_changes(body=[target.body[0].with_changes(value=call)], leading_lines=[cst.EmptyLine(indent=False)]))
        return cst.FlattenSentinel(parts)

    def _function(self) -> ast.AST | None:
        return self.context.function

    def _may_be_number(self, name: str) -> bool:
        """Whether a name was a Python number in one place and a tensor in another, as in `loss = 0` and `loss = loss + x`."""
        function, context = self._function(), self.context
        named = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name] if function is not None else []
        facts = [context.facts.observed.get(span_of(node, context.file.lines)) for node in named]
        kinds = {kind for fact in facts if fact is not None for kind in fact.kinds}
        return "tensor" in kinds and bool(kinds & {"int", "float"})

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
        other = other_branches(function, line)
        return any(a.arg == name for a in arguments) or any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n.lineno < line and n.lineno not in other
            for n in ast.walk(function)
        )

    # -- expressions ------------------------------------------------------------------------------------------------
    def leave_IfExp(self, original: cst.IfExp, updated: cst.IfExp) -> cst.BaseExpression | None:
        if not self._is_tensor_test(original.test) or self.context.constructing:
            return None
        self._forget_items(original.test)
        match self.context.parent():
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                self.context.traced.add((self.context.function_key, name))
        return self._call(original.test, updated.test, updated.body, updated.orelse)

    def leave_CompIf(self, original: cst.CompIf, updated: cst.CompIf) -> None:
        if self._is_tensor_test(original.test) and not self.context.constructing:
            self._forget_items(original.test)
            self.context.hole(original.test, "what a comprehension keeps depends on tensor values: keep all, and mask", "tensor-branch")

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        func = original.func
        made_once = self.context.constructing or self.context.function_key in self.context.randomness.factories
        # A number that is drawn is an array by now (`DrawOnDevice`).
        if made_once or is_conversion(self.context, original) or self.context.span(func) in self.context.facts.draws:
            return
        if is_traced_integer(self.context, original) or is_traced_float(self.context, original) or hands_back(self.context, original):
            return
        if chooses_module(self.context, original) or reads_pointer(self.context, original) or reads_known_numbers(self.context, original):
            return
        if computes_with_arrays(self.context, original):
            return
        if isinstance(func, cst.Name) and func.value in CONCRETE and any(is_tensor(self.context.observed(a.value)) for a in original.args):
            self.context.hole(original, f"{func.value}() of a tensor needs its value while tracing", "tensor-branch")
        # Outside of modules nothing is known to be traced.
        elif self._item_receiver(original) is not None and self.context.cls and self.context.repo.is_module_class(self.context.cls):
            parent = self.context.parent(2)
            whole = isinstance(parent, cst.Call) and isinstance(parent.func, cst.Name) and parent.func.value in ("int", "range")
            self.context.hole(original, ITEM, "dynamic-shape" if whole else "tensor-value")
        elif self._is_sized_by_tensor(original) and self.context.cls and self.context.repo.is_module_class(self.context.cls):
            self.context.hole(
                original, "how many numbers there are depends on a tensor's value: bound it, or compute it from sizes", "dynamic-shape"
            )

    def _is_sized_by_tensor(self, call: cst.Call) -> bool:
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
        if isinstance(test, cst.BooleanOperation) and isinstance(new, cst.BooleanOperation) and not self._is_tensor_test(test.left):
            # Python leaves the second operand alone where the first one decides, as evaluation draws no number.
            inner = wrap(self._call(test.right, bare(new.right), true, false), None)
            either = isinstance(test.operator, cst.Or)
            return cst.IfExp(new.left, true if either else inner, inner if either else false)
        predicate = self._predicate(test, new)
        if (isinstance(true, cst.Name), isinstance(false, cst.Name)) == (True, True) and (true.value, false.value) == ("True", "False"):  # type: ignore[attr-defined]
            return predicate
        # `lax.cond` wants one dtype on both sides; a Python number has none of its own, and `where` promotes it.
        if any(isinstance(arm, (cst.Integer, cst.Float, cst.UnaryOperation)) for arm in (true, false)):
            return self.context.build("jnp.where({test}, {true}, {false})", test=predicate, true=true, false=false)
        arms = [cst.Lambda(cst.Parameters(), wrap(arm, None) if isinstance(arm, cst.Tuple) else arm) for arm in (true, false)]
        return cst.Call(cst.Attribute(cst.Name("lax"), cst.Name("cond")), [cst.Arg(predicate), *(cst.Arg(arm) for arm in arms)])

    def _predicate(self, test: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """The test as one boolean array."""
        if isinstance(test, cst.BooleanOperation) and isinstance(new, cst.BooleanOperation):
            # Python's `and` and `or` ask for the truth of their operands.
            name = "logical_and" if isinstance(test.operator, cst.And) else "logical_or"
            sides = self._predicate(test.left, new.left), self._predicate(test.right, new.right)
            return self.context.build(f"jnp.{name}({{a}}, {{b}})", a=sides[0], b=sides[1])
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) and isinstance(new, cst.UnaryOperation):
            return self.context.build("jnp.logical_not({x})", x=self._predicate(test.expression, new.expression))
        receiver = self._item_receiver(test)
        result = new.visit(_WithoutItems()) if receiver is not None or self._compares_items(test) else new
        assert isinstance(result, cst.BaseExpression)
        fact = self.context.observed(test if receiver is None else receiver)
        if is_tensor(fact) and fact and not set(fact.dtypes) <= {"bool"} and not isinstance(test, cst.Comparison):
            result = self.context.build("{x} != 0", x=result)
        # Torch takes any tensor of one element as a test, `lax.cond` only one without axes.
        compared = [item for receiver in self._compared_items(test) if (item := self.context.observed(receiver))]
        if any(any(item.shapes) for item in compared) or (is_tensor(fact) and fact and any(fact.shapes)):
            result = self.context.build("{x}.reshape(())", x=wrap(result, None))
        return result

    # -- questions --------------------------------------------------------------------------------------------------
    def _reads_value(self, test: cst.BaseExpression) -> bool:
        """Whether a test asks for a tensor's value, by `item()`, or for something whose shape depends on values."""
        finder = _Items()
        test.visit(finder)
        return any(is_tensor(self.context.observed(node)) for node in finder.receivers) or self._has_dynamic_hole(test)

    def _has_dynamic_hole(self, test: cst.BaseExpression) -> bool:
        span = self.context.span(test)
        inside = [h for h in self.context.holes if (span.line, span.column) <= h.span[:2] <= (span.end_line, span.end_column)]
        return any(hole.code == "dynamic-shape" for hole in inside)

    def _is_tensor_test(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.BooleanOperation):
            return self._is_tensor_test(node.left) or self._is_tensor_test(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self._is_tensor_test(node.expression)
        if _is_always_tensor(self.context.observed(node)) or is_reduced(self.context, node):
            return True
        if isinstance(node, cst.Name) and (self.context.function_key, node.value) in self.context.traced:
            return True
        return self._item_receiver(node) is not None or self._compares_items(node)

    def _item_receiver(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What `item()` is called on, where that is a tensor."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
            return node.func.value if is_tensor(self.context.observed(node.func.value)) else None
        return None

    def _compares_items(self, node: cst.BaseExpression) -> bool:
        """Whether this compares a tensor, read out by `item()`, with something."""
        return bool(self._compared_items(node))

    def _compared_items(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The tensors that a comparison reads out by `item()`, alone or in arithmetic (`x.item() % 4 == 0`)."""
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return []
        return [*self._items_of(node.left), *self._items_of(node.comparisons[0].comparator)]

    def _items_of(self, number: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The tensors that arithmetic on numbers reads out by `item()`."""
        match number:
            case cst.BinaryOperation(left=left, right=right):
                return [*self._items_of(left), *self._items_of(right)]
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return self._items_of(inner)
        receiver = self._item_receiver(number)
        return [] if receiver is None else [receiver]

    def _forget_items(self, test: cst.BaseExpression) -> None:
        """The holes of `item()` inside a test: it is asked as an array, or is a hole itself."""
        span = self.context.span(test)
        inside = [h for h in self.context.holes if h.code == "tensor-value" and span[:2] <= h.span[:2] <= span[2:]]
        self.context.holes[:] = [hole for hole in self.context.holes if hole not in inside]


@dataclass(frozen=True)
class Arm:
    """One side of a branch: its statements, the local names that they bind, and whether they change the module.

    `perhaps` are those of the names that are bound inside a branch of Python's own.
    """

    body: tuple[cst.BaseStatement, ...] = ()
    names: tuple[str, ...] = ()
    stateful: bool = False
    perhaps: tuple[str, ...] = ()


class _Branching(Rule):
    """What the rules here share."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.plain = ReplaceTensorBranches(context)

    def _is_open(self, test: cst.BaseExpression) -> bool:
        """Whether this test was left as a hole."""
        span = self.context.span(test)
        return any(hole.code == "tensor-branch" and hole.span == span for hole in self.context.holes)

    def _close_hole(self, test: cst.BaseExpression) -> None:
        span = self.context.span(test)
        self.context.holes[:] = [hole for hole in self.context.holes if not (hole.code == "tensor-branch" and hole.span == span)]

    def _call(self, test: cst.BaseExpression, names: Sequence[str], modules: Sequence[str]) -> cst.BaseExpression:
        """`lax.cond(test, if_true, if_false, x)`, or `nnx.cond` with the modules that change as first operands."""
        numbers = not modules and any(map(self.plain._may_be_number, names))
        cond = "vendored.cond_of_numbers" if numbers else f"{'nnx' if modules else 'lax'}.cond"
        call = self.context.build(f"{cond}({{test}}, if_true, if_false)", test=test)
        assert isinstance(call, cst.Call)
        return call.with_changes(args=[*call.args, *(cst.Arg(cst.Name(name)) for name in (*modules, *names))])

    def _function(self, label: str, arm: Arm, inputs: Sequence[str], outputs: Sequence[str], modules: Sequence[str]) -> cst.FunctionDef:
        head = ", ".join([*modules, *inputs])
        result = f"return {', '.join(outputs)}" if outputs else "pass"
        function = cst.parse_statement(f"def {label}({head}):\n    {result}\n")
        assert isinstance(function, cst.FunctionDef)
        end = [s for s in function.body.body if isinstance(s, cst.BaseStatement)] if outputs or not arm.body else []
        inner = function.body.with_changes(body=_without_blank_start([*arm.body, *end]))
        return function.with_changes(body=inner, leading_lines=[cst.EmptyLine(indent=False)])

    def _arm(self, suite: cst.BaseSuite | None) -> Arm | None:
        """A side of a branch after rewriting; `None` where it does more than bind names and change the module."""
        arm = Arm()
        for statement in suite.body if isinstance(suite, cst.IndentedBlock) else ():
            if isinstance(statement, cst.FunctionDef) and statement.name.value in HELPERS:
                arm = Arm((*arm.body, statement), arm.names, arm.stateful, arm.perhaps)
            elif isinstance(statement, cst.If):
                inside = [self._arm(suite) for suite in _suites(statement)]
                if None in inside:
                    return None
                bound = tuple(name for one in inside if one for name in one.names)
                stateful = any(one.stateful for one in inside if one)
                arm = Arm((*arm.body, statement), (*arm.names, *bound), arm.stateful or stateful, (*arm.perhaps, *bound))
            elif isinstance(statement, cst.For):
                inner = self._arm(statement.body) if statement.orelse is None else None
                targets = _names_of_target(statement.target)
                if inner is None or targets is None:
                    return None
                bound = (*targets, *inner.names)  # a loop over nothing binds none
                arm = Arm((*arm.body, statement), (*arm.names, *bound), arm.stateful or inner.stateful, (*arm.perhaps, *bound))
            elif not isinstance(statement, cst.SimpleStatementLine):
                return None
            else:
                for small in statement.body:
                    effect = self._effect(small)
                    if effect is None:
                        return None
                    arm = Arm(arm.body, (*arm.names, *effect[0]), arm.stateful or effect[1], arm.perhaps)
                arm = Arm((*arm.body, statement), arm.names, arm.stateful, arm.perhaps)
        return arm if suite is None or isinstance(suite, cst.IndentedBlock) else None

    def _modules(self, stateful: bool, original: cst.CSTNode, updated: cst.CSTNode) -> list[str] | None:
        """The names of the modules that a branch changes: `self` where it writes to its variables, and those that it calls."""
        called = changed_modules(self.context, original, updated)
        own = [self.context.self_name()] if stateful else []
        return None if called is None else list(dict.fromkeys([*own, *called]))

    def _effect(self, small: cst.BaseSmallStatement) -> tuple[list[str], bool] | None:
        """Names that a statement binds, and whether it changes the module; `None` for anything else."""
        if isinstance(small, cst.Pass):
            return [], False
        if isinstance(small, cst.Expr):
            return ([], True) if isinstance(small.value, cst.Call) and self._is_attribute_of_self(small.value.func) else None
        # `None` is no array: `lax.cond` cannot give it back.
        if not isinstance(small, (cst.Assign, cst.AugAssign)) or (isinstance(small.value, cst.Name) and small.value.value == "None"):
            return None
        names: list[str] = []
        stateful = False
        for target in [t.target for t in small.targets] if isinstance(small, cst.Assign) else [small.target]:
            for one in [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]:
                if isinstance(one, cst.Name):
                    names.append(one.value)
                elif isinstance(one, cst.Subscript) and self._is_attribute_of_self(one.value):
                    stateful = True
                else:
                    return None
        return names, stateful

    def _is_attribute_of_self(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == self.context.self_name()


class ReplaceBranchChains(_Branching):
    """Nest branches on tensors: `if`, `elif` and `else` → nested `lax.cond`; a branch that changes buffers → `nnx.cond` over the module.

    An arm may hold loops of Python's own. Declines (the hole stays) where an arm does more, or a name is bound on one side only and read
    later.
    """

    KEEP = ("def f(x: int):\n    if x > 0:\n        x = 1\n    elif x < 3:\n        x = 2\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    low = x < 0\n    y = x\n    if low.any():\n        a = x\n"
            "        for _ in range(n):\n            a = a / 2\n        y = torch.where(low, a, x)\n    return y\n",
            "def f(x: jax.Array, n: int):\n    low = x < 0\n    y = x\n    def if_true(y):\n        a = x\n"
            "        for _ in range(n):\n            a = a / 2\n        y = jnp.where(low, a, x)\n        return y\n\n    def if_false(y):\n"
            "        return y\n\n    y = lax.cond(jnp.any(low), if_true, if_false, y)\n    return y\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x):\n"
            "        if self.training and torch.rand(1).item() < 0.5:\n            x = x + torch.randn_like(x)\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n        self.rngs = rngs\n\n"
            "    def __call__(self, x):\n        if not self.deterministic:\n            def if_true(self, x):\n"
            "                x = x + jax.random.normal(self.rngs(), x.shape, x.dtype)\n                return x\n\n"
            "            def if_false(self, x):\n                return x\n\n"
            "            x = nnx.cond(jax.random.uniform(self.rngs(), 1) < 0.5, if_true, if_false, self, x)\n        return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        x = x + torch.randn_like(x)\n    return x\n",
            "def f(x: jax.Array, *, rngs: nnx.Rngs):\n    def if_true(rngs, x):\n        x = x + jax.random.normal(rngs(), x.shape, x.dtype)\n"
            "        return x\n\n    def if_false(rngs, x):\n        return x\n\n"
            "    x = nnx.cond(jnp.sum(x) > 0, if_true, if_false, rngs, x)\n    return x\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('n', torch.zeros(()))\n\n    def forward(self, x):\n        if self.training and self.n > 3:\n"
            "            self.n.zero_()\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n"
            "        self.n = nnx.Variable(jnp.zeros(()))\n\n    def __call__(self, x):\n        if not self.deterministic:\n"
            "            def if_true(self):\n                self.n[...] = jnp.zeros_like(self.n[...])\n\n"
            "            def if_false(self):\n                pass\n\n            nnx.cond(self.n[...] > 3, if_true, if_false, self)\n        return x\n",
        ),
    )

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | None:
        if isinstance(self.context.parent(), cst.If) or not self._is_open(original.test):
            return None
        static, tests = self._split(original, updated)
        converted = self._chain(original, updated, tests)
        if converted is None:
            return None
        self._settle(original)
        statements = list(converted[0])
        if static is None:
            first = statements[0]
            if isinstance(first, (cst.FunctionDef, cst.SimpleStatementLine)):
                statements[0] = first.with_changes(leading_lines=[*updated.leading_lines, *first.leading_lines])
            return cst.FlattenSentinel(statements)
        return cst.If(static, cst.IndentedBlock(_without_blank_start(statements)), leading_lines=updated.leading_lines)

    def _split(self, original: cst.If, updated: cst.If) -> tuple[cst.BaseExpression | None, tuple[cst.BaseExpression, cst.BaseExpression]]:
        """A test that tracing decides, in front of `and`, apart from the rest of it (original and rewritten)."""
        old, new = original.test, updated.test
        # Python decides the first part (`self.training and …`), which may guard what the rest computes.
        joined = isinstance(old, cst.BooleanOperation) and isinstance(old.operator, cst.And) and original.orelse is None
        if (
            joined
            and isinstance(old, cst.BooleanOperation)
            and isinstance(new, cst.BooleanOperation)
            and not self.plain._is_tensor_test(old.left)
        ):
            return new.left, (old.right, bare(new.right))
        return None, (old, new)

    def _chain(
        self, original: cst.If, updated: cst.If, tests: tuple[cst.BaseExpression, cst.BaseExpression]
    ) -> tuple[Sequence[cst.BaseStatement], list[str], bool] | None:
        """The statements for a branch, the names they bind, and whether they change the module."""
        true = self._arm(updated.body)
        if isinstance(original.orelse, cst.If) and isinstance(updated.orelse, cst.If):
            inner = self._chain(original.orelse, updated.orelse, (original.orelse.test, updated.orelse.test))
            false = Arm(tuple(inner[0]), tuple(inner[1]), inner[2]) if inner and self._is_open(original.orelse.test) else None
        else:
            false = self._arm(updated.orelse.body if isinstance(updated.orelse, cst.Else) else None)
        modules = self._modules(bool((true and true.stateful) or (false and false.stateful)), original, updated)
        if true is None or false is None or modules is None:
            return None
        stateful = bool(modules)
        every = list(dict.fromkeys([*true.names, *false.names]))
        outputs = [name for name in every if self.plain._read_outside(original, name)]
        before = [name for name in every if self.plain._bound_before(original, name)]
        perhaps = {*true.perhaps, *false.perhaps}
        if not (outputs or stateful) or any(
            n not in before and (n in perhaps or not (n in true.names and n in false.names)) for n in outputs
        ):
            return None
        inputs = [name for name in every if name in before]
        functions = [
            self._function(label, arm, inputs, outputs, modules) for label, arm in zip(("if_true", "if_false"), (true, false), strict=True)
        ]
        call = self._call(self.plain._predicate(*tests), inputs, modules)
        self.context.traced |= {(self.context.function_key, name) for name in outputs}
        line: cst.BaseSmallStatement = cst.Expr(call)
        if outputs:
            target = cst.parse_expression(", ".join(outputs)) if len(outputs) > 1 else cst.Name(outputs[0])
            line = cst.Assign([cst.AssignTarget(target)], call)  # type: ignore[arg-type]
        end = cst.SimpleStatementLine([line], leading_lines=[cst.EmptyLine(indent=False)])
        return [*functions, end], outputs, stateful

    def _settle(self, node: cst.If) -> None:
        self._close_hole(node.test)
        if isinstance(node.orelse, cst.If):
            self._settle(node.orelse)


class ReplaceEarlyReturns(_Branching):
    """Return early on tensors by `lax.cond`: `if x.sum() > 0: return a`, and what follows → two functions and `return lax.cond(…)`.

    An `else` or `elif` that returns too is what follows. A plain `return` leaves out what follows, which changes the module: `nnx.cond` with
    nothing to do on one side. Declines (the hole stays) where one side returns a value and the other none.
    """

    KEEP = ("def f(x: int):\n    if x > 0:\n        return 1\n    return 2\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        y = x * 2\n        return y * y\n    elif x.min() > -1:\n"
            "        return x\n    else:\n        y = x - 1\n        return -y\n",
            "def f(x: jax.Array):\n    def if_true():\n        y = x * 2\n        return y * y\n\n    def if_false():\n"
            "        def if_true():\n            return x\n\n        def if_false():\n            y = x - 1\n            return -y\n\n"
            "        return lax.cond(jnp.min(x) > -1, if_true, if_false)\n\n    return lax.cond(jnp.sum(x) > 0, if_true, if_false)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x\n    if x.max() > -1:\n        x = x * 3\n    return x + 1\n",
            "def f(x: jax.Array):\n    def if_true(x):\n        return x\n\n    def if_false(x):\n        def if_true(x):\n            x = x * 3\n"
            "            return x\n\n        def if_false(x):\n            return x\n\n        x = lax.cond(jnp.max(x) > -1, if_true, if_false, x)\n"
            "        return x + 1\n\n    return lax.cond(jnp.sum(x) > 0, if_true, if_false, x)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x * 2\n    return x + 1\n",
            "def f(x: jax.Array):\n    def if_true():\n        return x * 2\n\n    def if_false():\n        return x + 1\n\n"
            "    return lax.cond(jnp.sum(x) > 0, if_true, if_false)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x + torch.randn_like(x)\n    return x + 1\n",
            "def f(x: jax.Array, *, rngs: nnx.Rngs):\n    def if_true(rngs):\n        return x + jax.random.normal(rngs(), x.shape, x.dtype)\n\n"
            "    def if_false(rngs):\n        return x + 1\n\n    return nnx.cond(jnp.sum(x) > 0, if_true, if_false, rngs)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            '        self.register_buffer("ready", torch.tensor(False))\n        self.register_buffer("scale", torch.ones(d))\n\n'
            "    def start(self, x: torch.Tensor):\n        if self.ready:\n            return\n        self.scale += 1\n"
            "        self.ready.fill_(True)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.ready = nnx.Variable(jnp.array(False))\n"
            "        self.scale = nnx.Variable(jnp.ones(d))\n\n    def start(self, x: jax.Array):\n        def if_true(self):\n            pass\n\n"
            "        def if_false(self):\n            self.scale[...] += 1\n"
            "            self.ready[...] = jnp.full_like(self.ready[...], True)\n\n"
            "        nnx.cond(self.ready[...], if_true, if_false, self)\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.early: list[tuple[cst.If, cst.If]] = []

    def leave_If(self, original: cst.If, updated: cst.If) -> None:
        if self._is_open(original.test) and isinstance(updated, cst.If):
            if _returns_value(updated.body.body) or _only_returns(updated.body.body):
                self.early.append((original, updated))

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if not self.early or not isinstance(updated.body, cst.IndentedBlock):
            return None
        body: list[cst.BaseStatement] = list(updated.body.body)
        for old, new in reversed(self.early):
            index = _index_of(body, new)
            rest = self._rest(function=original, old=old, new=new, after=body[index + 1 :]) if index >= 0 else None
            if rest is None:
                continue
            leaves_out = (
                _only_returns(new.body.body)
                and old.orelse is None
                and not any(m.findall(statement, m.Return()) for statement in rest)
                and self._changes_module(rest)
            )
            if _returns_value(rest) if _returns_value(new.body.body) else leaves_out:
                body[index:] = self._returned(original, old, new, rest)
                self._close_hole(old.test)
        if len(self.context.functions) == 1:
            self.early = []
        return updated.with_changes(body=updated.body.with_changes(body=body))

    def _rest(
        self, function: cst.FunctionDef, old: cst.If, new: cst.If, after: Sequence[cst.BaseStatement]
    ) -> Sequence[cst.BaseStatement] | None:
        """The statements that run where the test does not hold; `None` where they are not known."""
        if old.orelse is None:
            return after
        if after or not _returns_value(new.body.body):
            return None
        if isinstance(new.orelse, cst.Else):
            return [statement for statement in new.orelse.body.body if isinstance(statement, cst.BaseStatement)]
        if not (isinstance(old.orelse, cst.If) and isinstance(new.orelse, cst.If) and self._is_open(old.orelse.test)):
            return None
        inner = self._rest(function, old.orelse, new.orelse, ())
        if not inner or not _returns_value(inner) or not _returns_value(new.orelse.body.body):
            return None
        self._close_hole(old.orelse.test)
        return _without_blank_start(self._returned(function, old.orelse, new.orelse, inner))

    def _returned(self, function: cst.FunctionDef, old: cst.If, new: cst.If, rest: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        ends = _returns_value(new.body.body)
        sides = [[s for s in new.body.body if isinstance(s, cst.BaseStatement)] if ends else [], list(rest)]
        bound = {name for side in sides for name in _bound_names(side)}
        inputs = sorted(name for name in bound if self.plain._bound_before(old, name))
        own = [self.context.self_name()] if any(self._changes_module(side) for side in sides) else []
        modules = list(dict.fromkeys([*own, *drawing_modules(self.context, [part for side in sides for part in side])]))
        functions = [
            self._function(label, Arm(tuple(side)), inputs, (), modules) for label, side in zip(("if_true", "if_false"), sides, strict=True)
        ]
        functions[0] = functions[0].with_changes(leading_lines=new.leading_lines)
        decided, (test, rewritten) = self._decided(old, new, inputs, modules)
        call = self._call(self.plain._predicate(test, rewritten), inputs, modules)
        last = cst.Return(call) if ends else cst.Expr(call)
        end = cst.SimpleStatementLine([last], leading_lines=[] if decided else [cst.EmptyLine(indent=False)])
        return [*functions, *decided, end]

    def _decided(
        self, old: cst.If, new: cst.If, inputs: Sequence[str], modules: Sequence[str]
    ) -> tuple[list[cst.If], tuple[cst.BaseExpression, cst.BaseExpression]]:
        """Where tracing decides the first operand of a test: a branch on it, and the other operand. It is not evaluated where Python would not."""
        test, rewritten = old.test, new.test
        joined = isinstance(test, cst.BooleanOperation) and isinstance(rewritten, cst.BooleanOperation)
        if not (joined and isinstance(test, cst.BooleanOperation) and isinstance(rewritten, cst.BooleanOperation)):
            return [], (test, rewritten)
        if self.plain._is_tensor_test(test.left):
            return [], (test, rewritten)
        either = isinstance(test.operator, cst.Or)
        function = "if_true" if either else "if_false"
        arguments = [*modules, *inputs]
        body = cst.parse_statement(f"return {function}({', '.join(arguments)})\n")
        guard = rewritten.left if either else _negated(rewritten.left)
        branch = cst.If(guard, cst.IndentedBlock([body]), leading_lines=[cst.EmptyLine(indent=False)])
        return [branch], (test.right, rewritten.right)

    def _changes_module(self, statements: Sequence[cst.BaseStatement]) -> bool:
        """Whether statements write to the module's variables."""
        name = self.context.self_name()
        written = re.compile(rf"^\s*{name}\.[\w.]+(\[.*\])?\s*[-+*/]?=[^=]", re.MULTILINE)
        return bool(name) and any(written.search(_code(statement)) for statement in statements)


class ReplaceTensorLoops(_Branching):
    """Loop on tensors by `lax.while_loop`: `while y.max() > 1: y = y / 2` → two functions and `lax.while_loop`.

    No gradient flows backwards through it. Declines (the hole stays) where the body does anything but bind
    names that are bound before the loop.
    """

    KEEP = ("def f(x: int):\n    while x > 0:\n        x = x - 1\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    while x.max() > 1:\n        x = x / 2\n    return x\n",
            "def f(x: jax.Array):\n    def condition(x):\n        return jnp.max(x) > 1\n\n    def body(x):\n        x = x / 2\n        return x\n\n"
            "    x = lax.while_loop(condition, body, x)\n    return x\n",
        ),
    )

    def leave_While(self, original: cst.While, updated: cst.While) -> cst.FlattenSentinel[cst.BaseStatement] | None:
        # The new functions must not hide names of the file.
        if not self._is_open(original.test) or original.orelse is not None or {"condition", "body"} & self.context.taken:
            return None
        # What a loop draws would count outside of it.
        arm = self._arm(updated.body) if not drawing_modules(self.context, [updated]) else None
        names = list(dict.fromkeys(arm.names)) if arm is not None and not arm.stateful else []
        carried = [name for name in names if self.plain._bound_before(original, name)]
        if arm is None or not carried or any(name not in carried and self.plain._read_outside(original, name) for name in names):
            return None
        self._close_hole(original.test)
        state, several = ", ".join(carried), len(carried) > 1
        test = _code(cst.SimpleStatementLine([cst.Return(self.plain._predicate(original.test, updated.test))])).strip()
        unpack = f"    {state} = state\n" if several else ""
        head = "state" if several else state
        condition = cst.parse_statement(f"def condition({head}):\n{unpack}    {test}\n")
        body = cst.parse_statement(f"def body({head}):\n{unpack}    return {state}\n")
        assert isinstance(condition, cst.FunctionDef) and isinstance(body, cst.FunctionDef)
        lines = list(body.body.body)
        body = body.with_changes(body=body.body.with_changes(body=[*lines[:-1], *arm.body, lines[-1]]))
        call = cst.parse_statement(f"{state} = lax.while_loop(condition, body, {f'({state})' if several else state})\n")
        assert isinstance(call, cst.SimpleStatementLine)
        blank = [cst.EmptyLine(indent=False)]
        return cst.FlattenSentinel(
            [
                condition.with_changes(leading_lines=updated.leading_lines or blank),
                body.with_changes(leading_lines=blank),
                call.with_changes(leading_lines=blank),
            ]
        )


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


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """`not x` → `x`, and the other way round."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    return cst.UnaryOperation(cst.Not(), wrap(test, None))


def _is_always_tensor(fact: Observed | None) -> bool:
    # `self.training and torch.rand(()) < p` is a bool where tracing decides it.
    return fact is not None and "tensor" in fact.kinds and set(fact.kinds) <= {"tensor", "parameter", "bool"}


def _names_of_target(target: cst.BaseAssignTargetExpression) -> tuple[str, ...] | None:
    """The local names that the target of a loop binds; `None` where it binds anything else."""
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
    names = tuple(part.value for part in parts if isinstance(part, cst.Name))
    return names if len(names) == len(parts) else None


def _gives_none(line: cst.SimpleStatementLine) -> bool:
    """Whether a statement assigns or returns `None`, which is no array."""
    values = [small.value for small in line.body if isinstance(small, (cst.Assign, cst.Return))]
    return any(isinstance(value, cst.Name) and value.value == "None" for value in values)


def _simple_statements(body: cst.BaseSuite) -> list[cst.SimpleStatementLine] | None:
    """The statements of a suite where all are simple."""
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(list(body.body))]
    lines = [s for s in body.body if isinstance(s, cst.SimpleStatementLine)]
    return lines if len(lines) == len(body.body) else None


def _returned(line: cst.SimpleStatementLine) -> cst.BaseExpression | None:
    only = line.body[0] if len(line.body) == 1 else None
    return only.value if isinstance(only, cst.Return) else None


def _assigned_names(lines: Sequence[cst.SimpleStatementLine]) -> list[str] | None:
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
                parts = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
                if not all(isinstance(one, cst.Name) for one in parts):
                    return None
                names += [one.value for one in parts if isinstance(one, cst.Name)]
    return names


def _suites(node: cst.If) -> list[cst.BaseSuite]:
    """The bodies of a chain of `if`, `elif` and `else`."""
    rest = node.orelse
    return [node.body, *(_suites(rest) if isinstance(rest, cst.If) else [rest.body] if rest else [])]


def _without_blank_start(statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """A block that does not begin with an empty line."""
    first = statements[0]
    lines = [line for line in getattr(first, "leading_lines", ()) if line.comment is not None]
    return [first.with_changes(leading_lines=lines), *statements[1:]]


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _index_of(body: Sequence[cst.BaseStatement], branch: cst.If) -> int:
    """Where a branch stands in a block; -1 where it does not. Another branch of the block that became several statements has made it a copy."""
    same = [i for i, statement in enumerate(body) if statement is branch]
    text = _code(branch).strip()
    return next(iter(same or [i for i in reversed(range(len(body))) if isinstance(body[i], cst.If) and _code(body[i]).strip() == text]), -1)


def _returns_value(statements: Sequence[cst.CSTNode]) -> bool:
    """Whether a block ends by returning a value."""
    last = statements[-1] if statements else None
    final = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(final, cst.Return) and final.value is not None and _code(final.value) != "None"


def _only_returns(statements: Sequence[cst.CSTNode]) -> bool:
    """Whether a block is a plain `return`."""
    return bool(statements) and _code(statements[-1]).strip() in ("return", "return None") and len(statements) == 1


def _bound_names(statements: Sequence[cst.BaseStatement]) -> set[str]:
    """Local names that statements bind."""
    names: set[str] = set()
    for node in ast.walk(ast.parse("".join(_code(s) for s in statements if not isinstance(s, cst.FunctionDef)) or "pass")):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names
