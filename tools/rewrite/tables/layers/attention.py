"""Attention and transformers (https://docs.pytorch.org/docs/stable/nn.html#transformer-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

PROJECTIONS = {
    name: "{self}." + name
    for name in ("in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight", "bias_k", "bias_v")
}

ROWS = (
    Layer(
        "torch.nn.MultiheadAttention",
        "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, "
        "vdim=None, batch_first=False, device=None, dtype=None",
        "MultiheadAttention",
        params=PROJECTIONS,
        samples=("8, 2",),
    ),
    Layer(
        "torch.nn.TransformerEncoderLayer",
        "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, "
        "batch_first=False, norm_first=False, bias=True, device=None, dtype=None",
        "TransformerEncoderLayer",
        samples=("8, 2, 16",),
    ),
    Layer(
        "torch.nn.TransformerDecoderLayer",
        "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, "
        "batch_first=False, norm_first=False, bias=True, device=None, dtype=None",
        "TransformerDecoderLayer",
        samples=("8, 2, 16",),
    ),
    Layer(
        "torch.nn.Transformer",
        "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, "
        "activation='relu', custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-05, batch_first=False, "
        "norm_first=False, bias=True, device=None, dtype=None",
        "Transformer",
        samples=("8, 2, 1, 1, 16",),
    ),
    Layer(
        "torch.nn.TransformerEncoder",
        "encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True",
        "TransformerEncoder",
        samples=("torch.nn.TransformerEncoderLayer(8, 2, 16), 2",),
    ),
    Layer(
        "torch.nn.TransformerDecoder",
        "decoder_layer, num_layers, norm=None",
        "TransformerDecoder",
        samples=("torch.nn.TransformerDecoderLayer(8, 2, 16), 2",),
    ),
)
