"""The padding stands at the top and left only, two wide.

original: conv_net
family: padding sides
place: stem
"""

import jax
from flax import nnx
from nnx_layers_jax import Conv2d, ConvTranspose2d, LeakyReLU, ReLU6


class TopLeft(Conv2d):
    def __call__(self, x):
        names = ("NCHW", "OIHW", "NCHW")
        padding = ((2, 0), (2, 0))
        return jax.lax.conv_general_dilated(x, self.weight, (2, 2), padding, dimension_numbers=names) + self.bias[...][:, None, None]


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.stem = TopLeft(4, 8, 3, stride=2, padding=1, rngs=rngs)
        self.dilated = Conv2d(8, 8, 3, padding=2, dilation=2, groups=2, rngs=rngs)
        self.depthwise = Conv2d(8, 8, 3, padding=1, groups=8, rngs=rngs)
        self.up = ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, rngs=rngs)
        self.relu6 = ReLU6()
        self.leaky = LeakyReLU(0.2)

    def __call__(self, x):
        h = self.relu6(self.stem(x))
        h = self.leaky(self.dilated(h))
        h = h + self.depthwise(h)
        return self.up(h)
