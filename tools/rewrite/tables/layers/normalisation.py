"""Normalisations (https://docs.pytorch.org/docs/stable/nn.html#normalization-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

AFFINE = {"weight": "{self}.scale", "bias": "{self}.bias"}
RUNNING = {**AFFINE, "running_mean": "{self}.mean", "running_var": "{self}.var"}
BATCHNORM = "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True"

INSTANCENORM = "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *, bias=True"

ROWS = (
    Layer(
        "torch.nn.LayerNorm",
        "normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None",
        "LayerNorm",
        params=AFFINE,
        samples=("6",),
    ),
    Layer(
        "torch.nn.RMSNorm",
        "normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None",
        "RMSNorm",
        params={"weight": "{self}.scale"},
        samples=("6",),
    ),
    Layer(
        "torch.nn.GroupNorm",
        "num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, *, bias=True",
        "GroupNorm",
        params=AFFINE,
        samples=("2, 6",),
    ),
    *(Layer(f"torch.nn.BatchNorm{n}d", BATCHNORM, f"BatchNorm{n}d", params=RUNNING, samples=("6",)) for n in (1, 2, 3)),
    *(Layer(f"torch.nn.InstanceNorm{n}d", INSTANCENORM, f"InstanceNorm{n}d", params=RUNNING, samples=("6",)) for n in (1, 2, 3)),
    Layer(
        "torch.nn.SyncBatchNorm",
        "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None, dtype=None, *, "
        "bias=True",
        "SyncBatchNorm",
        params=RUNNING,
        samples=("6",),
    ),
    Layer("torch.nn.modules.batchnorm._BatchNorm", BATCHNORM, "BatchNormNd", params=RUNNING, samples=("6",)),
    Layer("torch.nn.modules.instancenorm._InstanceNorm", INSTANCENORM, "InstanceNormNd", params=RUNNING, samples=("6",)),
    Layer("torch.nn.LocalResponseNorm", "size, alpha=0.0001, beta=0.75, k=1.0", "LocalResponseNorm", samples=("2",)),
)
