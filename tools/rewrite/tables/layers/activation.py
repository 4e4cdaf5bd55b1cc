"""Activations
(https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity).

Those without settings become JAX's own functions, where these have torch's gradients too. In plain style, so do those with settings that are
written out: `partial(jax.nn.gelu, approximate=False)`.
"""

from __future__ import annotations

from collections.abc import Callable

from migrate_agent.tools.rewrite.tables.registry import Call, Layer


def plain_gelu(call: Call) -> str:
    """`jax.nn.gelu`, of which the exact form is not the default."""
    exact = {"none": "False", "tanh": "True"}.get(call.literal("approximate"))
    return f"partial(jax.nn.gelu, approximate={exact})" if exact else ""


def plain_over_axis(function: str) -> Callable[[Call], str]:
    """A function over an axis that is written out; torch chooses one by the number of axes where it is not."""
    return lambda call: f"partial({function}, axis={{dim}})" if type(call.literal("dim")) is int else ""


def plain_function(function: str, option: str = "", default: float = 0.0, name: str = "") -> Callable[[Call], str]:
    """A function with one option at most, which is left out where it is its default."""

    def to(call: Call) -> str:
        if not option or call.literal(option) == default:
            return function
        return f"partial({function}, {name or option}={{{option}}})"

    return to


ROWS = (
    Layer("torch.nn.ReLU", "inplace=False", "ReLU", to="jax.nn.relu", samples=("",)),
    Layer("torch.nn.SiLU", "inplace=False", "SiLU", to="jax.nn.silu", samples=("",)),
    Layer("torch.nn.Sigmoid", "*args, **kwargs", "Sigmoid", to="jax.nn.sigmoid", samples=("",)),
    Layer("torch.nn.Tanh", "*args, **kwargs", "Tanh", to="jnp.tanh", samples=("",)),
    Layer("torch.nn.LogSigmoid", "*args, **kwargs", "LogSigmoid", to="jax.nn.log_sigmoid", samples=("",)),
    Layer("torch.nn.Softsign", "*args, **kwargs", "Softsign", to="jax.nn.soft_sign", samples=("",)),
    Layer("torch.nn.SELU", "inplace=False", "SELU", to="jax.nn.selu", samples=("",)),
    Layer("torch.nn.ReLU6", "inplace=False", "ReLU6", samples=("",), plain=plain_function("vendored.relu6")),
    Layer("torch.nn.GELU", "approximate='none'", "GELU", samples=("",), plain=plain_gelu, not_plain=("approximate",)),
    Layer("torch.nn.Mish", "inplace=False", "Mish", samples=("",), plain=plain_function("jax.nn.mish")),
    Layer("torch.nn.Tanhshrink", "*args, **kwargs", "Tanhshrink", samples=("",), plain=plain_function("vendored.tanhshrink")),
    Layer(
        "torch.nn.ELU",
        "alpha=1.0, inplace=False",
        "ELU",
        samples=("",),
        plain=plain_function("jax.nn.elu", "alpha", 1.0),
        not_plain=("alpha",),
    ),
    Layer(
        "torch.nn.CELU",
        "alpha=1.0, inplace=False",
        "CELU",
        samples=("",),
        plain=plain_function("jax.nn.celu", "alpha", 1.0),
        not_plain=("alpha",),
    ),
    Layer(
        "torch.nn.LeakyReLU",
        "negative_slope=0.01, inplace=False",
        "LeakyReLU",
        samples=("",),
        plain=plain_function("vendored.leaky_relu", "negative_slope", 0.01),
        not_plain=("negative_slope",),
    ),
    Layer("torch.nn.Hardtanh", "min_val=-1.0, max_val=1.0, inplace=False", "Hardtanh", samples=("",)),
    Layer("torch.nn.Hardsigmoid", "inplace=False", "Hardsigmoid", samples=("",), plain=plain_function("vendored.hardsigmoid")),
    Layer("torch.nn.Hardswish", "inplace=False", "Hardswish", samples=("",), plain=plain_function("vendored.hardswish")),
    Layer("torch.nn.Hardshrink", "lambd=0.5", "Hardshrink", samples=("",)),
    Layer("torch.nn.Softshrink", "lambd=0.5", "Softshrink", samples=("",)),
    Layer("torch.nn.Softplus", "beta=1.0, threshold=20.0", "Softplus", samples=("",)),
    Layer("torch.nn.Threshold", "threshold, value, inplace=False", "Threshold", samples=("0.1, 20",)),
    Layer("torch.nn.GLU", "dim=-1", "GLU", samples=("",), plain=plain_over_axis("jax.nn.glu"), not_plain=("dim",)),
    Layer("torch.nn.Softmax", "dim=None", "Softmax", samples=("1",), plain=plain_over_axis("jax.nn.softmax"), not_plain=("dim",)),
    Layer("torch.nn.LogSoftmax", "dim=None", "LogSoftmax", samples=("1",), plain=plain_over_axis("jax.nn.log_softmax"), not_plain=("dim",)),
    Layer("torch.nn.Softmin", "dim=None", "Softmin", samples=("1",)),
    Layer("torch.nn.Softmax2d", "*args, **kwargs", "Softmax2d", samples=("",)),
    Layer(
        "torch.nn.PReLU", "num_parameters=1, init=0.25, device=None, dtype=None", "PReLU", params={"weight": "{self}.weight"}, samples=("",)
    ),
    Layer("torch.nn.RReLU", "lower=0.125, upper=0.3333333333333333, inplace=False", "RReLU", samples=("",)),
)
