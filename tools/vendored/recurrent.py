"""Recurrent layers and cells with PyTorch's gate order and parameter names."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.dropout import dropout
from migrate_agent.tools.vendored.linear import linear
from migrate_agent.tools.vendored.numeric import cast_parameters, fan_in_bound, uniform_init, value_of


def rnn_step(
    gates_x: jax.Array, hx: jax.Array, weight_hh: jax.Array, bias_hh: jax.Array | None, activation: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """h' = f(W x + b + U h + c); `gates_x` = W x + b.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNCell.html
    """
    return activation(gates_x + linear(hx, weight_hh, bias_hh))


def gru_step(gates_x: jax.Array, hx: jax.Array, weight_hh: jax.Array, bias_hh: jax.Array | None) -> jax.Array:
    """Gates in the order reset, update, new; `gates_x` = W x + b.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.GRUCell.html
    """
    reset_x, update_x, new_x = jnp.split(gates_x, 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(linear(hx, weight_hh, bias_hh), 3, axis=-1)
    update = jax.nn.sigmoid(update_x + update_h)
    new = jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_h) * new_h)
    return (hx - new) * update + new


def lstm_step(
    gates_x: jax.Array,
    hx: tuple[jax.Array, jax.Array],
    weight_hh: jax.Array,
    bias_hh: jax.Array | None,
    weight_hr: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Gates in the order input, forget, cell, output; `gates_x` = W x + b; `weight_hr` projects the hidden state.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html
    """
    hidden, cell = hx
    i, f, g, o = jnp.split(gates_x + linear(hidden, weight_hh, bias_hh), 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return hidden if weight_hr is None else linear(hidden, weight_hr), cell


class RNNCellBase(nnx.Module):
    """The parameters of a cell: `weight_ih` (gates * hidden, input), `weight_hh` (gates * hidden, hidden), and biases.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNCell.html
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, rngs: nnx.Rngs) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        rows, init = num_chunks * hidden_size, uniform_init(fan_in_bound(hidden_size))
        self.weight_ih = nnx.Param(init(rngs.params(), (rows, input_size)))
        self.weight_hh = nnx.Param(init(rngs.params(), (rows, hidden_size)))
        self.bias_ih = nnx.data(nnx.Param(init(rngs.params(), (rows,))) if bias else None)
        self.bias_hh = nnx.data(nnx.Param(init(rngs.params(), (rows,))) if bias else None)

    def gates(self, input: jax.Array) -> jax.Array:
        """W x + b."""
        return linear(input, self.weight_ih[...], value_of(self.bias_ih))

    def zeros(self, input: jax.Array) -> jax.Array:
        """The initial hidden state: (N, hidden) or (hidden,)."""
        return jnp.zeros((*input.shape[:-1], self.hidden_size), input.dtype)


class RNNCell(RNNCellBase):
    """One step of a plain recurrent net. https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNCell.html"""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, rngs)
        self.nonlinearity = nonlinearity
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array, hx: jax.Array | None = None) -> jax.Array:
        hx = self.zeros(input) if hx is None else hx
        activation = jax.nn.relu if self.nonlinearity == "relu" else jnp.tanh
        return rnn_step(self.gates(input), hx, self.weight_hh[...], value_of(self.bias_hh), activation)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit. https://docs.pytorch.org/docs/stable/generated/torch.nn.GRUCell.html"""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None, *, rngs: nnx.Rngs
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, rngs)
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array, hx: jax.Array | None = None) -> jax.Array:
        hx = self.zeros(input) if hx is None else hx
        return gru_step(self.gates(input), hx, self.weight_hh[...], value_of(self.bias_hh))


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory. https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html"""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None, *, rngs: nnx.Rngs
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, rngs)
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array, hx: tuple[jax.Array, jax.Array] | None = None) -> tuple[jax.Array, jax.Array]:
        hx = (self.zeros(input), self.zeros(input)) if hx is None else hx
        return lstm_step(self.gates(input), hx, self.weight_hh[...], value_of(self.bias_hh))


class RNNBase(nnx.Module):
    """Stacked, optionally bidirectional recurrence over (L, N, H), (N, L, H) with `batch_first`, or (L, H).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    """

    num_chunks = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, dropout, bidirectional, proj_size
        self.deterministic = False
        self.rngs = rngs
        init = uniform_init(fan_in_bound(hidden_size))
        rows, outputs = self.num_chunks * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else outputs * (1 + bidirectional)
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, outputs)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for suffix in self.suffixes(layer):
                for name, shape in shapes.items():
                    setattr(self, f"{name}_{suffix}", nnx.Param(init(rngs.params(), shape)))
        cast_parameters(self, dtype)

    def suffixes(self, layer: int) -> list[str]:
        """The endings of the names of a layer's parameters, one a direction."""
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def value(self, name: str) -> Any:
        """The parameter of this name, or `None`."""
        return value_of(getattr(self, name, None))

    def cell(self, suffix: str) -> Callable[[Any, jax.Array], Any]:
        """The step (state, gates of the input) → state of one layer and direction; defined by each kind."""
        raise NotImplementedError

    def run(self, input: jax.Array, state: Any, live: jax.Array | None = None) -> tuple[jax.Array, Any]:
        """All layers over `input` (L, N, H); the leaves of `state` are (layers * directions, N, ·). See `scan` for `live`."""
        finals: list[Any] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self.suffixes(layer):
                start = jax.tree.map(itemgetter(len(finals)), state)
                output, final = self.scan(input, start, suffix, live)
                outputs.append(output)
                finals.append(final)
            input = jnp.concatenate(outputs, axis=-1)
            if layer < self.num_layers - 1:
                input = dropout(input, self.dropout, not self.deterministic, rngs=self.rngs)
        return input, jax.tree.map(lambda *leaves: jnp.stack(leaves), *finals)

    def scan(self, input: jax.Array, state: Any, suffix: str, live: jax.Array | None = None) -> tuple[jax.Array, Any]:
        """One layer in one direction: (L, N, I) → (L, N, H) and the final state. Where `live` (L, N, 1) is false the state stays."""
        gates = linear(input, self.value(f"weight_ih_{suffix}"), self.value(f"bias_ih_{suffix}"))
        step = self.cell(suffix)

        def advance(carry: Any, at: tuple[jax.Array, jax.Array | None]) -> tuple[Any, jax.Array]:
            gate, alive = at
            new = step(carry, gate)
            if alive is not None:
                new = jax.tree.map(partial(jnp.where, alive), new, carry)
            return new, jax.tree.leaves(new)[0]

        final, outputs = lax.scan(advance, state, (gates, live), reverse=suffix.endswith("_reverse"))
        return outputs, final

    def zeros(self, batch: int, size: int, like: jax.Array) -> jax.Array:
        """An initial state (layers * directions, N, size)."""
        return jnp.zeros((self.num_layers * (1 + self.bidirectional), batch, size), like.dtype)

    def __call__(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if hasattr(input, "lengths"):  # sequences of several lengths, packed
            padded, live = input.padded, (jnp.arange(len(input.padded))[:, None] < input.lengths)[..., None]
            output, state = self.run(padded, self.initial(padded) if hx is None else hx, live)
            return replace(input, padded=output), state
        if input.ndim == 2:
            axis = 0 if self.batch_first else 1
            batched = None if hx is None else jax.tree.map(lambda leaf: leaf[:, None], hx)
            output, state = self(jnp.expand_dims(input, axis), batched)
            return output.squeeze(axis), jax.tree.map(lambda leaf: leaf.squeeze(1), state)
        x = input.swapaxes(0, 1) if self.batch_first else input
        output, state = self.run(x, self.initial(x) if hx is None else hx)
        return output.swapaxes(0, 1) if self.batch_first else output, state

    def initial(self, input: jax.Array) -> Any:
        """The state that PyTorch starts from where none is given: zeros."""
        return self.zeros(input.shape[1], self.hidden_size, input)


class RNN(RNNBase):
    """Plain recurrence with tanh or relu. https://docs.pytorch.org/docs/stable/generated/torch.nn.RNN.html"""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)
        self.nonlinearity = nonlinearity
        cast_parameters(self, dtype)

    def cell(self, suffix: str) -> Callable[[Any, jax.Array], Any]:
        """The step of one layer and direction."""
        weight, bias = self.value(f"weight_hh_{suffix}"), self.value(f"bias_hh_{suffix}")
        activation = jax.nn.relu if self.nonlinearity == "relu" else jnp.tanh
        return lambda hx, gates: rnn_step(gates, hx, weight, bias, activation)


class GRU(RNNBase):
    """Gated recurrent units. https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html"""

    num_chunks = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)
        cast_parameters(self, dtype)

    def cell(self, suffix: str) -> Callable[[Any, jax.Array], Any]:
        """The step of one layer and direction."""
        weight, bias = self.value(f"weight_hh_{suffix}"), self.value(f"bias_hh_{suffix}")
        return lambda hx, gates: gru_step(gates, hx, weight, bias)


class LSTM(RNNBase):
    """Long short-term memory; the state is (hidden, cell). https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html"""

    num_chunks = 4

    def cell(self, suffix: str) -> Callable[[Any, jax.Array], Any]:
        """The step of one layer and direction."""
        weight, bias = self.value(f"weight_hh_{suffix}"), self.value(f"bias_hh_{suffix}")
        projection = self.value(f"weight_hr_{suffix}")
        return lambda hx, gates: lstm_step(gates, hx, weight, bias, projection)

    def initial(self, input: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Zeros for the hidden and the cell state."""
        batch = input.shape[1]
        return self.zeros(batch, self.proj_size or self.hidden_size, input), self.zeros(batch, self.hidden_size, input)
