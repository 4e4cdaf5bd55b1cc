"""Each idiom of the plain style gives what torch does, values that are not finite included, and declines where it could not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tests.tools.rewrite.tables.ops.differential import evaluate, leaves, to_jax
from migrate_agent.tests.tools.rewrite.tables.ops.expansion import expand
from migrate_agent.tools.rewrite.tables.registry import idioms, ops

NAN, INF = float("nan"), float("inf")
X = torch.tensor([[0.5, -1.0, 2.0, 7.0], [INF, 0.0, -1.0, 2.0], [-INF, 3.0, 3.0, 1.0], [NAN, 1.0, -2.0, 0.25]], dtype=torch.float64)
Y = torch.linspace(-2, 3, 16, dtype=torch.float64).reshape(4, 4).sin()
VALUES = {
    "x": X,
    "y": Y,
    "w": Y[0],
    "c": torch.tensor([1, 0, -100, 3]),
    "b": torch.tensor([True, False, True]),
    "k": torch.tensor([1, 0, 3, 3]),
    "none": torch.full((4,), -100),
    "n": 2,
    "s": torch.tensor(0.5),
    "h": Y.half(),
    "q": X.reshape(1, 2, 2, 4),
    "z": torch.zeros(3, 4, 2, dtype=torch.float64),
    "t": torch.linspace(-2, 3, 24, dtype=torch.float64).reshape(2, 4, 3).cos(),
    "l": torch.tensor([[1, 0, -100], [3, 3, 2]]),
    "i": torch.tensor([[1, 0], [3, 2], [0, 3]]),
    "v": torch.tensor([[0.5, -2.0], [1.5, 0.25], [-1.0, 3.0]], dtype=torch.float64),
}
F = "torch.nn.functional."
SAME = [
    (f"{F}cross_entropy(y, c)", ()),
    (f"{F}cross_entropy(x, c)", ()),
    (f"{F}cross_entropy(x, k, ignore_index=3, reduction='mean')", ()),
    (f"{F}cross_entropy(y, none)", ()),
    (f"{F}cross_entropy(t, l)", ()),
    (f"{F}cross_entropy(y, c, reduction='none')", ()),
    (f"{F}cross_entropy(x, k, ignore_index=3, reduction='sum')", ()),
    (f"{F}cross_entropy(t, l, reduction='none')", ()),
    (f"{F}normalize(x)", ()),
    (f"{F}normalize(y, dim=-1)", ()),
    (f"{F}normalize(z, p=2, dim=1, eps=1e-5)", ()),
    ("torch.scatter(x, 1, i, v)", ()),
    ("x.scatter(-1, i, 0.5)", ()),
    ("y.scatter(0, i, v)", ()),
    ("x.scatter(1, i, value=2)", ()),
    ("x.scatter_add(1, i, v)", ()),
    ("torch.topk(y, 2)", ("a", "b")),
    (f"{F}interpolate(q, scale_factor=2)", ()),
    (f"{F}interpolate(q, scale_factor=4.0, mode='nearest')", ()),
    (f"{F}interpolate(z, None, 8)", ()),
    (f"{F}smooth_l1_loss(x, y)", ()),
    (f"{F}smooth_l1_loss(y, x, reduction='sum')", ()),
    (f"{F}huber_loss(x, y, delta=0.5)", ()),
    (f"{F}huber_loss(y, y, reduction='none')", ()),
    (f"{F}mse_loss(x, y)", ()),
    (f"{F}mse_loss(y, x, reduction='sum')", ()),
    (f"{F}mse_loss(y, x, reduction='none')", ()),
    (f"{F}layer_norm(x, (4,), w, w)", ()),
    (f"{F}layer_norm(y, (4,), w, None, 1e-3)", ()),
    (f"{F}linear(y, x)", ()),
    (f"{F}linear(x, y, w)", ()),
    ("y.split(n, 1)", ("a", "b")),
    ("torch.split(y, [1, 2, 1], 0)", ("a", "b", "c")),
    ("y.split(3)", ("a", "b")),
    ("torch.topk(x, 2)", ("a", "_")),
    ("y.topk(3, 1)", ("a", "_")),
    (f"{F}pad(x, (1, 0))", ()),
    (f"{F}pad(x, (1, 2, 0, 3), value=2)", ()),
    (f"{F}pad(c, (1, 0))", ()),
    (f"{F}pad(b, (1, 0), value=True)", ()),
    (f"{F}pad(b, (1, 0), value=False)", ()),
    ("torch.clamp(c, 0, 2)", ()),
    ("c.clamp(min=1)", ()),
    ("torch.clamp(c, max=1)", ()),
    ("torch.clamp(c, 2, 1)", ()),
    ("torch.norm(x)", ()),
    ("x.norm(dim=-1, keepdim=True)", ()),
    ("z.norm(2, 0)", ()),
    ("torch.norm(x, p=2, dim=(0, 1))", ()),
    ("torch.linalg.norm(x, dim=1)", ()),
    ("torch.linalg.norm(y)", ()),
    ("torch.linalg.vector_norm(x, dim=(0, 1), keepdim=True)", ()),
]
"""(call, the names that its result is unpacked into)."""
DECLINED = [
    (f"{F}cross_entropy(y, c, label_smoothing=0.1)", ()),
    (f"{F}cross_entropy(y, y)", ()),
    (f"{F}cross_entropy(h, c)", ()),
    (f"{F}cross_entropy(z, c)", ()),
    (f"{F}cross_entropy(t, t)", ()),
    (f"{F}cross_entropy(y, c, weight=w, reduction='none')", ()),
    (f"{F}normalize(y, p=1)", ()),
    (f"{F}normalize(h)", ()),
    ("x.scatter(1, i, v, reduce='add')", ()),
    ("x.scatter(1, i, y)", ()),
    ("b.scatter(0, c, True)", ()),
    ("h.scatter(1, i, v)", ()),
    (f"{F}mse_loss(y, w)", ()),
    (f"{F}huber_loss(y, w)", ()),
    (f"{F}smooth_l1_loss(y, x, beta=0.5)", ()),
    (f"{F}layer_norm(x, (4, 4))", ()),
    ("y.split(n, 1)", ()),
    ("torch.topk(x, 2)", ()),
    (f"{F}interpolate(q, scale_factor=3)", ()),
    (f"{F}interpolate(q, scale_factor=(2, 2))", ()),
    (f"{F}interpolate(q, size=(4, 8))", ()),
    (f"{F}interpolate(q, scale_factor=2, mode='bilinear')", ()),
    ("torch.topk(x, 2, largest=False)", ("a", "_")),
    ("torch.topk(x, 2, 0)", ("a", "_")),
    ("torch.multinomial(y, 2)", ()),
    (f"{F}pad(x, (1, -1))", ()),
    (f"{F}pad(x, (1, n))", ()),
    (f"{F}pad(x, (1, 1), mode='reflect')", ()),
    (f"{F}pad(c, (1, 1), value=0.5)", ()),
    ("y.clamp(min=0)", ()),
    ("c.clamp(0.5, 1)", ()),
    ("c.clamp(c, k)", ()),
    ("torch.norm(y, p=1)", ()),
    ("torch.linalg.norm(y, 2)", ()),
    ("torch.linalg.norm(y, dim=(0, 1))", ()),
    ("torch.norm(h)", ()),
    ("s.expand(k)", ()),
]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.ci
@pytest.mark.parametrize(("call", "parts"), SAME)
def test_an_idiom_is_as_torch(call: str, parts: tuple[str, ...]) -> None:
    leaf = X.clone().requires_grad_()
    values = {name: leaf if name == "x" else value for name, value in VALUES.items()}
    expected = [
        one
        for one, name in zip(leaves(tuple(_as_list(eval(call, {"torch": torch, **values})))), parts or ("a",), strict=True)
        if name != "_"
    ]
    text = expand(call, values, parts)
    arrays: dict[str, Any] = {name: to_jax(value) if isinstance(value, torch.Tensor) else value for name, value in VALUES.items()}

    def results(x: jax.Array) -> list[jax.Array]:
        found = _as_list(evaluate(text, **{**arrays, "x": x}))
        return [one for one, name in zip(found, parts or ("a",), strict=True) if name != "_"]

    for ours, theirs in zip(results(arrays["x"]), expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12, err_msg=text)
    if expected[0].requires_grad:
        sum(one.sum() for one in expected).backward()
        gradient = jax.grad(lambda x: sum(jnp.sum(one) for one in results(x)))(arrays["x"])
        assert leaf.grad is not None
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-12, atol=1e-14, err_msg=text)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize(("call", "parts"), DECLINED)
def test_what_is_not_the_same_is_no_idiom(call: str, parts: tuple[str, ...]) -> None:
    assert expand(call, VALUES, parts) == ""


def test_one_draw_has_the_shape_and_weights_of_multinomial() -> None:
    weights = torch.tensor([[0.0, 0.2, 0.8]] * 4000)
    drawn = evaluate(expand("torch.multinomial(w, 1)", {"w": weights}, ()), w=to_jax(weights))
    assert drawn.shape == (4000, 1) and drawn.dtype == int and abs(float((drawn == 2).mean()) - 0.8) < 0.05 and not (drawn == 0).any()


def test_each_idiom_is_of_an_operator() -> None:
    assert idioms().keys() <= {row.name for row in ops().values()}
