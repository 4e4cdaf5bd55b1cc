from .layers import ConvBN, DropPath, Mlp
from .resnet import BasicBlock, Bottleneck, ResNet, resnet10, resnet_bottleneck
from .vit import Attention, PatchEmbed, TransformerBlock, VisionTransformer, vit_micro

__all__ = [
    "Attention",
    "BasicBlock",
    "Bottleneck",
    "ConvBN",
    "DropPath",
    "Mlp",
    "PatchEmbed",
    "ResNet",
    "TransformerBlock",
    "VisionTransformer",
    "resnet10",
    "resnet_bottleneck",
    "vit_micro",
]
