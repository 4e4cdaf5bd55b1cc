"""Parametrisations: `torch.nn.utils` and `torch.nn.utils.parametrize`
(https://docs.pytorch.org/docs/stable/nn.html#utilities).
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

WEIGHT = "module, name='weight', dim=0"
SPECTRAL = "module, name='weight', n_power_iterations=1, eps=1e-12, dim=None"
SPECTRAL_TO = "({module}, name={name}, n_power_iterations={n_power_iterations}, eps={eps}, dim={dim}, rngs={rngs})"

ROWS = (
    Op("torch.nn.utils.weight_norm", WEIGHT, "vendored.weight_norm({module}, name={name}, dim={dim})", returns=""),
    # The power iteration starts at a random vector, hence `draws`.
    Op("torch.nn.utils.spectral_norm", SPECTRAL, f"vendored.spectral_norm{SPECTRAL_TO}", returns="", draws=True),
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
)
