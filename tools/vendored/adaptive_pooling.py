"""Adaptive pooling with PyTorch's windows, which may overlap and differ in length."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.vendored.numeric import promote_half
from migrate_agent.tools.vendored.pooling import max_of_windows
from migrate_agent.tools.vendored.windows import adaptive_index


def adaptive_sizes(input: jax.Array, spatial: int, output_size: int | Sequence[int | None]) -> list[int]:
    """The output size for each pooled axis; `None` keeps the input's."""
    wanted = [output_size] * spatial if isinstance(output_size, int) else list(output_size)
    wanted = wanted * spatial if len(wanted) == 1 else wanted
    return [have if want is None else int(want) for have, want in zip(input.shape[-spatial:], wanted, strict=True)]


def adaptive_avg_pool(input: jax.Array, spatial: int, output_size: int | Sequence[int | None]) -> jax.Array:
    """The mean over each adaptive window of the last `spatial` axes.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool2d.html
    """
    x = promote_half(input)
    for axis, windows in zip(range(-spatial, 0), adaptive_sizes(input, spatial, output_size), strict=True):
        x = jnp.moveaxis(mean_of_windows(jnp.moveaxis(x, axis, -1), windows), -1, axis)
    return x.astype(input.dtype)


def mean_of_windows(x: jax.Array, windows: int) -> jax.Array:
    """(…, L) → (…, windows)."""
    size = x.shape[-1]
    if windows and size % windows == 0:
        return x.reshape(*x.shape[:-1], windows, size // windows).mean(-1)
    index = adaptive_index(size, windows)
    inside = index >= 0
    return jnp.where(inside, x[..., np.where(inside, index, 0)], 0).sum(-1) / inside.sum(-1).astype(x.dtype)


def adaptive_max_pool(
    input: jax.Array, spatial: int, output_size: int | Sequence[int | None], return_indices: bool = False
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The maximum over each adaptive window of the last `spatial` axes, and on request its flat index among these axes.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_max_pool2d.html
    """
    sizes = adaptive_sizes(input, spatial, output_size)
    tables = [adaptive_index(have, want) for have, want in zip(input.shape[-spatial:], sizes, strict=True)]
    values, indices = max_of_windows(input, tables)
    return (values, indices) if return_indices else values
