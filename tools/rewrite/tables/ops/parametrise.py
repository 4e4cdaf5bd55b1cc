"""Parametrisations: `torch.nn.utils` and `torch.nn.utils.parametrize`
(https://docs.pytorch.org/docs/stable/nn.html#utilities).
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import required_literal
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse

WEIGHT = "module, name='weight', dim=0"
SPECTRAL = "module, name='weight', n_power_iterations=1, eps=1e-12, dim=None"
SPECTRAL_TO = "({module}, name={name}, n_power_iterations={n_power_iterations}, eps={eps}, dim={dim}, rngs={rngs})"


def _norm_except_dim(call: Call) -> str:
    """The template of `norm_except_dim`, for the 2-norm, which is what `weight_norm` divides by."""
    if required_literal(call, "pow") != 2:
        raise Refuse("a norm of another power than 2")
    return "vendored.norm_except_dim({v}, {dim=0})"


ROWS = (
    Op("torch.nn.utils.weight_norm", WEIGHT, "vendored.weight_norm({module}, name={name}, dim={dim})", returns=""),
    # What the function itself calls; it gives the hook, which nothing in a rewrite stands for.
    Op(
        "torch.nn.utils.weight_norm.WeightNorm.apply",
        "module, name, dim",
        "vendored.weight_norm({module}, name={name}, dim={dim})",
        returns="",
    ),
    # The power iteration starts at a random vector, hence `draws`.
    Op("torch.nn.utils.spectral_norm", SPECTRAL, f"vendored.spectral_norm{SPECTRAL_TO}", returns="", draws=True),
    Op(
        "torch.nn.utils.spectral_norm.SpectralNorm.apply",
        "module, name, n_power_iterations, dim, eps",
        f"vendored.spectral_norm{SPECTRAL_TO}",
        returns="",
        draws=True,
    ),
    Op("torch.nn.utils.remove_weight_norm", "module, name='weight'", "vendored.remove_weight_norm({module}, name={name})", returns=""),
    Op("torch.nn.utils.remove_spectral_norm", "module, name='weight'", "vendored.remove_spectral_norm({module}, name={name})", returns=""),
    Op(
        "torch.nn.utils.parametrizations.weight_norm",
        WEIGHT,
        "vendored.parametrize_weight_norm({module}, name={name}, dim={dim})",
        returns="",
    ),
    Op(
        "torch.nn.utils.parametrizations.spectral_norm",
        SPECTRAL,
        f"vendored.parametrize_spectral_norm{SPECTRAL_TO}",
        returns="",
        draws=True,
    ),
    Op(
        "torch.nn.utils.parametrize.register_parametrization",
        "module, tensor_name, parametrization, *, unsafe=False",
        "vendored.register_parametrization({module}, {tensor_name}, {parametrization}, unsafe={unsafe})",
        returns="",
    ),
    Op(
        "torch.nn.utils.parametrize.is_parametrized",
        "module, tensor_name=None",
        "vendored.is_parametrized({module}, tensor_name={tensor_name})",
        returns="bool",
    ),
    Op(
        "torch.nn.utils.parametrize.remove_parametrizations",
        "module, tensor_name, leave_parametrized=True",
        "vendored.remove_parametrizations({module}, {tensor_name}, leave_parametrized={leave_parametrized})",
        returns="",
    ),
    # What copies of `weight_norm` in older code compute a weight with.
    Op(
        "torch.norm_except_dim",
        "v, pow=2, dim=0",
        _norm_except_dim,
        samples=("torch.norm_except_dim(torch.arange(24.0).view(3, 4, 2))", "torch.norm_except_dim(torch.eye(3, 4), 2, dim=-1)"),
    ),
    Op(
        "torch._weight_norm",
        "v, g, dim=0",
        "vendored.from_norm({g}, {v}, {dim=0})",
        samples=(
            "torch._weight_norm(torch.arange(12.0).view(3, 4), torch.arange(3.0).view(3, 1))",
            "torch._weight_norm(torch.arange(24.0).view(3, 4, 2), torch.arange(2.0).view(1, 1, 2), 2)",
        ),
    ),
)
