"""The whole network runs channels last.

original: vgg
family: NHWC inside
"""

import jax
from flax import nnx
from nnx_layers_jax import AvgPool2d, Conv2d, Linear, MaxPool2d, ReLU, Sequential, Softplus


class M(nnx.Module):
    def __init__(self, classes=5, *, rngs):
        self.features = Sequential(
            Conv2d(3, 6, 3, padding=1, rngs=rngs), ReLU(), MaxPool2d(2), Conv2d(6, 8, 5, rngs=rngs), Softplus(), AvgPool2d(2)
        )
        self.fc = Linear(8, classes, rngs=rngs)

    def __call__(self, x):
        first, second = self.features.layers[0], self.features.layers[3]
        names = ("NHWC", "HWIO", "NHWC")
        h = x.transpose(0, 2, 3, 1)
        h = jax.lax.conv_general_dilated(h, first.weight.transpose(2, 3, 1, 0), (1, 1), "SAME", dimension_numbers=names) + first.bias[...]
        h = nnx.max_pool(jax.nn.relu(h), (2, 2), (2, 2))
        h = (
            jax.lax.conv_general_dilated(h, second.weight.transpose(2, 3, 1, 0), (1, 1), "VALID", dimension_numbers=names)
            + second.bias[...]
        )
        h = nnx.avg_pool(jax.nn.softplus(h), (2, 2), (2, 2)).transpose(0, 3, 1, 2)
        return jax.nn.log_softmax(self.fc(h.reshape(h.shape[0], 8)), axis=1)
