"""Layers as functions (https://pytorch.org/docs/stable/nn.functional.html): the vendored functions
of the same names and arguments.
"""

from __future__ import annotations

import re

from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse, Template
from migrate_agent.tools.rewrite.tables.signatures import parse_signature

F = "torch.nn.functional."
VARIABLE = re.compile(r"(?P<is>[\w.]+)\[\.\.\.\]|value_of\((?P<may>[\w.]+)\)")
"""How rewritten code reads a variable, or one that may be `None`."""


def vendored_call(name: str, signature: str, extra: str = "") -> str:
    """The template of a call to the vendored function `name`.

    Required arguments go by position and the others by name; `extra` comes last.
    """
    parsed = parse_signature(signature)
    required = [f"{{{argument}}}" for argument in parsed.names if argument not in parsed.defaults]
    optional = [f"{argument}={{{argument}}}" for argument in (*parsed.names, *parsed.keyword_only) if argument in parsed.defaults]
    return f"vendored.{name}({', '.join([*required, *optional, *([extra] if extra else [])])})"


def _tracking(name: str, training: str) -> Template:
    """The template of a normalisation that also updates its running statistics in training.

    Refused where the statistics are plain arrays and not variables. `training` names the argument
    that decides.
    """

    def to(call: Call) -> str:
        # In training torch writes new statistics into the tensors it was handed. A plain array
        # cannot take that write, so the call needs the variable behind `running_mean[...]`.
        stateful = call.given("running_mean") and call.literal("running_mean") is not None
        if not stateful or call.literal(training) is False:
            return vendored_call(name, SIGNATURES[name])
        variables = [VARIABLE.fullmatch(call.text(statistic)) for statistic in ("running_mean", "running_var")]
        if not all(variables):
            raise Refuse(f"in training, {name} also updates the running statistics it is given", "buffer-update")
        mean, var = (match["may"] or match["is"] for match in variables if match)
        rest = ", ".join(f"{option}={{{option}}}" for option in ("weight", "bias", training, "momentum", "eps"))
        return f"vendored.tracked_{name}({{input}}, {mean}, {var}, {rest})"

    return to


def _embedding(call: Call) -> str:
    """The template of `embedding`. With `max_norm` torch also shortens rows of the table itself.

    That needs the helper for variables, or the layer's own table in a subclass of it.
    """
    table, bound = call.text("weight"), call.text("max_norm")
    # A subclass of `nn.Embedding` reads its own table by torch's name; NNX calls it `embedding`.
    if bound == "self.max_norm" and table == "self.weight":
        table = "self.embedding[...]"
    if call.literal("max_norm") is None or not table.endswith("[...]") or not table[:-5].replace(".", "").isidentifier():
        return vendored_call("embedding", SIGNATURES["embedding"])
    rest = ", ".join(f"{option}={{{option}}}" for option in ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"))
    return f"vendored.tracked_embedding({{input}}, {table.removesuffix('[...]')}, {rest})"


def _dropout(name: str, trains: bool = True) -> Template:
    """`trains`: whether the function drops where nobody says (`alpha_dropout` does not)."""

    def to(call: Call) -> str:
        training = call.literal("training")  # what comes fourth is `inplace`, which the rule for updates looks at
        # Then no key is drawn, and none needs to be reachable here.
        if training is False or call.literal("p") == 0:
            return "{input}"
        flag = "" if training is True and trains else ", training={training=False}"
        return f"vendored.{name}({{input}}, {{p=0.5}}{flag}, rngs={{rngs}})"

    return to


def _attention(call: Call) -> str:
    # A call without dropout must not ask for keys: its caller may have none.
    quiet = call.literal("dropout_p") == 0
    signature = "query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False" if quiet else ATTENTION
    return vendored_call("scaled_dot_product_attention", signature, "" if quiet else "rngs={rngs}")


def _multi_head(call: Call) -> str:
    for name in ("static_k", "static_v"):
        if call.given(name) and call.literal(name) is not None:
            raise Refuse(f"`{name}` is not supported")
    quiet = call.literal("dropout_p") == 0 or call.literal("training") is False
    return vendored_call("multi_head_attention_forward", f"{MHA}, {MHA_END}", "" if quiet else "rngs={rngs}")


def _one_hot(call: Call) -> str:
    # A compiled function needs the number of columns before it sees the data.
    if call.literal("num_classes") == -1:
        raise Refuse("without `num_classes` the shape depends on the largest class in the data", "dynamic-shape")
    # The dtype is written because JAX gives float32 where torch gives int64.
    return "jax.nn.one_hot({tensor}, {num_classes}, dtype=int)"


def _fractional(spatial: int) -> Template:
    """The template of fractional pooling, whose windows are random unless samples are passed."""

    def to(call: Call) -> str:
        names = "{kernel_size}, {output_size=None}, {output_ratio=None}"
        # Torch's tests hand over the samples, which makes the windows reproducible on both sides.
        drawn = (
            "samples={_random_samples}" if call.given("_random_samples") and call.literal("_random_samples") is not None else "key={rng}"
        )
        return f"vendored.random_max_pool({{input}}, {spatial}, {names}, {{return_indices=False}}, {drawn})"

    return to


MHA = (
    "query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, "
    "out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None, "
    "use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None"
)
MHA_END = "average_attn_weights=True, is_causal=False"
NO_DROPOUT = (("p", 0), ("training", False))
ATTENTION = "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False"

CONV = "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"
CONV_TRANSPOSE = "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"
AVG_POOL = "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
MAX_POOL = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
MAX_UNPOOL = "input, indices, kernel_size, stride=None, padding=0, output_size=None"
LP_POOL = "input, norm_type, kernel_size, stride=None, ceil_mode=False"
ADAPTIVE = "input, output_size"

SIGNATURES = {
    "linear": "input, weight, bias=None",
    "bilinear": "input1, input2, weight, bias=None",
    "conv1d": CONV,
    "conv2d": CONV,
    "conv3d": CONV,
    "conv_transpose1d": CONV_TRANSPOSE,
    "conv_transpose2d": CONV_TRANSPOSE,
    "conv_transpose3d": CONV_TRANSPOSE,
    "avg_pool1d": AVG_POOL,
    "avg_pool2d": AVG_POOL + ", divisor_override=None",
    "avg_pool3d": AVG_POOL + ", divisor_override=None",
    "max_pool1d": MAX_POOL,
    "max_pool2d": MAX_POOL,
    "max_pool3d": MAX_POOL,
    "max_unpool1d": MAX_UNPOOL,
    "max_unpool2d": MAX_UNPOOL,
    "max_unpool3d": MAX_UNPOOL,
    "lp_pool1d": LP_POOL,
    "lp_pool2d": LP_POOL,
    "lp_pool3d": LP_POOL,
    "adaptive_avg_pool1d": ADAPTIVE,
    "adaptive_avg_pool2d": ADAPTIVE,
    "adaptive_avg_pool3d": ADAPTIVE,
    "adaptive_max_pool1d": ADAPTIVE + ", return_indices=False",
    "adaptive_max_pool2d": ADAPTIVE + ", return_indices=False",
    "adaptive_max_pool3d": ADAPTIVE + ", return_indices=False",
    "layer_norm": "input, normalized_shape, weight=None, bias=None, eps=1e-05",
    "rms_norm": "input, normalized_shape, weight=None, eps=None",
    "group_norm": "input, num_groups, weight=None, bias=None, eps=1e-05",
    "local_response_norm": "input, size, alpha=0.0001, beta=0.75, k=1.0",
    "batch_norm": "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05",
    "instance_norm": "input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05",
    "normalize": "input, p=2.0, dim=1, eps=1e-12",
    "embedding": "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False",
    "embedding_bag": "input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False, "
    "per_sample_weights=None, include_last_offset=False, padding_idx=None",
    "pad": "input, pad, mode='constant', value=None",
    "interpolate": "input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False",
    "unfold": "input, kernel_size, dilation=1, padding=0, stride=1",
    "fold": "input, output_size, kernel_size, dilation=1, padding=0, stride=1",
    "pixel_shuffle": "input, upscale_factor",
    "pixel_unshuffle": "input, downscale_factor",
    "channel_shuffle": "input, groups",
    "cosine_similarity": "x1, x2, dim=1, eps=1e-08",
    "pairwise_distance": "x1, x2, p=2.0, eps=1e-06, keepdim=False",
    "grid_sample": "input, grid, mode='bilinear', padding_mode='zeros', align_corners=None",
    "affine_grid": "theta, size, align_corners=None",
}
TOP_LEVEL = {  # `torch.conv2d` and the like: the same function under a second name
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "avg_pool1d", "max_pool1d", "max_pool2d",
    "max_pool3d", "adaptive_avg_pool1d", "bilinear", "layer_norm", "group_norm", "rms_norm", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "cosine_similarity", "pairwise_distance",
}  # fmt: skip
STATEFUL: dict[str, Template] = {
    "batch_norm": _tracking("batch_norm", "training"),
    "instance_norm": _tracking("instance_norm", "use_input_stats"),
    "embedding": _embedding,
}

LAYERS = [
    Op(
        F + name,
        signature,
        STATEFUL.get(name, vendored_call(name, signature)),
        aliases=(f"torch.{name}",) if name in TOP_LEVEL else (),
        # With `return_indices` these give a tuple, so that static inference must not say "tensor".
        returns="" if name.startswith(("max_pool", "adaptive_max")) else "tensor",
    )
    for name, signature in SIGNATURES.items()
]

OTHERS = [
    Op(F + "scaled_dot_product_attention", ATTENTION, _attention, quiet=(("dropout_p", 0),), draws=True),
    Op(
        F + "multi_head_attention_forward",
        f"{MHA}, static_k=None, static_v=None, {MHA_END}",
        _multi_head,
        returns="tuple",
        quiet=(("dropout_p", 0), ("training", False)),
        draws=True,
    ),
    Op(F + "one_hot", "tensor, num_classes=-1", _one_hot),
    Op(
        F + "upsample",
        "input, size=None, scale_factor=None, mode='nearest', align_corners=None",
        "vendored.interpolate({input}, size={size}, scale_factor={scale_factor}, mode={mode}, align_corners={align_corners})",
    ),
    Op(
        F + "upsample_nearest",
        "input, size=None, scale_factor=None",
        "vendored.interpolate({input}, size={size}, scale_factor={scale_factor})",
    ),
    Op(
        F + "upsample_bilinear",
        "input, size=None, scale_factor=None",
        # The deprecated name fixed `align_corners=True`, the opposite of `interpolate`'s default.
        "vendored.interpolate({input}, size={size}, scale_factor={scale_factor}, mode='bilinear', align_corners=True)",
    ),
    Op("torch.constant_pad_nd", "input, pad, value=0", "vendored.pad({input}, {pad}, value={value})"),
    Op(
        F + "fractional_max_pool2d",
        "input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None",
        _fractional(2),
        returns="",
        draws=True,
    ),
    Op(
        F + "fractional_max_pool3d",
        "input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None",
        _fractional(3),
        returns="",
        draws=True,
    ),
]


DROPOUT = [
    Op(F + name, f"input, p=0.5, training={training}, inplace=False", _dropout(name, training), quiet=NO_DROPOUT, draws=True)
    for name, training in {
        "dropout": True,
        "dropout1d": True,
        "dropout2d": True,
        "dropout3d": True,
        "alpha_dropout": False,
        "feature_alpha_dropout": False,
    }.items()
] + [Op("torch.dropout", "input, p, training", _dropout("dropout"), quiet=NO_DROPOUT, draws=True)]
