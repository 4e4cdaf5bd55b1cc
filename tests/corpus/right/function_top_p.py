"""The places are inverted by sorting them.

original: function_top_p
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from jax import lax


def f(logits, top_k=0, top_p=1.0, filter_value=float("-inf")):
    if top_k > 0:
        least = lax.top_k(logits, min(top_k, logits.shape[-1]))[0][..., -1:]
        logits = jnp.where(logits < least, filter_value, logits)
    if top_p < 1.0:
        places = jnp.argsort(logits, axis=-1, descending=True, stable=True)
        ordered = jnp.take_along_axis(logits, places, axis=-1)
        total = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
        remove = total > top_p
        remove = jnp.concatenate([jnp.zeros_like(remove[..., :1]), remove[..., :-1]], axis=-1)
        remove = jnp.take_along_axis(remove, jnp.argsort(places, axis=-1), axis=-1)
        logits = jnp.where(remove, filter_value, logits)
    return logits
