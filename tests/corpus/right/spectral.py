"""The plain port.

original: spectral
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.filter = nnx.Param(0.3 * jax.random.normal(rngs.params(), (9,), jnp.complex64))
        n = jnp.arange(16)
        self.window = nnx.Variable(0.5 - 0.5 * jnp.cos(2 * jnp.pi * n / 16))

    def __call__(self, x):
        spectrum = jnp.fft.rfft(x, norm="ortho")
        y = jnp.fft.irfft(spectrum * self.filter[...], n=16, norm="ortho")
        window = self.window[...]
        amplitudes = jnp.fft.rfft(x * window)
        power = (amplitudes.real**2 + amplitudes.imag**2) / (window**2).sum()
        shifted = jnp.fft.fftshift(jnp.fft.fft(x, axis=-1), axes=-1)
        return y, jnp.log(power + 1e-6), shifted.real, jnp.conj(shifted).imag
