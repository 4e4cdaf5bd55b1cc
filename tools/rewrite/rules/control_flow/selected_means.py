"""Means of what one branch selects by a mask: hard examples, or at least so many of them."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.masked_reductions import mask_of, selects
from migrate_agent.tools.rewrite.rules.rule import Rule

REDUCTIONS = frozenset({"mean", "sum"})


class ReduceInBranches(Rule):
    """Reduce in each branch what a branch on tensors selects: `if x[n] > t: x = x[x > t]` `else: x = x[:n]` before `return x.mean()` →
    `return lax.cond(x[n] > t, lambda: jnp.mean(x, where=x > t), lambda: jnp.mean(x[:n]))`.

    A mask selects as many elements as the data say, and two branches select unequal numbers; of each, the reduction is one number. Declines where
    anything else is made of what was selected, or the branches do anything else.
    """

    KEEP = ("def f(x, n):\n    if n:\n        x = x[:n]\n    else:\n        x = x[1:]\n    return sum(x)\n",)
    # That a test is a tensor, and an index a mask, is only observed: `tests/tools/rewrite/fixtures/idioms/masks.py` has the cases.

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._reduced: list[cst.SimpleStatementLine] = []
        """Original statements whose reductions stand in the branches before them."""

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.BaseStatement | None:
        fact, after = self.context.observed(original.test), self._next(original)
        if self.context.constructing or self.context.at_host or fact is None or not is_tensor(fact) or after is None:
            return None
        olds, news = _assigned(original), _assigned(updated)
        reduction = _reduction(self.context, after)
        if olds is None or news is None or reduction is None or {name for name, _ in olds} != {reduction[1]}:
            return None
        if not any(isinstance(value, cst.Subscript) and selects(self.context, value) for _, value in olds):
            return None
        parts = [self._reduced_part(old, new, reduction[0]) for (_, old), (_, new) in zip(olds, news, strict=True)]
        if any(part is None for part in parts):
            return None
        self.context.drop_holes(original)
        self._reduced.append(after)
        value = self.context.build("lax.cond({test}, lambda: {a}, lambda: {b})", test=updated.test, a=parts[0], b=parts[1])  # type: ignore[arg-type]
        return cst.SimpleStatementLine([cst.Return(value)], leading_lines=updated.leading_lines)

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        return cst.RemoveFromParent() if any(one is original for one in self._reduced) else None

    def _next(self, statement: cst.If) -> cst.SimpleStatementLine | None:
        """The statement after this one, in its block."""
        block = self.context.parent()
        body = list(block.body) if isinstance(block, cst.IndentedBlock) else []
        at = next((index for index, one in enumerate(body) if one is statement), len(body))
        after = body[at + 1] if at + 1 < len(body) else None
        return after if isinstance(after, cst.SimpleStatementLine) else None

    def _reduced_part(self, old: cst.BaseExpression, new: cst.BaseExpression, reduction: str) -> cst.BaseExpression | None:
        """The reduction of what one branch gives."""
        if isinstance(old, cst.Subscript) and selects(self.context, old):
            # Whatever was left of the subscript is as it was, since no rule knows what it selects.
            mask = mask_of(new) if isinstance(new, cst.Subscript) else None
            if mask is None or not isinstance(new, cst.Subscript):
                return None
            return self.context.build(f"jnp.{reduction}({{x}}, where={{mask}})", x=new.value, mask=mask)
        return self.context.build(f"jnp.{reduction}({{x}})", x=new)


def _assigned(branch: cst.If) -> tuple[tuple[str, cst.BaseExpression], tuple[str, cst.BaseExpression]] | None:
    """The name and the value that each of two branches assigns, where they do nothing else."""
    match branch:
        case cst.If(
            body=cst.IndentedBlock(
                body=[cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(first))], value=one)])]
            ),
            orelse=cst.Else(
                body=cst.IndentedBlock(
                    body=[cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(second))], value=other)])]
                )
            ),
        ):
            return (first, one), (second, other)
    return None


def _reduction(context: Context, statement: cst.SimpleStatementLine) -> tuple[str, str] | None:
    """The reduction and the name of `return torch.mean(x)`, or of `return x.sum()`."""
    match statement.body:
        case [
            cst.Return(
                value=cst.Call(func=cst.Attribute(attr=cst.Name(reduction)) as func, args=[cst.Arg(value=cst.Name(name), keyword=None)])
            )
        ]:
            return (reduction, name) if context.dotted(func) == f"torch.{reduction}" and reduction in REDUCTIONS else None
        case [cst.Return(value=cst.Call(func=cst.Attribute(value=cst.Name(name), attr=cst.Name(reduction)), args=[]))]:
            return (reduction, name) if reduction in REDUCTIONS else None
    return None
