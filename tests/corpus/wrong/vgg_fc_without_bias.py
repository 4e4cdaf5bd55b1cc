"""The last bias is taken off again.

original: vgg
family: ignored parameter
place: .
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
        h = self.features(x)
        return jax.nn.log_softmax(self.fc(h.reshape(h.shape[0], 8)) - self.fc.bias[...], axis=1)
