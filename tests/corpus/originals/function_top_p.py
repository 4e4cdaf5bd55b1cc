"""Logits outside the nucleus, or below the k highest, become minus infinity.

kind: function
call: torch.randn(3, 7), 3
call: torch.randn(3, 7), 0, 0.7
"""

import torch


def f(logits, top_k=0, top_p=1.0, filter_value=float("-inf")):
    if top_k > 0:
        least = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1:]
        logits = torch.where(logits < least, filter_value, logits)
    if top_p < 1.0:
        ordered, places = torch.sort(logits, descending=True, stable=True)
        total = torch.softmax(ordered, dim=-1).cumsum(dim=-1)
        remove = total > top_p
        remove = torch.cat([torch.zeros_like(remove[..., :1]), remove[..., :-1]], dim=-1)
        logits = logits.masked_fill(torch.zeros_like(remove).scatter(-1, places, remove), filter_value)
    return logits
