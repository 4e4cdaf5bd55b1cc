"""Normalisations (https://docs.pytorch.org/docs/stable/nn.html#normalization-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Call, Layer

AFFINE = {"weight": "{self}.scale", "bias": "{self}.bias"}
RUNNING = {**AFFINE, "running_mean": "{self}.mean", "running_var": "{self}.var"}
BATCHNORM = "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True"

INSTANCENORM = "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *, bias=True"


def plain_layer_norm(call: Call) -> str:
    """`nnx.LayerNorm` over the last axis; "" over several, or where their number is not known."""
    shape, size = call.literal("normalized_shape"), call.observed("normalized_shape")
    if call.given("dtype") or not (type(shape) is int or (size is not None and size.kinds == ("int",))):
        return ""
    affine, bias = call.literal("elementwise_affine"), call.literal("bias")
    if affine not in (True, False) or (bias not in (True, False) and affine is False):
        return ""
    scale = "" if affine else "use_scale=False, use_bias=False, "
    use_bias = "" if bias is True or not affine else "use_bias={bias}, "
    # Flax's default computes the variance as E[x²] - E[x]², which cancels.
    return f"nnx.LayerNorm({{normalized_shape}}, epsilon={{eps=1e-05}}, {scale}{use_bias}use_fast_variance=False, rngs={{rngs}})"


ROWS = (
    Layer(
        "torch.nn.LayerNorm",
        "normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None",
        "LayerNorm",
        params=AFFINE,
        samples=("6",),
        plain=plain_layer_norm,
        plain_class="nnx.LayerNorm",
        plain_reads={"weight": "{self}.scale[...]", "eps": "{self}.epsilon"},
        not_plain=("normalized_shape", "elementwise_affine", "reset_parameters"),
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
