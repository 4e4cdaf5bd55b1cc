"""Comparison, logical and bitwise functions (https://pytorch.org/docs/stable/torch.html#comparison-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import spelled
from migrate_agent.tools.rewrite.tables.registry import Op

OPERATORS = {
    "eq": ("==",),
    "ne": ("!=", "not_equal"),
    "lt": ("<", "less"),
    "le": ("<=", "less_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
    "bitwise_and": ("&",),
    "bitwise_or": ("|",),
    "bitwise_xor": ("^",),
    "bitwise_left_shift": ("<<",),
    "bitwise_right_shift": (">>",),
}
FUNCTIONS = {
    # Of two equal values torch sends the whole gradient to the first; `jnp.fmax` sends it to the
    # second.
    "fmax": "vendored.fmax",
    "fmin": "vendored.fmin",
    "logical_and": "jnp.logical_and",
    "logical_or": "jnp.logical_or",
    "logical_xor": "jnp.logical_xor",
    "maximum": "jnp.maximum",
    "minimum": "jnp.minimum",
}
TESTS = ("isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal")

OPERATOR_ROWS = [
    row
    for name, (operator, *aliases) in OPERATORS.items()
    for row in spelled(
        # The dtype of bitwise operators follows the operands, so that it stays open.
        name,
        "input, other",
        f"{{input}} {operator} {{other}}",
        *aliases,
        inplace=True,
        dtype="" if name.startswith("bitwise") else "bool",
    )
]
FUNCTION_ROWS = [
    row
    for name, function in FUNCTIONS.items()
    for row in spelled(
        name,
        "input, other",
        f"{function}({{input}}, {{other}})",
        inplace=name.startswith("log"),
        dtype="bool" if name.startswith("log") else "",
    )
]
TEST_ROWS = [row for name in TESTS for row in spelled(name, "input", f"jnp.{name}({{input}})")]

OTHERS = [
    *spelled("logical_not", "input", "jnp.logical_not({input})", inplace=True, dtype="bool"),
    *spelled("bitwise_not", "input", "~{input}", inplace=True),
    *spelled(
        "isclose",
        "input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
        "jnp.isclose({input}, {other}, {rtol=1e-05}, {atol=1e-08}, {equal_nan})",
    ),
    *spelled(
        "allclose",
        "input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
        "jnp.allclose({input}, {other}, {rtol=1e-05}, {atol=1e-08}, {equal_nan})",
        returns="bool",
    ),
    *spelled("equal", "input, other", "jnp.array_equal({input}, {other})", returns="bool"),
    Op(
        "torch.isin",
        "elements, test_elements, *, assume_unique=False, invert=False",
        "jnp.isin({elements}, {test_elements}, assume_unique={assume_unique}, invert={invert})",
    ),
]
