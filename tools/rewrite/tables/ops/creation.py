"""Creation (https://pytorch.org/docs/stable/torch.html#creation-ops)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from migrate_agent.tools.rewrite.tables.ops.calls import is_kind, is_unspread, may_be_kind, sequence
from migrate_agent.tools.rewrite.tables.ops.dtype import LEGACY_TYPES
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template


def _filled(function: str) -> Template:
    def to(call: Call) -> str:
        return f"{function}({sequence(call, 'size')}, dtype={{dtype}})"

    return to


# `new_*` takes the dtype of the tensor; NumPy's default would make float32 of an integer tensor.
def _new(function: str, value: str = "") -> Template:
    def to(call: Call) -> str:
        size = "{size}" if value else sequence(call, "size")
        # A literal `dtype=None` means "as the tensor" in torch and "the default" in NumPy.
        dtype = "{dtype}" if call.given("dtype") and call.literal("dtype") is not None else _own_dtype(call)
        return f"{function}({size}, {value}dtype={dtype})"

    return to


def _arange(call: Call) -> str:
    """The template of `torch.arange`. With an integer dtype torch first truncates the bounds."""
    bounds = [name for name in ("start", "end", "step") if call.given(name)]
    if "int" in call.text("dtype") and any(is_kind(call, name, "float") or isinstance(call.literal(name), float) for name in bounds):
        # A step of 1.5 is 1 to torch; JAX steps by 1.5 and rounds each element.
        integers = ", ".join(f"int({{{name}}})" for name in bounds)
        return f"jnp.arange({integers}, dtype={{dtype}})"
    # The signature calls the only positional argument `start`, although torch means the end by it.
    if call.given("start") and not call.given("end"):
        return "jnp.arange({start}, dtype={dtype})"
    return "jnp.arange({start=0}, {end}, {step}, dtype={dtype})"


def _spaced(name: str, extra: str = "") -> Template:
    """The template of `linspace` and `logspace`.

    With an integer dtype torch first truncates the bounds and then each number. A half-precision
    dtype applies to the results only.
    """

    def to(call: Call) -> str:
        integral = "int" in call.text("dtype")
        # Torch computes in float32 and rounds once; each step of JAX's float16 would round.
        if "float16" in call.text("dtype"):
            return f"jnp.{name}({{start}}, {{end}}, {{steps}}{extra}, dtype=jnp.float32).astype({{dtype}})"
        return f"{'vendored.integer_' if integral else 'jnp.'}{name}({{start}}, {{end}}, {{steps}}{extra}, dtype={{dtype}})"

    return to


def _fill_diagonal(call: Call) -> str:
    """The template of `fill_diagonal_`. JAX fills a boolean array only with a boolean."""
    fact, value = call.observed("self"), call.text("fill_value")
    boolean = fact is not None and set(fact.dtypes) == {"bool"} and value in ("0", "1")
    return f"jnp.fill_diagonal({{self}}, {bool(int(value)) if boolean else '{fill_value}'}, inplace=False)"


def _complex(call: Call) -> str:
    real, imag = call.observed("real"), call.observed("imag")
    # `lax.complex` does not broadcast, torch does.
    if real and imag and real.shapes and real.shapes == imag.shapes:
        return "lax.complex({real}, {imag})"
    return "lax.complex(*jnp.broadcast_arrays({real}, {imag}))"


def _without_gradient(call: Call, name: str, array: str) -> str:
    """The array of numbers that torch takes out of the tensors it is made of, one of each, whatever their ranks are: no gradient flows back to them."""
    elements = [fact for fact in call.innermost(name) if fact is not None and set(fact.kinds) & {"tensor", "parameter"}]
    if not any(any(fact.shapes) for fact in elements):
        return f"lax.stop_gradient({array})" if elements else array
    if len([fact for fact in call.each(name) if fact is not None and set(fact.kinds) & {"tensor", "parameter"}]) < len(elements):
        raise Refuse("torch takes numbers out of tensors with axes here, in lists of lists: take them out before", "ambiguous")
    return f"lax.stop_gradient({array}).reshape(-1)"


def _constructor(dtype: str) -> Template:
    def to(call: Call) -> str:
        # One number or `torch.Size` is a shape, one list or tensor is data.
        if call.count("args") == 1 and not may_be_kind(call, "args", "int", "size"):
            fact, written = call.observed("args"), call.literal("args")
            if (fact is None or not fact.kinds) and not isinstance(written, (list, tuple)) and call.text("args").lstrip()[:1] not in "[(":
                raise Refuse(f"whether {call.text('args')} is a size or holds data was neither observed nor inferred", "unknown-receiver")
            return _without_gradient(call, "args", f"jnp.array({{*args}}, dtype={dtype})")
        return f"jnp.empty({sequence(call, 'args')}, dtype={dtype})"

    return to


def _as_tensor(call: Call) -> str:
    """The template of `as_tensor`. A tensor passes as it is, so that its gradient flows."""
    if is_kind(call, "data", "tensor", "parameter"):
        return "{data}.astype({dtype})" if call.given("dtype") and call.literal("dtype") is not None else "{data}"
    return "jnp.asarray({data}, dtype={dtype})"


def _own_dtype(call: Call) -> str:
    """The dtype of the tensor that a method belongs to; the gradient that `x.data` stops is none of its."""
    match ast.parse(call.text("self"), mode="eval").body:
        case ast.Call(func=ast.Attribute(attr="stop_gradient"), args=[ast.Name(id=name)]):
            return f"{name}.dtype"
    return "{self}.dtype"


def _new_legacy(call: Call) -> str:
    """The template of `Tensor.new`: `x.new(2, 3)` is an uninitialised shape, `x.new([1, 2])` is data."""
    if not call.given("args"):
        return f"jnp.empty((0,), dtype={_own_dtype(call)})"
    written = call.literal("args")
    sizes = isinstance(written, tuple) and bool(written) and all(isinstance(size, int) for size in written)
    if sizes or is_kind(call, "args", "int", "size") or not is_unspread(call, "args"):
        return f"jnp.empty({sequence(call, 'args')}, dtype={_own_dtype(call)})"
    if call.count("args") == 1 and is_kind(call, "args", "list", "tuple", "tensor"):
        return _without_gradient(call, "args", f"jnp.array({{*args}}, dtype={_own_dtype(call)})")
    raise Refuse("`Tensor.new` means several things: say `new_zeros` or `new_tensor`", "ambiguous")


def _tensor(call: Call) -> str:
    # `torch.tensor(x)` copies and leaves the graph: no gradient may flow back to `x`.
    if is_kind(call, "data", "tensor", "parameter"):
        return "lax.stop_gradient({data}).astype({dtype})" if call.given("dtype") else "lax.stop_gradient({data})"
    return _without_gradient(call, "data", "jnp.array({data}, dtype={dtype})")


def _new_tensor(call: Call) -> str:
    array = "jnp.array({data}, dtype={dtype})"
    return f"lax.stop_gradient({array})" if is_kind(call, "data", "tensor", "parameter") else _without_gradient(call, "data", array)


FILLED = [
    Op("torch.zeros", "*size, dtype=None", _filled("jnp.zeros")),
    Op("torch.ones", "*size, dtype=None", _filled("jnp.ones")),
    Op("torch.empty", "*size, dtype=None", _filled("jnp.empty")),
    Op("torch.empty_strided", "size, stride, *, dtype=None", "jnp.empty({size}, dtype={dtype})"),
    Op("torch.empty_permuted", "size, physical_layout, *, dtype=None", "jnp.empty({size}, dtype={dtype})"),
    Op("torch.full", "size, fill_value, *, dtype=None", "jnp.full({size}, {fill_value}, dtype={dtype})"),
    Op("torch.zeros_like", "input, *, dtype=None", "jnp.zeros_like({input}, dtype={dtype})"),
    Op("torch.ones_like", "input, *, dtype=None", "jnp.ones_like({input}, dtype={dtype})"),
    Op("torch.empty_like", "input, *, dtype=None", "jnp.empty_like({input}, dtype={dtype})"),
    Op("torch.full_like", "input, fill_value, *, dtype=None", "jnp.full_like({input}, {fill_value}, dtype={dtype})"),
    Op("torch.eye", "n, m=None, *, dtype=None", "jnp.eye({n}, {m}, dtype={dtype})"),
]

NEW = [
    Op("torch.Tensor.new_zeros", "self, *size, dtype=None", _new("jnp.zeros")),
    Op("torch.Tensor.new_ones", "self, *size, dtype=None", _new("jnp.ones")),
    Op("torch.Tensor.new_empty", "self, *size, dtype=None", _new("jnp.empty")),
    Op("torch.Tensor.new_empty_strided", "self, size, stride, dtype=None", _new("jnp.empty", " ")),
    Op("torch.Tensor.new_full", "self, size, fill_value, *, dtype=None", _new("jnp.full", "{fill_value}, ")),
    Op("torch.Tensor.new_tensor", "self, data, *, dtype=None", _new_tensor),
]

RANGES = [
    Op("torch.arange", "start=0, end=None, step=1, *, dtype=None", _arange),
    Op("torch.linspace", "start, end, steps, *, dtype=None", _spaced("linspace")),
    Op("torch.logspace", "start, end, steps, base=10.0, *, dtype=None", _spaced("logspace", ", base={base}")),
    Op("torch.tril_indices", "row, col, offset=0, *, dtype=None", "jnp.stack(jnp.tril_indices({row}, {offset=0}, {col}))"),
    Op("torch.triu_indices", "row, col, offset=0, *, dtype=None", "jnp.stack(jnp.triu_indices({row}, {offset=0}, {col}))"),
]

DATA = [
    Op(
        "torch.tensor",
        "data, *, dtype=None",
        _tensor,
        samples=(
            "torch.tensor([[1.0, 2.0]])",
            "torch.tensor(3)",
            "torch.tensor([True])",
            "torch.tensor([torch.ones(2).sum(), 2.0])",
        ),
    ),
    Op("torch.as_tensor", "data, dtype=None", _as_tensor, samples=("torch.as_tensor([1, 2])",)),
    Op("torch.asarray", "obj, *, dtype=None, copy=None", "jnp.asarray({obj}, dtype={dtype})"),
    Op("torch.from_numpy", "ndarray", "jnp.asarray({ndarray})"),
    # Sparse tensors are arrays with all of their zeros; numbers of one place add up in both.
    *(
        Op(
            name,
            "indices, values, size",
            "vendored.dense({indices}, {values}, {size})",
            samples=(f"{name}(torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([1.0, 2.0, 4.0]), (2, 3)).to_dense()",),
        )
        for name in ("torch.sparse_coo_tensor", "torch.sparse.FloatTensor")
    ),
    Op("torch.scalar_tensor", "s, *, dtype=None", "jnp.array({s}, dtype={dtype=float})"),
    Op("torch.complex", "real, imag", _complex),
    Op("torch.polar", "abs, angle", "{abs} * jnp.exp(1j * {angle})"),
    Op("torch.Tensor", "*args", _constructor("jnp.float32")),
    *(
        Op(name.replace("torch.", prefix), "*args", _constructor(dtype))
        for name, dtype in LEGACY_TYPES.items()
        for prefix in ("torch.", "torch.cuda.")
    ),
    Op(
        "torch.Tensor.new",
        "self, *args",
        _new_legacy,
        samples=("torch.zeros_like(torch.ones(2).new(2, 3))", "torch.ones(2).new([3, 4])", "torch.ones(2).new()"),
    ),
]


def _copied(call: Call) -> str:
    """The template of `copy_`, without a broadcast where both were observed with the same shapes.

    The cast stays in any case, since dtypes depend on the precision of the run.
    """
    to, source = call.observed("self"), call.observed("src")
    if to and source and set(source.kinds) == {"tensor"} and to.shapes == source.shapes and len(to.shapes) in (1, 2, 3):
        return "{src}.astype({self}.dtype)"
    return "jnp.broadcast_to({src}, {self}.shape).astype({self}.dtype)"


def _made_empty(call: Call, name: str) -> tuple[str, str] | None:
    """Shape and dtype of an argument that is made on the spot without values: `jnp.empty(shape, dtype=dtype)`. None of any other."""
    text = call.text(name)
    if not text.startswith("jnp.empty(") or "{" in text:
        return None
    match ast.parse(text, mode="eval").body:
        case ast.Call(func=ast.Attribute(attr="empty"), args=[shape], keywords=[ast.keyword(arg="dtype", value=dtype)]):
            return ast.unparse(shape), ast.unparse(dtype)
        case ast.Call(func=ast.Attribute(attr="empty"), args=[shape], keywords=[]):
            return ast.unparse(shape), ""
    return None


def _filled_with(function: str, value: str) -> Template:
    """The template of a fill: of `torch.empty(n).fill_(2)` only the shape and the dtype matter."""

    def to(call: Call) -> str:
        number = call.literal("value") if value else UNKNOWN
        constant = {0: "jnp.zeros", 1: "jnp.ones"}.get(number) if type(number) in (int, float) else None
        make, rest = (constant, "") if constant else (function, value)
        if (empty := _made_empty(call, "input")) is None:
            return f"{make}_like({{input}}{rest})"
        return f"{make}({empty[0]}{rest}{', dtype=' * bool(empty[1])}{empty[1]})"

    return to


def _resized(shape: Callable[[Call], str]) -> Template:
    """The template of `resize_`, of a tensor that has no elements yet: `x.new().resize_(2, 3)`."""

    def to(call: Call) -> str:
        empty = _made_empty(call, "self")
        if empty is None or empty[0] not in ("(0,)", "0", "()"):
            raise Refuse("JAX arrays have no storage that could be resized: build the array with its shape", "no-counterpart")
        return f"jnp.empty({shape(call)}, dtype={empty[1] or 'jnp.float32'})"

    return to


FILL = [
    Op("torch.fill", "input, value", _filled_with("jnp.full", ", {value}"), method="fill", inplace=True),
    Op("torch.zero", "input", _filled_with("jnp.zeros", ""), method="zero", inplace=True),
    Op(
        "torch.Tensor.resize_",
        "self, *size",
        _resized(lambda call: sequence(call, "size")),
        inplace=True,
        samples=("torch.ones(2).new().resize_(2, 3).fill_(2) + 0", "torch.ones(2).data.new().resize_((2, 3)).zero_() + 0"),
    ),
    Op(
        "torch.Tensor.resize_as_",
        "self, the_template",
        _resized(lambda call: "{the_template}.shape"),
        inplace=True,
        samples=("torch.ones(2).new().resize_as_(torch.ones(3, 1)).fill_(2) + 0",),
    ),
    Op(
        "torch.Tensor.fill_diagonal_",
        "self, fill_value",  # JAX cannot wrap
        _fill_diagonal,
        inplace=True,
    ),
    Op("torch.Tensor.to_dense", "self", "{self}", samples=("torch.ones(2).to_dense()",)),
    Op("torch.Tensor.copy", "self, src", _copied, inplace=True),
]
