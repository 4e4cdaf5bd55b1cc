"""What a step may be compiled for once more, and what not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from migrate_agent.tools.harness.jax_side.compiled_programs import compiled_for, kind_of, outermost_trace, structure
from migrate_agent.tools.programs.judge.compare import Pair, Ran, compiled_once


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.zeros(3), np.ones(3), True),
        (np.zeros(3), np.zeros(4), False),
        (np.zeros(3), np.zeros(3, np.float32), False),
        (True, False, False),
        ("train", "test", False),
        (3, 4, True),
        (0.1, 0.2, True),
        (1, True, False),
    ],
)
def test_a_number_of_the_step_is_no_reason(one: Any, other: Any, same: bool) -> None:
    assert (compiled_for(one) == compiled_for(other)) is same


def test_gradients_of_one_program_share_its_outermost_trace() -> None:
    """Parts of a batch may be unrolled or scanned over; a second shape is a second program."""
    seen: list[tuple[str, Any]] = []

    def note(name: str) -> None:
        seen.append((name, outermost_trace()))

    def loss(x: Any) -> Any:
        note("loss")
        return (x**2).sum()

    @jax.jit
    def step(rows: Any) -> Any:
        note("step")

        def part(total: Any, row: Any) -> Any:
            return total + jax.grad(loss)(row), None

        return jax.lax.scan(part, jnp.zeros(3), rows)[0]

    step(jnp.ones((4, 3)))
    first = {id(trace) for _, trace in seen}
    step(jnp.ones((5, 3)))
    assert outermost_trace() is None
    assert len(first) == 1
    assert len({id(trace) for _, trace in seen}) == 2
    assert {name for name, _ in seen} == {"step", "loss"}


@pytest.mark.parametrize(
    ("traces", "status"),
    [
        ([(0, "loss[x]"), (0, "loss[x]")], "pass"),
        ([(0, "loss[x]"), (1, "loss[x]")], "fail"),
        ([(0, "loss[x]"), (1, "loss[y]")], "pass"),
    ],
)
def test_a_program_is_compiled_once(traces: list[tuple[int, str]], status: str) -> None:
    ran = Ran({"compiled": traces, "eager": 0}, {})
    pair = Pair(ran, ran, ran)
    assert compiled_once(pair, pair).status == status


class Net(nnx.Module):
    """A module with a number, a word and a switch that are static."""

    def __init__(self, act: Callable[[Any], Any] = jax.nn.relu, rate: float = 0.1, mode: str = "sum", rows: tuple[int, ...] = ()) -> None:
        self.layer = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        self.act, self.rate, self.mode, self.rows = act, rate, mode, rows

    def __call__(self, x: Any) -> Any:
        return self.act(self.layer(x)) * self.rate


class OtherNet(Net):
    """Another class of the same shapes."""


@dataclass(frozen=True)
class Options:
    """Static options, of which one is a number."""

    step: int = 0
    smooth: bool = False


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


def other_closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 2, True),
        ((1, 2), (1, 2, 3), True),
        (Options(1), Options(2), True),
        (Options(1), Options(1, smooth=True), False),
        (Net(rate=0.1), Net(rate=0.2), True),
        (Net(rows=(1,)), Net(rows=(1, 2)), True),
        (Net(mode="sum"), Net(mode="mean"), False),
        (Net(jax.nn.relu), Net(jax.nn.silu), False),
        (Net(), OtherNet(), False),
        (closing_over(1), closing_over(2), True),
        (closing_over(True), closing_over(False), False),
        (closing_over(1), other_closing_over(1), False),
        (optax.sgd(0.1), optax.sgd(0.2), True),
        (optax.sgd(0.1), optax.sgd(0.1, momentum=0.9), False),
        (optax.adam(0.1), optax.rmsprop(0.1), False),
        (np.zeros(3), np.zeros(4), True),
    ],
)
def test_structure_holds_no_numbers(one: Any, other: Any, same: bool) -> None:
    assert (structure(one) == structure(other)) is same


def optimizer(net: Net, tx: Any, trained: int) -> Any:
    """An optimizer, with the number of its module as the judge gives it."""
    made = nnx.Optimizer(net, tx, wrt=nnx.Param)
    object.__setattr__(made, "_trained", trained)
    return made


Noted = list[tuple[int, str]]


def stepper(notes: Noted, **options: Any) -> Callable[..., Any]:
    """A compiled step that notes its kind as the judge does, with options of `nnx.jit`."""

    def step(net: Any, optimizer: Any, x: Any, static: Any = None) -> None:
        def loss(net: Any, x: Any) -> Any:
            return net(x).sum()

        gradients = nnx.grad(loss)(net, x)
        notes.append((len(notes), kind_of("loss", (net, x))))
        optimizer.update(net, gradients)

    compiled: Callable[..., Any] = nnx.jit(step, graph=False, **options)
    return compiled


def four_optimizers(notes: Noted) -> None:
    step, transformations = stepper(notes), (optax.sgd(0.1), optax.sgd(0.1, momentum=0.8), optax.rmsprop(0.1), optax.adam(0.1))
    train(step, [(net := Net(), optimizer(net, tx, number)) for number, tx in enumerate(transformations)])


def four_rates(notes: Noted) -> None:
    step = stepper(notes)
    train(step, [(net := Net(), optimizer(net, optax.sgd(rate), number)) for number, rate in enumerate((0.1, 0.2, 0.3, 0.4))])


def other_classes(notes: Noted) -> None:
    step, transformation = stepper(notes), optax.sgd(0.1)
    train(step, [(net, optimizer(net, transformation, 0)) for net in (Net(), OtherNet(), Net(jax.nn.silu))])


def train(step: Callable[..., Any], pairs: Iterable[tuple[Any, Any]], epochs: int = 2) -> None:
    """Both epochs end with a smaller batch."""
    pairs = list(pairs)
    for rows in (4, 4, 2) * epochs:
        for net, its_optimizer in pairs:
            step(net, its_optimizer, jnp.ones((rows, 2)))


def switches(notes: Noted) -> None:
    step, net = stepper(notes, static_argnames="static"), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(6):
        step(net, own, jnp.ones((2, 2)), static=number % 2 == 0)


def static_count(notes: Noted) -> None:
    step, net = stepper(notes, static_argnames="static"), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(4):
        step(net, own, jnp.ones((2, 2)), static=number)


def static_options(notes: Noted) -> None:
    step, net = stepper(notes, static_argnames="static"), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(4):
        step(net, own, jnp.ones((2, 2)), static=Options(number))


def compiled_anew(notes: Noted) -> None:
    net = Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for _ in range(4):
        stepper(notes)(net, own, jnp.ones((2, 2)))


def rate_of_the_step(notes: Noted) -> None:
    step, net = stepper(notes), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(4):
        own.tx = optax.sgd(0.1 / (number + 1))
        step(net, own, jnp.ones((2, 2)))


def count_in_the_module(notes: Noted) -> None:
    step, net = stepper(notes), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(4):
        net.rate = 0.1 * number
        step(net, own, jnp.ones((2, 2)))


def growing_history(notes: Noted) -> None:
    step, net = stepper(notes), Net()
    own = optimizer(net, optax.sgd(0.1), 0)
    for number in range(4):
        net.rows = (*net.rows, number)
        step(net, own, jnp.ones((2, 2)))


def new_optimizers(notes: Noted) -> None:
    step, net = stepper(notes), Net()
    for _ in range(4):
        step(net, optimizer(net, optax.sgd(0.1), 0), jnp.ones((2, 2)))


@pytest.mark.parametrize(
    ("program", "count", "status"),
    [
        (four_optimizers, 8, "pass"),
        (four_rates, 8, "pass"),
        (other_classes, 6, "pass"),
        (switches, 2, "pass"),
        (static_count, 4, "fail"),
        (static_options, 4, "fail"),
        (compiled_anew, 4, "fail"),
        (rate_of_the_step, 4, "fail"),
        (count_in_the_module, 4, "fail"),
        (growing_history, 4, "fail"),
        (new_optimizers, 4, "fail"),
    ],
)
def test_each_structure_is_compiled_once_and_no_number_is_one(program: Callable[[Noted], None], count: int, status: str) -> None:
    notes: Noted = []
    program(notes)
    ran = Ran({"compiled": notes, "eager": 0}, {})
    assert len(notes) == count
    assert compiled_once(Pair(ran, ran, ran), Pair(ran, ran, ran)).status == status
