"""Functions with gradients of their own have torch's derivatives, of higher orders too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

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
