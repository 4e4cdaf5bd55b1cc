"""What the candidate's own code uses, without the helpers that the project copies beside it, which have tests of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate_agent.tools.verify.evidence.copied_helpers import is_copied
from migrate_agent.tools.verify.evidence.parsed_source import Source, Use, dotted, uses

DTYPES = frozenset("dtype astype finfo float32 float16 bfloat16 float64 issubdtype itemsize promote_types result_type".split())
"""Names in code that looks at dtypes or changes them."""
SIZES = frozenset({"shape", "size", "nbytes"})


def own_lines(source: Source) -> frozenset[int]:
    """The lines of a file that are no copied helper's."""
    nodes = (node for node in source.tree.body if not is_copied(getattr(node, "name", ""), source.text))
    return frozenset(line for node in nodes for line in range(_first_line(node), (node.end_lineno or node.lineno) + 1))


def _first_line(node: ast.stmt) -> int:
    """The line of the first decorator, where there is one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def own_uses(sources: Sequence[Source]) -> Iterator[tuple[Source, Use]]:
    """Each use of an imported name in the candidate's own code, with its file."""
    for source in sources:
        lines = own_lines(source)
        yield from ((source, use) for use in uses(source) if use.line in lines)


def own_nodes(sources: Sequence[Source]) -> Iterator[ast.AST]:
    """All nodes of the candidate's own code."""
    for source in sources:
        lines = own_lines(source)
        yield from (node for top in source.tree.body if top.lineno in lines for node in ast.walk(top))


def looks_at_dtypes(sources: Sequence[Source]) -> bool:
    """Whether it names a dtype, or an attribute or argument of that name. Initial values that it draws into a variable, in the variable's own dtype, are
    no sign: the weights of a checkpoint stand in their place in every call that is compared."""
    nodes = list(own_nodes(sources))
    drawn = {id(part) for node in nodes if _draws_initial_values(node) for part in ast.walk(node)}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in DTYPES) or (isinstance(node, ast.keyword) and node.arg == "dtype")
        for node in nodes
        if id(node) not in drawn
    )


def _draws_initial_values(node: ast.AST) -> bool:
    """`v[...] = initializer(rngs.params(), v.shape, v.dtype)`, which keeps the dtype of the variable."""
    match node:
        case ast.Assign(
            targets=[ast.Subscript(value=variable, slice=ast.Constant(value=value))],
            value=ast.Call(args=[ast.Call(func=ast.Attribute(attr="params"), args=[], keywords=[]), shape, dtype], keywords=[]),
        ) if value is ...:
            text = ast.unparse(variable)
            return (ast.unparse(shape), ast.unparse(dtype)) == (f"{text}.shape", f"{text}.dtype")
    return False


def shapes_gradients(sources: Sequence[Source]) -> bool:
    """Whether it defines gradients, or stops them."""
    return any(part.startswith("custom_") or part == "stop_gradient" for _, use in own_uses(sources) for part in use.name.split("."))


def compared_sizes(sources: Sequence[Source]) -> tuple[int, ...]:
    """The whole numbers from 2 on that it compares sizes of arrays with, the smallest first."""
    numbers = set[int]()
    for node in own_nodes(sources):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            numbers |= set(_compared(node))
    return tuple(sorted(numbers))


def _compared(function: ast.FunctionDef | ast.Lambda) -> Iterator[int]:
    names = _names_of_sizes(function)
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and dotted(node.func) in ("min", "max"):
            sides = list(node.args)
        if any(_is_size(side, names) for side in sides):
            yield from (number for side in sides if (number := _constant(side)) is not None and number > 1)


def _names_of_sizes(function: ast.AST) -> frozenset[str]:
    """Names that are given the size of an array."""
    names = set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_size(node.value, frozenset()):
            names |= {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return frozenset(names)


def _is_size(node: ast.AST, names: frozenset[str]) -> bool:
    match node:
        case ast.Attribute(attr=attribute) if attribute in SIZES:
            return True
        case ast.Name(id=name) if name in names:
            return True
        # The length of a shape is a rank.
        case ast.Call(func=ast.Name(id="len"), args=[argument]):
            return not (isinstance(argument, ast.Attribute) and argument.attr == "shape")
    return any(_is_size(part, names) for part in ast.iter_child_nodes(node))


def _constant(node: ast.expr) -> int | None:
    """The whole number that an expression of numbers alone is, such as `2**16`."""
    if any(not isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)) for part in ast.walk(node)):
        return None
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return int(value)
        case ast.BinOp(left, operator, right):
            one, other = _constant(left), _constant(right)
            return None if one is None or other is None else _result(operator, one, other)
    return None


def _result(operator: ast.operator, one: int, other: int) -> int | None:
    match operator:
        case ast.Mult():
            return one * other
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Pow() if 0 <= other <= 64:
            return int(one**other)
        case ast.LShift() if 0 <= other <= 64:
            return one << other
    return None
