"""Loops that a test on tensors leaves, or whose step it leaves out: tracing goes through every step, and a branch says which of them count."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.apply_tables import bare, tidy
from migrate_agent.tools.rewrite.rules.control_flow.tensor_branches import STEP, Arm, _Branching

STOPPED = "stopped"
"""The name of the flag that says whether a loop was left."""
GROWS = "tensor values say after how many rounds this loop ends, and so how long {} becomes: run all rounds, and mask what later ones add"
"""The reason for a loop that must not run to its end, since its result would be another one."""


@dataclass(frozen=True)
class _Exit:
    """A test in a loop's body before and after rewriting, and what stands in front of it and behind it."""

    old: cst.If
    new: cst.If
    head: tuple[cst.BaseStatement, ...]
    rest: tuple[cst.BaseStatement, ...]
    breaks: bool


class ReplaceLoopExits(_Branching):
    """Leave steps of a loop out by `lax.cond`: `if y.sum() > 3: continue`, and what follows → two functions and a branch; so with `break`.

    After a `break` the flag `stopped` leaves out all further steps. Declines (the hole stays) where what is left out does more than bind
    names that are bound before the loop, or change modules.
    """

    KEEP = ("def f(x, n: int):\n    for i in range(n):\n        if i > 3:\n            continue\n        x = x + i\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, ys):\n    for y in ys:\n        if x.sum() > 3:\n            continue\n        x = x + y\n    return x\n",
            "def f(x: jax.Array, ys):\n    for y in ys:\n        def if_true(x):\n            return x\n\n        def if_false(x):\n"
            "            x = x + y\n            return x\n\n        x = lax.cond(jnp.sum(x) > 3, if_true, if_false, x)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, ys):\n    for y in ys:\n        if x.sum() > 3:\n            break\n        x = x + y\n    return x\n",
            "def f(x: jax.Array, ys):\n    stopped = False\n    for y in ys:\n        stopped = jnp.logical_or(stopped, jnp.sum(x) > 3)\n"
            "        def if_true(x):\n            return x\n\n        def if_false(x):\n            x = x + y\n            return x\n\n"
            "        x = lax.cond(stopped, if_true, if_false, x)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, ys):\n    for y in ys:\n        x = x + y\n        if x.sum() > 3:\n            break\n    return x\n",
            "def f(x: jax.Array, ys):\n    stopped = False\n    for y in ys:\n        def step(x, stopped):\n"
            "            x = x + y\n            stopped = jnp.sum(x) > 3\n            return x, stopped\n\n"
            "        x, stopped = step_unless(stopped, step, x, stopped)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, ys):\n    for y in ys:\n        new = x + y\n        if (new - x).sum() < 1:\n            break\n"
            "        x = new\n    return x\n",
            "def f(x: jax.Array, ys):\n    stopped = False\n    for y in ys:\n        def step(x, stopped):\n"
            "            new = x + y\n            stopped = jnp.sum(new - x) < 1\n"
            "            def if_true(x):\n                return x\n\n            def if_false(x):\n                x = new\n                return x\n\n"
            "            x = lax.cond(stopped, if_true, if_false, x)\n            return x, stopped\n\n"
            "        x, stopped = step_unless(stopped, step, x, stopped)\n    return x\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | None:
        result = self._replaced(original, updated)
        if result is None:
            self._explain(original)
        return result

    def _explain(self, loop: cst.For) -> None:
        """Say in the hole of a `break` which sequences would be as long as the data say."""
        appends = m.findall(loop.body, m.Call(func=m.Attribute(value=m.Name(), attr=m.Name("append") | m.Name("extend"))))
        names = dict.fromkeys(call.func.value.value for call in appends)  # type: ignore[attr-defined]
        grown = [name for name in names if self._reads_after(loop, {name})]
        for test in [s.test for s in loop.body.body if isinstance(s, cst.If) and _leaves(s) == "break" and self._is_open(s.test)]:
            if grown:
                self._close_hole(test)
                self.context.hole(test, GROWS.format(", ".join(f"`{name}`" for name in grown)), "tensor-branch")

    def _replaced(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | None:
        exit_ = self._exit(original, updated)
        if exit_ is None or updated.orelse is not None or not isinstance(updated.body, cst.IndentedBlock):
            return None
        if exit_.breaks and STOPPED in self.context.taken:
            return None
        if exit_.breaks and exit_.head and exit_.rest:
            statements = self._between(original, exit_)
        else:
            statements = self._ending(original, exit_) if exit_.breaks and not exit_.rest else self._skipping(original, exit_)
        if statements is None:
            return None
        self._close_hole(exit_.old.test)
        loop = updated.with_changes(body=updated.body.with_changes(body=statements))
        if not exit_.breaks:
            return loop
        flag = cst.parse_statement(f"{STOPPED} = False\n")
        assert isinstance(flag, cst.SimpleStatementLine)
        return cst.FlattenSentinel([flag.with_changes(leading_lines=updated.leading_lines), loop.with_changes(leading_lines=[])])

    def _exit(self, original: cst.For, updated: cst.For) -> _Exit | None:
        """The one test on tensors that leaves the loop or its step."""
        if not isinstance(original.body, cst.IndentedBlock) or not isinstance(updated.body, cst.IndentedBlock):
            return None
        olds = {self.context.span(s.test): s for s in original.body.body if isinstance(s, cst.If) and _leaves(s) and self._is_open(s.test)}
        found = [
            (index, statement, old)
            for index, statement in enumerate(updated.body.body)
            for old in olds.values()
            if isinstance(statement, cst.If)
            and statement.orelse is None
            and _leaves(statement)
            and _same_place(statement, old, updated, original)
        ]
        if len(olds) != 1 or len(found) != 1:
            return None
        index, new, old = found[0]
        body = [s for s in updated.body.body if isinstance(s, cst.BaseStatement)]
        return _Exit(old, new, tuple(body[:index]), tuple(body[index + 1 :]), _leaves(old) == "break")

    def _skipping(self, loop: cst.For, exit_: _Exit) -> list[cst.BaseStatement] | None:
        """What follows the test runs where the test does not hold, and where no earlier step left the loop."""
        arm = self._arm(cst.IndentedBlock(list(exit_.rest)))
        # Steps after the one that leaves the loop run this part, so that nothing may be seen of it.
        if arm is None or (exit_.breaks and (exit_.head or self._reads_after(loop, _targets(loop)))):
            return None
        carried = self._carried(loop, exit_.old, arm)
        modules = self._changed(loop, exit_, arm, exit_.rest)
        if carried is None or modules is None or not (carried or modules):
            return None
        functions, arguments = self._sides(arm, carried, modules)
        guard, test = None if exit_.breaks else self._static_part(exit_), self.plain._predicate(*self._tests(exit_))
        if exit_.breaks:
            flag = self.context.build("jnp.logical_or(stopped, {test})", test=self.plain._predicate(exit_.old.test, exit_.new.test))
            first = cst.SimpleStatementLine(
                [cst.Assign([cst.AssignTarget(cst.Name(STOPPED))], flag)], leading_lines=exit_.new.leading_lines
            )
            return [*exit_.head, first, *functions, self._bound(self._call(cst.Name(STOPPED), carried, modules), carried)]
        call = self._bound(self._call(test, carried, modules), carried)
        if guard is None:
            return [*exit_.head, *functions, call]
        plain = cst.parse_expression(f"if_false({', '.join(arguments)})")
        always = self._bound(plain, carried).with_changes(leading_lines=[])
        otherwise = cst.Else(cst.IndentedBlock([call.with_changes(leading_lines=[])]))
        branch = cst.If(guard, cst.IndentedBlock([always]), otherwise, leading_lines=[cst.EmptyLine(indent=False)])
        return [*exit_.head, *functions, branch]

    def _ending(self, loop: cst.For, exit_: _Exit) -> list[cst.BaseStatement] | None:
        """A loop that ends with its test: a step that runs says whether a further one does."""
        arm = self._arm(cst.IndentedBlock(list(exit_.head)))
        if arm is None or not exit_.head or self._reads_after(loop, _targets(loop)):
            return None
        carried, modules = self._carried(loop, exit_.old, arm, before=True), self._changed(loop, exit_, arm, exit_.head)
        if carried is None or modules is None:
            return None
        carried = [*carried, STOPPED]
        return self._unless_stopped(Arm((*arm.body, self._flag(exit_)), (*arm.names, STOPPED), arm.stateful), carried, modules)

    def _between(self, loop: cst.For, exit_: _Exit) -> list[cst.BaseStatement] | None:
        """A test in the middle of a step: what stands before it runs in each step that is reached, and what follows where the test does not hold."""
        head, rest = (self._arm(cst.IndentedBlock(list(part))) for part in (exit_.head, exit_.rest))
        if head is None or rest is None or self._reads_after(loop, _targets(loop)):
            return None
        inner, changed = self._carried(loop, exit_.old, rest), self._changed(loop, exit_, rest, exit_.rest)
        before = self._changed(loop, exit_, head, exit_.head)
        if not inner or changed is None or before is None:
            return None
        functions, _ = self._sides(rest, inner, changed)
        step = (*head.body, self._flag(exit_), *functions, self._bound(self._call(cst.Name(STOPPED), inner, changed), inner))
        whole = Arm(step, (*head.names, *rest.names), head.stateful or rest.stateful)
        carried = self._carried(loop, exit_.old, whole, before=True)
        if not carried or not set(inner) <= {*carried, *head.names}:
            return None
        carried, modules = [*carried, STOPPED], list(dict.fromkeys([*before, *changed]))
        return self._unless_stopped(whole, carried, modules)

    def _unless_stopped(self, step: Arm, carried: Sequence[str], modules: Sequence[str]) -> list[cst.BaseStatement]:
        """A step that is made unless the loop was left: the first one is made at once, and may change shapes."""
        if modules or STEP in self.context.taken:
            functions, _ = self._sides(step, carried, modules)
            return [*functions, self._bound(self._call(cst.Name(STOPPED), carried, modules), carried)]
        call = self.context.build(f"vendored.step_unless({STOPPED}, {STEP})")
        assert isinstance(call, cst.Call)
        call = call.with_changes(args=tidy([*call.args, *(cst.Arg(cst.Name(name)) for name in carried)]))
        return [self._function(STEP, step, carried, carried, modules), self._bound(call, carried)]

    def _flag(self, exit_: _Exit) -> cst.SimpleStatementLine:
        test = self.plain._predicate(exit_.old.test, exit_.new.test)
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(STOPPED))], test)])

    def _sides(self, arm: Arm, carried: Sequence[str], modules: Sequence[str]) -> tuple[list[cst.FunctionDef], list[str]]:
        sides = zip(("if_true", "if_false"), (Arm(), arm), strict=True)
        return [self._function(label, side, carried, carried, modules) for label, side in sides], [*modules, *carried]

    def _bound(self, value: cst.BaseExpression, names: Sequence[str]) -> cst.SimpleStatementLine:
        self.context.traced |= {(self.context.function_key, name) for name in names}
        line: cst.BaseSmallStatement = cst.Expr(value)
        if names:
            target = cst.ensure_type(cst.parse_statement(f"{', '.join(names)} = 0\n"), cst.SimpleStatementLine).body[0]
            line = cst.ensure_type(target, cst.Assign).with_changes(value=value)
        return cst.SimpleStatementLine([line], leading_lines=[cst.EmptyLine(indent=False)])

    def _tests(self, exit_: _Exit) -> tuple[cst.BaseExpression, cst.BaseExpression]:
        """The test before and after rewriting, without what tracing decides in front of `and`."""
        old, new = exit_.old.test, exit_.new.test
        if self.plain._decided(old) and isinstance(old, cst.BooleanOperation) and isinstance(new, cst.BooleanOperation):
            return old.right, bare(new.right)
        return old, new

    def _static_part(self, exit_: _Exit) -> cst.BaseExpression | None:
        """Where tracing decides that nothing is left out: evaluation draws no number, as in Python."""
        new = exit_.new.test
        if not self.plain._decided(exit_.old.test) or not isinstance(new, cst.BooleanOperation):
            return None
        test = new.left
        negated = isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
        return test.expression if negated and isinstance(test, cst.UnaryOperation) else cst.UnaryOperation(cst.Not(), test)

    def _carried(self, loop: cst.For, place: cst.If, arm: Arm, *, before: bool = False) -> list[str] | None:
        """The names that a step hands on; `None` where one of them is bound by no earlier statement, and read later."""
        names = list(dict.fromkeys(arm.names))
        node = loop if before else place
        carried = [name for name in names if self.plain._bound_before(node, name)]  # type: ignore[arg-type]
        return None if any(name not in carried and self._reads_after(loop, {name}) for name in names) else carried

    def _changed(self, loop: cst.For, exit_: _Exit, arm: Arm, statements: Sequence[cst.BaseStatement]) -> list[str] | None:
        line = self.context.span(exit_.old).line
        after = statements is exit_.rest
        body = [s for s in loop.body.body if s is not exit_.old and (self.context.span(s).line > line) == after]
        return self._modules(arm.stateful, cst.IndentedBlock(body), cst.IndentedBlock(list(statements)))  # type: ignore[arg-type]

    def _reads_after(self, loop: cst.For, names: set[str]) -> bool:
        """Whether any of these names is read behind the loop, or by what this loop is a step of."""
        function, span = self.context.function, self.context.span(loop)
        return function is None or any(
            isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and not span.line <= n.lineno <= span.end_line
            for n in ast.walk(function)
        )


def _leaves(statement: cst.If) -> str:
    """`break` or `continue` of a branch that does nothing else, or ""."""
    body = statement.body.body
    line = body[0] if len(body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
    kinds = {cst.Break: "break", cst.Continue: "continue"}
    return kinds.get(type(small), "") if statement.orelse is None else ""  # type: ignore[arg-type]


def _same_place(new: cst.If, old: cst.If, updated: cst.For, original: cst.For) -> bool:
    """Whether a rewritten branch is the original one: the only one of the body that leaves in this way."""
    if _leaves(new) != _leaves(old):
        return False
    alike = [[s for s in loop.body.body if isinstance(s, cst.If) and _leaves(s) == _leaves(old)] for loop in (original, updated)]
    return len(alike[0]) == len(alike[1]) and alike[0].index(old) == alike[1].index(new)


def _targets(loop: cst.For) -> set[str]:
    """The names that a loop binds by itself."""
    text = cst.Module([]).code_for_node(loop.target)
    return {node.id for node in ast.walk(ast.parse(text.strip())) if isinstance(node, ast.Name)}
