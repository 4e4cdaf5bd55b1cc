"""Special functions (https://pytorch.org/docs/stable/special.html)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import is_integral
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template

S = "torch.special."
UNARY = {
    "entr": "vendored.entr",
    "i0e": "jax.scipy.special.i0e",
    "i1": "jax.scipy.special.i1",
    "i1e": "jax.scipy.special.i1e",
    "ndtr": "vendored.ndtr",
    "erfcx": "vendored.erfcx",
    "modified_bessel_i0": "vendored.i0",
    "modified_bessel_i1": "jax.scipy.special.i1",
    **{
        name: f"vendored.{name}"
        for name in (
            "airy_ai",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "spherical_bessel_j0",
        )
    },
}
BINARY = {"xlog1py": "jax.scipy.special.xlog1py", "zeta": "vendored.hurwitz_zeta"}
POLYNOMIALS = (
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
)

# They raise on integers, which torch promotes to the default float.
FLOAT_ONLY = {"ndtri": "jax.scipy.special.ndtri", "log_ndtr": "jax.scipy.special.log_ndtr"}


def _floating(function: str) -> Template:
    """The template of a function that does not promote integers in JAX."""

    def to(call: Call) -> str:
        return f"{function}({{input}}.astype(float))" if is_integral(call, "input") else f"{function}({{input}})"

    return to


ROWS = [
    *(Op(S + name, "input", f"{function}({{input}})") for name, function in UNARY.items()),
    *(Op(S + name, "input", _floating(function)) for name, function in FLOAT_ONLY.items()),
    *(Op(S + name, "input, other", f"{function}({{input}}, {{other}})") for name, function in BINARY.items()),
    *(Op(S + name, "input, n", f"vendored.{name}({{input}}, {{n}})") for name in POLYNOMIALS),
]
