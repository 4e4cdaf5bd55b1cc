"""Mutations of a rewrite: small changes to its text, one at a time, each of which should change what the program does.

One function an operator: it takes a node and gives its replacements. The enumeration is deterministic; an id is made of the class and
function, the operator, and a running number among them, so that it stays while other functions change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

Operator = Callable[[cst.CSTNode], Iterator[cst.CSTNode]]


@dataclass(frozen=True)
class Mutation:
    """One mutated text. `place` is the dotted class and function; `change` is `old → new`."""

    place: str
    operator: str
    number: int
    change: str
    source: str

    @property
    def id(self) -> str:
        """`M.__call__/axis-2`."""
        return f"{self.place or 'module'}/{self.operator}-{self.number}"


def replacements(module: cst.Module) -> list[tuple[str, str, cst.CSTNode, cst.CSTNode]]:
    """(place, operator, node, replacement) for all replacements that the operators yield."""
    collector = _Collector()
    module.visit(collector)
    return collector.found


def mutations(source: str) -> list[Mutation]:
    """All mutations of a module's text, in the order of the text. Raises `libcst.ParserSyntaxError`."""
    module = cst.parse_module(source)
    counts: Counter[tuple[str, str]] = Counter()
    result, texts = [], {source}
    for path, operator, node, new in replacements(module):
        changed = module.deep_replace(node, new)
        text = changed.code if isinstance(changed, cst.Module) else source
        # Two operators may make the same change; it counts once.
        if text in texts:
            continue
        texts.add(text)
        counts[path, operator] += 1
        change = f"{_code(module, node)} → {_code(module, new)}"
        result.append(Mutation(path, operator, counts[path, operator], change, text))
    return result


def _code(module: cst.Module, node: cst.CSTNode) -> str:
    return " ".join(module.code_for_node(node).split())[:120]


class _Collector(cst.CSTVisitor):
    """Collects every replacement, except in annotations, imports, docstrings, assertions and errors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, cst.CSTNode, cst.CSTNode]] = []
        self.scope: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        # Changes there alter no result, so that their mutants would all survive.
        if isinstance(node, (cst.Annotation, cst.Import, cst.ImportFrom, cst.Assert, cst.Raise, cst.Decorator, cst.FormattedString)):
            return False
        if isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
            return False
        if isinstance(node, (cst.ClassDef, cst.FunctionDef)):
            self.scope.append(node.name.value)
        for name, operator in OPERATORS.items():
            self.found += [(".".join(self.scope), name, node, new) for new in operator(node)]
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, (cst.ClassDef, cst.FunctionDef)):
            self.scope.pop()


def constant(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """An int plus one, a float times 1.1; True and False exchanged."""
    if isinstance(node, cst.Integer):
        yield cst.Integer(str(int(node.value, 0) + 1))
    elif isinstance(node, cst.Float):
        value = float(node.value)
        yield cst.Float(repr(value * 1.1 if value else 0.1))
    elif isinstance(node, cst.Name) and node.value in ("True", "False"):
        yield cst.Name("False" if node.value == "True" else "True")


AXES = {"-1": "-2", "-2": "-1", "0": "1", "1": "0", "2": "1", "3": "2"}
AXIS_METHODS = {"sum", "mean", "var", "std", "max", "min", "argmax", "argmin", "prod", "all", "any", "cumsum", "softmax", "split", "stack"}


def axis(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Another axis: in `axis=` and `dim=`, and in the first argument of reducing methods."""
    if isinstance(node, cst.Arg) and node.keyword and node.keyword.value in ("axis", "dim", "axes"):
        if other := _other_axis(node.value):
            yield node.with_changes(value=other)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in AXIS_METHODS and node.args:
        first = node.args[0]
        if first.keyword is None and (other := _other_axis(first.value)):
            yield node.with_changes(args=[first.with_changes(value=other), *node.args[1:]])


def _other_axis(value: cst.BaseExpression) -> cst.BaseExpression | None:
    text = cst.Module([]).code_for_node(value)
    return cst.parse_expression(AXES[text]) if text in AXES else None


COMPARISONS: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
}


def comparison(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`<` for `<=`, `==` for `!=`, and the other way round."""
    if isinstance(node, cst.ComparisonTarget) and type(node.operator) in COMPARISONS:
        yield node.with_changes(operator=COMPARISONS[type(node.operator)]())


ARITHMETIC: dict[type[cst.BaseBinaryOp], type[cst.BaseBinaryOp]] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Divide,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.FloorDivide,
    cst.Power: cst.Multiply,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
}


def arithmetic(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Another operation of two operands."""
    if isinstance(node, cst.BinaryOperation) and type(node.operator) in ARITHMETIC:
        yield node.with_changes(operator=ARITHMETIC[type(node.operator)]())


def dropped_term(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """One operand alone."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
        yield _bracketed(node.left)
        if not isinstance(node.operator, (cst.Subtract, cst.Divide)):
            yield _bracketed(node.right)


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp, cst.Comparison, cst.BooleanOperation)) and not node.lpar:
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


SYMMETRIC = {
    "clip",
    "swapaxes",
    "maximum",
    "minimum",
    "isinstance",
    "getattr",
    "hasattr",
    "setattr",
    "range",
    "add",
    "multiply",
    "logaddexp",
    "zip",
}


def swapped_arguments(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The first two arguments exchanged, of calls for which their order matters; operands of a matrix product exchanged."""
    if isinstance(node, cst.Call) and _called(node) not in SYMMETRIC:
        positional = [arg for arg in node.args if arg.keyword is None and not arg.star]
        if len(positional) >= 2 and list(node.args[:2]) == positional[:2]:
            first, second = positional[0], positional[1]
            yield node.with_changes(args=[first.with_changes(value=second.value), second.with_changes(value=first.value), *node.args[2:]])
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        yield node.with_changes(left=_bracketed(node.right), right=_bracketed(node.left))


def dropped_keyword(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A keyword argument left to its default."""
    if not isinstance(node, cst.Call):
        return
    for index, arg in enumerate(node.args):
        if arg.keyword is not None and arg.keyword.value != "rngs":
            yield node.with_changes(args=_commas([*node.args[:index], *node.args[index + 1 :]]))


def _commas(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [*args[:-1], args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if args else []


def slice_bound(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A slice that starts one later or ends one earlier, or without its step."""
    if not isinstance(node, cst.Slice):
        return
    if node.lower is not None:
        yield node.with_changes(lower=_plus_one(node.lower))
    elif node.upper is not None:
        yield node.with_changes(lower=cst.Integer("1"))
    if node.upper is not None:
        yield node.with_changes(upper=_minus_one(node.upper))
    if node.step is not None:
        yield node.with_changes(step=None, second_colon=cst.MaybeSentinel.DEFAULT)


def _plus_one(node: cst.BaseExpression) -> cst.BaseExpression:
    return cst.BinaryOperation(_bracketed(node), cst.Add(), cst.Integer("1"))


def _minus_one(node: cst.BaseExpression) -> cst.BaseExpression:
    return cst.BinaryOperation(_bracketed(node), cst.Subtract(), cst.Integer("1"))


FUNCTIONS = {
    "relu": "gelu", "gelu": "silu", "silu": "gelu", "swish": "relu", "tanh": "sigmoid", "sigmoid": "tanh", "softmax": "log_softmax",
    "log_softmax": "softmax", "softplus": "relu", "elu": "relu", "leaky_relu": "relu", "exp": "expm1", "log": "log1p", "sin": "cos",
    "cos": "sin", "sqrt": "cbrt", "rsqrt": "sqrt", "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "mean": "sum",
    "sum": "mean", "var": "std", "std": "var", "argmax": "argmin", "argmin": "argmax", "zeros": "ones", "ones": "zeros", "any": "all",
    "all": "any", "floor": "ceil", "ceil": "floor", "round": "floor", "trunc": "floor", "tril": "triu", "triu": "tril", "abs": "positive",
    "cumsum": "cumprod", "zeros_like": "ones_like", "ones_like": "zeros_like", "fmod": "mod", "fft": "ifft", "normal": "uniform",
    "ReLU": "GELU", "GELU": "ReLU", "SiLU": "ReLU", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "LayerNorm": "RMSNorm", "RMSNorm": "LayerNorm",
    "MaxPool2d": "AvgPool2d", "AvgPool2d": "MaxPool2d", "max_pool2d": "avg_pool2d", "log_sigmoid": "softplus", "add": "set", "set": "add",
    "square": "abs",
}  # fmt: skip


def swapped_function(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Another activation, reduction or function of the same kind."""
    if isinstance(node, cst.Call) and _called(node) in FUNCTIONS:
        other = cst.Name(FUNCTIONS[_called(node)])
        yield node.with_changes(func=node.func.with_changes(attr=other) if isinstance(node.func, cst.Attribute) else other)


def _called(node: cst.Call) -> str:
    func = node.func
    return func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""


def dropped_call(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A function of one argument, or a method, replaced by what it is called on; `stop_gradient` has an operator of its own."""
    if not isinstance(node, cst.Call) or _called(node) in ("stop_gradient", "super", "append", "Rngs", "Cache", "Variable", "Param"):
        return
    func = node.func
    owner = func.value if isinstance(func, cst.Attribute) else None
    root = owner.value if isinstance(owner, cst.Attribute) else owner
    library = isinstance(root, cst.Name) and root.value in ("jax", "jnp", "lax", "nnx", "math", "self", "np")
    if len(node.args) >= 1 and node.args[0].keyword is None and not node.args[0].star and (library or isinstance(func, cst.Name)):
        if len(node.args) == 1 or library:
            yield _bracketed(node.args[0].value)
    elif owner is not None and not library:
        yield _bracketed(owner)


def stopped_gradient(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A `stop_gradient` dropped, or laid around what is returned."""
    if isinstance(node, cst.Call) and _called(node) == "stop_gradient" and node.args:
        yield _bracketed(node.args[0].value)
    elif isinstance(node, cst.Return) and node.value is not None and not isinstance(node.value, cst.Name):
        call = cst.Call(cst.parse_expression("jax.lax.stop_gradient"), [cst.Arg(node.value)])
        yield node.with_changes(value=call, whitespace_after_return=cst.SimpleWhitespace(" "))


def condition(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A condition negated; `and` for `or`."""
    if isinstance(node, (cst.If, cst.IfExp)):
        test = _bracketed(node.test)
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))
    elif isinstance(node, cst.BooleanOperation):
        yield node.with_changes(operator=cst.Or() if isinstance(node.operator, cst.And) else cst.And())


def dropped_statement(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """An update dropped: an assignment to an element or attribute, or to a name from itself."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return
    statement = node.body[0]
    updates = isinstance(statement, cst.AugAssign)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        names = [name.value for name in _names(statement.value)]
        updates = isinstance(target, cst.Subscript) or (isinstance(target, cst.Name) and target.value in names)
    if updates:
        yield node.with_changes(body=[cst.Pass()])


def _names(node: cst.CSTNode) -> list[cst.Name]:
    names: list[cst.Name] = []

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            names.append(node)

    node.visit(Names())
    return names


def unpacking(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The first two names of an unpacking exchanged."""
    if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Tuple) and len(node.target.elements) >= 2:
        first, second, *rest = node.target.elements
        elements = [first.with_changes(value=second.value), second.with_changes(value=first.value), *rest]
        yield node.with_changes(target=node.target.with_changes(elements=elements))


def sign(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A minus or a bitwise not dropped."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Minus, cst.BitInvert)):
        yield _bracketed(node.expression)


OPERATORS: dict[str, Operator] = {
    "constant": constant,
    "axis": axis,
    "comparison": comparison,
    "arithmetic": arithmetic,
    "dropped-term": dropped_term,
    "swapped-arguments": swapped_arguments,
    "dropped-keyword": dropped_keyword,
    "slice": slice_bound,
    "swapped-function": swapped_function,
    "dropped-call": dropped_call,
    "stop-gradient": stopped_gradient,
    "condition": condition,
    "dropped-statement": dropped_statement,
    "unpacking": unpacking,
    "sign": sign,
}
