"""What PyTorch's layers do in `reset_parameters`: initial values drawn anew."""

import math
from typing import Any

import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.initialize import init_normal, init_uniform


def reset_affine(layer: Any, *, rngs: nnx.Rngs) -> None:
    """Weight and bias of a linear layer or convolution from U(-b, b) with b = 1 / √fan in.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    """
    weight = layer.weight
    bound = 1 / math.sqrt(max(1, weight.size // weight.shape[0]))
    layer.weight = init_uniform(rngs.params(), weight, -bound, bound)
    if layer.bias is not None:
        layer.bias[...] = init_uniform(rngs.params(), layer.bias[...], -bound, bound)


def reset_embedding(layer: Any, *, rngs: nnx.Rngs) -> None:
    """Rows from N(0, 1), zeros at `padding_idx` (https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html)."""
    weight = init_normal(rngs.params(), layer.weight)
    layer.weight = weight if layer.padding_idx is None else weight.at[layer.padding_idx].set(0)


def reset_normalisation(layer: Any) -> None:
    """Scale one, bias zero, and running statistics as they are before the first batch.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """
    ones, zeros = ("scale", "var"), ("bias", "mean", "num_batches_tracked")
    for names, fill in ((ones, jnp.ones_like), (zeros, jnp.zeros_like)):
        for variable in (getattr(layer, name, None) for name in names):
            if variable is not None:
                variable[...] = fill(variable[...])


def reset_layer(layer: Any, *, rngs: nnx.Rngs) -> None:
    """What the `reset_parameters` of torch does for a linear layer, a convolution, an embedding or a normalisation; of another layer its own."""
    if hasattr(layer, "reset_parameters"):
        layer.reset_parameters(rngs=rngs)
    elif hasattr(layer, "embedding"):
        reset_embedding(layer, rngs=rngs)
    elif hasattr(layer, "kernel"):
        reset_affine(layer, rngs=rngs)
    else:
        reset_normalisation(layer)
