"""Recurrent layers over sequences of several lengths, beside PyTorch's, in float64: outputs, states and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch.nn.utils import rnn

from migrate_agent.tests.tools.compiling import unoptimised
from migrate_agent.tools import weights
from migrate_agent.tools.vendored import packing, recurrent

CASES: list[tuple[str, dict[str, Any], list[int], bool, int]] = [
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}, [2, 5, 1], True, 5),
    ("LSTM", {"proj_size": 2}, [4, 3, 1], False, 6),
    ("GRU", {"bidirectional": True}, [1, 4, 4], False, 4),
    ("RNN", {"batch_first": True}, [4, 2, 2], True, 5),
]


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True), unoptimised():
        yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("name", "options", "lengths", "batch_first", "total"), CASES, ids=lambda value: str(value))
def test_as_torch(name: str, options: dict[str, Any], lengths: list[int], batch_first: bool, total: int) -> None:
    torch.manual_seed(0)
    reference = getattr(torch.nn, name)(3, 4, **options)
    port = getattr(recurrent, name)(3, 4, **options, rngs=nnx.Rngs(0))
    weights.load_state_dict(port, {key: value.numpy() for key, value in reference.state_dict().items()})
    padded = torch.randn(3, 5, 3) if batch_first else torch.randn(5, 3, 3)
    padded.requires_grad_()
    is_sorted = lengths == sorted(lengths, reverse=True)
    packed = rnn.pack_padded_sequence(padded, torch.tensor(lengths), batch_first, enforce_sorted=is_sorted)
    output, state = reference(packed)
    expected = [*rnn.pad_packed_sequence(output, batch_first, -1.5, total), *(state if name == "LSTM" else (state,))]
    sum(value.sin().sum() for value in expected if value.is_floating_point()).backward()

    @nnx.jit
    def run(port: Any, x: jax.Array, lengths: jax.Array) -> Any:
        def loss(port: Any, x: jax.Array) -> Any:
            output, state = port(packing.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=is_sorted))
            got = [*packing.pad_packed_sequence(output, batch_first, -1.5, total), *(state if name == "LSTM" else (state,))]
            return sum(jnp.sum(jnp.sin(value)) for value in got if jnp.issubdtype(value.dtype, jnp.floating)), got

        return nnx.grad(loss, argnums=(0, 1), has_aux=True)(port, x)

    (gradients, of_input), got = run(port, jnp.asarray(padded.detach().numpy()), jnp.asarray(lengths))
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(of_input, np.asarray(padded.grad), rtol=1e-9, atol=1e-12)
    nnx.update(port, gradients)
    found = weights.state_dict(port)
    for key, parameter in reference.named_parameters():
        np.testing.assert_allclose(found[key], np.asarray(parameter.grad), rtol=1e-9, atol=1e-12, err_msg=key)


def test_padding_does_not_reach_the_result() -> None:
    port = recurrent.GRU(2, 3, rngs=nnx.Rngs(0))
    x = jnp.ones((4, 2, 2)).at[2:, 1].set(jnp.nan)
    output, state = port(packing.pack_padded_sequence(x, [4, 2]))
    assert jnp.isfinite(packing.pad_packed_sequence(output, total_length=4)[0]).all() and jnp.isfinite(state).all()


def test_sequences_without_a_length_are_left_out() -> None:
    x = torch.randn(5, 4, 3)
    expected = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, torch.tensor([2, 5]), enforce_sorted=False))[0]
    ours = packing.pad_packed_sequence(packing.pack_padded_sequence(jnp.asarray(x.numpy()), jnp.asarray([2, 5]), enforce_sorted=False))[0]
    np.testing.assert_array_equal(ours, expected.numpy())


@pytest.mark.parametrize("lengths", [[5, 2], [3, 2]])
def test_the_array_ends_with_the_longest_sequence(lengths: list[int]) -> None:
    x = torch.randn(5, 2, 3)
    expected = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, torch.tensor(lengths)))[0].numpy()
    array = jnp.asarray(x.numpy())
    np.testing.assert_array_equal(packing.pad_packed_sequence(packing.pack_padded_sequence(array, lengths))[0], expected)

    def traced(x: jax.Array, lengths: jax.Array) -> jax.Array:
        return packing.pad_packed_sequence(packing.pack_padded_sequence(x, lengths))[0]

    # Shapes cannot follow the data: what does not fill the padding is not a number, rather than longer than torch's.
    for function in (traced, jax.jit(traced)):
        got = function(array, jnp.array(lengths))
        np.testing.assert_array_equal(got, expected if max(lengths) == 5 else np.full((5, 2, 3), np.nan))
    with pytest.raises(ValueError, match="total_length"):
        jax.jit(traced)(array.astype(int), jnp.array(lengths))
