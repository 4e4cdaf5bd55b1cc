"""torch's own encoder layer and multi-head attention with a padding mask.

call: torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
"""

from torch import nn


class M(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.cross = nn.MultiheadAttention(d, 2, batch_first=True)

    def forward(self, x, padded):
        h = self.layer(x, src_key_padding_mask=padded)
        y, weights = self.cross(h, x, x, key_padding_mask=padded)
        return y, weights
