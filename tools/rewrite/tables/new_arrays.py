"""New arrays that are not needed: what is read of one, or what overwrites all of one, is said without it."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.tables.templates import wrap

DETACHED = ("dtype", "shape", "ndim", "size")
"""What an array has that no gradient flows through."""
OVERWRITTEN = {"zeros_like": "zeros", "ones_like": "ones"}
NEW = ("jnp.empty", "jnp.zeros", "jnp.ones")
DRAWN = ("jax.random.uniform", "jax.random.normal")
"""What draws numbers by a key, a shape and a dtype: of `torch.rand(n).uniform_(a, b)` nothing but these is kept."""


def of_new_array(node: cst.Attribute) -> cst.BaseExpression | None:
    """`jnp.empty(s, dtype=d).shape` → `s`, and `.dtype` → `d`: a new array is not needed to read them."""
    call = node.value
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "astype" and len(call.args) == 1:
        fresh = of_new_array(cst.Attribute(call.func.value, node.attr))
        return fresh if fresh is None or node.attr.value == "shape" else call.args[0].value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or node.attr.value not in ("shape", "dtype"):
        return None
    if _function(call) in DRAWN and not _has_starred(call):
        positional = [argument.value for argument in call.args if argument.keyword is None]
        at = 1 if node.attr.value == "shape" else 2
        return positional[at] if len(positional) > at else cst.Name("float") if at == 2 and len(positional) == len(call.args) else None
    owner = call.func.value
    # Only where the call allocates nothing else: reading the shape of a fresh array is no work.
    if not (isinstance(owner, cst.Name) and owner.value == "jnp" and call.func.attr.value in ("empty", "zeros", "ones")):
        return None
    if node.attr.value == "shape":
        return call.args[0].value
    return next((a.value for a in call.args if a.keyword and a.keyword.value == "dtype"), cst.Name("float"))


def of_detached(node: cst.Attribute) -> cst.BaseExpression | None:
    """`lax.stop_gradient(x).dtype` → `x.dtype`."""
    call = node.value
    if isinstance(call, cst.Call) and _function(call) == "lax.stop_gradient" and len(call.args) == 1 and node.attr.value in DETACHED:
        return node.with_changes(value=wrap(call.args[0].value, node))
    return None


def over_new_array(call: cst.Call) -> cst.Call | None:
    """`jnp.zeros_like(jnp.empty(s, dtype=d))` → `jnp.zeros(s, dtype=d)`, and `jnp.full_like(jnp.zeros(s), v)` → `jnp.full(s, v, dtype=float)`."""
    of, _, name = _function(call).rpartition(".")
    inner = call.args[0].value if call.args else None
    if of != "jnp" or not isinstance(inner, cst.Call) or _function(inner) not in NEW or _has_starred(call) or _has_starred(inner):
        return None
    if name in OVERWRITTEN and len(call.args) == 1:
        return inner.with_changes(func=cst.Attribute(cst.Name("jnp"), cst.Name(OVERWRITTEN[name])))
    if name != "full_like" or len(call.args) != 2 or call.args[1].keyword or not 0 < len(inner.args) < 3:
        return None
    # A number alone would make an array of weak type, which gives way to others where two meet.
    dtype = next((a.value for a in inner.args if a.keyword and a.keyword.value == "dtype"), cst.Name("float"))
    written = cst.Arg(dtype, keyword=cst.Name("dtype"), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")))
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    parts = [cst.Arg(inner.args[0].value, comma=comma), cst.Arg(call.args[1].value, comma=comma), written]
    return call.with_changes(func=cst.Attribute(cst.Name("jnp"), cst.Name("full")), args=parts)


def _function(call: cst.Call) -> str:
    """`jnp.empty` of `jnp.empty(…)`; "" for any other form."""
    match call.func:
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)):
            return f"{owner}.{name}"
        case cst.Attribute(value=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=module)), attr=cst.Name(value=name)):
            return f"{owner}.{module}.{name}"
    return ""


def _has_starred(call: cst.Call) -> bool:
    return any(argument.star for argument in call.args)
