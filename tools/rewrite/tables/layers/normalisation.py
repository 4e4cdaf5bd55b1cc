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


def plain_rms_norm(call: Call) -> str:
    """`nnx.RMSNorm` over the last axis; "" where the number of axes is not known."""
    shape, size = call.literal("normalized_shape"), call.observed("normalized_shape")
    epsilon = call.observed("eps")
    is_number = type(call.literal("eps")) in (int, float) or (epsilon is not None and set(epsilon.kinds) <= {"int", "float"})
    if call.given("dtype") or not (type(shape) is int or (size is not None and size.kinds == ("int",))):
        return ""
    affine = call.literal("elementwise_affine")
    if affine not in (True, False) or not (is_number or call.literal("eps") is None):
        return ""
    scale = "" if affine else "use_scale=False, "
    if call.literal("eps") is None:
        return f"vendored.MachineEpsilonRMSNorm({{normalized_shape}}, {scale}rngs={{rngs}})"
    return f"nnx.RMSNorm({{normalized_shape}}, epsilon={{eps}}, {scale}rngs={{rngs}})"


def plain_batch_norm(call: Call) -> str:
    """Flax's batch normalisation with torch's running variance; "" where it keeps no statistics, or averages over all batches."""
    if call.literal("track_running_stats") is not True or call.literal("momentum") is None or call.given("dtype") or call.given("bias"):
        return ""
    return "vendored.SampleBatchNorm({num_features}, eps={eps}, momentum={momentum}, affine={affine}, rngs={rngs})"


def plain_group_norm(call: Call) -> str:
    """Flax's group normalisation with the axes moved around it."""
    if call.given("dtype") or call.given("bias"):
        return ""
    return "vendored.ChannelsFirstGroupNorm({num_groups}, {num_channels}, eps={eps}, affine={affine}, rngs={rngs})"


READS = {"weight": "{self}.scale[...]", "running_mean": "{self}.mean[...]", "running_var": "{self}.var[...]", "eps": "{self}.epsilon"}
UNREAD = tuple("momentum affine track_running_stats reset_running_stats reset_parameters num_channels".split())
LONG = ("track_running_stats", "device", "dtype")
ROWS = (
    Layer(
        "torch.nn.LayerNorm",
        "normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None",
        "LayerNorm",
        params=AFFINE,
        samples=("6",),
        plain=plain_layer_norm,
        plain_class="nnx.LayerNorm",
        tested_as="nnx.LayerNorm",
        plain_reads={"weight": "{self}.scale[...]", "eps": "{self}.epsilon"},
        not_plain=("normalized_shape", "elementwise_affine", "reset_parameters"),
        short="LastAxisLayerNorm",
        long_options=("device", "dtype"),
    ),
    Layer(
        "torch.nn.RMSNorm",
        "normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None",
        "RMSNorm",
        params={"weight": "{self}.scale"},
        samples=("6",),
        plain=plain_rms_norm,
        plain_class="nnx.RMSNorm",
        tested_as="nnx.RMSNorm",
        plain_reads={"weight": "{self}.scale[...]", "eps": "{self}.epsilon"},
        not_plain=("normalized_shape", "elementwise_affine", "reset_parameters"),
    ),
    Layer(
        "torch.nn.GroupNorm",
        "num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, *, bias=True",
        "GroupNorm",
        params=AFFINE,
        samples=("2, 6",),
        plain=plain_group_norm,
        plain_class="nnx.GroupNorm",
        tested_as="nnx.GroupNorm",
        plain_reads=READS,
        not_plain=UNREAD,
        short="ChannelsFirstGroupNorm",
        long_options=LONG,
    ),
    *(
        Layer(
            f"torch.nn.BatchNorm{n}d",
            BATCHNORM,
            f"BatchNorm{n}d",
            params=RUNNING,
            samples=("6",),
            plain=plain_batch_norm,
            plain_class="nnx.BatchNorm",
            plain_reads=READS,
            not_plain=UNREAD,
            short="SampleBatchNorm",
            long_options=LONG,
        )
        for n in (1, 2, 3)
    ),
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
