"""Random keys whose numbers are cheap to trace and compile, for the initial values of many constructions. Used inside the sandbox.

jax's own generators, written out for each shape that is drawn, are most of what there is to compile in a constructor. Here a number is its index
and the key's two words put through a mixing function of 32 bits twice: C. Wellons, "Prospecting for Hash Functions" (2018), `lowbias32`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

WORD: Final = np.uint32
STRIDE: Final = WORD(0x9E3779B9)
"""Odd, so that different indices stay different; 2**32 by the golden ratio."""
SPLIT, FOLD = WORD(0x51ED2701), WORD(0x3C6EF372)
"""Where the indices of new keys start, apart from those of numbers."""
NARROWER = {8: np.uint8, 16: np.uint16}


def _mixed(word: Any) -> Any:
    word = word ^ (word >> WORD(16))
    word = word * WORD(0x7FEB352D)
    word = word ^ (word >> WORD(15))
    word = word * WORD(0x846CA68B)
    return word ^ (word >> WORD(16))


def _number(key: Any, index: Any) -> Any:
    """The 32 random bits of this index."""
    return _mixed(_mixed(index * STRIDE + key[0]) ^ key[1])


def _words(seed: Any) -> list[Any]:
    """The two words of a seed's key."""
    return [_mixed(seed + STRIDE), _mixed(seed ^ FOLD)]


def _seed(seed: Any) -> Any:
    return jnp.stack(_words(jnp.asarray(seed).astype(WORD)))


def _split(key: Any, shape: Sequence[int]) -> Any:
    return _number(key, jnp.arange(2 * math.prod(shape), dtype=WORD) + SPLIT).reshape(*shape, 2)


def _fold_in(key: Any, data: Any) -> Any:
    index = jnp.asarray(data).astype(WORD) * WORD(2) + FOLD
    return jnp.stack([_number(key, index), _number(key, index + WORD(1))])


def _random_bits(key: Any, width: int, shape: Sequence[int]) -> Any:
    index = jnp.arange(math.prod(shape), dtype=WORD).reshape(shape)
    if width == 64:
        high, low = (_number(key, index * WORD(2) + WORD(part)).astype(np.uint64) for part in (0, 1))
        return (high << np.uint64(32)) | low
    bits = _number(key, index)
    return bits if width == 32 else (bits >> WORD(32 - width)).astype(NARROWER[width])


QUICK: Final[Hashable] = define_prng_impl(
    key_shape=(2,), seed=_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name="migrate_agent_quick", tag="mq"
)
"""The implementation, as `jax.random.key(seed, impl=QUICK)` takes it."""


def keys(seeds: Any) -> Any:
    """`jax.random.key(seed, impl=QUICK)` of each seed, in one array, with nothing to compile."""
    return _wrapped(np.stack(_words(np.asarray(seeds).astype(WORD)), axis=-1))


def no_key(shape: Sequence[int]) -> Any:
    """A key array of this shape, of zeros."""
    return _wrapped(np.zeros((*shape, 2), WORD))


def _wrapped(words: Any) -> Any:
    return jax.random.wrap_key_data(words, impl=QUICK)
