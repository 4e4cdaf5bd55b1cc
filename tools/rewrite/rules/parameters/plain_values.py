"""Initial values as JAX code says them, in place of the helpers with `torch.nn.init`'s names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import libcst as cst

from migrate_agent.tools.rewrite.rules.context import Context

Options = Mapping[str, str]
"""Name of an option → its text."""


def _normal(options: Options) -> str:
    return f"{_factor(options)}jax.random.normal({{key}}, {{like}}.shape, {{like}}.dtype)" if _is_centred(options) else ""


def _uniform(options: Options) -> str:
    low, high = ("{a}" if "a" in options else "0.0"), ("{b}" if "b" in options else "1.0")
    return f"jax.random.uniform({{key}}, {{like}}.shape, {{like}}.dtype, {low}, {high})"


def _truncated_normal(options: Options) -> str:
    """Where the bounds, which JAX counts in standard deviations, are numbers."""
    std, *bounds = (_number(options.get(name, default)) for name, default in (("std", "1.0"), ("a", "-2.0"), ("b", "2.0")))
    if not std or None in bounds or not _is_centred(options):
        return ""
    low, high = (bound / std for bound in bounds if bound is not None)
    return f"{_factor(options)}jax.random.truncated_normal({{key}}, {low}, {high}, {{like}}.shape, {{like}}.dtype)"


def _is_centred(options: Options) -> bool:
    return _number(options.get("mean", "0.0")) == 0.0


def _factor(options: Options) -> str:
    return "" if _number(options.get("std", "1.0")) == 1.0 else "{std} * "


def _number(text: str) -> float | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return float(value) if isinstance(value, (int, float)) else None


SPELLINGS: Mapping[str, Callable[[Options], str]] = {
    "init_normal": _normal,
    "init_uniform": _uniform,
    "init_trunc_normal": _truncated_normal,
}
"""Helper whose values are alike in each layout → the template of the same values, or "" where it has none."""


GAINS = {"relu": 2.0, "linear": 1.0, "sigmoid": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0}
"""Nonlinearity → the square of its gain."""


def _scaled(distribution: str) -> Callable[[Options], str]:
    """He initialisation, where its mode and gain are written out."""

    def to(options: Options) -> str:
        mode, nonlinearity = (
            ast.literal_eval(options.get(name, default)) for name, default in (("mode", "'fan_in'"), ("nonlinearity", "''"))
        )
        slope = _number(options.get("a", "0"))
        squared = GAINS.get(nonlinearity, 2 / (1 + slope**2) if nonlinearity in ("", "leaky_relu") and slope is not None else 0.0)
        return f"nnx.initializers.variance_scaling({squared}, {mode!r}, {distribution!r})" if squared else ""

    return to


def _averaged(distribution: str) -> Callable[[Options], str]:
    """Glorot initialisation without a gain."""
    return lambda options: (
        f"nnx.initializers.variance_scaling(1.0, 'fan_avg', {distribution!r})" if _number(options.get("gain", "1")) == 1.0 else ""
    )


FANS: Mapping[str, Callable[[Options], str]] = {
    "init_kaiming_normal": _scaled("normal"),
    "init_kaiming_uniform": _scaled("uniform"),
    "init_xavier_normal": _averaged("normal"),
    "init_xavier_uniform": _averaged("uniform"),
}
"""Helper that counts the fans of a weight in torch's layout → the initialiser of JAX that counts them in that of a kernel, or ""."""


def fan_values(context: Context, helper: str, call: cst.Call, kernel: cst.BaseExpression) -> cst.BaseExpression | None:
    """`init_kaiming_normal(key, w, mode="fan_out")` as values for a kernel, in plain style; None where JAX has no such initialiser."""
    options = {one.keyword.value: cst.Module([]).code_for_node(one.value) for one in call.args[2:] if one.keyword}
    if not context.repo.is_plain or helper not in FANS or len(options) < len(call.args) - 2:
        return None
    try:
        initialiser = FANS[helper](options)
    except (ValueError, SyntaxError):  # an option that is no literal
        return None
    return (
        context.build(f"{initialiser}({{key}}, {{like}}.shape, {{like}}.dtype)", key=call.args[0].value, like=kernel)
        if initialiser
        else None
    )


def written_plainly(context: Context, statement: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    """`w[...] = init_normal(key, w, std=s)` → `w[...] = s * jax.random.normal(key, w.shape, w.dtype)`, in plain style."""
    match statement:
        case cst.Assign(value=cst.Call(func=cst.Name(value=helper), args=[cst.Arg(value=key), cst.Arg(value=like), *rest])):
            if not context.repo.is_plain or helper not in SPELLINGS or any(one.keyword is None for one in rest):
                return statement
            options = {one.keyword.value: one.value for one in rest if one.keyword}
            template = SPELLINGS[helper]({name: cst.Module([]).code_for_node(value) for name, value in options.items()})
            bare = like.value if isinstance(like, cst.Subscript) and _is_whole(like) else like
            value = context.build(template, key=key, like=bare, **options) if template else statement.value
            return statement.with_changes(value=value)
    return statement


def _is_whole(node: cst.Subscript) -> bool:
    """Whether this is `w[...]`, all of a variable."""
    index = node.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)
