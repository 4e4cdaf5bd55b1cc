"""Updates that a script writes out by hand: a loop over the parameters of a module that moves each against its gradient.

for p in model.parameters():
    p.data.add_(p.grad, alpha=-lr)

is SGD without an optimizer object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GRADIENTS = ("grad", "grad.data", "grad.detach()")
"""How a script spells the gradient of a parameter, after its name and a dot."""


@dataclass(frozen=True)
class HandUpdate:
    """A loop that updates the parameters of `module` with the rate `rate`, as text, and what stands around it.

    `line` is where its statement begins (a `with` that holds nothing else counts), `zeroes` says whether it sets the gradients to zero too, and
    `construction` is the line whose statement an optimizer would be constructed after. `first` is a rate that is known there. With `varies` the
    rate may be another one at each step. `name` is free for the optimizer.
    """

    line: int
    module: str
    rate: str
    zeroes: bool
    construction: int
    first: str
    varies: bool
    name: str


def hand_updates(text: str) -> list[HandUpdate]:
    """The updates by hand of a script, one a module at most; none where the module has no name of the file or of the function around it."""
    tree = ast.parse(text)
    rows = [(statement, loop, blocks) for statement, loop, blocks in _loops(tree) if _update(loop) is not None]
    modules = [_module(loop) for _, loop, _ in rows]
    result: list[HandUpdate] = []
    for statement, loop, blocks in rows:
        if modules.count(_module(loop)) == 1 and (one := _hand_update(tree, statement, loop, blocks, len(result))) is not None:
            result.append(one)
    return result


Blocks = tuple[list[ast.stmt], ...]
"""The lists of statements that a statement stands in, outermost first."""


def _loops(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.For, Blocks]]:
    """Each loop over the parameters of a module, the statement that consists of it, and the blocks around that."""
    todo: list[Blocks] = [(tree.body,)]
    while todo:
        blocks = todo.pop()
        for statement in blocks[-1]:
            loop = statement
            if isinstance(statement, ast.With) and len(statement.body) == 1 and "no_grad" in ast.unparse(statement.items[0]):
                loop = statement.body[0]
            if isinstance(loop, ast.For) and _module(loop):
                yield statement, loop, blocks
                continue
            inner = [getattr(statement, part, None) for part in ("body", "orelse", "finalbody")]
            inner += [handler.body for handler in getattr(statement, "handlers", ())]
            todo += [(*blocks, block) for block in inner if isinstance(block, list) and block]


def _module(loop: ast.For) -> str:
    """The name of the module in `for p in model.parameters()`."""
    call = loop.iter
    plain = isinstance(call, ast.Call) and not call.args and not call.keywords and not loop.orelse
    if not plain or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return ""
    return call.func.value.id if call.func.attr in ("parameters", "named_parameters") else ""


def _update(loop: ast.For) -> tuple[str, bool] | None:
    """Rate of the update that is all that a loop does, and whether it sets gradients to zero."""
    assert isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute)
    target = loop.target
    if loop.iter.func.attr == "named_parameters":
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    if not isinstance(target, ast.Name):
        return None
    rates, zeroes = [], False
    for statement in _unguarded(loop.body, target.id):
        if _is_zero(statement, target.id):
            zeroes = True
        elif (rate := _rate(statement, target.id)) is not None and not zeroes:
            rates.append(rate)
        else:
            return None
    return (rates[0], zeroes) if len(rates) == 1 else None


def _unguarded(statements: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """The statements without the question whether there is a gradient: an optimizer asks it too."""
    there, absent = f"{name}.grad is not None", f"{name}.grad is None"
    first = statements[0]
    if len(statements) == 1 and isinstance(first, ast.If) and not first.orelse and ast.unparse(first.test) == there:
        return first.body
    if isinstance(first, ast.If) and ast.unparse(first.test) == absent and len(first.body) == 1 and isinstance(first.body[0], ast.Continue):
        return list(statements[1:])
    return list(statements)


def _is_zero(statement: ast.stmt, name: str) -> bool:
    text = ast.unparse(statement)
    return text in (f"{name}.grad = None", f"{name}.grad.zero_()", f"{name}.grad.data.zero_()", f"{name}.grad.detach_().zero_()")


def _rate(statement: ast.stmt, name: str) -> str | None:
    """The rate of a statement that moves a parameter against its gradient."""
    own, values = (name, f"{name}.data"), [f"{name}.{gradient}" for gradient in GRADIENTS]

    def is_gradient(node: ast.expr) -> bool:
        return ast.unparse(node) in values

    def factor(node: ast.expr) -> ast.expr | None:
        """What a gradient is multiplied by."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = factor(node.operand)
            return _negated(inner) if inner is not None else None
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            return None
        rest = node.left if is_gradient(node.right) else node.right if is_gradient(node.left) else None
        return rest if rest is not None and name not in _names(rest) else None

    step: ast.expr | None = None
    match statement:
        case ast.AugAssign(target=target, op=ast.Sub(), value=value) if ast.unparse(target) in own:
            step = factor(value)
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if ast.unparse(target) in own:
            step = _negated(factor(value))
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Sub(), right=value)):
            step = factor(value) if ast.unparse(target) == ast.unparse(left) == f"{name}.data" else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attribute), args=args, keywords=keywords)):
            alpha = next((keyword.value for keyword in keywords if keyword.arg == "alpha"), None)
            if ast.unparse(receiver) not in own or attribute not in ("add_", "sub_") or len(keywords) > (alpha is not None):
                return None
            if len(args) == 2 and alpha is None and is_gradient(args[1]):
                step = args[0]
            elif len(args) == 1:
                step = alpha if alpha is not None and is_gradient(args[0]) else factor(args[0]) if alpha is None else None
            step = _negated(step) if attribute == "add_" else step
    return ast.unparse(step) if step is not None and name not in _names(step) else None


def _negated(node: ast.expr | None) -> ast.expr | None:
    match node:
        case None:
            return None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return inner
        case ast.BinOp(left=ast.UnaryOp(op=ast.USub(), operand=inner), op=ast.Mult() | ast.Div() as operator, right=right):
            return ast.BinOp(inner, operator, right)
    return ast.UnaryOp(ast.USub(), node)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _hand_update(tree: ast.Module, statement: ast.stmt, loop: ast.For, blocks: Blocks, number: int) -> HandUpdate | None:
    update = _update(loop)
    assert update is not None
    rate, zeroes = update
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and loop in ast.walk(node)), None)
    if function is not None and _module(loop) in [one.arg for one in ast.walk(function) if isinstance(one, ast.arg)]:
        return None
    for home in (*reversed(blocks), tree.body):
        binding = _made(home, _module(loop), loop, function.name if function is not None else "")
        if binding is not None:
            break
    else:
        return None
    fixed = _fixed_after(tree, home, binding, ast.parse(rate, mode="eval"))
    anchor, first = (fixed, rate) if fixed is not None else (binding, _first_rate(tree, home, binding, rate))
    following = home[home.index(anchor) + 1 : home.index(anchor) + 2]
    if not isinstance(anchor, SIMPLE) and not (following and isinstance(following[0], SIMPLE)):
        return None
    return HandUpdate(statement.lineno, _module(loop), rate, zeroes, anchor.lineno, first, fixed is None, _free(tree, "optimizer", number))


SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
"""Statements that another one may stand beside on a line."""


def _made(home: Sequence[ast.stmt], name: str, loop: ast.For, function: str) -> ast.stmt | None:
    """The last statement of a block that gives the module its name before the first one that leads to the loop."""
    binding = None
    for statement in home:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        if loop in ast.walk(statement) or (function and function in _names(statement)):
            return binding
        binding = statement if name in _stored(statement) else binding
    return None


def _binding(block: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    """The last statement of a block that gives a name a value."""
    chosen = [s for s in block if isinstance(s, (ast.Assign, ast.AnnAssign)) and name in _stored(s)]
    return chosen[-1] if chosen else None


def _stored(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


def _fixed_after(tree: ast.Module, home: Sequence[ast.stmt], module: ast.stmt, rate: ast.Expression) -> ast.stmt | None:
    """The statement of `home` after which a rate that never changes is known: that of the module, or that of a name of the rate; else `None`."""
    anchor = module
    for name in sorted(_names(rate)):
        stores = _stored(tree).count(name) + sum(isinstance(one, ast.arg) and one.arg == name for one in ast.walk(tree))
        binding = _binding(home, name)
        if stores != 1 or (binding is None and name not in _stored_at_top(tree)) or _sets_attribute(tree, name):
            return None
        if binding is not None and binding.lineno > anchor.lineno:
            anchor = module
    return anchor


def _stored_at_top(tree: ast.Module) -> list[str]:
    return [name for statement in tree.body if isinstance(statement, (ast.Assign, ast.AnnAssign)) for name in _stored(statement)]


def _sets_attribute(tree: ast.Module, name: str) -> bool:
    """Whether a script writes to an attribute of a name: `args.lr *= 0.5`."""
    stores = [one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)]
    return any(ast.unparse(one.value) == name for one in stores)


def _first_rate(tree: ast.Module, home: Sequence[ast.stmt], binding: ast.stmt, rate: str) -> str:
    """What a rate that changes begins with, where the script says so in names that are known once the module is there; else zero."""
    values = [s.value for s in ast.walk(tree) if isinstance(s, ast.Assign) and [ast.unparse(t) for t in s.targets] == [rate]]
    visible = {name for s in (*tree.body, *home) if s.lineno <= binding.lineno and isinstance(s, ast.Assign) for name in _stored(s)}
    return next((ast.unparse(value) for value in values if _names(value) <= visible), "0.0")


def _free(tree: ast.Module, wished: str, number: int) -> str:
    names = _names(tree) | {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    numbered = [f"{wished}{count}" for count in range(2, 100)]
    return [name for name in (wished, *numbered) if name not in names][number]
