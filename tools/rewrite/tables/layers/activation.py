"""Activations
(https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity).

Those without settings become JAX's own functions, where these have torch's gradients too.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("torch.nn.ReLU", "inplace=False", "ReLU", to="jax.nn.relu", samples=("",)),
    Layer("torch.nn.SiLU", "inplace=False", "SiLU", to="jax.nn.silu", samples=("",)),
    Layer("torch.nn.Sigmoid", "*args, **kwargs", "Sigmoid", to="jax.nn.sigmoid", samples=("",)),
    Layer("torch.nn.Tanh", "*args, **kwargs", "Tanh", to="jnp.tanh", samples=("",)),
    Layer("torch.nn.LogSigmoid", "*args, **kwargs", "LogSigmoid", to="jax.nn.log_sigmoid", samples=("",)),
    Layer("torch.nn.Softsign", "*args, **kwargs", "Softsign", to="jax.nn.soft_sign", samples=("",)),
    Layer("torch.nn.SELU", "inplace=False", "SELU", to="jax.nn.selu", samples=("",)),
    Layer("torch.nn.ReLU6", "inplace=False", "ReLU6", samples=("",)),
    Layer("torch.nn.GELU", "approximate='none'", "GELU", samples=("",)),
    Layer("torch.nn.Mish", "inplace=False", "Mish", samples=("",)),
    Layer("torch.nn.Tanhshrink", "*args, **kwargs", "Tanhshrink", samples=("",)),
    Layer("torch.nn.ELU", "alpha=1.0, inplace=False", "ELU", samples=("",)),
    Layer("torch.nn.CELU", "alpha=1.0, inplace=False", "CELU", samples=("",)),
    Layer("torch.nn.LeakyReLU", "negative_slope=0.01, inplace=False", "LeakyReLU", samples=("",)),
    Layer("torch.nn.Hardtanh", "min_val=-1.0, max_val=1.0, inplace=False", "Hardtanh", samples=("",)),
    Layer("torch.nn.Hardsigmoid", "inplace=False", "Hardsigmoid", samples=("",)),
    Layer("torch.nn.Hardswish", "inplace=False", "Hardswish", samples=("",)),
    Layer("torch.nn.Hardshrink", "lambd=0.5", "Hardshrink", samples=("",)),
    Layer("torch.nn.Softshrink", "lambd=0.5", "Softshrink", samples=("",)),
    Layer("torch.nn.Softplus", "beta=1.0, threshold=20.0", "Softplus", samples=("",)),
    Layer("torch.nn.Threshold", "threshold, value, inplace=False", "Threshold", samples=("0.1, 20",)),
    Layer("torch.nn.GLU", "dim=-1", "GLU", samples=("",)),
    Layer("torch.nn.Softmax", "dim=None", "Softmax", samples=("1",)),
    Layer("torch.nn.LogSoftmax", "dim=None", "LogSoftmax", samples=("1",)),
    Layer("torch.nn.Softmin", "dim=None", "Softmin", samples=("1",)),
    Layer("torch.nn.Softmax2d", "*args, **kwargs", "Softmax2d", samples=("",)),
    Layer(
        "torch.nn.PReLU", "num_parameters=1, init=0.25, device=None, dtype=None", "PReLU", params={"weight": "{self}.weight"}, samples=("",)
    ),
    Layer("torch.nn.RReLU", "lower=0.125, upper=0.3333333333333333, inplace=False", "RReLU", samples=("",)),
)
