"""What rewriting has made constant is decided: code for other devices and modes goes."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.calls import bare
from migrate_agent.tools.rewrite.engine import Context, Rule
from migrate_agent.tools.rewrite.tables import layers, ops


class DecideConstants(Rule):
    """`if torch.cuda.is_available():` goes with its body, `a if hasattr(nn, "SiLU") else b` → `a`, `x and not torch.jit.is_scripting()` → `x`."""

    ORDER = 80
    CHECKS = ()
    KEEP = ("def f(x):\n    if True:\n        x = x + 1\n    return x if False else 3\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if torch.cuda.is_available():\n        x = x.cuda()\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if not torch.cuda.is_available():\n        return x\n"
            "    name = torch.cuda.get_device_properties(0)\n    return x * 2\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            'import torch\nfrom torch import nn\n\ndef f(x: torch.Tensor):\n    act = nn.SiLU if hasattr(nn, "SiLU") else None\n    return act\n',
            "def f(x: jax.Array):\n    act = SiLU\n    return act\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._left: list[cst.CSTNode] = []

    def leave_If(
        self, original: cst.If, updated: cst.If
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        value = self._decided(original.test, updated.test)
        if value is None or isinstance(self.context.parent(), cst.If):
            return None
        self.context.forget(original.test)
        if value:
            if original.orelse:
                self.context.forget(original.orelse)
            if leaves(updated.body):
                self._left.append(original)
            return self._body(updated.body, updated)
        self.context.forget(original.body)
        orelse = updated.orelse
        if orelse is None:
            return cst.RemoveFromParent()
        return self._body(orelse.body, updated) if isinstance(orelse, cst.Else) else orelse

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        """What follows a `return` that is always reached goes."""
        at = next((index for index, statement in enumerate(original.body) if statement in self._left), None)
        if at is None:
            return None
        end = next((index for index, statement in enumerate(updated.body) if _last(statement)), None)
        if end is None:
            return None
        self.context.forget(*original.body[at + 1 :])
        return updated.with_changes(body=updated.body[: end + 1])

    def leave_IfExp(self, original: cst.IfExp, updated: cst.IfExp) -> cst.BaseExpression | None:
        value = self._decided(original.test, updated.test)
        if value is None:
            return None
        self.context.forget(original.test, original.orelse if value else original.body)
        return self.context.place(bare(updated.body if value else updated.orelse))

    def leave_BooleanOperation(self, original: cst.BooleanOperation, updated: cst.BooleanOperation) -> cst.BaseExpression | None:
        absorbing = isinstance(updated.operator, cst.Or)
        sides = (original.left, updated.left), (original.right, updated.right)
        for (old, new), (other, rest) in (sides, sides[::-1]):
            value = self._decided(old, new)
            if value is not None:
                self.context.forget(other if value is absorbing else old)
                return new if value is absorbing else self.context.place(bare(rest))
        return None

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.UnaryOperation) -> cst.BaseExpression | None:
        value = self._decided(original.expression, updated.expression)
        return cst.Name(str(not value)) if value is not None and isinstance(updated.operator, cst.Not) else None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not isinstance(original.func, cst.Name) or len(original.args) != 2:
            return None
        if original.func.value == "isinstance":
            return cst.Name("False") if self.context.dotted(original.args[1].value).startswith("torch.cuda.") else None
        if original.func.value != "hasattr":
            return None
        dotted, name = self.context.dotted(original.args[0].value), original.args[1].value
        if dotted.partition(".")[0] != "torch" or not isinstance(name, cst.SimpleString):
            return None
        full = f"{dotted}.{name.raw_value}"
        return cst.Name(str(full in layers() or full in ops()))

    def _decided(self, old: cst.BaseExpression, new: cst.BaseExpression) -> bool | None:
        """The value of a test that rewriting made constant."""
        was = isinstance(old, cst.Name) and old.value in ("True", "False")
        return new.value == "True" if not was and isinstance(new, cst.Name) and new.value in ("True", "False") else None

    def _body(self, suite: cst.BaseSuite, whole: cst.If) -> cst.FlattenSentinel[cst.BaseStatement]:
        if not isinstance(suite, cst.IndentedBlock):
            small = [s for s in suite.body if isinstance(s, cst.BaseSmallStatement)]
            return cst.FlattenSentinel([cst.SimpleStatementLine(small, leading_lines=whole.leading_lines)])
        body = list(suite.body)
        first = body[0]
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = first.with_changes(leading_lines=[*whole.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel(body)


def leaves(suite: cst.BaseSuite) -> bool:
    """Whether a block ends by leaving the function."""
    last = suite.body[-1] if suite.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, (cst.Return, cst.Raise))


def _last(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], (cst.Return, cst.Raise))
