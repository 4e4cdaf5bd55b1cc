"""Dtype and device plumbing (https://pytorch.org/docs/stable/tensors.html). Devices have no meaning
in JAX code: they are dropped.
"""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.tables.ops.calls import Refused, is_kind, may_be_kind, written_elements
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse

LEGACY_TYPES = {
    "torch.FloatTensor": "jnp.float32",
    "torch.DoubleTensor": "jnp.float64",
    "torch.HalfTensor": "jnp.float16",
    "torch.BFloat16Tensor": "jnp.bfloat16",
    # `int`, not `jnp.int64`: without x64 JAX has no int64 and would warn at each use.
    "torch.LongTensor": "int",
    "torch.IntTensor": "jnp.int32",
    "torch.ShortTensor": "jnp.int16",
    "torch.CharTensor": "jnp.int8",
    "torch.ByteTensor": "jnp.uint8",
    "torch.BoolTensor": "bool",
}

CASTS = {
    "float": "jnp.float32",
    "double": "float",
    "half": "jnp.float16",
    "bfloat16": "jnp.bfloat16",
    # As above: `int` is int64 under x64 and int32 otherwise, without a warning.
    "long": "int",
    "int": "jnp.int32",
    "short": "jnp.int16",
    "char": "jnp.int8",
    "byte": "jnp.uint8",
    "bool": "bool",
    "cfloat": "jnp.complex64",
    "cdouble": "jnp.complex128",
}


def _is_dtype_text(text: str) -> bool:
    return (text.startswith("jnp.") and "(" not in text) or text.endswith("dtype") or text in ("int", "float", "bool", "complex")


def _is_device_text(text: str) -> bool:
    return text == "None" or text.startswith(("'", '"')) or "device" in text


def _to(call: Call) -> str:
    if call.given("dtype"):
        if may_be_kind(call, "dtype", "none"):
            return "{self}" if call.literal("dtype") is None else "vendored.cast({self}, {dtype})"
        return "{self}" if call.literal("dtype") is None else "{self}.astype({dtype})"
    if call.given("other"):
        return "{self}.astype({other}.dtype)"
    if not call.count("args"):
        return "{self}"
    parts = [call.text("args")] if call.count("args") == 1 else [ast.unparse(part) for part in written_elements(call, "args") or ()]
    parts = [part for part in parts if part not in ("True", "False")] or ["None"]  # `non_blocking` and `copy` in their places
    # `x.to(other)`, `x.to(dtype)` and `x.to(device)` look alike: what was observed tells them
    # apart, and where nothing was, the spelling of the argument.
    if is_kind(call, "args", "tensor", "parameter"):
        return f"{{self}}.astype(({parts[0]}).dtype)" if not parts[0].isidentifier() else f"{{self}}.astype({parts[0]}.dtype)"
    if is_kind(call, "args", "dtype") or _is_dtype_text(parts[0]):
        return f"{{self}}.astype({parts[0]})"
    if is_kind(call, "args", "device", "str", "none", "int") or _is_device_text(parts[0]):
        return f"{{self}}.astype({parts[1]})" if len(parts) > 1 and parts[1] not in ("None", "True", "False") else "{self}"
    raise Refuse(f"cannot tell whether `{parts[0]}` is a dtype, a device or a tensor", "unknown-kind")


def _type(call: Call) -> str:
    value = call.literal("dtype")
    # `x.type()` without an argument returns a string such as "torch.FloatTensor".
    if value is None:
        raise Refuse("the name of a tensor's type has no counterpart in JAX: use `.dtype`")
    if isinstance(value, str):
        if value.replace(".cuda", "") not in LEGACY_TYPES:
            raise Refuse(f"unknown tensor type {value!r}")
        return f"{{self}}.astype({LEGACY_TYPES[value.replace('.cuda', '')]})"
    return "{self}.astype({dtype})"


WITHOUT_GRADIENT = frozenset(
    {"jnp.zeros", "jnp.ones", "jnp.empty", "jnp.eye", "jax.random.normal", "jax.random.randint", "lax.stop_gradient"}
)
"""Functions of JAX whose results depend on nothing that has a gradient."""
SAME_NUMBERS = frozenset({"astype", "reshape", "transpose"})
"""Methods of arrays that compute no others."""


def _leaf(call: Call) -> str:
    """The template of `Variable`: a new leaf, whatever its data was computed from."""
    try:
        data = ast.parse(call.text("data").strip(), mode="eval").body
    except SyntaxError:
        data = None
    while isinstance(data, ast.Call) and isinstance(data.func, ast.Attribute) and data.func.attr in SAME_NUMBERS:
        data = data.func.value
    constant = isinstance(data, ast.Call) and ast.unparse(data.func) in WITHOUT_GRADIENT
    return "{data}" if constant else "lax.stop_gradient({data})"


CONVERSIONS = [
    Op("torch.Tensor.to", "self, *args, dtype=None, other=None, copy=False", _to),
    Op("torch.Tensor.type", "self, dtype=None", _type),
    Op(
        "torch.Tensor.type_as",
        "self, other",
        "{self}.astype({other}.dtype)",
        samples=("torch.ones(2).type_as(torch.ones(2, dtype=torch.int64))",),
    ),
    Op("torch.Tensor.chalf", "self", Refused("JAX has no complex numbers of half precision")),
    *(Op(f"torch.Tensor.{name}", "self", f"{{self}}.astype({dtype})") for name, dtype in CASTS.items()),
]

DEVICES = [
    Op("torch.Tensor.cpu", "self", "{self}"),
    Op("torch.Tensor.cuda", "self, device=None", "{self}"),
    # Of a tensor that is not on a GPU.
    Op("torch.Tensor.get_device", "self", "-1", returns="int", samples=("torch.ones(2).get_device()",)),
    Op("torch.Tensor.pin_memory", "self", "{self}"),
    # JAX differentiates with respect to arguments, not to arrays that carry a flag.
    Op("torch.Tensor.requires_grad_", "self, requires_grad=True", "{self}"),
    Op(
        "torch.autograd.Variable",
        "data=None, requires_grad=False, volatile=False",
        _leaf,
        samples=("torch.autograd.Variable(torch.ones(2))",),
    ),
]

PYTHON = [
    *(
        Op(
            f"torch.nn.modules.utils.{name}",
            "x",
            f"vendored.repeated({{x}}, {count})",
            returns="tuple",
            samples=(f"torch.nn.modules.utils.{name}(3)",),
        )
        for name, count in (("_single", 1), ("_pair", 2), ("_triple", 3), ("_quadruple", 4))
    ),
    Op("torch.Tensor.item", "self", "{self}.item()", returns=""),
    Op("torch.Tensor.tolist", "self", "{self}.tolist()", returns="list"),
    Op("torch.Tensor.numpy", "self, *, force=False", "np.asarray({self})", returns="ndarray"),
    Op("torch.is_tensor", "obj", "isinstance({obj}, jax.Array)", returns="bool", samples=("torch.is_tensor(torch.ones(2))",)),
    Op(
        "torch.is_floating_point",
        "input",
        "jnp.issubdtype({input}.dtype, jnp.floating)",
        method="is_floating_point",
        returns="bool",
        samples=("torch.is_floating_point(torch.ones(2))",),
    ),
    Op(
        "torch.is_complex",
        "input",
        "jnp.iscomplexobj({input})",
        method="is_complex",
        returns="bool",
        samples=("torch.is_complex(torch.ones(2))",),
    ),
    Op("torch.finfo", "type=None", "jnp.finfo({type=float})", returns=""),
    Op("torch.iinfo", "type", "jnp.iinfo({type})", returns=""),
    Op("torch.promote_types", "type1, type2", "jnp.promote_types({type1}, {type2})", returns="dtype"),
    Op("torch.result_type", "tensor1, tensor2", "jnp.result_type({tensor1}, {tensor2})", returns="dtype"),
    # Asked for at run time, so that the answer follows the precision that the code runs in.
    Op("torch.get_default_dtype", "", "jnp.result_type(float)", returns="dtype"),
]
