"""torch's CPU generator without torch: the same integers, permutations and uniform numbers by seed, normal numbers to float32's rounding."""

from __future__ import annotations

import math
import struct
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class TorchGenerator:
    """A stream of random numbers in the order of `torch.Generator` on the CPU (https://pytorch.org/docs/stable/generated/torch.Generator.html).

    `device` is ignored. Draws are float32 or int64 arrays of the shape that is asked for, as numbers or as one sequence.
    """

    def __init__(self, device: Any = None) -> None:
        self.seed()

    def manual_seed(self, seed: int) -> TorchGenerator:
        """Start the stream of this seed; gives the generator."""
        self._seed = int(seed) % 2**64
        self._spare: float | None = None
        self._streams = 0
        self._bits = np.random.MT19937()
        # NumPy's other seedings mix the seed; torch's is the original one of 32 bits.
        self._bits._legacy_seeding(self._seed & 0xFFFFFFFF)
        return self

    def seed(self) -> int:
        """Start a stream that nobody knows; gives its seed."""
        words = np.random.SeedSequence().generate_state(2)
        return self.manual_seed(int(words[0]) << 21 | int(words[1]) >> 11)._seed

    def rngs(self) -> nnx.Rngs:
        """Streams of JAX for one module: other ones with each call, and the same ones after the same seed. Takes no number of this stream."""
        self._streams += 1
        return nnx.Rngs(jax.random.fold_in(jax.random.key(self._seed & 0xFFFFFFFF), self._streams))

    def initial_seed(self) -> int:
        """The seed that the stream began with."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """Where the stream stands, for `set_state`."""
        return {"seed": self._seed, "spare": self._spare, "bits": self._bits.state}

    def set_state(self, state: Any) -> TorchGenerator:
        """Go on where `get_state` was asked, or torch's `get_rng_state()`; gives the generator."""
        if not isinstance(state, dict):
            return self.set_torch_state(state)
        self._seed, self._spare, self._bits.state = state["seed"], state["spare"], state["bits"]
        return self

    def set_torch_state(self, state: Any) -> TorchGenerator:
        """Go on where `torch.get_rng_state()` was asked, whose bytes these are, uint8 (5056,); gives the generator."""
        data = np.asarray(state, np.uint8).tobytes()
        # A C structure: seed, how many numbers are left, a flag, the next one's place, the words, and the spare normal number.
        self._seed, left, _, place = struct.unpack_from("<QiiQ", data, 0)
        words = np.frombuffer(data, np.uint64, 624, 24).astype(np.uint32)
        _, spare, _, valid = struct.unpack_from("<dddi", data, 24 + 624 * 8)
        self._spare = spare if valid else None
        self._bits = np.random.MT19937()
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 624 if left == 1 else place}}
        return self

    def integer(self) -> int:
        """One integer of 63 bits, which torch draws as the seed of a further stream."""
        return int(self._wide(1)[0] % np.uint64(2**63))

    def permutation(self, n: int) -> np.ndarray[Any, Any]:
        """`randperm` as a NumPy array, int64 (n,)."""
        order = list(range(n))
        for i, number in enumerate(self._bits.random_raw(max(n - 1, 0)).tolist()):
            j = i + (number & 0xFFFFFFFF) % (n - i)
            order[i], order[j] = order[j], order[i]
        return np.array(order, np.int64)

    def randperm(self, n: int) -> jax.Array:
        """`torch.randperm`."""
        return jnp.asarray(self.permutation(n))

    def randint(self, low: int, high: Any = None, size: Any = None) -> jax.Array:
        """`torch.randint`; like there, the lower bound may be left out."""
        if size is None:
            low, high, size = 0, low, high
        return jnp.asarray(self.integers(int(low), int(high), size))

    def integers(self, low: int, high: int, size: Any) -> np.ndarray[Any, Any]:
        """`randint` as a NumPy array, int64 of the shape `size`."""
        span, count = high - low, math.prod(size)
        # torch goes over to two words a number where the remainder would be skewed.
        raw = self._wide(count) if span >= 2**28 else self._words(count)
        return low + (raw % np.uint64(span)).astype(np.int64).reshape(size)

    def rand(self, *size: Any, dtype: Any = None) -> jax.Array:
        """`torch.rand`, float32 or what `dtype` says: in double precision the numbers are others."""
        numbers = self._wide_uniform(math.prod(_shape(size))) if _is_wide(dtype) else self._uniform(math.prod(_shape(size)))
        return jnp.asarray(numbers.reshape(_shape(size)), jnp.float32 if dtype is None else dtype)

    def randn(self, *size: Any, dtype: Any = None) -> jax.Array:
        """`torch.randn`, float32 or what `dtype` says: in double precision the numbers are others."""
        numbers = self._normal(math.prod(_shape(size)), _is_wide(dtype))
        return jnp.asarray(numbers.reshape(_shape(size)), jnp.float32 if dtype is None else dtype)

    def normal(self, mean: Any, std: Any = 1.0, size: Any = None) -> jax.Array:
        """`torch.normal`; mean and deviation may be arrays, and numbers come with a size."""
        shape = jnp.broadcast_shapes(jnp.shape(mean), jnp.shape(std)) if size is None else size
        return jnp.asarray(mean) + jnp.asarray(std) * self.randn(*shape)

    def multinomial(self, weights: Any, num_samples: int) -> jax.Array:
        """`torch.multinomial` without replacement, or of one index a row: int64 (…, num_samples).

        Torch takes the indices where weight over an exponential number is largest
        (https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/Distributions.cpp).
        """
        weights = np.asarray(weights)
        shares = weights / self._exponential(weights.size).astype(weights.dtype).reshape(weights.shape)
        return jnp.asarray(np.argsort(-shares, axis=-1, kind="stable")[..., :num_samples])

    def categorical(self, probs: Any) -> jax.Array:
        """One sample of each row of probabilities, as `torch.distributions.Categorical(probs).sample()`: int64 (…)."""
        return self.multinomial(probs, 1)[..., 0]

    def _words(self, count: int) -> np.ndarray[Any, Any]:
        return self._bits.random_raw(count).astype(np.uint64) & np.uint64(0xFFFFFFFF)

    def _wide(self, count: int) -> np.ndarray[Any, Any]:
        words = self._words(2 * count)
        return (words[::2] << np.uint64(32)) | words[1::2]

    def _uniform(self, count: int) -> np.ndarray[Any, Any]:
        return (self._words(count) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2**-24)

    def _exponential(self, count: int) -> np.ndarray[Any, Any]:
        return -np.log1p(-(self._wide(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53)

    def _wide_uniform(self, count: int) -> np.ndarray[Any, Any]:
        uniform: np.ndarray[Any, Any] = (self._wide(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53
        return uniform

    def _normal(self, count: int, wide: bool = False) -> np.ndarray[Any, Any]:
        if count < 16:
            return np.array([self._normal_number() for _ in range(count)], np.float64 if wide else np.float32)
        draw = self._wide_uniform if wide else self._uniform
        uniform = draw(count)
        if count % 16:
            # The last block of sixteen is drawn anew and overlaps the one before it.
            return np.concatenate([_box_muller(uniform[: count // 16 * 16])[: count - 16], _box_muller(draw(16))])
        return _box_muller(uniform)

    def _normal_number(self) -> float:
        if self._spare is not None:
            number, self._spare = self._spare, None
            return float(number)
        angle, distance = ((self._wide(2) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53).tolist()
        radius = math.sqrt(-2 * math.log1p(-distance))
        self._spare = radius * math.sin(2 * math.pi * angle)
        return radius * math.cos(2 * math.pi * angle)


def _is_wide(dtype: Any) -> bool:
    """Whether a dtype that a draw names is float64: by default torch draws in single precision, whatever the names of dtypes stand for."""
    return dtype is not None and jax.dtypes.canonicalize_dtype(dtype) == jnp.float64


def _box_muller(uniform: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Normal numbers of uniform ones: of each block of sixteen, eight radii and eight angles."""
    # In the dtype of the draw as there: in double precision float32's numbers would lie farther from torch's.
    radius, angle = np.moveaxis(uniform.reshape(-1, 2, 8), 1, 0)
    radius, angle = np.sqrt(uniform.dtype.type(-2) * np.log(1 - radius)), uniform.dtype.type(2 * np.pi) * angle
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


def _shape(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


default_generator = TorchGenerator()
"""The generator of draws that name none."""
