"""Kernels of packages for GPUs, mapped to `tools/kernels/`: FlashAttention, xFormers, apex, Liger,
Mamba and causal-conv1d.

What is written is the library's plain JAX; `implementation="auto"` in the call takes the TPU
kernel. The packages need not be installed: a guarded import (`try: from flash_attn import
flash_attn_func … except ImportError: flash_attn_func = None`) goes, and the test of it is decided.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template


def kernel(template: str, **refused: object) -> Template:
    """The template, refused where a named argument may have another value than the one stated."""

    def to(call: Call) -> str:
        for name, value in refused.items():
            actual = call.literal(name) if call.given(name) else value
            # A value that is not written in the source may be the unsupported one.
            if actual is UNKNOWN or actual != value:
                raise Refuse(f"`{name}` is not supported by the kernel library")
        return template

    return to


def _flash(operands: str) -> Template:
    """The template of a FlashAttention function. A call without dropout takes no key."""
    rest = "causal={causal}, window={window_size}, scale={softmax_scale}, soft_cap={softcap}"
    plain = kernel(f"vendored.flash_attention({operands}, {rest})", alibi_slopes=None, return_attn_probs=False)
    drawn = kernel(
        f"vendored.flash_attention({operands}, {rest}, dropout={{dropout_p}}, rng={{rng}})", alibi_slopes=None, return_attn_probs=False
    )

    def to(call: Call) -> str:
        # Evaluation code passes 0 and may have no keys.
        chosen = plain if call.literal("dropout_p") == 0 else drawn
        return chosen if isinstance(chosen, str) else chosen(call)

    return to


def _smoothed_loss(call: Call) -> str:
    """The template of the loss of each row; with `half_to_float` it computes in float32."""
    logits = "vendored.promote_half({logits})" if call.literal("half_to_float") else "{logits}"
    rest = "ignore_index={padding_idx}, label_smoothing={smoothing}, reduction='none'"
    return f"vendored.cross_entropy({logits}, {{labels}}, {rest})"


_FLASH = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False, "
    "return_attn_probs=False"
)
_SCAN = "u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False"
_SSD = (
    "x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None, cu_seqlens=None, dt_softplus=False, "
    "dt_limit=(0.0, float('inf')), return_final_states=False, return_varlen_states=False"
)
_CONV = "x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, final_states_out=None, activation=None"
_LOSS = (
    "input, weight, target, bias=None, ce_weight=None, ignore_index=-100, lse_square_scale=0.0, label_smoothing=0.0, reduction='mean', "
    "softcap=None, return_z_loss=False"
)

FLASH_ATTENTION = tuple(
    Op(f"flash_attn.{name}", f"{operands}, {_FLASH}", _flash(texts), aliases=(f"flash_attn.flash_attn_interface.{name}",))
    for name, operands, texts in (
        ("flash_attn_func", "q, k, v", "{q}, {k}, {v}"),
        ("flash_attn_qkvpacked_func", "qkv", "*jnp.unstack({qkv}, axis=2)"),
        ("flash_attn_kvpacked_func", "q, kv", "{q}, *jnp.unstack({kv}, axis=2)"),
    )
)
"""https://github.com/Dao-AILab/flash-attention#how-to-use-flashattention"""

OTHERS = (
    Op(
        "xformers.ops.memory_efficient_attention",
        "query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None",
        kernel("vendored.memory_efficient_attention({query}, {key}, {value}, attn_bias={attn_bias}, scale={scale})", p=0.0),
        aliases=("xformers.ops.fmha.memory_efficient_attention",),
    ),
    Op(
        "xformers.ops.LowerTriangularMask",
        "",
        "vendored.LowerTriangularMask()",
        aliases=("xformers.ops.fmha.attn_bias.LowerTriangularMask",),
        returns="",
    ),
    Op("xformers.ops.unbind", "x, dim", "jnp.unstack({x}, axis={dim})", aliases=("xformers.ops.unbind.unbind",), returns="tuple"),
    Op(
        "apex.contrib.xentropy.SoftmaxCrossEntropyLoss.apply",
        "logits, labels, smoothing=0.0, padding_idx=0, half_to_float=False",
        _smoothed_loss,
        aliases=("apex.contrib.xentropy.softmax_xentropy.SoftmaxCrossEntropyLoss.apply",),
    ),
    Op("flash_attn.ops.rms_norm.rms_norm", "x, weight, epsilon", "vendored.fused_rms_norm({x}, {weight}, eps={epsilon})"),
    Op(
        "flash_attn.layers.rotary.apply_rotary_emb",
        "x, cos, sin, interleaved=False, inplace=False, seqlen_offsets=0, cu_seqlens=None, max_seqlen=None",
        kernel("vendored.rotary_embedding({x}, {cos}, {sin}, interleaved={interleaved})", seqlen_offsets=0, cu_seqlens=None),
    ),
    Op(
        "mamba_ssm.ops.selective_scan_interface.selective_scan_fn",
        _SCAN,
        "vendored.selective_scan({u}, {delta}, {A}, {B}, {C}, D={D}, z={z}, delta_bias={delta_bias}, delta_softplus={delta_softplus}, "
        "return_last_state={return_last_state})",
    ),
    Op(
        "mamba_ssm.ops.triton.ssd_combined.mamba_chunk_scan_combined",
        _SSD,
        kernel(
            "vendored.ssd_scan({x}, {dt}, {A}, {B}, {C}, D={D}, z={z}, dt_bias={dt_bias}, initial={initial_states}, chunk={chunk_size}, "
            "dt_softplus={dt_softplus}, return_last_state={return_final_states})",
            seq_idx=None,
            cu_seqlens=None,
            dt_limit=(0.0, float("inf")),
            return_varlen_states=False,
        ),
    ),
    Op(
        "causal_conv1d.causal_conv1d_fn",
        _CONV,
        kernel(
            "vendored.causal_depthwise_conv({x}, {weight}, bias={bias}, initial={initial_states}, activation={activation})",
            seq_idx=None,
            return_final_states=False,
            final_states_out=None,
        ),
        aliases=("causal_conv1d.causal_conv1d_interface.causal_conv1d_fn",),
    ),
    Op(
        "liger_kernel.transformers.functional.liger_fused_linear_cross_entropy",
        _LOSS,
        kernel(
            "vendored.fused_linear_cross_entropy({input}, {weight}, {target}, bias={bias}, ignore_index={ignore_index}, "
            "label_smoothing={label_smoothing}, reduction={reduction})",
            ce_weight=None,
            lse_square_scale=0.0,
            softcap=None,
            return_z_loss=False,
        ),
    ),
    Op("liger_kernel.transformers.functional.liger_swiglu", "a, b", "vendored.gated_activation({a}, {b})"),
    Op("liger_kernel.transformers.functional.liger_geglu", "a, b", "vendored.gated_activation({a}, {b}, activation='gelu_tanh')"),
    Op(
        "liger_kernel.transformers.functional.liger_rms_norm",
        "X, W, eps, offset=0.0, casting_mode='llama', in_place=True",
        "vendored.fused_rms_norm({X}, {W}, eps={eps}, offset={offset})",
    ),
    Op("liger_kernel.transformers.functional.liger_layer_norm", "X, W, B, eps", "vendored.fused_layer_norm({X}, {W}, {B}, eps={eps})"),
)
"""https://github.com/facebookresearch/xformers, https://github.com/state-spaces/mamba,
https://github.com/Dao-AILab/causal-conv1d, https://github.com/linkedin/Liger-Kernel
"""
