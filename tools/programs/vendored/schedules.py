"""Schedules of torch that optax lacks, or computes otherwise: count of updates, int (), → rate, float ()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

Schedule = Callable[[Any], Any]


def per_epoch(schedule: Schedule, steps_per_epoch: int) -> Schedule:
    """A schedule that torch steps once an epoch, as a function of the updates."""
    return lambda count: schedule(count // steps_per_epoch)


def chained(learning_rate: Any, *factors: Schedule) -> Schedule:
    """`torch.optim.lr_scheduler.ChainedScheduler`: the rate times all factors."""

    def schedule(count: Any) -> Any:
        rate = learning_rate
        for factor in factors:
            rate = rate * factor(count)
        return rate

    return schedule


def linear_schedule(learning_rate: Any, start_factor: Any, end_factor: Any, total_iters: Any) -> Schedule:
    """`torch.optim.lr_scheduler.LinearLR` (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html).

    As all functions of this file it divides in the precision that is in force; `optax.linear_schedule` divides counts in float32 always.
    """

    def schedule(count: Any) -> Any:
        share = jnp.minimum(jnp.asarray(count, float) / total_iters, 1.0)
        return learning_rate * (start_factor + (end_factor - start_factor) * share)

    return schedule


def polynomial_schedule(learning_rate: Any, total_iters: Any, power: Any = 1.0) -> Schedule:
    """`torch.optim.lr_scheduler.PolynomialLR`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.PolynomialLR.html).

    Past the end, under `jit`, `optax.polynomial_schedule` raises a rest that rounding made negative to a power.
    """

    def schedule(count: Any) -> Any:
        rest = jnp.where(count < total_iters, 1 - jnp.asarray(count, float) / total_iters, 0.0)
        return learning_rate * rest**power

    return schedule


def cosine_annealing(learning_rate: Any, T_max: Any, eta_min: Any = 0.0) -> Schedule:
    """`torch.optim.lr_scheduler.CosineAnnealingLR`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html).

    Past `T_max` the rate climbs again, where `optax.cosine_decay_schedule` stays at the floor.
    """
    return lambda count: eta_min + (learning_rate - eta_min) * (1 + jnp.cos(jnp.pi * count / T_max)) / 2


def cosine_warm_restarts(learning_rate: Any, T_0: int, T_mult: int = 1, eta_min: Any = 0.0) -> Schedule:
    """`torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html).

    Each cycle is `T_mult` times as long as the one before it. The count may be a fraction of epochs.
    """
    # A table, since the logarithm of a count rounds to the wrong cycle where one begins.
    starts, lengths = [0], [T_0]
    while T_mult > 1 and starts[-1] + lengths[-1] < 2**31:
        starts.append(starts[-1] + lengths[-1])
        lengths.append(lengths[-1] * T_mult)

    def schedule(count: Any) -> Any:
        cycle = jnp.searchsorted(jnp.asarray(starts), count, side="right") - 1
        length = jnp.asarray(lengths, float)[cycle]
        position = count % T_0 if T_mult == 1 else count - jnp.asarray(starts)[cycle]
        return eta_min + (learning_rate - eta_min) * (1 + jnp.cos(jnp.pi * position / length)) / 2

    return schedule


def one_cycle(
    max_lr: Any,
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    div_factor: Any = 25.0,
    final_div_factor: Any = 1e4,
    three_phase: bool = False,
) -> Schedule:
    """The rate of `torch.optim.lr_scheduler.OneCycleLR`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html).

    The phases end a step earlier than those of `optax.cosine_onecycle_schedule`. Past `total_steps`, where torch raises, the last rate stays.
    """
    first = max_lr / div_factor
    values = (first, max_lr, first, first / final_div_factor) if three_phase else (first, max_lr, first / final_div_factor)
    return phases(values, phase_ends(total_steps, pct_start, three_phase), anneal_strategy)


def one_cycle_momentum(
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    base_momentum: Any = 0.85,
    max_momentum: Any = 0.95,
    three_phase: bool = False,
) -> Schedule:
    """The momentum, or Adam's `b1`, of `torch.optim.lr_scheduler.OneCycleLR`: it falls while the rate climbs."""
    values = (max_momentum, base_momentum, max_momentum, max_momentum)
    return phases(values if three_phase else values[:3], phase_ends(total_steps, pct_start, three_phase), anneal_strategy)


def phase_ends(total_steps: int, pct_start: float, three_phase: bool) -> tuple[float, ...]:
    """The counts at which torch's phases begin and end."""
    first = float(pct_start * total_steps) - 1
    return (0.0, first, float(2 * pct_start * total_steps) - 2, total_steps - 1) if three_phase else (0.0, first, total_steps - 1)


def phases(values: tuple[Any, ...], ends: tuple[float, ...], anneal_strategy: str) -> Schedule:
    """A schedule that goes from value to value, reaching each at its end."""

    def anneal(start: Any, end: Any, share: Any) -> Any:
        return end + (start - end) / 2 * (1 + jnp.cos(jnp.pi * share)) if anneal_strategy == "cos" else start + (end - start) * share

    def schedule(count: Any) -> Any:
        # After the last step torch still sets a rate, which a log may show: the last phase a step too far.
        count = jnp.minimum(count, ends[-1] + 1)
        rate = anneal(values[-2], values[-1], (count - ends[-2]) / (ends[-1] - ends[-2]))
        for i in reversed(range(len(ends) - 2)):
            rate = jnp.where(count <= ends[i + 1], anneal(values[i], values[i + 1], (count - ends[i]) / (ends[i + 1] - ends[i])), rate)
        return rate

    return schedule


def cyclic(
    base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: Any = 1.0
) -> Schedule:
    """`torch.optim.lr_scheduler.CyclicLR` (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CyclicLR.html).

    With the momentum's bounds in place of the rate's, the largest first, it is the momentum that torch cycles.
    """
    up = float(step_size_up)
    total = up + (up if step_size_down is None else float(step_size_down))
    ratio = up / total

    def schedule(count: Any) -> Any:
        cycle = jnp.floor(1 + count / total)
        x = 1.0 + count / total - cycle
        height = jnp.where(x <= ratio, x / ratio, (x - 1) / (ratio - 1))
        scale = {"triangular": 1.0, "triangular2": 0.5 ** (cycle - 1), "exp_range": gamma**count}[mode]
        return base_lr + (max_lr - base_lr) * height * scale

    return schedule
