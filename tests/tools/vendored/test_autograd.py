"""Functions with gradients of their own have torch's derivatives, of higher orders too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tools.vendored.autograd import AutogradFunction


class Rounded(AutogradFunction):
    """Straight through the rounding: `forward` as it is written has another derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return jnp.round(x) * w, jnp.argmax(x)

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad * w, grad * jnp.round(x)


class RoundedInTorch(torch.autograd.Function):
    """The same in torch."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        place = torch.argmax(x)
        ctx.mark_non_differentiable(place)
        return torch.round(x) * w, place

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad * w, grad * torch.round(x)


def squared(loss: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The sum of the squares of the gradient, `order` times."""
    if not order:
        return loss
    inner = jax.grad(squared(loss, order - 1), (0, 1))
    return lambda x, w: sum((part**2).sum() for part in inner(x, w))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_derivatives_of_derivatives(order: int) -> None:
    x, w = np.array([0.3, 1.7, -1.2], np.float32), np.array([0.5, 1.5, 0.7], np.float32)
    gradients = jax.jit(jax.grad(squared(lambda x, w: (Rounded.apply(x * x, w * w)[0] ** 2).sum(), order), (0, 1)))(x, w)
    inputs = [torch.from_numpy(value).requires_grad_() for value in (x, w)]
    loss = (RoundedInTorch.apply(inputs[0] ** 2, inputs[1] ** 2)[0] ** 2).sum()  # type: ignore[no-untyped-call]
    for _ in range(order):
        loss = sum((part**2).sum() for part in torch.autograd.grad(loss, inputs, create_graph=True))
    for ours, theirs in zip(gradients, torch.autograd.grad(loss, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


class Shaken(AutogradFunction):
    """Both passes draw; `forward` keeps what it drew."""

    @staticmethod
    def forward(ctx: Any, x: Any, train: bool) -> Any:
        share = jax.random.uniform(ctx.rngs(), x.shape) if train else 0.5
        ctx.save_for_backward(share)
        return share * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (share,) = ctx.saved_tensors
        return grad * share + 10 * jax.random.uniform(ctx.rngs(), grad.shape), None


@pytest.mark.parametrize("compiled", [False, True])
def test_passes_draw_from_the_streams_of_their_call(compiled: bool) -> None:
    def loss(x: jax.Array, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array]:
        first, second = Shaken.apply(x, True, rngs=rngs), Shaken.apply(x, True, rngs=rngs)
        return first.sum() + 2 * second.sum(), jnp.stack([first, second])

    function = nnx.value_and_grad(loss, has_aux=True)
    (_, shares), gradient = (nnx.jit(function) if compiled else function)(jnp.ones(4), nnx.Rngs(0))
    drawn = (gradient - shares[0] - 2 * shares[1]) / 10  # one number of the first call, and twice one of the second
    assert np.unique(np.concatenate([shares[0], shares[1], drawn])).size == 12 and (drawn > 0).all() and (drawn < 3).all()


def test_without_streams_nothing_is_drawn() -> None:
    np.testing.assert_array_equal(Shaken.apply(jnp.ones(2), False), 0.5)
    with pytest.raises(AttributeError, match="rngs"):
        Shaken.apply(jnp.ones(2), True)
