"""Parts, largest elements and draws, by functions of `jax.numpy`, `jax.lax` and `jax.random` alone."""

from __future__ import annotations

import ast
import re
from itertools import accumulate

from migrate_agent.tools.rewrite.tables.idioms.losses import is_wide
from migrate_agent.tools.rewrite.tables.ops.calls import is_integral, is_name, ndim, written_elements
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Idiom


def _split(name: str, tensor: str, size: str) -> Idiom:
    """`a, b, c = x.split(n, dim)` → `a, b, c = jnp.split(x, (n, 2 * n), axis=dim)`, where the places of the cuts are plain to read."""

    def to(call: Call) -> str:
        cuts = _cuts(call, size)
        return f"jnp.split({{{tensor}}}, ({', '.join(cuts)}{',' if len(cuts) == 1 else ''}), axis={{dim}})" if cuts else ""

    return Idiom(name, to)


def _cuts(call: Call, size: str) -> list[str]:
    """Where the parts after the first begin; empty where that is not known, or would be computed more than once."""
    count, value, sizes = len(call.parts()), call.literal(size), written_elements(call, size)
    if count < 2:
        return []
    if isinstance(value, (list, tuple)):
        return [str(cut) for cut in accumulate(value)][:-1] if len(value) == count and all(type(part) is int for part in value) else []
    if sizes is None and type(value) is int:
        return [str(value * part) for part in range(1, count)]
    fact = call.observed(size)
    if value is not UNKNOWN or not is_name(call, size) or fact is None or fact.kinds != ("int",):
        return []
    return [f"{{{size}}}", *(f"{part} * {{{size}}}" for part in range(2, count))]


def _topk(call: Call) -> str:
    """The largest along the last axis, unpacked into values and places. `jax.lax.top_k` has NaN last where its sign is set, and places of 32 bits."""
    axes, parts = ndim(call, "input"), call.parts()
    if not axes or call.literal("dim") not in (-1, axes - 1) or call.literal("largest") is not True or len(parts) != 2:
        return ""
    return "vendored.largest_along_last({input}, {k})"


def _scatter(name: str, helper: str) -> Idiom:
    """Values at an index along an axis, as many as the index has, or one number."""

    def to(call: Call) -> str:
        given = "value" if name == "torch.scatter" and call.given("value") else "src"
        facts = [call.observed(argument) for argument in ("input", "index", given)]
        if not ndim(call, "input") or not ndim(call, "index") or (name == "torch.scatter" and call.literal("reduce") is not None):
            return ""
        if (is_number := type(call.literal(given)) in (int, float)) is False and (None in facts or not _of_one_shape(call, given)):
            return ""
        dtypes = [set(fact.dtypes) if fact else set() for fact in facts]
        if "bool" in dtypes[0] or not dtypes[0] or not (is_number or dtypes[0] == dtypes[2]):
            return ""
        return f"vendored.{helper}({{input}}, {{dim}}, {{index}}, {{{given}}})"

    return Idiom(name, to)


def _of_one_shape(call: Call, values: str) -> bool:
    """Whether values had the shape of their index each time, and are not both up to the caller."""
    index, given = call.observed("index"), call.observed(values)
    free = call.is_handed("index") and call.is_handed(values)
    return not free and index is not None and given is not None and bool(index.shapes) and index.shapes == given.shapes


def _multinomial(call: Call) -> str:
    """One index for each row of weights."""
    return "jnp.expand_dims(jax.random.categorical({rng}, jnp.log({input})), -1)" if call.literal("num_samples") == 1 else ""


PLAIN_TENSOR = re.compile(r"[\w.]+(\[\.\.\.\])?")
"""A name, an attribute or a whole variable, which may be read twice."""


def _expand(call: Call) -> str:
    """`x.expand(n, -1, -1)` → `jnp.broadcast_to(x, (n, *x.shape[1:]))`, where all of its axes are named."""
    sizes = written_elements(call, "sizes")
    if (
        not sizes  # not written out
        or ndim(call, "self") != len(sizes)
        or not PLAIN_TENSOR.fullmatch(call.text("self"))
        or any(isinstance(size, ast.Starred) for size in sizes)
    ):
        return ""
    texts = [ast.unparse(size) for size in sizes]
    count = next((i for i, text in enumerate(reversed(texts)) if text != "-1"), len(texts))
    named = texts[: len(texts) - count]
    if any("{" in text for text in named):
        return ""
    shape = [f"{{self}}.shape[{i}]" if text == "-1" else text for i, text in enumerate(named)]
    rest = [f"*{{self}}.shape[{len(named)}:]"] if count > 1 else [f"{{self}}.shape[{len(named)}]"] * count
    return f"jnp.broadcast_to({{self}}, ({', '.join([*shape, *rest])}{',' if len(shape + rest) == 1 else ''}))"


def _unsqueeze(call: Call) -> str:
    """`x.unsqueeze(1).unsqueeze(1)` → `jnp.expand_dims(x, (1, 2))`, where all axes are written out and count from one end."""
    text, axis = call.text("input"), call.literal("dim")
    inner = ast.parse(text, mode="eval").body if text.startswith("jnp.expand_dims(") and "{" not in text else None
    match inner:
        case ast.Call(func=ast.Attribute(attr="expand_dims"), args=[array, axes], keywords=[]) if type(axis) is int:
            joined = _joined(_written_axes(axes), axis)
            return f"jnp.expand_dims({ast.get_source_segment(text, array)}, ({', '.join(map(str, joined))}))" if joined else ""
    return ""


def _written_axes(node: ast.expr) -> tuple[int, ...]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ()
    return value if isinstance(value, tuple) else (value,) if type(value) is int else ()


def _joined(first: tuple[int, ...], then: int) -> tuple[int, ...]:
    """The places of all new axes in the result, where one more is added to `first`; none where that depends on how many others there are."""
    if then == -1 and first == tuple(range(-len(first), 0)):
        return (-len(first) - 1, *first) if first else ()
    if not first or then < 0 or min(first) < 0:
        return ()
    return tuple(sorted([then, *(axis + (axis >= then) for axis in first)]))


def _pad(call: Call) -> str:
    """`F.pad(x, (n, 0))` → `jnp.pad(x, ((0, 0), (n, 0)))`, where nothing is cropped."""
    widths, axes, value = _widths(call), ndim(call, "input"), call.literal("value")
    if call.literal("mode") != "constant" or axes is None or not _fits(call, value):
        return ""
    if not widths or len(widths) % 2 or len(widths) > 2 * axes:
        return ""
    pairs = ["(0, 0)"] * (axes - len(widths) // 2)
    pairs += [f"({low}, {high})" for low, high in zip(widths[-2::-2], widths[::-2], strict=True)]
    return f"jnp.pad({{input}}, ({', '.join(pairs)}{',' * (axes == 1)}){'' if not value else ', constant_values={value}'})"


def _widths(call: Call) -> list[str]:
    """The texts of the amounts to pad by; empty where one may be below zero."""
    widths = call.constant("pad")
    if isinstance(widths, (list, tuple)):
        return [] if any(type(width) is not int or width < 0 for width in widths) else list(map(str, widths))
    texts = list(map(ast.unparse, written_elements(call, "pad") or ())) if call.are_amounts("pad") else []
    return [] if any("{" in text for text in texts) else texts


def _fits(call: Call, value: object) -> bool:
    """Whether a number is one of the array's own kind, so that nothing is converted."""
    fact = call.observed("input")
    dtypes = set(fact.dtypes) if fact else set()
    if value is None or (value == 0 and value is not False) or (dtypes == {"bool"} and isinstance(value, bool)):
        return True
    return bool(dtypes) and dtypes <= {"float32", "float64"} and type(value) in (int, float)


def _enlarge(call: Call) -> str:
    """`F.interpolate(x, scale_factor=2)` → `x.repeat(2, axis=2).repeat(2, axis=3)`: the nearest of each place, by a power of two."""
    scale, axes = call.literal("scale_factor"), ndim(call, "input")
    if call.literal("mode") != "nearest" or scale not in (2, 4, 8, 16) or axes not in (3, 4, 5) or call.literal("antialias") is not False:
        return ""
    options = ("size", "align_corners")
    if any(call.literal(name) is not None for name in options) or call.literal("recompute_scale_factor") not in (None, False, True):
        return ""
    return "{input}" + "".join(f".repeat({int(scale)}, axis={axis})" for axis in range(2, axes))


def _clamp(call: Call) -> str:
    """Of integers, which have no gradient: at a bound the one of `jnp.clip` is another than torch's."""
    bounds = [call.literal(name) for name in ("min", "max")]
    if (
        not is_integral(call, "input")
        or ndim(call, "input") is None
        or any(bound is not None and type(bound) is not int for bound in bounds)
    ):
        return ""
    if bounds[1] is None:
        return "jnp.maximum({input}, {min})"
    return "jnp.minimum({input}, {max})" if bounds[0] is None else "jnp.clip({input}, {min}, {max})"


def _norm(name: str, tensor: str, order: str) -> Idiom:
    """The 2-norm of a real array."""

    def to(call: Call) -> str:
        fact = call.observed(tensor)
        is_real = fact is not None and bool(fact.dtypes) and set(fact.dtypes) <= {"float32", "float64"}
        axis = call.literal("dim")
        of_matrix = name == "torch.linalg.norm" and not (type(axis) is int or (call.literal(order) is None and axis is None))
        if not is_real or of_matrix or call.literal(order) not in (None, "fro", 2) or call.given("dtype") or axis == ():
            return ""
        return f"vendored.euclidean_norm({{{tensor}}}, axis={{dim=None}}, keepdims={{keepdim=False}})"

    return Idiom(name, to)


def _normalize(call: Call) -> str:
    """Of real arrays by their 2-norm."""
    if not is_wide(call, "input") or call.literal("p") != 2 or not ndim(call, "input"):
        return ""
    return "vendored.to_unit_length({input}, axis={dim=1}, epsilon={eps=1e-12})"


ROWS = (
    Idiom("torch.nn.functional.normalize", _normalize),
    _scatter("torch.scatter", "set_along_axis"),
    _scatter("torch.scatter_add", "add_along_axis"),
    Idiom("torch.nn.functional.pad", _pad),
    Idiom("torch.clamp", _clamp),
    Idiom("torch.nn.functional.interpolate", _enlarge),
    Idiom("torch.unsqueeze", _unsqueeze),
    _norm("torch.norm", "input", "p"),
    _norm("torch.linalg.norm", "A", "ord"),
    _norm("torch.linalg.vector_norm", "A", "ord"),
    Idiom("torch.Tensor.expand", _expand),
    _split("torch.split", "tensor", "split_size_or_sections"),
    _split("torch.Tensor.split", "self", "split_size"),
    _split("torch.split_with_sizes", "input", "split_sizes"),
    Idiom("torch.topk", _topk),
    Idiom("torch.multinomial", _multinomial),
)
