"""Initialisers (https://docs.pytorch.org/docs/stable/nn.init.html): what their new values are."""

from __future__ import annotations

from collections.abc import Mapping

ROWS: Mapping[str, tuple[str, str]] = {
    "normal": ("tensor, mean=0.0, std=1.0", "vendored.init_normal({rng}, {tensor}, mean={mean}, std={std})"),
    "uniform": ("tensor, a=0.0, b=1.0", "vendored.init_uniform({rng}, {tensor}, a={a}, b={b})"),
    "trunc_normal": (
        "tensor, mean=0.0, std=1.0, a=-2.0, b=2.0",
        "vendored.init_trunc_normal({rng}, {tensor}, mean={mean}, std={std}, a={a}, b={b})",
    ),
    "xavier_uniform": ("tensor, gain=1.0", "vendored.init_xavier_uniform({rng}, {tensor}, gain={gain})"),
    "xavier_normal": ("tensor, gain=1.0", "vendored.init_xavier_normal({rng}, {tensor}, gain={gain})"),
    "kaiming_uniform": (
        "tensor, a=0, mode='fan_in', nonlinearity='leaky_relu'",
        "vendored.init_kaiming_uniform({rng}, {tensor}, a={a}, mode={mode}, nonlinearity={nonlinearity})",
    ),
    "kaiming_normal": (
        "tensor, a=0, mode='fan_in', nonlinearity='leaky_relu'",
        "vendored.init_kaiming_normal({rng}, {tensor}, a={a}, mode={mode}, nonlinearity={nonlinearity})",
    ),
    "orthogonal": ("tensor, gain=1", "vendored.init_orthogonal({rng}, {tensor}, gain={gain})"),
    "constant": ("tensor, val", "jnp.full_like({tensor}, {val})"),
    "zeros": ("tensor", "jnp.zeros_like({tensor})"),
    "ones": ("tensor", "jnp.ones_like({tensor})"),
    "eye": ("tensor", "vendored.init_eye({tensor})"),
}
"""Name (without underscore) → signature and template of the new value."""

CONSTANTS = {"constant": "{val}", "zeros": "0", "ones": "1"}
"""Those that give all elements one value → this value."""
AS_VALUES = frozenset(ROWS) - {"eye"}
"""Those whose vendored function takes a key, what it initialises, and the options in torch's order."""
