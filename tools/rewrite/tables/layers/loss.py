"""Losses (https://docs.pytorch.org/docs/stable/nn.html#loss-functions)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("torch.nn.modules.loss._Loss", "size_average=None, reduce=None, reduction='mean'", "Loss", samples=("",)),
    Layer(
        "torch.nn.modules.loss._WeightedLoss",
        "weight=None, size_average=None, reduce=None, reduction='mean'",
        "WeightedLoss",
        samples=("", "torch.ones(3)"),
    ),
    Layer("torch.nn.MSELoss", "size_average=None, reduce=None, reduction='mean'", "MSELoss", samples=("",)),
    Layer("torch.nn.L1Loss", "size_average=None, reduce=None, reduction='mean'", "L1Loss", samples=("",)),
    Layer("torch.nn.SmoothL1Loss", "size_average=None, reduce=None, reduction='mean', beta=1.0", "SmoothL1Loss", samples=("",)),
    Layer("torch.nn.HuberLoss", "reduction='mean', delta=1.0", "HuberLoss", samples=("",)),
    Layer("torch.nn.BCELoss", "weight=None, size_average=None, reduce=None, reduction='mean'", "BCELoss", samples=("",)),
    Layer(
        "torch.nn.BCEWithLogitsLoss",
        "weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None",
        "BCEWithLogitsLoss",
        samples=("",),
    ),
    Layer("torch.nn.NLLLoss", "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'", "NLLLoss", samples=("",)),
    Layer(
        "torch.nn.NLLLoss2d", "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'", "NLLLoss", samples=("",)
    ),
    Layer(
        "torch.nn.CrossEntropyLoss",
        "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0",
        "CrossEntropyLoss",
        samples=("",),
    ),
    Layer(
        "torch.nn.LinearCrossEntropyLoss",
        "in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None, reduction='mean', "
        "weight=None, ignore_index=None, label_smoothing=0.0, options=None",
        "LinearCrossEntropyLoss",
        samples=("3, 4",),
    ),
    Layer("torch.nn.KLDivLoss", "size_average=None, reduce=None, reduction='mean', log_target=False", "KLDivLoss", samples=("",)),
    Layer(
        "torch.nn.PoissonNLLLoss",
        "log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'",
        "PoissonNLLLoss",
        samples=("",),
    ),
    Layer("torch.nn.GaussianNLLLoss", "*, full=False, eps=1e-06, reduction='mean'", "GaussianNLLLoss", samples=("",)),
    Layer("torch.nn.MarginRankingLoss", "margin=0.0, size_average=None, reduce=None, reduction='mean'", "MarginRankingLoss", samples=("",)),
    Layer(
        "torch.nn.HingeEmbeddingLoss", "margin=1.0, size_average=None, reduce=None, reduction='mean'", "HingeEmbeddingLoss", samples=("",)
    ),
    Layer("torch.nn.SoftMarginLoss", "size_average=None, reduce=None, reduction='mean'", "SoftMarginLoss", samples=("",)),
    Layer(
        "torch.nn.MultiMarginLoss",
        "p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'",
        "MultiMarginLoss",
        samples=("",),
    ),
    Layer("torch.nn.MultiLabelMarginLoss", "size_average=None, reduce=None, reduction='mean'", "MultiLabelMarginLoss", samples=("",)),
    Layer(
        "torch.nn.MultiLabelSoftMarginLoss",
        "weight=None, size_average=None, reduce=None, reduction='mean'",
        "MultiLabelSoftMarginLoss",
        samples=("",),
    ),
    Layer(
        "torch.nn.CosineEmbeddingLoss", "margin=0.0, size_average=None, reduce=None, reduction='mean'", "CosineEmbeddingLoss", samples=("",)
    ),
    Layer(
        "torch.nn.TripletMarginLoss",
        "margin=1.0, p=2.0, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean'",
        "TripletMarginLoss",
        samples=("",),
    ),
    Layer(
        "torch.nn.TripletMarginWithDistanceLoss",
        "*, distance_function=None, margin=1.0, swap=False, reduction='mean'",
        "TripletMarginWithDistanceLoss",
        samples=("",),
    ),
    Layer("torch.nn.CTCLoss", "blank=0, reduction='mean', zero_infinity=False", "CTCLoss", samples=("",)),
)
