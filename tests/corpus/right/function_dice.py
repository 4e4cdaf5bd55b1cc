"""A port line by line.

original: function_dice
family: plain port
"""

import math

import jax
import jax.numpy as jnp


def f(pred, target, smooth=1.0, reduction="mean"):
    flat = (*pred.shape[:2], math.prod(pred.shape[2:]))
    pred = jax.nn.sigmoid(pred).reshape(flat)
    target = target.reshape(flat).astype(jnp.float32)
    inter = jnp.sum(pred * target, axis=-1)
    loss = 1 - (2 * inter + smooth) / (jnp.sum(pred, axis=-1) + jnp.sum(target, axis=-1) + smooth)
    if reduction == "mean":
        return jnp.mean(loss)
    if reduction == "sum":
        return jnp.sum(loss)
    return loss
