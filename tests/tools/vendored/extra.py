"""Constructions and calls of layers that `module_db` lacks or knows too little of. Data only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import FunctionInput, ModuleInfo, ModuleInput


def _numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def _integers(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape)


def _pooled(layer: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(layer(x))


EXTRA: list[tuple[type[nn.Module], tuple[Any, ...], dict[str, Any], Any]] = [
    (nn.Upsample, (), {"scale_factor": 2}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Upsample, ((7, 9),), {"mode": "bilinear"}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Upsample, ((3, 9),), {"mode": "bilinear", "align_corners": True}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Upsample, (), {"scale_factor": (1.5, 2.6), "mode": "bicubic"}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Upsample, ((2, 9),), {"mode": "bicubic", "align_corners": True}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Upsample, (), {"scale_factor": 1.7, "mode": "trilinear"}, lambda: (_numbers(1, 2, 3, 4, 5),)),
    (nn.Upsample, (), {"scale_factor": 1.7, "mode": "linear", "recompute_scale_factor": True}, lambda: (_numbers(2, 3, 7),)),
    (nn.Upsample, (5,), {"mode": "nearest-exact"}, lambda: (_numbers(2, 3, 7),)),
    (nn.Upsample, (5,), {"mode": "area"}, lambda: (_numbers(2, 3, 7),)),
    (nn.UpsamplingNearest2d, (), {"scale_factor": 1.3}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.UpsamplingBilinear2d, ((5, 9),), {}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Fold, ((5, 6), (2, 3)), {"stride": 2, "padding": 1, "dilation": 2}, lambda: (_numbers(2, 12, 6),)),
    (nn.Fold, (4, 2), {}, lambda: (_numbers(8, 9),)),
    (nn.Unfold, ((2, 3),), {"stride": 2, "padding": 1, "dilation": 2}, lambda: (_numbers(2, 3, 6, 7),)),
    (nn.Unfold, (2,), {}, lambda: (_numbers(3, 4, 4),)),
    (nn.PixelShuffle, (2,), {}, lambda: (_numbers(2, 8, 3, 4),)),
    (nn.PixelUnshuffle, (2,), {}, lambda: (_numbers(2, 3, 4, 6),)),
    (nn.ChannelShuffle, (2,), {}, lambda: (_numbers(2, 6, 3, 4),)),
    (nn.Flatten, (), {}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Flatten, (0, -2), {}, lambda: (_numbers(2, 3, 4, 5),)),
    (nn.Unflatten, (1, (2, -1)), {}, lambda: (_numbers(2, 6, 4),)),
    (nn.Identity, (54,), {"unused": 1}, lambda: (_numbers(2, 6),)),
    (nn.CosineSimilarity, (), {}, lambda: (_numbers(4, 6), _numbers(4, 6))),
    (nn.CosineSimilarity, (-1, 3.0), {}, lambda: (_numbers(4, 6), _numbers(1, 6))),
    (nn.PairwiseDistance, (), {}, lambda: (_numbers(4, 6), _numbers(4, 6))),
    (nn.PairwiseDistance, (3.0, 1e-3, True), {}, lambda: (_numbers(4, 6), _numbers(4, 6))),
    (nn.TripletMarginLoss, (), {}, lambda: (_numbers(4, 6), _numbers(4, 6), _numbers(4, 6))),
    (nn.TripletMarginLoss, (0.5, 1.0), {"swap": True, "reduction": "none"}, lambda: (_numbers(4, 6), _numbers(4, 6), _numbers(4, 6))),
    (nn.TripletMarginWithDistanceLoss, (), {}, lambda: (_numbers(4, 6), _numbers(4, 6), _numbers(4, 6))),
    (nn.MSELoss, (), {"size_average": False}, lambda: (_numbers(4, 6), _numbers(4, 6))),
    (nn.L1Loss, (), {"reduce": False}, lambda: (_numbers(4, 6), _numbers(4, 6))),
    (nn.CrossEntropyLoss, (), {"label_smoothing": 0.1, "ignore_index": 1}, lambda: (_numbers(5, 3, 4), _integers(3, 5, 4))),
    (nn.Embedding, (7, 4, 2), {}, lambda: (_integers(7, 3, 5),)),
    (nn.Embedding, (7, 4, -1), {"scale_grad_by_freq": True}, lambda: (_integers(7, 3, 5),)),
    (nn.EmbeddingBag, (7, 4), {}, lambda: (_integers(7, 3, 5),)),
    (nn.EmbeddingBag, (7, 4), {"mode": "sum", "padding_idx": 2}, lambda: (_integers(7, 3, 5),)),
    (nn.EmbeddingBag, (7, 4), {"mode": "max"}, lambda: (_integers(7, 9), torch.tensor([0, 3, 3, 7]))),
    (nn.EmbeddingBag, (7, 4), {"include_last_offset": True}, lambda: (_integers(7, 9), torch.tensor([0, 3, 7, 9]))),
    (nn.EmbeddingBag, (7, 4), {"mode": "sum"}, lambda: (_integers(7, 3, 5), None, _numbers(3, 5))),
    (nn.MaxPool1d, (3, 2, 1), {"dilation": 2}, lambda: (_numbers(2, 3, 11),)),
    (nn.MaxPool2d, (3,), {"stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}, lambda: (_numbers(2, 3, 8, 9),)),
    (nn.MaxPool3d, ((1, 2, 2),), {"dilation": (1, 2, 1)}, lambda: (_numbers(1, 2, 3, 6, 5),)),
    (nn.MaxUnpool1d, (2,), {}, lambda: _pooled(nn.MaxPool1d(2, return_indices=True), _numbers(2, 3, 8))),
    (nn.MaxUnpool2d, (2, 2, 1), {}, lambda: _pooled(nn.MaxPool2d(2, 2, 1, return_indices=True), _numbers(2, 3, 6, 8))),
    (nn.MaxUnpool3d, (2,), {}, lambda: _pooled(nn.MaxPool3d(2, return_indices=True), _numbers(2, 4, 4, 6))),
    (nn.AvgPool2d, (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, lambda: (_numbers(2, 3, 8, 9),)),
    (nn.AvgPool2d, (3, 2, 1), {"ceil_mode": True, "count_include_pad": False}, lambda: (_numbers(2, 3, 8, 8),)),
    (nn.AdaptiveAvgPool2d, ((3, None),), {}, lambda: (_numbers(2, 3, 8, 5),)),
    (nn.AdaptiveMaxPool2d, ((3, 4),), {"return_indices": True}, lambda: (_numbers(2, 3, 8, 9),)),
    (nn.Conv2d, (4, 6, (3, 2)), {"padding": "same", "dilation": 2, "padding_mode": "reflect"}, lambda: (_numbers(2, 4, 7, 8),)),
    (nn.Conv2d, (4, 6, 3, 2, 1), {"padding_mode": "circular", "groups": 2, "bias": False}, lambda: (_numbers(2, 4, 7, 8),)),
    (nn.Conv1d, (4, 8, 4), {"padding": "same", "groups": 4}, lambda: (_numbers(2, 4, 9),)),
    (nn.Conv3d, (2, 4, 2), {"padding": (0, 1, 2), "padding_mode": "replicate"}, lambda: (_numbers(1, 2, 3, 4, 5),)),
    (nn.ConvTranspose2d, (4, 6, 3, 2, 1, 1, 2), {"dilation": 2}, lambda: (_numbers(2, 4, 5, 6),)),
    (nn.ConvTranspose1d, (4, 6, 3), {"stride": 2}, lambda: (_numbers(2, 4, 5), [12])),
    (nn.BatchNorm2d, (3,), {"track_running_stats": False, "affine": False}, lambda: (_numbers(4, 3, 5, 6),)),
    (nn.BatchNorm1d, (3,), {"bias": False}, lambda: (_numbers(4, 3),)),
    (nn.InstanceNorm2d, (3,), {"affine": True, "track_running_stats": True}, lambda: (_numbers(4, 3, 5, 6),)),
    (nn.LayerNorm, ((3, 4),), {"bias": False}, lambda: (_numbers(5, 3, 4),)),
    (nn.RMSNorm, ((3, 4),), {}, lambda: (_numbers(5, 3, 4),)),
    (nn.GLU, (1,), {}, lambda: (_numbers(2, 6, 3),)),
    (nn.Hardsigmoid, (), {}, lambda: (4 * _numbers(5, 7),)),
    (nn.PReLU, (6,), {}, lambda: (_numbers(2, 6, 3),)),
    (nn.LSTM, (3, 4, 2), {"proj_size": 2, "bidirectional": True, "batch_first": True}, lambda: (_numbers(2, 5, 3),)),
    (nn.MultiheadAttention, (6, 2), {"kdim": 4, "vdim": 5, "batch_first": True}, lambda: (_numbers(2, 3, 6), _numbers(2, 7, 4), _numbers(2, 7, 5))),
    (nn.MultiheadAttention, (6, 2), {"add_bias_kv": True, "add_zero_attn": True}, lambda: (
        _numbers(3, 2, 6), _numbers(7, 2, 6), _numbers(7, 2, 6), torch.arange(7).expand(2, 7) > 4, True, None, False)),
    (nn.MultiheadAttention, (6, 2), {"add_bias_kv": True}, lambda: (
        _numbers(3, 2, 6), _numbers(7, 2, 6), _numbers(7, 2, 6), None, False, _numbers(4, 3, 7))),
    (nn.TransformerDecoder, (nn.TransformerDecoderLayer(6, 2, 8, 0.0, dtype=torch.float64), 2), {}, lambda: (_numbers(3, 2, 6), _numbers(4, 2, 6))),
]  # fmt: skip
"""Class, positional and keyword arguments of the constructor, and what makes the arguments of the call."""


def extra_infos() -> list[ModuleInfo]:
    """One `ModuleInfo` for each entry, run in training and eval mode."""
    return [
        ModuleInfo(cls, module_inputs_func=_inputs(args, kwargs, call), train_and_eval_differ="Norm" in cls.__name__)  # type: ignore[no-untyped-call]
        for cls, args, kwargs, call in EXTRA
    ]


def _inputs(args: tuple[Any, ...], kwargs: dict[str, Any], call: Any) -> Any:
    def samples(*_: Any, **__: Any) -> list[ModuleInput]:
        return [ModuleInput(FunctionInput(*args, **kwargs), FunctionInput(*call()))]  # type: ignore[no-untyped-call]

    return samples
