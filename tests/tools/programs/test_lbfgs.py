"""LBFGS against torch: the parameters and the losses after each of several steps, in float64."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.programs.problem import double_precision, evaluate
from migrate_agent.tools.programs.tables.registry import function_text
from migrate_agent.tools.programs.vendored.lbfgs import LBFGS

OPTIONS = [
    "",
    "lr=0.3, max_iter=4",
    "line_search_fn='strong_wolfe'",
    "lr=0.5, max_iter=7, history_size=3, line_search_fn='strong_wolfe'",
    "max_iter=10, max_eval=5, line_search_fn='strong_wolfe'",
    "lr=10.0, max_iter=5, line_search_fn='strong_wolfe'",
]


class Net(nnx.Module):
    """Two layers."""

    def __init__(self, weights: list[np.ndarray[Any, Any]]) -> None:
        self.a, self.b = nnx.Param(jnp.asarray(weights[0])), nnx.Param(jnp.asarray(weights[1]))

    def __call__(self, x: Any) -> Any:
        return jnp.tanh(x @ self.a[...]) @ self.b[...]


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_are_torchs(options: str) -> None:
    rng = np.random.default_rng(0)
    weights, x, y = [rng.normal(size=(3, 5)), rng.normal(size=(5, 2))], rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    with double_precision():
        params = [torch.nn.Parameter(torch.from_numpy(weight.copy())) for weight in weights]
        theirs = torch.optim.LBFGS(params, **eval(f"dict({options})"))

        def closure() -> Any:
            theirs.zero_grad()
            loss = ((torch.tanh(torch.from_numpy(x) @ params[0]) @ params[1] - torch.from_numpy(y)) ** 2).mean()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            return loss

        model = Net(weights)
        loss_and_grads = nnx.jit(nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean()))
        ours = evaluate(function_text("torch.optim.LBFGS", f"LBFGS(model{', ' * bool(options)}{options})"), model=model)
        # No more: each iteration multiplies rounding, and a change of one ulp in torch's own weights grows as fast.
        for _ in range(2):
            expected = theirs.step(closure).item()  # type: ignore[no-untyped-call]  # torch's own
            assert float(ours.update(model, lambda: loss_and_grads(model))) == pytest.approx(expected, rel=1e-9)
        for weight, parameter in zip((model.a[...], model.b[...]), params, strict=True):
            np.testing.assert_allclose(np.asarray(weight), parameter.detach().numpy(), rtol=1e-8)


def test_other_line_searches() -> None:
    with pytest.raises(ValueError, match="strong_wolfe"):
        LBFGS(Net([np.ones((1, 1)), np.ones((1, 1))]), line_search_fn="own")
