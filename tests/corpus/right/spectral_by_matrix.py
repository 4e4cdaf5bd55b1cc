"""The shifted transform as a product with a matrix.

original: spectral
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        draw = jax.random.normal(rngs.params(), (2, 9)) * 0.3 / 2**0.5
        self.filter = nnx.Param(draw[0] + 1j * draw[1])
        n = jnp.arange(16)
        self.window = nnx.Variable(0.5 - 0.5 * jnp.cos(2 * jnp.pi * n / 16))

    def __call__(self, x):
        spectrum = jnp.fft.rfft(x, norm="ortho")
        y = jnp.fft.irfft(spectrum * self.filter[...], n=16, norm="ortho")
        window = self.window[...]
        amplitudes = jnp.fft.rfft(x * window)
        power = (amplitudes.real**2 + amplitudes.imag**2) / (window**2).sum()
        n = x.shape[-1]
        k = (np.arange(n) + (n + 1) // 2) % n
        shifted = x @ jnp.asarray(np.exp(-2j * np.pi * np.outer(np.arange(n), k) / n))
        return y, jnp.log(power + 1e-6), shifted.real, jnp.conj(shifted).imag
