"""Fractional max pooling: windows of one size whose places are random but cover the input evenly."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.vendored.numeric import to_tuple, value_of


def fractional_starts(samples: jax.Array, size: int, windows: int, kernel: int) -> jax.Array:
    """Where the windows of one axis start: random numbers (N, C) in [0, 1) → (N, C, windows)."""
    alpha = (size - kernel) / (windows - 1) if windows > 1 else 0.0
    sample = samples[..., None]
    steps = np.arange(windows - 1)
    starts = jnp.floor((steps + sample) * alpha) - jnp.floor(sample * alpha)
    last = jnp.full((*samples.shape, 1), size - kernel, starts.dtype)
    return jnp.concatenate([starts, last], axis=-1).astype(int)


def fractional_max_pool(
    input: jax.Array, kernel_size: Sequence[int], output_size: Sequence[int], samples: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The maximum over random windows of the last axes of (N, C, …), and its flat index.

    `samples` is (N, C, axes), in two dimensions last axis first.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
    """
    spatial, sizes = len(kernel_size), input.shape[2:]
    flat = jnp.zeros((*input.shape[:2], *[1] * (2 * spatial)), int)
    for axis in range(spatial):
        order = 1 - axis if spatial == 2 else axis
        starts = fractional_starts(samples[..., order], sizes[axis], output_size[axis], kernel_size[axis])
        places = starts[..., None] + np.arange(kernel_size[axis])
        shape = [1] * (2 * spatial)
        shape[axis], shape[spatial + axis] = output_size[axis], kernel_size[axis]
        flat = flat * sizes[axis] + places.reshape(*input.shape[:2], *shape)
    index = flat.reshape(*input.shape[:2], int(np.prod(output_size)), int(np.prod(kernel_size)))
    rows = input.reshape(*input.shape[:2], 1, int(np.prod(sizes)))
    windows = jnp.take_along_axis(rows, index, axis=-1)
    best = jnp.argmax(windows, axis=-1, keepdims=True)
    outputs = (jnp.take_along_axis(x, best, axis=-1).reshape(*input.shape[:2], *output_size) for x in (windows, index))
    return next(outputs), next(outputs)


def random_max_pool(
    input: jax.Array,
    spatial: int,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    *,
    key: jax.Array | None = None,
    samples: jax.Array | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The maximum over windows of (N, C, …) or (C, …) that lie at random, from `key`, or by `samples` (N, C, axes) in [0, 1).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
    """
    batch = input if input.ndim == spatial + 2 else input[None]
    if output_size is None:
        ratios = (output_ratio,) * spatial if isinstance(output_ratio, (int, float)) else tuple(output_ratio or ())
        output_size = [int(size * ratio) for size, ratio in zip(batch.shape[2:], ratios, strict=True)]
    if samples is None:
        assert key is not None
        samples = jax.random.uniform(key, (*batch.shape[:2], spatial), batch.dtype)
    values, indices = fractional_max_pool(batch, to_tuple(kernel_size, spatial), to_tuple(output_size, spatial), samples)
    values, indices = (values, indices) if batch is input else (values[0], indices[0])
    return (values, indices) if return_indices else values


class FractionalMaxPoolNd(nnx.Module):
    """The maximum over random windows; a fixed output size, or a fraction of the input's.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
    """

    spatial = 0

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: jax.Array | None = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__} needs an output size or an output ratio, and not both")
        self.kernel_size, self.return_indices = to_tuple(kernel_size, self.spatial), return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self._random_samples = nnx.data(None if _random_samples is None else nnx.Variable(_random_samples))
        self.rngs = rngs

    def __call__(self, input: jax.Array) -> jax.Array | tuple[jax.Array, jax.Array]:
        x = input if input.ndim == self.spatial + 2 else input[None]
        samples = value_of(self._random_samples)
        if samples is None:
            samples = jax.random.uniform(self.rngs.dropout(), (*x.shape[:2], self.spatial), x.dtype)
        values, indices = fractional_max_pool(x, self.kernel_size, self.size_for(x), samples[: len(x)])
        if input.ndim < x.ndim:
            values, indices = values[0], indices[0]
        return (values, indices) if self.return_indices else values

    def size_for(self, input: jax.Array) -> tuple[int, ...]:
        """The output size for this input."""
        if self.output_size is not None:
            return to_tuple(self.output_size, self.spatial)
        ratio = self.output_ratio
        ratios = [ratio] * self.spatial if isinstance(ratio, (int, float)) else list(ratio or ())
        return tuple(int(size * part) for size, part in zip(input.shape[2:], ratios, strict=True))


class FractionalMaxPool2d(FractionalMaxPoolNd):
    """Over (N, C, H, W) or (C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html"""

    spatial = 2


class FractionalMaxPool3d(FractionalMaxPoolNd):
    """Over (N, C, D, H, W) or (C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool3d.html"""

    spatial = 3
