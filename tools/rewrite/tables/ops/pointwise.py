"""Pointwise functions (https://pytorch.org/docs/stable/torch.html#pointwise-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import is_bool, is_integral, is_kind, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template

UNARY = {
    # The gradient of `jnp.abs` at 0 is 1, torch's is 0: an L1 loss would differ at exact hits.
    "abs": "vendored.absolute",
    "acos": "jnp.arccos",
    "acosh": "jnp.arccosh",
    "angle": "jnp.angle",
    "asin": "jnp.arcsin",
    "asinh": "jnp.arcsinh",
    "atan": "jnp.arctan",
    "atanh": "jnp.arctanh",
    "ceil": "jnp.ceil",
    "conj": "jnp.conj",
    "conj_physical": "jnp.conj",
    "cos": "jnp.cos",
    "cosh": "jnp.cosh",
    "deg2rad": "jnp.deg2rad",
    "digamma": "vendored.digamma",
    "erf": "jax.scipy.special.erf",
    "erfc": "jax.scipy.special.erfc",
    "erfinv": "jax.scipy.special.erfinv",
    "exp": "jnp.exp",
    "exp2": "jnp.exp2",
    "expm1": "jnp.expm1",
    "fix": "jnp.trunc",
    "floor": "jnp.floor",
    "i0": "vendored.i0",
    "imag": "jnp.imag",
    "lgamma": "vendored.log_gamma",
    "log": "jnp.log",
    "log10": "jnp.log10",
    "log1p": "jnp.log1p",
    "log2": "jnp.log2",
    "rad2deg": "jnp.rad2deg",
    "real": "jnp.real",
    "signbit": "jnp.signbit",
    "sin": "jnp.sin",
    "sinc": "jnp.sinc",
    "sinh": "jnp.sinh",
    "sqrt": "jnp.sqrt",
    "tan": "jnp.tan",
    "tanh": "jnp.tanh",
    "trunc": "jnp.trunc",
}
SPECIAL = ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "sinc")
ALIASES = {
    "abs": ("absolute",),
    "acos": ("arccos",),
    "acosh": ("arccosh",),
    "asin": ("arcsin",),
    "asinh": ("arcsinh",),
    "atan": ("arctan",),
    "atanh": ("arctanh",),
    "digamma": ("special.psi",),
    "lgamma": ("special.gammaln",),
    "tanh": ("nn.functional.tanh",),
}

BINARY = {
    "atan2": "jnp.arctan2",
    "copysign": "jnp.copysign",
    # Torch computes in float64 whatever the inputs are; `jnp.float_power` keeps float32.
    "float_power": "vendored.float_power",
    "fmod": "jnp.fmod",
    "gcd": "jnp.gcd",
    # Of integers JAX gives floats, torch integers.
    "heaviside": "vendored.heaviside",
    "hypot": "jnp.hypot",
    "igamma": "jax.scipy.special.gammainc",
    "igammac": "jax.scipy.special.gammaincc",
    "lcm": "jnp.lcm",
    "logaddexp": "jnp.logaddexp",
    "logaddexp2": "jnp.logaddexp2",
    "nextafter": "vendored.nextafter",
    # The sign follows the divisor in both; `fmod` follows the dividend in both.
    "remainder": "jnp.remainder",
    "xlogy": "jax.scipy.special.xlogy",
}
BINARY_ALIASES = {"atan2": ("arctan2",), "igamma": ("special.gammainc",), "igammac": ("special.gammaincc",), "xlogy": ("special.xlogy",)}


def _scaled(operator: str) -> Template:
    """`input + alpha * other`."""

    def to(call: Call) -> str:
        scaled = call.given("alpha") and call.literal("alpha") != 1
        return f"{{input}} {operator} {{alpha}} * {{other}}" if scaled else f"{{input}} {operator} {{other}}"

    return to


def _fused(operator: str) -> Template:
    """`input + value * tensor1 <operator> tensor2`."""

    def to(call: Call) -> str:
        scale = "{value} * " if call.given("value") and call.literal("value") != 1 else ""
        return f"{{input}} + {scale}{{tensor1}} {operator} {{tensor2}}"

    return to


def _div(call: Call) -> str:
    if not call.given("rounding_mode"):
        return "{input} / {other}"
    # `trunc` has no operator in Python: `//` rounds down, also for negative numbers.
    modes = {None: "{input} / {other}", "floor": "{input} // {other}"}
    if call.literal("rounding_mode") in modes:
        return modes[call.literal("rounding_mode")]
    return "vendored.divide({input}, {other}, {rounding_mode})"


def _clamp(call: Call) -> str:
    """The template of `clamp`. At the bounds `jnp.clip` halves the gradient and torch passes it on."""
    # Integers have no gradient, so that JAX's own function serves.
    if is_integral(call, "input") and all(is_integral(call, bound) for bound in ("min", "max") if call.given(bound)):
        return "jnp.clip({input}, {min=None}, {max=None})"
    return "vendored.clamp({input}, {min=None}, {max})"


def _pow(call: Call) -> str:
    """The template of `pow`. An integer to a negative power is 0 in torch and undefined in JAX."""
    if is_integral(call, "input") and is_kind(call, "exponent", "tensor") and is_integral(call, "exponent"):
        return "vendored.integer_power({input}, {exponent})"
    return "{input} ** {exponent}"


def _floating(template: str, integral: str) -> Template:
    """`template` for floats and `integral` for integers, which functions of `lax` do not promote."""

    def to(call: Call) -> str:
        return integral if is_integral(call, "input") else template

    return to


def _unless_bool(template: str, boolean: str) -> Template:
    """`template`, or `boolean` for booleans, for which NumPy does not have the function."""

    def to(call: Call) -> str:
        return boolean if is_bool(call, "input") else template

    return to


UNARY_ROWS = [
    row
    for name, function in UNARY.items()
    for row in spelled(
        name,
        "input",
        f"{function}({{input}})",
        *ALIASES.get(name, ()),
        *([f"special.{name}"] if name in SPECIAL else []),
        # Torch has no in-place form of these.
        inplace=name not in ("real", "imag", "angle", "conj", "signbit"),
    )
]
BINARY_ROWS = [
    row
    for name, function in BINARY.items()
    for row in spelled(name, "input, other", f"{function}({{input}}, {{other}})", *BINARY_ALIASES.get(name, ()), inplace=True)
]

ARITHMETIC = [
    *spelled("add", "input, other, *, alpha=1", _scaled("+"), inplace=True),
    *spelled("sub", "input, other, *, alpha=1", _scaled("-"), "subtract", inplace=True),
    *spelled("mul", "input, other", "{input} * {other}", "multiply", inplace=True),
    *spelled("div", "input, other, *, rounding_mode=None", _div, "divide", inplace=True),
    *spelled("true_divide", "input, other", "{input} / {other}", inplace=True),
    *spelled("floor_divide", "input, other", "{input} // {other}", inplace=True),
    *spelled("neg", "input", "-{input}", "negative", inplace=True),
    *spelled("reciprocal", "input", "1 / {input}", inplace=True),
    *spelled("rsqrt", "input", _floating("lax.rsqrt({input})", "1 / jnp.sqrt({input})"), inplace=True),
    *spelled(
        "sigmoid",
        "input",
        _floating("jax.nn.sigmoid({input})", "jax.nn.sigmoid({input}.astype(float))"),
        "special.expit",
        "nn.functional.sigmoid",
        inplace=True,
    ),
    # A float base: an integer power of two with a negative exponent would be 0.
    *spelled("ldexp", "input, other", "{input} * 2.0 ** {other}", inplace=True),
    # Of a NaN torch gives 0, JAX a NaN.
    *spelled("sign", "input", _unless_bool("vendored.sign({input})", "{input}"), inplace=True),
    *spelled("sgn", "input", _unless_bool("vendored.sign({input})", "{input}"), inplace=True),
    *spelled("square", "input", _unless_bool("jnp.square({input})", "{input}.astype(int)"), inplace=True),
    *spelled("pow", "input, exponent", _pow, inplace=True),
    # `fmod` keeps the sign of the input, `x - floor(x)` does not.
    *spelled("frac", "input", "jnp.fmod({input}, 1)", inplace=True),
    *spelled("round", "input, *, decimals=0", "jnp.round({input}, {decimals})", "special.round", inplace=True),
    *spelled("addcmul", "input, tensor1, tensor2, *, value=1", _fused("*"), inplace=True),
    *spelled("addcdiv", "input, tensor1, tensor2, *, value=1", _fused("/"), inplace=True),
    *spelled("lerp", "input, end, weight", "vendored.lerp({input}, {end}, {weight})", inplace=True),
    Op(
        "torch.rsub", "input, other, *, alpha=1", lambda call: "{other} - {alpha} * {input}" if call.given("alpha") else "{other} - {input}"
    ),
]

BOUNDED = [
    *spelled("clamp", "input, min=None, max=None", _clamp, "clip", inplace=True),
    # Always the helper: at a bound `jnp.maximum` gives half of the gradient, torch all of it.
    *spelled("clamp_min", "input, min", "vendored.clamp({input}, min={min})", inplace=True),
    *spelled("clamp_max", "input, max", "vendored.clamp({input}, max={max})", inplace=True),
    *spelled(
        # Both replace infinities by the largest number of the dtype.
        "nan_to_num",
        "input, nan=0.0, posinf=None, neginf=None",
        "jnp.nan_to_num({input}, nan={nan}, posinf={posinf}, neginf={neginf})",
        inplace=True,
    ),
    *spelled("logit", "input, eps=None", "vendored.logit({input}, {eps})", "special.logit", inplace=True),
    *spelled("frexp", "input", "jnp.frexp({input})", returns="tuple"),
]

GAMMA = [
    Op("torch.polygamma", "n, input", "vendored.polygamma({n}, {input})", aliases=("torch.special.polygamma",)),
    Op("torch.Tensor.polygamma", "self, n", "vendored.polygamma({n}, {self})", inplace=True),
    *spelled("mvlgamma", "input, p", "vendored.multigammaln({input}, {p})", "special.multigammaln", inplace=True),
]

COMPLEX = [
    Op("torch.view_as_real", "input", "vendored.view_as_real({input})"),
    Op("torch.view_as_complex", "input", "vendored.view_as_complex({input})"),
]
