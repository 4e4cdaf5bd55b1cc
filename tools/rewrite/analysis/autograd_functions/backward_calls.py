"""`loss.backward()` inside a computation, and the gradients that are then read from tensors of the same block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m

Statement = cst.BaseStatement | cst.BaseSmallStatement


class Backward(NamedTuple):
    """A block in which `torch.autograd.grad` asks for what `backward` had left on tensors, and the names of these."""

    body: list[Statement]
    owners: tuple[str, ...]


def asked_gradients(body: Sequence[Statement], outputs: frozenset[str], names: frozenset[str]) -> Backward | None:
    """The block with `z_grad = torch.autograd.grad(loss, [z])[0]` for `loss.backward()`, and `z_grad` for each `z.grad` behind it.

    `outputs` are the names of tensors, `names` those that cannot be new ones. `None` unless there is one such call, of a tensor, and all
    whose gradients are read are made in the block and given no other value, so that nothing was added to their gradients before.
    """
    numbers = [number for number, statement in enumerate(body) if _backward(statement) is not None]
    if len(numbers) != 1 or sum(len(m.findall(one, m.Call(m.Attribute(attr=m.Name("backward"))))) for one in body) != 1:
        return None
    at = numbers[0]
    call, before, after = _backward(body[at]), body[:at], [one for one in body[at + 1 :] if not _clears(one)]
    owners = tuple(sorted({_owner(node) for one in after for node in m.findall(one, GRADIENT)}))
    assert call is not None and isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
    bound = {name for one in before for name in _made(one)}
    if call.func.value.value not in outputs or not owners or not set(owners) <= bound or {f"{name}_grad" for name in owners} & names:
        return None
    if any(_writes(one) for one in after) or any(m.findall(one, GRADIENT) for one in before if not _clears(one)):
        return None
    new = (_asking(call, owners), *(one.visit(_Renamed()) for one in after))
    return Backward([*before, *(one for one in new if isinstance(one, (cst.BaseStatement, cst.BaseSmallStatement)))], owners)


GRADIENT = m.Attribute(value=m.Name(), attr=m.Name("grad"))


def is_asked(node: cst.CSTNode, owners: Sequence[str]) -> bool:
    """Whether a node is a call of `backward`, or the gradient of one of the names."""
    if m.matches(node, m.Call(m.Attribute(attr=m.Name("backward")))):
        return True
    return m.matches(node, GRADIENT) and _owner(node) in owners


def _owner(node: cst.CSTNode) -> str:
    return cst.ensure_type(cst.ensure_type(node, cst.Attribute).value, cst.Name).value


def _backward(statement: Statement) -> cst.Call | None:
    """The call of a statement `y.backward(…)`, without arguments that are not known here."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="backward")), args=args) as call)]
        ):
            keywords = {argument.keyword.value if argument.keyword else "gradient" for argument in args}
            plain = len([one for one in args if one.keyword is None]) <= 1 and not any(one.star for one in args)
            return call if plain and keywords <= {"gradient", "retain_graph", "create_graph"} else None
    return None


def _asking(call: cst.Call, owners: Sequence[str]) -> cst.SimpleStatementLine:
    """`z_grad = torch.autograd.grad(y, [z], …)[0]` for `y.backward(…)`."""
    arguments = {one.keyword.value if one.keyword else "gradient": cst.Module([]).code_for_node(one.value) for one in call.args}
    options = [f"{'grad_outputs' if name == 'gradient' else name}={value}" for name, value in arguments.items() if name != "retain_graph"]
    output = cst.ensure_type(cst.ensure_type(call.func, cst.Attribute).value, cst.Name).value
    names = ", ".join(f"{name}_grad" for name in owners)
    expression = f"torch.autograd.grad({', '.join((output, '[' + ', '.join(owners) + ']', *options))})"
    line = f"{names} = {expression}[0]" if len(owners) == 1 else f"{names} = {expression}"
    return cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)


def _clears(statement: Statement) -> bool:
    """Whether a statement only forgets a gradient: `z.grad = None`, `z.grad.zero_()`."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
            zero = m.matches(value, m.Name("None")) or m.matches(value, m.Call(m.Attribute(attr=m.Name("zeros_like"))))
            return zero and m.matches(target, GRADIENT)
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="zero_"))))]):
            return bool(m.findall(owner, GRADIENT))
    return False


def _writes(statement: Statement) -> bool:
    """Whether a statement gives a tensor another gradient."""
    targets = (*m.findall(statement, m.AssignTarget()), *m.findall(statement, m.AugAssign()))
    return any(m.findall(one.target, GRADIENT) for one in targets if isinstance(one, (cst.AssignTarget, cst.AugAssign)))


def _made(statement: Statement) -> list[str]:
    """The name that a statement gives a value."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return [name]
    return []


class _Renamed(cst.CSTTransformer):
    """`z.grad` → `z_grad`."""

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return cst.Name(f"{_owner(updated_node)}_grad") if m.matches(updated_node, GRADIENT) else updated_node
