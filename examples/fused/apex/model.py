"""An encoder layer in the style of code written around apex: its fused layer norm, RMS norm and cross entropy where they are installed."""

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from apex.normalization import FusedLayerNorm

    has_fused_layernorm = True
except ImportError:
    has_fused_layernorm = False

try:
    from apex.normalization import FusedRMSNorm as RMSNorm
except ImportError:
    from torch.nn import RMSNorm

try:
    from apex.contrib.xentropy import SoftmaxCrossEntropyLoss
except ImportError:
    SoftmaxCrossEntropyLoss = None


def LayerNorm(normalized_shape, eps=1e-5, elementwise_affine=True):
    if has_fused_layernorm:
        return FusedLayerNorm(normalized_shape, eps, elementwise_affine)
    return nn.LayerNorm(normalized_shape, eps, elementwise_affine)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.attention_norm = LayerNorm(dim, eps=1e-12)
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)
        self.final_norm = RMSNorm(dim, eps=1e-6)

    def forward(self, x):
        y, _ = self.attention(x, x, x, need_weights=False)
        x = self.attention_norm(x + y)
        return self.final_norm(x + self.fc2(F.gelu(self.fc1(x))))


class MaskedLanguageModel(nn.Module):
    """Returns the loss; words of `padding` do not count."""

    def __init__(self, words, dim, heads, smoothing=0.1, padding=0):
        super().__init__()
        self.smoothing, self.padding = smoothing, padding
        self.embed = nn.Embedding(words, dim)
        self.layer = EncoderLayer(dim, heads, 2 * dim)
        self.head = nn.Linear(dim, words)

    def forward(self, tokens, labels):
        logits = self.head(self.layer(self.embed(tokens))).flatten(0, 1)
        labels = labels.flatten()
        if SoftmaxCrossEntropyLoss is not None:
            losses = SoftmaxCrossEntropyLoss.apply(logits, labels, self.smoothing, self.padding, True)
        else:
            losses = F.cross_entropy(
                logits.float(), labels, ignore_index=self.padding, label_smoothing=self.smoothing, reduction="none"
            )
        return losses.sum() / (labels != self.padding).sum()
