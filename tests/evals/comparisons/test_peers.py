"""The judgement of peers: what fails is seen, and put into its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch

from migrate_agent.evals.comparisons.peers import (
    NOT_IMPORTED,
    PEERS,
    Built,
    Judgement,
    Kind,
    Peer,
    Positional,
    install,
    judge,
    tensors_of,
    use,
    wheel,
)
from migrate_agent.evals.operators.parity import Program
from migrate_agent.evals.suite import Outcome
from migrate_agent.evals.suites import peers
from migrate_agent.evals.zoo_packages.packages import PackageError


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(torch.float32)


class Scale(torch.nn.Module):
    """`x * weight`, and a buffer that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.weight


def built() -> Built:
    return Built(Scale(), (torch.tensor([[0.5, 3.0]]),), {})


def peer(body: Callable[[Any, Any], Any], counted: float = 1.0) -> Peer:
    """A peer that runs `body(x, weight)`, and counts so much a call."""

    def program(module: torch.nn.Module, args: Any, kwargs: Any) -> Program:
        def call(parameters: Any, rest: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
            return body(args[0], parameters["weight"]), {"calls": rest["calls"] + counted}

        def names(parameters: Any, rest: Any) -> Mapping[str, Any]:
            return {**parameters, **rest}

        return Program({"weight": jnp.array([1.0, -2.0])}, {"calls": jnp.zeros(())}, call, names)

    return Peer("other", wheel("other", "1", "0" * 64, "other"), program, "Otherish")


def fails(error: Exception) -> Callable[[Any, Any], Any]:
    def body(x: Any, weight: Any) -> Any:
        raise error

    return body


@pytest.mark.parametrize(
    ("candidate", "kind"),
    [
        (peer(lambda x, weight: x * weight), "right"),
        (peer(lambda x, weight: x * weight + 1e-6), "wrong result"),
        (peer(lambda x, weight: x * jax.lax.stop_gradient(weight)), "wrong gradient"),
        (peer(lambda x, weight: x * weight, counted=2.0), "wrong state"),
        (peer(lambda x, weight: x * weight if x.sum() > 0 else x), "not under jit"),
        (peer(fails(NotImplementedError("torch.fft"))), "not implemented"),
        (peer(fails(AttributeError("'Otherish' object has no attribute 'chunk'"))), "not implemented"),
        (peer(fails(AttributeError("'tuple' object has no attribute 'value'"))), "its interface"),
        (peer(fails(ValueError("no"))), "raises"),
    ],
)
def test_failures_have_their_class(candidate: Peer, kind: Kind) -> None:
    assert judge(candidate, built).kind == kind


def test_what_cannot_be_built_is_no_failure_of_the_peer() -> None:
    def broken() -> Built:
        raise KeyError("torch.float64")

    with pytest.raises(KeyError):
        judge(peer(lambda x, weight: x * weight), broken)


def test_arguments_are_put_in_their_places() -> None:
    def mix(a: Any, pair: Any, *, scale: float, b: Any = None) -> Any:
        return a * scale + pair[0] - pair[1] + b

    class Mix(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return mix(*args, **kwargs)

    tensors = [torch.full((2,), float(number)) for number in range(4)]
    args: Any = (tensors[0], (tensors[1], tensors[2]))
    kwargs: Any = {"scale": 2.0, "b": tensors[3]}
    wrapped = Positional(Mix(), args, kwargs)
    arrays = tensors_of(*jax.tree.map(lambda leaf: jnp.asarray(leaf.numpy()) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)))
    assert torch.equal(wrapped(*(torch.tensor(array.tolist()) for array in arrays)), mix(*args, **kwargs))


def test_rates_stand_beside_each_other() -> None:
    told = {"torch2jax": {"kind": "raises", "reason": "x"}}
    right = {"torch2jax": {"kind": "right", "reason": ""}}
    outcomes = [
        Outcome("modules/A", "right", "", {"peers": told}),
        Outcome("modules/B", "wrong", "off", {"peers": right}),
        Outcome("imports/x", "excluded", "no"),
    ]
    found = peers.summary(outcomes)
    assert found["rates"] == {"modules": {"migrate-agent": [1, 2], "torch2jax": [1, 2]}}
    assert found["failures"] == {"torch2jax": {"raises": 1}}
    assert "modules: migrate-agent 1 of 2, torch2jax 1 of 2" in list(peers.report(outcomes))


def test_pins() -> None:
    sources = [*(peer.source for peer in PEERS), *NOT_IMPORTED]
    assert all(len(source.sha256) == 64 and source.version in source.file for source in sources)


def test_torch2jax_runs_a_module() -> None:
    (torch2jax,) = (peer for peer in PEERS if peer.name == "torch2jax")
    try:
        install(torch2jax.source)
    except PackageError as error:
        pytest.skip(f"the package index is not reached: {error}")
    use()
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    assert judge(torch2jax, lambda: Built(module, (torch.ones(4, 3),), {})) == Judgement("right")
    exact = judge(torch2jax, lambda: Built(torch.nn.GELU(), (torch.linspace(-3, 3, 9),), {}))
    assert exact.kind == "wrong result"  # it takes the approximation by tanh
