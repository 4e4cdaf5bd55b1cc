"""The vendored losses.

original: losses
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import (
    binary_cross_entropy_with_logits,
    cosine_similarity,
    cross_entropy,
    huber_loss,
    kl_div,
    log_softmax,
    margin_ranking_loss,
    smooth_l1_loss,
)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.weight = nnx.Variable(jnp.array([1.0, 2.0, 0.5, 1.5, 0.25]))

    def __call__(self, logits, labels, soft):
        return {
            "ce": cross_entropy(logits, labels, weight=self.weight[...], label_smoothing=0.1),
            "bce": binary_cross_entropy_with_logits(logits, soft, pos_weight=self.weight[...]),
            "kl": kl_div(log_softmax(logits, -1), jax.nn.softmax(soft, axis=-1), reduction="batchmean"),
            "smooth": smooth_l1_loss(logits, soft, beta=0.5),
            "huber": huber_loss(logits, soft, delta=0.5, reduction="sum"),
            "margin": margin_ranking_loss(logits[:, 0], logits[:, 1], jnp.ones_like(soft[:, 0]), margin=0.2),
            "cosine": 1 - cosine_similarity(logits, soft, dim=-1).mean(),
        }
