"""Seven losses of one batch of logits, with class weights, an ignored index and label smoothing.

call: torch.randn(6, 5) * 2, torch.tensor([0, 3, -100, 4, 1, 2]), torch.rand(6, 5)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.tensor([1.0, 2.0, 0.5, 1.5, 0.25]))

    def forward(self, logits, labels, soft):
        return {
            "ce": F.cross_entropy(logits, labels, weight=self.weight, label_smoothing=0.1),
            "bce": F.binary_cross_entropy_with_logits(logits, soft, pos_weight=self.weight),
            "kl": F.kl_div(F.log_softmax(logits, -1), soft.softmax(-1), reduction="batchmean"),
            "smooth": F.smooth_l1_loss(logits, soft, beta=0.5),
            "huber": F.huber_loss(logits, soft, delta=0.5, reduction="sum"),
            "margin": F.margin_ranking_loss(logits[:, 0], logits[:, 1], torch.ones_like(soft[:, 0]), margin=0.2),
            "cosine": 1 - F.cosine_similarity(logits, soft, dim=-1).mean(),
        }
