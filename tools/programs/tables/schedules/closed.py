"""Schedules of one formula (https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)."""

from __future__ import annotations

from collections import Counter

from migrate_agent.tools.programs.tables.arguments import Argument, Arguments
from migrate_agent.tools.programs.tables.forms import operand
from migrate_agent.tools.programs.tables.registry import Refused, Schedule
from migrate_agent.tools.rewrite.tables.registry import Refuse


# `optax.exponential_decay` divides the count, int32, in float32 even where everything else is float64.
def _step(arguments: Arguments, lr: Argument) -> str:
    return f"lambda count: {operand(lr.text)} * {operand(arguments['gamma'].text)} ** (count // {operand(arguments['step_size'].text)})"


def _multi_step(arguments: Arguments, lr: Argument) -> str:
    milestones, gamma = arguments["milestones"], arguments["gamma"].text
    if not milestones.known:
        # A dictionary would lose a step that is named twice.
        return f"lambda count: {operand(lr.text)} * {operand(gamma)} ** sum(count >= milestone for milestone in {milestones.text})"
    counts = Counter(milestones.value)
    items = ", ".join(f"{step}: {gamma if count == 1 else f'{operand(gamma)} ** {count}'}" for step, count in sorted(counts.items()))
    boundaries = f"{{{items}}}"
    if not milestones.text.lstrip().startswith(("[", "(")) and len(counts) == len(milestones.value):
        boundaries = f"{{milestone: {gamma} for milestone in {milestones.text}}}"
    return f"optax.piecewise_constant_schedule({lr.text}, {boundaries})"


def _exponential(arguments: Arguments, lr: Argument) -> str:
    return f"lambda count: {operand(lr.text)} * {operand(arguments['gamma'].text)} ** count"


def _linear(arguments: Arguments, lr: Argument) -> str:
    factors = ", ".join(arguments[name].text for name in ("start_factor", "end_factor", "total_iters"))
    if arguments["total_iters"].is_default(0):
        raise Refuse("LinearLR with total_iters=0 stays at its first rate")
    return f"vendored.linear_schedule({lr.text}, {factors})"


def _constant(arguments: Arguments, lr: Argument) -> str:
    total = arguments["total_iters"]
    if total.is_default(0):
        raise Refuse("ConstantLR with total_iters=0 never gives the rate back")
    constants = f"optax.constant_schedule({_times(lr, arguments['factor'])}), optax.constant_schedule({lr.text})"
    return f"optax.join_schedules([{constants}], [{total.text}])"


def _polynomial(arguments: Arguments, lr: Argument) -> str:
    return f"vendored.polynomial_schedule({lr.text}, {arguments['total_iters'].text}, {arguments['power'].text})"


def _cosine(arguments: Arguments, lr: Argument) -> str:
    return f"vendored.cosine_annealing({lr.text}, {arguments['T_max'].text}{_unless_zero(arguments, 'eta_min')})"


def _restarts(arguments: Arguments, lr: Argument) -> str:
    mult = "" if arguments["T_mult"].is_default(1) else f", T_mult={arguments['T_mult'].text}"
    return f"vendored.cosine_warm_restarts({lr.text}, {arguments['T_0'].text}{mult}{_unless_zero(arguments, 'eta_min')})"


def _times(lr: Argument, factor: Argument) -> str:
    return lr.text if factor.is_default(1) else f"{operand(lr.text)} * {operand(factor.text)}"


def _unless_zero(arguments: Arguments, name: str) -> str:
    return "" if arguments[name].is_default(0) else f", {name}={arguments[name].text}"


ROWS = (
    Schedule(
        "torch.optim.lr_scheduler.StepLR",
        "step_size, gamma=0.1, last_epoch=-1",
        _step,
        factor=True,
        length="10 * step_size",
        options=("3, 0.5", "10"),
    ),
    Schedule(
        "torch.optim.lr_scheduler.MultiStepLR",
        "milestones, gamma=0.1, last_epoch=-1",
        _multi_step,
        factor=True,
        length="milestones[-1]",
        options=("[30, 80]", "[3, 8, 8, 20], gamma=0.5"),
    ),
    Schedule("torch.optim.lr_scheduler.ExponentialLR", "gamma, last_epoch=-1", _exponential, factor=True, length="60", options=("0.97",)),
    Schedule(
        "torch.optim.lr_scheduler.LinearLR",
        "start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1",
        _linear,
        factor=True,
        length="total_iters",
        options=("", "start_factor=0.1, end_factor=0.5, total_iters=40"),
    ),
    Schedule(
        "torch.optim.lr_scheduler.ConstantLR",
        "factor=1.0 / 3, total_iters=5, last_epoch=-1",
        _constant,
        factor=True,
        length="total_iters",
        options=("", "factor=0.1, total_iters=40"),
    ),
    Schedule(
        "torch.optim.lr_scheduler.PolynomialLR",
        "total_iters=5, power=1.0, last_epoch=-1",
        _polynomial,
        factor=True,
        length="total_iters",
        options=("", "50, power=0.9"),
        note="past the end, optax's is not a number under jit where the power is a fraction",
    ),
    Schedule(
        "torch.optim.lr_scheduler.CosineAnnealingLR",
        "T_max, eta_min=0.0, last_epoch=-1",
        _cosine,
        length="T_max",
        options=("60", "40, eta_min=0.001"),
        note="past T_max the rate climbs again, where optax stays at the floor",
    ),
    Schedule(
        "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts",
        "T_0, T_mult=1, eta_min=0.0, last_epoch=-1",
        _restarts,
        length="100 * T_0",
        options=("7", "1, T_mult=2", "3, T_mult=3, eta_min=0.001"),
    ),
    Refused("torch.optim.swa_utils.SWALR", "SWALR starts from the rate at which it finds the optimizer in the middle of a run"),
    Refused("torch.optim.lr_scheduler.LRScheduler", "the scheduler is a class of the program's own: its rate is set by hand"),
)
