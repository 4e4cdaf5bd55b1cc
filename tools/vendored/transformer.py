"""Transformer encoder and decoder with PyTorch's structure and names."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.activations import gelu
from migrate_agent.tools.vendored.attention import MultiheadAttention
from migrate_agent.tools.vendored.containers import ModuleList
from migrate_agent.tools.vendored.dropout import Dropout
from migrate_agent.tools.vendored.linear import Linear
from migrate_agent.tools.vendored.norm_layers import LayerNorm
from migrate_agent.tools.vendored.numeric import cast_parameters

Activation = Callable[[jax.Array], jax.Array]


def activation_named(activation: str | Activation) -> Activation:
    """The function for `relu` or `gelu`; a function is given back. Raises `KeyError` for another name."""
    named: dict[str, Activation] = {"relu": jax.nn.relu, "gelu": gelu}
    return named[activation] if isinstance(activation, str) else activation


def copies_of(layer: Any, count: int) -> ModuleList:
    """`count` layers with the weights of `layer` and random streams of their own."""

    def copy(index: int) -> Any:
        clone = nnx.clone(layer)
        keys = nnx.state(clone, nnx.RngKey)
        nnx.update(clone, jax.tree.map(lambda key: jax.random.fold_in(key, index), keys))
        return clone

    return ModuleList(copy(index) for index in range(count))


class TransformerEncoderLayer(nnx.Module):
    """Self-attention and a feed-forward net, each with a residual and a layer norm, on (L, N, E) or (N, L, E) with `batch_first`.

    The parts have PyTorch's names, since subclasses override them.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.linear1 = Linear(d_model, dim_feedforward, bias, rngs=rngs)
        self.dropout = Dropout(dropout, rngs=rngs)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rngs=rngs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)
        self.dropout1 = Dropout(dropout, rngs=rngs)
        self.dropout2 = Dropout(dropout, rngs=rngs)
        self.activation = activation_named(activation)
        cast_parameters(self, dtype)

    def __call__(
        self,
        src: jax.Array,
        src_mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        is_causal: bool = False,
    ) -> jax.Array:
        if self.norm_first:
            src = src + self._sa_block(self.norm1(src), src_mask, src_key_padding_mask)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask))
        return self.norm2(src + self._ff_block(src))

    def _sa_block(
        self, x: jax.Array, attn_mask: jax.Array | None, key_padding_mask: jax.Array | None, is_causal: bool = False
    ) -> jax.Array:
        """Self-attention with dropout."""
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, need_weights=False, attn_mask=attn_mask)[0])

    def _ff_block(self, x: jax.Array) -> jax.Array:
        """The feed-forward net with dropout."""
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(nnx.Module):
    """Self-attention, attention to the encoder's output and a feed-forward net, each with a residual and a layer norm.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.linear1 = Linear(d_model, dim_feedforward, bias, rngs=rngs)
        self.dropout = Dropout(dropout, rngs=rngs)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rngs=rngs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)
        self.dropout1 = Dropout(dropout, rngs=rngs)
        self.dropout2 = Dropout(dropout, rngs=rngs)
        self.dropout3 = Dropout(dropout, rngs=rngs)
        self.activation = activation_named(activation)
        cast_parameters(self, dtype)

    def __call__(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        if self.norm_first:
            tgt = tgt + self._sa_block(self.norm1(tgt), tgt_mask, tgt_key_padding_mask)
            tgt = tgt + self._mha_block(self.norm2(tgt), memory, memory_mask, memory_key_padding_mask)
            return tgt + self._ff_block(self.norm3(tgt))
        tgt = self.norm1(tgt + self._sa_block(tgt, tgt_mask, tgt_key_padding_mask))
        tgt = self.norm2(tgt + self._mha_block(tgt, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(tgt + self._ff_block(tgt))

    def _sa_block(
        self, x: jax.Array, attn_mask: jax.Array | None, key_padding_mask: jax.Array | None, is_causal: bool = False
    ) -> jax.Array:
        """Self-attention with dropout."""
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, need_weights=False, attn_mask=attn_mask)[0])

    def _mha_block(
        self, x: jax.Array, mem: jax.Array, attn_mask: jax.Array | None, key_padding_mask: jax.Array | None, is_causal: bool = False
    ) -> jax.Array:
        """Attention to the encoder's output with dropout."""
        return self.dropout2(self.multihead_attn(x, mem, mem, key_padding_mask, need_weights=False, attn_mask=attn_mask)[0])

    def _ff_block(self, x: jax.Array) -> jax.Array:
        """The feed-forward net with dropout."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(nnx.Module):
    """A stack of copies of one encoder layer.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.layers = copies_of(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = nnx.data(norm)

    def __call__(
        self,
        src: jax.Array,
        mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        is_causal: bool | None = None,
    ) -> jax.Array:
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(nnx.Module):
    """A stack of copies of one decoder layer.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None, *, rngs: nnx.Rngs | None = None) -> None:
        self.layers = copies_of(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = nnx.data(norm)

    def __call__(
        self,
        tgt: jax.Array,
        memory: jax.Array,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(nnx.Module):
    """Encoder and decoder. https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html"""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, rngs=rngs)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*shape, rngs=rngs), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*shape, rngs=rngs), num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.reset_matrices(rngs)
        cast_parameters(self, dtype)

    def reset_matrices(self, rngs: nnx.Rngs) -> None:
        """Draw every matrix anew from the Xavier uniform distribution."""
        xavier = jax.nn.initializers.glorot_uniform()
        for _, parameter in nnx.to_flat_state(nnx.state(self, nnx.Param)):
            if parameter[...].ndim > 1:
                parameter[...] = xavier(rngs.params(), parameter.shape, parameter.dtype)

    def __call__(
        self,
        src: jax.Array,
        tgt: jax.Array,
        src_mask: jax.Array | None = None,
        tgt_mask: jax.Array | None = None,
        memory_mask: jax.Array | None = None,
        src_key_padding_mask: jax.Array | None = None,
        tgt_key_padding_mask: jax.Array | None = None,
        memory_key_padding_mask: jax.Array | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> jax.Array:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> jax.Array:
        """(sz, sz): -inf above the diagonal, else 0."""
        return jnp.triu(jnp.full((sz, sz), -jnp.inf, dtype or jnp.float32), 1)
