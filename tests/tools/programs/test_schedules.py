"""Every schedule row × its options against torch: the rate at every step of twice the configured length, per step and per epoch."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.programs.problem import Model, double_precision, evaluate, randomised
from migrate_agent.tools.programs.tables.arguments import Argument, literal, parse_signature
from migrate_agent.tools.programs.tables.registry import Schedule, Text, optimizer_arguments, refused, schedules
from migrate_agent.tools.programs.tables.schedule_text import (
    CHAINED,
    SEQUENTIAL,
    ScheduleCall,
    momentum_text,
    schedule_call,
    schedule_text,
    scheduled_optimizer,
)
from migrate_agent.tools.programs.vendored.host_schedules import (
    LambdaLR,
    MultiplicativeLR,
    ReduceLROnPlateau,
    hyperparameters,
    set_hyperparameter,
)
from migrate_agent.tools.programs.vendored.rate_schedules import RateSchedule
from migrate_agent.tools.rewrite.tables.registry import Refuse

torch_schedules: Any = torch.optim.lr_scheduler
BASE = 0.1
CASES = [
    pytest.param(row, options, id=f"{row.name.rpartition('.')[2]}({options})") for row in schedules().values() for options in row.options
]
SEQUENCES = {
    "warm-up, cosine": (SEQUENTIAL, "[LinearLR(o, 0.1, total_iters=10), CosineAnnealingLR(o, 50)]", "[10]"),
    "three": (SEQUENTIAL, "[ConstantLR(o, 0.1, 5), StepLR(o, 7), ExponentialLR(o, 0.97)]", "[5, 40]"),
    "restarts": (SEQUENTIAL, "[LinearLR(o, 0.5, total_iters=4), CosineAnnealingWarmRestarts(o, 5, 2)]", "[4]"),
    "factors": (CHAINED, "[ConstantLR(o, 0.1, 5), ExponentialLR(o, 0.97), MultiStepLR(o, [20, 40])]", ""),
    "polynomial": (CHAINED, "[LinearLR(o, 0.1, total_iters=10), PolynomialLR(o, 60, 0.9)]", ""),
}
"""A label → the class, its schedulers, and its milestones."""


def rates(make: Any, steps: int, steps_per_epoch: int = 1) -> tuple[list[float], list[float]]:
    """Torch's rate and momentum before each of so many updates."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], BASE, momentum=0.9)
    scheduler = make(optimizer)
    seen = []
    for step in range(steps):
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        optimizer.step()
        if (step + 1) % steps_per_epoch == 0 and step + 1 < steps:
            scheduler.step()
    return [lr for lr, _ in seen], [momentum for _, momentum in seen]


def ours(text: Text, steps: int) -> Any:
    """Our schedule's value at each of so many counts, as a step under `jit` sees it."""
    return np.asarray(jax.jit(jax.vmap(evaluate(text)))(jnp.arange(steps, dtype=jnp.int32)))


def arguments_of(row: Schedule, options: str) -> dict[str, Any]:
    names = parse_signature(row.signature).parameters
    call = schedule_call(row.name, f"f(o, {options})").arguments
    return {name: ast.literal_eval(call[name].text) for name in names if name != "last_epoch" and call[name].known}


@pytest.mark.parametrize(("row", "options"), CASES)
def test_rate_is_torchs(row: Schedule, options: str) -> None:
    steps = int(2 * eval(row.length, arguments_of(row, options)))
    make = getattr(torch_schedules, row.name.rpartition(".")[2])
    with double_precision():
        expected, momentum = rates(lambda o: eval(f"make(o, {options})", {"make": make, "o": o}), steps)
        call = schedule_call(row.name, f"f(o, {options})")
        np.testing.assert_allclose(ours(schedule_text(call, literal(str(BASE))), steps), expected, rtol=1e-12, atol=1e-15 * BASE * 10)
        cycled = momentum_text(call)
        assert (cycled is not None) == (len(set(momentum)) > 1)
        if cycled:
            np.testing.assert_allclose(ours(cycled, steps), momentum, rtol=1e-12)


@pytest.mark.parametrize("label", SEQUENCES)
@pytest.mark.filterwarnings("ignore:.*is deprecated:UserWarning")
def test_made_of_several(label: str) -> None:
    name, parts, milestones = SEQUENCES[label]
    calls = [ast.unparse(node) for node in ast.parse(parts, mode="eval").body.elts]  # type: ignore[attr-defined]
    inner = [schedule_call(f"torch.optim.lr_scheduler.{text.partition('(')[0]}", text) for text in calls]
    outer = f"S({'o, ' * bool(milestones)}{parts}{', ' * bool(milestones)}{milestones})"
    make = getattr(torch_schedules, name.rpartition(".")[2])
    with double_precision():
        expected, _ = rates(lambda o: eval(outer, {**vars(torch_schedules), "S": make, "o": o}), 120)
        text = schedule_text(schedule_call(name, outer, parts=inner), literal(str(BASE)))
        np.testing.assert_allclose(ours(text, 120), expected, rtol=1e-12, atol=1e-16)


def test_once_an_epoch() -> None:
    call = schedule_call("torch.optim.lr_scheduler.StepLR", "StepLR(optimizer, 3, gamma=0.5)")
    text = schedule_text(call, literal("0.1"), "7")
    assert text == Text("per_epoch(lambda count: 0.1 * 0.5 ** (count // 3), 7)", frozenset({"per_epoch"}))
    with double_precision():
        expected, _ = rates(lambda o: torch_schedules.StepLR(o, 3, gamma=0.5), 120, 7)
        np.testing.assert_allclose(ours(text, 120), expected, rtol=1e-12)


@pytest.mark.parametrize("row", schedules().values(), ids=lambda row: row.name.rpartition(".")[2])
def test_signature_is_torchs(row: Schedule) -> None:
    theirs = dict(inspect.signature(getattr(torch_schedules, row.name.rpartition(".")[2])).parameters)
    mine = parse_signature(row.signature).parameters
    assert list(mine) == [name for name in theirs if name != "optimizer"]
    for name, parameter in mine.items():
        default = theirs[name].default
        assert (default is inspect.Parameter.empty) == (parameter.default is inspect.Parameter.empty), name
        assert default is inspect.Parameter.empty or eval(parameter.default) == default


def injected(value: float = BASE) -> tuple[nnx.Module, nnx.Optimizer[Any]]:
    """A model, and an optimizer of which the rate is a state."""
    module = randomised(Model(nnx.Rngs(0)))
    transform = optax.inject_hyperparams(lambda learning_rate: optax.sgd(learning_rate))(learning_rate=value)
    return module, nnx.Optimizer(module, transform, wrt=nnx.Param)


PLATEAUS: list[dict[str, Any]] = [
    {"factor": 0.5, "patience": 4, "cooldown": 2},
    {"mode": "max", "patience": 2, "threshold": 0.01, "min_lr": 1e-3},
    {"threshold_mode": "abs", "threshold": 0.002, "factor": 0.3, "patience": 3},
    {"mode": "max", "threshold_mode": "abs", "patience": 1, "eps": 0.05},
]


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
def test_plateau(options: dict[str, Any], double: bool) -> None:
    rng = np.random.default_rng(1)
    metrics = np.concatenate([np.linspace(1, 0.5, 30), 0.5 + 0.01 * rng.normal(size=60), -np.linspace(0, 1, 10)])
    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], BASE)
    plateau = torch_schedules.ReduceLROnPlateau(theirs, **options)
    with jax.enable_x64(double):
        _, optimizer = injected()
        mine = ReduceLROnPlateau(optimizer, **options)
        for i, metric in enumerate(metrics):
            if i == 50:
                state, mine = mine.state_dict(), ReduceLROnPlateau(optimizer, **options)
                mine.load_state_dict(state)
            plateau.step(metric)
            mine.step(jnp.asarray(metric))
            (rate,) = hyperparameters(optimizer).values()
            assert float(rate[...]) == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-15 if double else 1e-6)
            assert mine.get_last_lr() == plateau.get_last_lr() if double else True
    assert theirs.param_groups[0]["lr"] < BASE


@pytest.mark.parametrize(("name", "mine"), [("LambdaLR", LambdaLR), ("MultiplicativeLR", MultiplicativeLR)])
def test_own_functions(name: str, mine: Any) -> None:
    def factor(count: int) -> float:
        return min((count + 1) ** -0.5, (count + 1) * 20**-1.5) if name == "LambdaLR" else 1 - 1 / (count + 2)

    expected, _ = rates(lambda o: getattr(torch_schedules, name)(o, factor), 60)
    with jax.enable_x64(True):
        module, optimizer = injected()
        grads = jax.tree.map(jnp.ones_like, nnx.state(module, nnx.Param))
        scheduler = mine(optimizer, factor)
        traces = []

        def update(module: nnx.Module, optimizer: nnx.Optimizer[Any], grads: Any) -> None:
            traces.append(1)
            optimizer.update(module, grads)

        step = nnx.jit(update)
        seen = []
        for count in range(60):
            if count == 30:
                state, scheduler = scheduler.state_dict(), mine(injected()[1], factor)
                scheduler.load_state_dict(state)
                scheduler.optimizer = optimizer
            (rate,) = hyperparameters(optimizer).values()
            seen.append(float(rate[...]))
            step(module, optimizer, grads)
            scheduler.step()
    np.testing.assert_allclose(seen, expected, rtol=1e-13)
    assert len(traces) == 1


def test_logged_rates_are_torchs_in_float32() -> None:
    """The rate that a script prints, to its last digit but one, though the optimizer holds float32."""
    call = schedule_call("torch.optim.lr_scheduler.CosineAnnealingLR", "CosineAnnealingLR(optimizer, 30, eta_min=1e-5)")
    schedule = evaluate(schedule_text(call, literal("0.1")))
    expected, _ = rates(lambda o: torch_schedules.CosineAnnealingLR(o, 30, eta_min=1e-5), 60)
    scheduler = RateSchedule(injected()[1], schedule)
    seen = []
    for _ in range(60):
        seen += scheduler.get_last_lr()
        scheduler.step()
    np.testing.assert_allclose(seen, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "momentum"),
    [("Adam", "", "b1"), ("AdamW", "", "b1"), ("SGD", "momentum=0.9", "momentum"), ("RMSprop", "momentum=0.9", "momentum")],
)
def test_cycled_momentum(name: str, options: str, momentum: str) -> None:
    """One cycle over 40 updates of an optimizer: torch's parameter against ours."""
    call = schedule_call("torch.optim.lr_scheduler.OneCycleLR", "OneCycleLR(optimizer, 0.05, total_steps=40)")
    arguments = optimizer_arguments(f"torch.optim.{name}", f"f(p, {options})")
    text = scheduled_optimizer(f"torch.optim.{name}", arguments, schedule_text(call, literal("0.1")), momentum_text(call))
    assert f"lambda learning_rate, {momentum}:" in text.code
    with double_precision():
        target = np.arange(3.0)
        theirs = torch.nn.Parameter(torch.zeros(3))
        optimizer = getattr(torch.optim, name)([theirs], **eval(f"dict({options})"))
        scheduler = torch_schedules.OneCycleLR(optimizer, 0.05, total_steps=40)
        tx = evaluate(text)
        mine = jnp.zeros(3)
        state = tx.init(mine)
        update = jax.jit(tx.update)
        for step in range(40):
            theirs.grad = theirs.detach() - torch.from_numpy(target) + 0.1 * np.sin(step)
            optimizer.step()
            updates, state = update(mine - target + 0.1 * np.sin(step), state, mine)
            mine = optax.apply_updates(mine, updates)
            if step < 39:
                scheduler.step()
        np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-12)


REFUSALS: dict[str, Callable[[], Any]] = {
    "a continued schedule": lambda: schedule_call("torch.optim.lr_scheduler.StepLR", "StepLR(o, 3, last_epoch=7)"),
    "a class without a row": lambda: schedule_call("torch.optim.lr_scheduler.Own", "Own(o)"),
    "one that starts in the middle": lambda: schedule_call("torch.optim.swa_utils.SWALR", "SWALR(o, 0.1)"),
    "a function of the program": lambda: text_of("CyclicLR", "CyclicLR(o, 0.1, 1.0, scale_fn=f)"),
    "a host class": lambda: text_of("LambdaLR", "LambdaLR(o, f)"),
    "spread arguments": lambda: schedule_call("torch.optim.lr_scheduler.StepLR", "StepLR(o, **options)"),
    "cosine in a chain": lambda: chain_of("CosineAnnealingLR", "CosineAnnealingLR(o, 7)"),
    "one cycle in a sequence": lambda: sequence_of("OneCycleLR", "OneCycleLR(o, 0.1, 7)"),
}


def text_of(name: str, call: str) -> Text:
    return schedule_text(schedule_call(f"torch.optim.lr_scheduler.{name}", call), Argument("lr"))


def chain_of(name: str, call: str) -> Text:
    return schedule_text(ScheduleCall(CHAINED, {}, (schedule_call(f"torch.optim.lr_scheduler.{name}", call),)), Argument("lr"))


def sequence_of(name: str, call: str) -> Text:
    part = schedule_call(f"torch.optim.lr_scheduler.{name}", call)
    return schedule_text(ScheduleCall(SEQUENTIAL, {"milestones": Argument("[3]")}, (part,)), Argument("lr"))


@pytest.mark.parametrize("label", REFUSALS)
def test_refused(label: str) -> None:
    with pytest.raises(Refuse):
        REFUSALS[label]()


def test_values_that_a_recording_saw() -> None:
    call = schedule_call("torch.optim.lr_scheduler.MultiStepLR", "MultiStepLR(o, args.milestones)", {"milestones": [30, 80]})
    assert schedule_text(call, Argument("args.lr")).code == (
        "optax.piecewise_constant_schedule(args.lr, {milestone: 0.1 for milestone in args.milestones})"
    )


def test_milestones_that_only_the_program_knows() -> None:
    """One that is named twice counts twice."""
    milestones = [3, 8, 8, 20]
    schedule = eval(text_of("MultiStepLR", "MultiStepLR(o, milestones)").code, {"lr": BASE, "milestones": milestones})
    theirs, _ = rates(lambda optimizer: torch_schedules.MultiStepLR(optimizer, milestones), 24)
    np.testing.assert_allclose(jax.vmap(schedule)(jnp.arange(24)), theirs, rtol=1e-6)


def test_reasons_of_what_is_refused() -> None:
    assert all(row.reason and row.name.startswith("torch.") for row in refused().values())


def test_a_rate_that_is_set_keeps_its_type() -> None:
    """So that the step is not compiled again, with numbers that may be weakly typed or not."""
    for rate in (0.1, jnp.float32(0.1), jnp.asarray(0.1)):
        optimizer = nnx.Optimizer(
            nnx.Linear(1, 1, rngs=nnx.Rngs(0)), optax.inject_hyperparams(optax.sgd)(learning_rate=rate), wrt=nnx.Param
        )
        (variable,) = hyperparameters(optimizer).values()
        before = jax.typeof(variable[...])
        for value in (0.25, np.float64(0.25), jnp.asarray(0.25)):
            set_hyperparameter(optimizer, value)
            assert jax.typeof(variable[...]) == before and variable[...] == 0.25
