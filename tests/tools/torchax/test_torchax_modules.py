"""Modules of torch that run through torchax: numbers, gradients, buffers, modes and random draws, and what the verifier says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch import nn

from migrate_agent.agent.loop.torchax import import_error
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools import extras, weights
from migrate_agent.tools.rewrite import compose, translate, wrapper
from migrate_agent.tools.scan import scan
from migrate_agent.tools.torchax.torchax_modules import TorchaxModule
from migrate_agent.tools.types import Evidence, Example
from migrate_agent.tools.verify import verify

MISSING = import_error() if extras.installed("torchax") else "it is not installed: pip install 'migrate-agent[torchax]'"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"torchax does not work here: {MISSING}")]


class Torch(nn.Module):
    """Buffers, an attribute that is a tensor, dropout and a part in a container."""

    def __init__(self, width: int = 4, rate: float = 0.5) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.parts = nn.Sequential(nn.Linear(width, 3), nn.Dropout(rate))
        self.offset = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.parts(self.norm(x)) + self.offset  # type: ignore[no-any-return]

    def keep(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x
        return x


class Port(TorchaxModule):
    """As the rules write it."""

    norm: Any
    parts: Any

    def __init__(self, width: int = 4, rate: float = 0.5, *, rngs: nnx.Rngs) -> None:
        super().__init__(Torch, width, rate, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.call_torch("forward", x)  # type: ignore[no-any-return]


@pytest.fixture
def pair() -> tuple[Torch, Port]:
    original, port = Torch(), Port(rngs=nnx.Rngs(0))
    weights.load_state_dict(port, {name: value.numpy() for name, value in original.state_dict().items()})
    return original, port


X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
VAR = 0.9 * (0.9 + 0.1 * X.var(0, ddof=1)) + 0.1 * X.var(0, ddof=1)
"""Running variance after two calls in training mode."""


def test_call_and_gradients_are_those_of_torch(pair: tuple[Torch, Port]) -> None:
    original, port = pair
    original.eval()
    port.eval()  # type: ignore[no-untyped-call]
    original(torch.tensor(X)).square().sum().backward()
    value, gradients = nnx.jit(nnx.value_and_grad(lambda model: (model(jnp.asarray(X)) ** 2).sum()))(port)
    assert np.isclose(value, original(torch.tensor(X)).square().sum().item(), rtol=1e-6)
    assert np.allclose(gradients["parts"]["0"].weight[...], original.parts[0].weight.grad, rtol=1e-5)  # type: ignore[arg-type]


def test_training_moves_statistics_and_draws_from_rngs(pair: tuple[Torch, Port]) -> None:
    port = pair[1]
    call: Callable[[Port], jax.Array] = nnx.jit(lambda model: model(jnp.asarray(X)))
    first, second = call(port), call(port)
    assert np.allclose(port.norm.running_var[...], VAR, rtol=1e-5)
    assert int(port.norm.num_batches_tracked[...]) == 2
    assert (np.asarray(first) != np.asarray(second)).any()
    getattr(port.parts, "1").eval()
    assert np.array_equal(call(port), call(port))


def test_constructor_may_be_traced_and_follows_rngs() -> None:
    assert nnx.eval_shape(lambda: Port(rngs=nnx.Rngs(0))).norm.weight.shape == (4,)
    drawn = [np.asarray(getattr(Port(rngs=nnx.Rngs(seed)).parts, "0").weight[...]) for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[0], drawn[2])


def test_what_a_call_leaves_on_the_module_is_refused(pair: tuple[Torch, Port]) -> None:
    with pytest.raises(NotImplementedError, match="Torch sets its attribute last"):
        pair[1].call_torch("keep", jnp.asarray(X))
    assert not hasattr(pair[1].original, "last")


def verified(tmp_path: Path, body: str) -> Evidence:
    """The evidence on the wrapper of a class `Odd` with this constructor and forward."""
    original, candidate = tmp_path / "original", tmp_path / "candidate"
    original.mkdir()
    (original / "model.py").write_text(f"import torch\nfrom torch import nn\n\n\nclass Odd(nn.Module):{body}")
    inventory = scan(original)
    example = Example("model.py:Odd", "4", "torch.randn(5, 4)")
    draft = compose(inventory, {}, [example.unit], {example.unit: wrapper(inventory, example.unit)}, [example])
    for path, file in draft.files.items():
        candidate.mkdir(exist_ok=True)
        (candidate / path).write_text(file)
    unit, translated = inventory.unit(example.unit), translate(inventory, {}, example)
    with ProcessSandbox() as sandbox:
        return verify(unit, [example], [translated], original, candidate, inventory, sandbox, tmp_path / "work")


HEAD = """
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
"""


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("return torch.hypot(self.linear(x), x)", "verified"),
        ("return nn.functional.dropout(self.linear(x), 0.3, self.training)", "verified"),
        ("y = self.linear(x)\n        y.view(-1)[0] = 0.0\n        return y", "failed"),
        ("y = self.linear(x)\n        with torch.no_grad():\n            z = y * 2\n        return y + z", "failed"),
    ],
)
def test_verifier_judges_wrappers(tmp_path: Path, forward: str, status: str) -> None:
    evidence = verified(tmp_path, f"{HEAD}\n    def forward(self, x):\n        {forward}\n")
    assert evidence.torchax == ("model.py:Odd",)
    assert evidence.status == status, "\n".join(
        f"{v.stage}/{v.check}: {v.status} {v.detail}" for v in evidence.verdicts if v.status != "pass"
    )
