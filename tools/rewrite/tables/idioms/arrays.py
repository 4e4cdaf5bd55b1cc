"""Parts, largest elements and draws, by functions of `jax.numpy`, `jax.lax` and `jax.random` alone."""

from __future__ import annotations

import ast
import re
from itertools import accumulate

from migrate_agent.tools.rewrite.tables.ops.calls import is_name, ndim, written_elements
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
    """The largest along the last axis, where nobody asks for their places: JAX gives these as 32-bit integers."""
    last = call.literal("dim") in (-1, (ndim(call, "input") or 0) - 1) and bool(ndim(call, "input"))
    parts = call.parts()
    return "jax.lax.top_k({input}, {k})" if last and call.literal("largest") is True and len(parts) == 2 and parts[1] == "_" else ""


def _multinomial(call: Call) -> str:
    """One index for each row of weights."""
    return "jnp.expand_dims(jax.random.categorical({rng}, jnp.log({input})), -1)" if call.literal("num_samples") == 1 else ""


PLAIN_TENSOR = re.compile(r"[\w.]+(\[\.\.\.\])?")
"""A name, an attribute or a whole variable, which may be read twice."""


def _expand(call: Call) -> str:
    """`x.expand(n, -1, -1)` → `jnp.broadcast_to(x, (n, *x.shape[1:]))`, where all of its axes are named."""
    sizes = written_elements(call, "sizes") or []
    if (
        ndim(call, "self") != len(sizes)
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


ROWS = (
    Idiom("torch.Tensor.expand", _expand),
    _split("torch.split", "tensor", "split_size_or_sections"),
    _split("torch.Tensor.split", "self", "split_size"),
    _split("torch.split_with_sizes", "input", "split_sizes"),
    Idiom("torch.topk", _topk),
    Idiom("torch.multinomial", _multinomial),
)
