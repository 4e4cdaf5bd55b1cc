"""Fused layers of packages for GPUs: the layers of the same meaning. They hold the same parameters
as torch's own.

Quantised linear layers become plain ones: their weights in a checkpoint are floats, and rounding
them is a choice of deployment (`quantised_matmul` of the kernel library).
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.layers.normalisation import AFFINE
from migrate_agent.tools.rewrite.tables.registry import Call, Layer, Refuse, Template

LINEAR = {"weight": "{self}.kernel", "bias": "{self}.bias"}
SCALE = {"weight": "{self}.scale"}


def only(template: str, **accepted: object) -> Template:
    """The template, refused where a named argument has another value than the one stated."""

    def to(call: Call) -> str:
        for name, value in accepted.items():
            if call.given(name) and call.literal(name) != value:
                raise Refuse(f"`{name}` is not supported by the layer that stands for it")
        return template

    return to


NORM = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}, rngs={rngs}"

ROWS = (
    *(
        Layer(
            f"apex.normalization.{place}{name}",
            "normalized_shape, eps=1e-05, elementwise_affine=True, memory_efficient=False",
            vendored,
            to=f"vendored.{vendored}({NORM if name == 'FusedLayerNorm' else NORM.replace('{eps}', '{eps=1e-05}')})",
            params=params,
        )
        for place in ("", "fused_layer_norm.")
        for name, vendored, params in (("FusedLayerNorm", "LayerNorm", AFFINE), ("FusedRMSNorm", "RMSNorm", SCALE))
    ),
    *(
        Layer(
            f"liger_kernel.transformers.{place}LigerRMSNorm",
            "hidden_size, eps=1e-06, offset=0.0, casting_mode='llama', init_fn='ones', in_place=True",
            "RMSNorm",
            to=only("vendored.RMSNorm({hidden_size}, {eps=1e-06}, rngs={rngs})", offset=0.0, init_fn="ones"),
            params=SCALE,
        )
        for place in ("", "rms_norm.")
    ),
    *(
        Layer(
            f"liger_kernel.transformers.{place}LigerFusedLinearCrossEntropyLoss",
            "ce_weight=None, ignore_index=-100, lse_square_scale=0.0, label_smoothing=0.0, reduction='mean', softcap=None, return_z_loss=False",
            "FusedLinearCrossEntropyLoss",
            to=only(
                "vendored.FusedLinearCrossEntropyLoss(ignore_index={ignore_index}, label_smoothing={label_smoothing}, reduction={reduction})",
                ce_weight=None,
                lse_square_scale=0.0,
                softcap=None,
                return_z_loss=False,
            ),
        )
        for place in ("", "fused_linear_cross_entropy.")
    ),
    *(
        Layer(
            f"liger_kernel.transformers.{place}LigerLayerNorm",
            "hidden_size, eps=1e-06, bias=False, init_fn='ones'",
            "LayerNorm",
            to=only("vendored.LayerNorm({hidden_size}, eps={eps=1e-06}, rngs={rngs})", init_fn="ones"),
            params=AFFINE,
        )
        for place in ("", "layer_norm.")
    ),
    *(
        Layer(
            f"mamba_ssm.ops.triton.{place}.RMSNorm",
            "hidden_size, eps=1e-05, dropout_p=0.0, zero_centered_weight=False, device=None, dtype=None",
            "RMSNorm",
            to=only("vendored.RMSNorm({hidden_size}, {eps=1e-05}, rngs={rngs})", dropout_p=0.0, zero_centered_weight=False),
            params=SCALE,
        )
        for place in ("layer_norm", "layernorm")
    ),
    *(
        Layer(
            f"bitsandbytes.nn.{name}",
            f"input_features, output_features, bias=True, {rest}",
            "Linear",
            to="vendored.Linear({input_features}, {output_features}, bias={bias}, rngs={rngs})",
            params=LINEAR,
        )
        for name, rest in (
            ("Linear8bitLt", "has_fp16_weights=True, threshold=0.0, index=None, device=None"),
            ("Linear4bit", "compute_dtype=None, compress_statistics=True, quant_type='fp4', quant_storage=None, device=None"),
        )
    ),
)
