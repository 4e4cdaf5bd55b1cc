"""The bias of the depthwise convolution is subtracted again.

original: conv_net
family: ignored parameter
place: .
"""

from flax import nnx
from nnx_layers_jax import Conv2d, ConvTranspose2d, LeakyReLU, ReLU6


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.stem = Conv2d(4, 8, 3, stride=2, padding=1, rngs=rngs)
        self.dilated = Conv2d(8, 8, 3, padding=2, dilation=2, groups=2, rngs=rngs)
        self.depthwise = Conv2d(8, 8, 3, padding=1, groups=8, rngs=rngs)
        self.up = ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, rngs=rngs)
        self.relu6 = ReLU6()
        self.leaky = LeakyReLU(0.2)

    def __call__(self, x):
        h = self.relu6(self.stem(x))
        h = self.leaky(self.dilated(h))
        h = h + self.depthwise(h) - self.depthwise.bias[...][:, None, None]
        return self.up(h)
