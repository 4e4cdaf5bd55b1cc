"""Autograd functions that are the product of a sparse matrix with a dense one, with the derivative of just that written by hand.

    a = torch.sparse_coo_tensor(indices, values, shape)
    return torch.matmul(a, b)

Their `backward` gives the values `(gradient @ b.t())` at the indices, and `b` the gradient `a.t() @ gradient`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import deepcopy

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, dotted_name
from migrate_agent.tools.scan.nodes import walk

SPARSE = frozenset({"torch.sparse_coo_tensor", "torch.sparse.FloatTensor"})
PRODUCTS = frozenset({"matmul", "mm"})
OPERANDS = 4
"""Indices, values, shape, and the dense matrix."""


def sparse_product(model: ClassModel) -> bool:
    """Whether an autograd function takes (indices, values, shape, dense), multiplies them and derives no more and no less than that.

    The place of a value among all is counted by the number of rows or of columns, so that the matrix must be square for the former.
    """
    forward, backward = model.methods.get("forward"), model.methods.get("backward")
    if forward is None or backward is None or len(model.methods) != 2:
        return False
    context, *names = [argument.arg for argument in forward.args.args]
    if len(names) != OPERANDS or len(backward.args.args) != 2:
        return False
    indices, values, shape, dense = names
    locals_of_forward = _bindings(forward)
    results = [node.value for node in walk(forward) if isinstance(node, ast.Return)]
    saved = [node for node in walk(forward) if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{context}.save_for_backward"]
    if len(results) != 1 or results[0] is None or len(saved) != 1 or not _only_binds(forward, context):
        return False
    sparse = _sparse_of(results[0], locals_of_forward, dense, model.file)
    match sparse:
        case ast.Call(func=function, args=[ast.Name(id=first), ast.Name(id=second), ast.Name(id=third)], keywords=[]):
            if dotted_name(function, model.file) not in SPARSE or (first, second, third) != (indices, values, shape):
                return False
        case _:
            return False
    attributes = _kept(forward, context)
    contents = [_inlined(argument, locals_of_forward) for argument in saved[0].args]
    roles = [
        "_sparse" if ast.dump(one) == ast.dump(sparse) else "_dense" if isinstance(one, ast.Name) and one.id == dense else ""
        for one in contents
    ]
    return "" not in roles and _derives(backward, roles, attributes, shape)


def _only_binds(forward: FunctionNode, context: str) -> bool:
    """Whether a function has no statements but assignments, assertions, what it keeps for later, and the end."""
    own = (ast.Assign, ast.Assert, ast.Return)
    calls = (node.value for node in forward.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    return all(isinstance(node, (*own, ast.Expr)) for node in forward.body) and all(
        ast.unparse(call.func) == f"{context}.save_for_backward" for call in calls
    )


def _bindings(function: FunctionNode) -> dict[str, ast.expr]:
    """Local names that are bound once, or to `None` before that, and their values."""
    bindings: dict[str, list[ast.expr]] = {}
    for node in walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                    bindings.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in bindings.items() if len(values) == 1}


def _kept(forward: FunctionNode, context: str) -> dict[str, ast.expr]:
    """`ctx.N` and the like, with what they are."""
    rows = [(t, node.value) for node in walk(forward) if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Attribute)]
    return {f"{t.value.id}.{t.attr}": value for t, value in rows if isinstance(t.value, ast.Name) and t.value.id == context}


def _sparse_of(result: ast.expr, values: Mapping[str, ast.expr], dense: str, file: FileModel) -> ast.expr | None:
    """The first factor of a product with the dense matrix."""
    result = _inlined(result, values)
    match result:
        case ast.Call(func=ast.Attribute(attr=attr) as function, args=[first, ast.Name(id=second)]) if attr in PRODUCTS:
            return first if second == dense and dotted_name(function, file).startswith("torch.") else None
        case ast.Call(func=ast.Attribute(value=first, attr=attr), args=[ast.Name(id=second)]) if attr in PRODUCTS:
            return first if second == dense else None
        case ast.BinOp(left=first, op=ast.MatMult(), right=ast.Name(id=second)):
            return first if second == dense else None
    return None


def _derives(backward: FunctionNode, roles: list[str], attributes: Mapping[str, ast.expr], shape: str) -> bool:
    """Whether the gradients are those of the product."""
    context, gradient = (argument.arg for argument in backward.args.args)
    results = [node.value for node in walk(backward) if isinstance(node, ast.Return)]
    names: dict[str, ast.expr] = {gradient: ast.Name("_gradient", ast.Load())}
    for node in walk(backward):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Attribute(attr="saved_tensors")):
                names |= {t.id: ast.Name(role, ast.Load()) for t, role in zip(targets, roles, strict=False) if isinstance(t, ast.Name)}
    names = {**_bindings(backward), **names}
    if len(results) != 1 or not isinstance(results[0], ast.Tuple) or not _asks_only_for_need(backward, context):
        return False
    texts = [ast.unparse(_Spelled(attributes).visit(_inlined(value, names))) for value in results[0].elts]
    flat = "_sparse.I[0] * {size} + _sparse.I[1]"
    return any(
        texts == ["None", f"(_gradient @ _dense.T).view(-1)[{flat.format(size=f'{shape}[{axis}]')}]", "None", "_sparse.T @ _gradient"]
        for axis in (0, 1)
    )


def _asks_only_for_need(backward: FunctionNode, context: str) -> bool:
    """Whether the only conditions are whether a gradient is wanted."""
    tests = [ast.unparse(node.test) for node in walk(backward) if isinstance(node, ast.If)]
    loops = any(isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.IfExp | ast.AugAssign) for node in walk(backward))
    return not loops and all(test in {f"{context}.needs_input_grad[{i}]" for i in range(OPERANDS)} for test in tests)


def _inlined(node: ast.expr, values: Mapping[str, ast.expr], depth: int = 8) -> ast.expr:
    """`node` with local names replaced by what they are."""
    copy = deepcopy(node)
    for _ in range(depth):
        copy = _Inline(values).visit(copy)
    return copy


class _Inline(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self.values.get(node.id, node))


class _Spelled(ast.NodeTransformer):
    """One spelling for products, transposes and indices."""

    def __init__(self, attributes: Mapping[str, ast.expr]) -> None:
        self.attributes = attributes

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return deepcopy(self.attributes.get(ast.unparse(node), node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node.slice:
            case ast.Tuple(elts=[ast.Constant() as first, ast.Slice(lower=None, upper=None, step=None)]):
                return ast.Subscript(node.value, first, ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=attr), args=[left, right], keywords=[]) if attr in PRODUCTS:
                return ast.BinOp(left, ast.MatMult(), right)
            case ast.Call(func=ast.Attribute(value=left, attr=attr), args=[right], keywords=[]) if attr in PRODUCTS:
                return ast.BinOp(left, ast.MatMult(), right)
            case ast.Call(func=ast.Attribute(value=inner, attr="t"), args=[], keywords=[]):
                return ast.Attribute(inner, "T", ast.Load())
            case ast.Call(func=ast.Attribute(value=inner, attr="_indices" | "indices"), args=[], keywords=[]):
                return ast.Attribute(inner, "I", ast.Load())
            case ast.Call(func=ast.Attribute(value=inner, attr="reshape")):
                return ast.Call(ast.Attribute(inner, "view", ast.Load()), node.args, [])
        return node
