"""Shows of a module class that it computes each row of its argument from that row alone, by what its `forward` says.

`self.down(F.silu(self.gate(x)) * self.up(x))` is such a function of `x`; what `BatchNorm1d` or `x.mean(0)` gives depends on the other rows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import MODULE_BASES, ClassModel, FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.rewrite.tables.registry import public_name
from migrate_agent.tools.scan.nodes import walk

LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Identity Linear LayerNorm RMSNorm Dropout AlphaDropout ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh LogSigmoid "
        "Softplus Softsign Tanhshrink Hardswish Hardsigmoid Hardtanh Hardshrink Softshrink Threshold"
    ).split()
)
"""Layers that act on each row of (rows, …, features) alone, whatever their arguments are."""
POINTWISE = frozenset(
    "abs clamp clip cos dropout elu erf exp expm1 gelu hardsigmoid hardswish hardtanh leaky_relu log log1p logsigmoid maximum minimum mish mul neg pow "
    "relu relu6 rsqrt selu sigmoid silu sin softplus softsign sqrt square tanh tanhshrink celu add sub div multiply subtract divide".split()
)
"""Functions and methods of torch that look at one element at a time, or broadcast what is no row."""
KEEPING = frozenset("to type type_as float half bfloat16 double contiguous clone".split())
"""Methods that keep the places of all elements."""
ALONG_LAST = frozenset({"softmax", "log_softmax", "normalize"})
REDUCING = frozenset({"mean", "sum", "norm", "amax", "amin", "var", "std"})
"""Methods that mix the elements of an axis; with `keepdim=True` along the last one they leave the rows alone."""


class FileFacts(NamedTuple):
    """A file, and what was seen of its expressions."""

    file: FileModel
    facts: Facts


class Mixed(Exception):
    """A row may depend on other rows."""


def acts_on_rows(repo: Repo, dotted: str, source: FileFacts, owner: ClassModel | None = None, above: Collection[str] = ()) -> bool:
    """Whether calls of a module of this class, with one argument of at least two axes, act on each row alone.

    `source` is a file and its facts, which say what an attribute is whose text does not. `owner` is the class that holds the module: of a `Sequential`
    all those that it constructs must be such functions. `above` are the classes that ask.
    """
    name = public_name(dotted)
    if name == "torch.nn.Sequential":
        return owner is not None and all(
            _parts_act_on_rows(repo, call, model.file, source, owner, above) for model, call in _sequences(repo, owner)
        )
    if name in LAYERS:
        return True
    model = repo.class_of(name)
    if model is None or model.id in above or not repo.is_module_class(model):
        return False
    family = list(repo.ancestors(model))
    bases = {base for one in family for base in repo.bases(one) if repo.class_of(base) is None}
    definition = next(((one, one.methods["forward"]) for one in family if "forward" in one.methods), None)
    if not bases <= MODULE_BASES or definition is None or any("__call__" in one.methods for one in family):
        return False
    try:
        _Forward(repo, model, definition[0].file, definition[1], source, (*above, model.id)).check()
    except Mixed:
        return False
    return True


def _sequences(repo: Repo, owner: ClassModel) -> Iterator[tuple[ClassModel, ast.Call]]:
    """The calls of `nn.Sequential` in a class and its bases."""
    for model in repo.ancestors(owner):
        for node in walk(model.node):
            if isinstance(node, ast.Call) and public_name(dotted_name(node.func, model.file)) == "torch.nn.Sequential":
                yield model, node


def _parts_act_on_rows(repo: Repo, call: ast.Call, file: FileModel, source: FileFacts, owner: ClassModel, above: Collection[str]) -> bool:
    parts = [part.func for part in call.args if isinstance(part, ast.Call)]
    if len(parts) != len(call.args) or call.keywords or not parts:
        return False
    # The parts of a sequence within are among the calls that are looked at anyway.
    names = [repo.canonical(dotted_name(part, file), file.file) or dotted_name(part, file) for part in parts]
    return all(name == "torch.nn.Sequential" or acts_on_rows(repo, name, source, owner, above) for name in names)


class _Forward:
    """Goes through a `forward` and knows which local names hold rows."""

    def __init__(
        self, repo: Repo, model: ClassModel, file: FileModel, function: FunctionNode, source: FileFacts, above: Collection[str]
    ) -> None:
        self.repo, self.model, self.file, self.function, self.source, self.above = repo, model, file, function, source, above
        first, *others = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)] or [""]
        self.self_name, self.rows = first, set(others[:1])

    def check(self) -> None:
        """Raises `Mixed` where what is returned is not made of the rows of the first argument, each alone."""
        if not self.rows or self.function.args.vararg or self.function.args.kwarg or isinstance(self.function, ast.AsyncFunctionDef):
            raise Mixed
        self._block(self.function.body)
        results = [node for node in walk(self.function) if isinstance(node, ast.Return)]
        if not results or not all(node.value is not None and self.holds_rows(node.value) for node in results):
            raise Mixed

    def _block(self, body: list[ast.stmt]) -> None:
        for node in body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    self._bind([name], self.holds_rows(value))
                case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value) if all(isinstance(part, ast.Name) for part in parts):
                    names = [part.id for part in parts if isinstance(part, ast.Name)]
                    self._bind(names, self.is_split(value) or self.holds_rows(value))
                case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                    self._bind([target.id], self.holds_rows(ast.BinOp(ast.Name(target.id, ast.Load()), op, value)))
                case ast.If(test=test, body=inner, orelse=other):
                    if self.holds_rows(test):
                        raise Mixed
                    self._block([*inner, *other])
                case ast.Return(value=ast.expr() as value):
                    self.holds_rows(value)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise Mixed

    def _bind(self, names: list[str], rows: bool) -> None:
        # One way may leave a name with rows, and another without.
        if any(name in self.rows for name in names) and not rows:
            raise Mixed
        self.rows |= set(names) if rows else set()

    def is_split(self, node: ast.expr) -> bool:
        """`h.chunk(2, dim=-1)`: parts of each row."""
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="chunk" | "split"), args=[_, *rest], keywords=options) if self.holds_rows(
                value
            ):
                axes = [*rest, *(option.value for option in options if option.arg == "dim")]
                return len(axes) == 1 and ast.unparse(axes[0]) == "-1"
        return False

    def holds_rows(self, node: ast.expr) -> bool:
        """Whether an expression is made of rows; raises `Mixed` where they may be mixed."""
        match node:
            case ast.Name(id=name):
                return name in self.rows
            case ast.Attribute(value=value, attr="dtype" | "device") if isinstance(value, ast.Name):
                return False
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return self.holds_rows(value)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                sides = self.holds_rows(left), self.holds_rows(right)
                if sides[1]:
                    raise Mixed
                return sides[0]
            case ast.BinOp(left=left, right=right):
                return any([self.holds_rows(left), self.holds_rows(right)])
            case ast.Subscript(value=value, slice=index) if not self.holds_rows(value):
                return self._nothing(index)
            case ast.Subscript(slice=ast.Tuple(elts=[first, *rest])) if keeps_rows(first, rest):
                return not any(self._nothing(part) for part in rest)
            case ast.Call():
                return self._call(node)
        return self._nothing(node)

    def _nothing(self, node: ast.AST) -> bool:
        """False; raises `Mixed` where rows are inside."""
        for child in ast.iter_child_nodes(node):
            if self._nothing(child) if not isinstance(child, ast.expr) else self.holds_rows(child):
                raise Mixed
        return False

    def _call(self, node: ast.Call) -> bool:
        arguments = [*node.args, *(option.value for option in node.keywords)]
        arguments_hold = [self.holds_rows(argument) for argument in arguments]
        function = node.func
        dotted = dotted_name(function, self.file)
        if isinstance(function, ast.Attribute) and not dotted and self._is_own(function.value):
            if any(arguments_hold) and not (arguments_hold == [True] and self._child_acts_on_rows(function)):
                raise Mixed
            return any(arguments_hold)
        receiver = function.value if isinstance(function, ast.Attribute) and not dotted else None
        rows = receiver is not None and self.holds_rows(receiver)
        if not rows and not any(arguments_hold):
            return False
        name = dotted.rpartition(".")[2] if dotted else function.attr if isinstance(function, ast.Attribute) else ""
        is_torch = dotted.startswith("torch.") or receiver is not None
        if not is_torch or not (
            self._keeps(name, arguments_hold if receiver is not None else arguments_hold[1:], rows)
            or _along_last(name, node, receiver is None)
        ):
            raise Mixed
        return True

    def _keeps(self, name: str, others: list[bool], rows: bool) -> bool:
        if name in ("linear", "layer_norm", "rms_norm") and not rows:
            return not any(others)
        return name in POINTWISE or (rows and name in KEEPING and not any(others))

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.self_name

    def _child_acts_on_rows(self, child: ast.Attribute) -> bool:
        fact = self.repo.attribute(self.model, child.attr)
        if fact is None and self.file is self.source.file:
            fact = self.source.facts.observed.get(span_of(child, self.file.lines))
        modules = [kind.removeprefix("module:") for kind in fact.kinds if kind.startswith("module:")] if fact is not None else []
        whole = fact is not None and len(modules) == len(fact.kinds) and bool(modules)
        return whole and all(acts_on_rows(self.repo, module, self.source, self.model, self.above) for module in modules)


def _along_last(name: str, node: ast.Call, is_function: bool) -> bool:
    """`h.softmax(dim=-1)`, `h.pow(2).mean(-1, keepdim=True)`."""
    options = {option.arg: ast.unparse(option.value) for option in node.keywords}
    positional = [ast.unparse(argument) for argument in node.args[1 if is_function else 0 :]]
    axis = options.get("dim", positional[0] if positional else "")
    keeps_axis = options.get("keepdim", positional[1] if len(positional) > 1 else "") == "True"
    return axis == "-1" and set(options) <= {"dim", "keepdim", "dtype"} and (name in ALONG_LAST or (name in REDUCING and keeps_axis))


def keeps_rows(first: ast.expr, rest: list[ast.expr]) -> bool:
    """Whether an index leaves the rows alone: `h[:, :k]`, `h[..., None]`."""
    whole = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
    behind = all(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None) for part in rest)
    return behind and (whole or (isinstance(first, ast.Constant) and first.value is Ellipsis and len(rest) == 1))
