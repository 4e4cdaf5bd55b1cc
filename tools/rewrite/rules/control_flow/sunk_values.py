"""Values that only one side of a branch on tensors reads: torch differentiates what computes them on that side alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule

SIDES = ("if_true", "if_false")
CONDS = m.Name("cond_of_numbers") | m.Attribute(m.Name("lax"), m.Name("cond"))
PURE_ROOTS = frozenset({"jnp", "lax", "jax"})
ARRAY_METHODS = frozenset({"astype", "reshape", "transpose", "sum", "mean"})
STEEP = frozenset({"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "norm", "arccos", "arcsin", "arctanh", "power", "reciprocal"})
"""Functions with derivatives that are not finite somewhere, as those of quotients and powers."""


class SinkIntoBranches(Rule):
    """Compute what one side of a `lax.cond` alone reads inside of that side, where its derivative may not be finite: `a = jnp.log(x)` before `if_true`.

    In torch a side that is not taken has no gradient. Outside of the side, JAX multiplies the derivative by zero, which gives NaN where it is not finite.
    Declines inside of loops and branches, where anything is drawn or called but functions of arrays, and where a name that the value needs is set again
    in between.
    """

    KEEP = ("import math\n\ndef f(x, n):\n    y = math.log(n)\n    if n > 1:\n        x = x + y\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: torch.Tensor):\n    near = torch.log(x)\n    near = near.sum()\n    far = x.sum()\n"
            "    if n.sum() > 0:\n        y = near + far\n    else:\n        y = far\n    return y\n",
            "def f(x: jax.Array, n: jax.Array):\n    far = jnp.sum(x)\n\n    def if_true():\n        near = jnp.log(x)\n        near = jnp.sum(near)\n"
            "        y = near + far\n        return y\n\n    def if_false():\n        y = far\n        return y\n\n"
            "    y = lax.cond(jnp.sum(n) > 0, if_true, if_false)\n    return y\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, n: torch.Tensor, k: int):\n    for _ in range(k):\n        near = torch.log(x)\n"
            "        if n.sum() > 0:\n            x = near + x\n    return x + near\n",
            "def f(x: jax.Array, n: jax.Array, k: int):\n    for _ in range(k):\n        near = jnp.log(x)\n\n        def if_true(x):\n"
            "            x = near + x\n            return x\n\n        def if_false(x):\n            return x\n\n"
            "        x = lax.cond(jnp.sum(n) > 0, if_true, if_false, x)\n    return x + near\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, n: torch.Tensor):\n    near = torch.log(x)\n    y = x * 2\n    if n.sum() > 0:\n        y = near + y\n"
            "    return y + near\n",
            "def f(x: jax.Array, n: jax.Array):\n    near = jnp.log(x)\n    y = x * 2\n\n    def if_true(y):\n        y = near + y\n        return y\n\n"
            "    def if_false(y):\n        return y\n\n    y = lax.cond(jnp.sum(n) > 0, if_true, if_false, y)\n    return y + near\n",
        ),
    )

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        # What a block of a loop or a branch binds may be read after it.
        if not isinstance(self.context.parent(), cst.FunctionDef):
            return None
        body = list(updated.body)
        for start in range(len(body) - 2):
            if _is_branch(body[start : start + 3]):
                body = _sunk(body, start)
        return updated.with_changes(body=[line for line in body if line is not None]) if body != list(updated.body) else None


def _is_branch(lines: Sequence[cst.BaseStatement]) -> bool:
    """Whether these are the two sides of a branch and its call."""
    named = [isinstance(line, cst.FunctionDef) and line.name.value == side for line, side in zip(lines, SIDES, strict=False)]
    return all(named) and bool(m.findall(lines[2], m.Call(func=CONDS)))


def _sunk(body: list[cst.BaseStatement], start: int) -> list[cst.BaseStatement]:
    """The statements of a block in which what one side alone reads was put into it; as many as before, None in start of those that were put there."""
    before, branch, after = body[:start], body[start : start + 3], body[start + 3 :]
    for number in (0, 1):
        side, other = branch[number], branch[1 - number]
        moved: list[int] = []
        for at in reversed(range(start)):
            name = _assigned(before[at])
            if name and _only_read_by(name, [*moved], before, at, [side], [other, branch[2], *after]) and _stays_valid(before, at, moved):
                moved.append(at)
        moved.reverse()
        lines = [before[at] for at in moved]
        if lines and any(map(_is_steep, lines)) and isinstance(side, cst.FunctionDef):
            inner = side.body.with_changes(body=[*lines, *side.body.body])
            sides = [side.with_changes(body=inner), other]
            branch = [*(sides if number == 0 else sides[::-1]), branch[2]]
            before = [None if at in moved else line for at, line in enumerate(before)]  # type: ignore[misc]
    return [*before, *branch, *after]


def _assigned(line: cst.BaseStatement | None) -> str:
    """The name that a statement binds to a pure function of arrays; "" for all others, and for those with comments."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)], leading_lines=leading
        ) if _is_pure(value) and not any(empty.comment for empty in leading):
            return name
    return ""


def _is_pure(value: cst.BaseExpression) -> bool:
    """Whether all calls in an expression are of functions of arrays, and nothing is drawn."""
    if m.findall(value, m.Lambda() | m.Await() | m.Yield() | m.NamedExpr() | m.Attribute(m.Name("jax"), m.Name("random"))):
        return False
    return all(isinstance(call, cst.Call) and _is_array_call(call.func) for call in m.findall(value, m.Call()))


def _is_array_call(function: cst.BaseExpression) -> bool:
    match function:
        case cst.Attribute(attr=cst.Name(name)) if name in ARRAY_METHODS:
            return True
        case cst.Attribute(value=owner):
            while isinstance(owner, cst.Attribute):
                owner = owner.value
            return isinstance(owner, cst.Name) and owner.value in PURE_ROOTS
    return False


def _is_steep(line: cst.BaseStatement) -> bool:
    named = m.findall(line, m.Call(func=m.Attribute(attr=m.Name())))
    return bool(m.findall(line, m.BinaryOperation(operator=m.Divide() | m.Power()))) or any(
        isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value in STEEP for call in named
    )


def _reads(line: cst.CSTNode | None, name: str) -> bool:
    """Whether a statement names something, other than by binding it as a whole."""
    if line is None:
        return False
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=bound))], value=value)]) if (
            bound == name
        ):
            return bool(m.findall(value, m.Name(name)))
    return bool(m.findall(line, m.Name(name)))


def _only_read_by(
    name: str,
    moved: Sequence[int],
    before: Sequence[cst.BaseStatement | None],
    at: int,
    own: Sequence[cst.BaseStatement],
    others: Sequence[cst.BaseStatement],
) -> bool:
    """Whether what a statement binds is read by the statements `own` and by moved ones, and by no other; `at` is where it stands."""
    rebound = next((later for later in range(at + 1, len(before)) if _assigned(before[later]) == name), None)
    last = len(before) if rebound is None else rebound + 1
    readers = [later for later in range(at + 1, last) if _reads(before[later], name)]
    if any(m.findall(line, m.FunctionDef() | m.Lambda()) and _reads(line, name) for line in before[:at] if line is not None):
        return False  # it is looked up when that function is called
    if not set(readers) <= set(moved) or (rebound is not None and rebound not in moved):
        return False
    if rebound is not None:
        return bool(readers)
    return any(_reads(line, name) for line in own) and not any(_reads(line, name) for line in others)


def _stays_valid(before: Sequence[cst.BaseStatement | None], at: int, moved: Sequence[int]) -> bool:
    """Whether all names that a statement reads have the same values at the end of the block's start."""
    line = before[at]
    names = {node.value for node in m.findall(line, m.Name()) if isinstance(node, cst.Name)} if line is not None else set()
    between = [later for later in range(at + 1, len(before)) if later not in moved]
    return not any(name in names for later in between for name in _stored(before[later]))


def _stored(line: cst.CSTNode | None) -> Iterator[str]:
    """Names that a statement may bind or change."""
    if line is None:
        return
    for node in m.findall(line, m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.NamedExpr() | m.FunctionDef() | m.With()):
        target = node.name if isinstance(node, cst.FunctionDef) else getattr(node, "target", node)
        yield from (one.value for one in m.findall(target, m.Name()) if isinstance(one, cst.Name))
