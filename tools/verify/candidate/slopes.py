"""Measures whether gradients are slopes of the loss under the candidate's own random numbers. Used inside the sandbox."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.verify.candidate.session import Session
from migrate_agent.tools.verify.contract.scenario import Request


def slopes(session: Session, candidate: Candidate, scenario: Request) -> list[float]:
    """The relative distance of the gradient from the loss's slope along it: with paired draws, and with jax's own.

    The first shows whether a custom backward pass is meant as a gradient. The second shows whether it
    repeats the draws of the forward pass.
    """
    programs = [
        session.programs.get(candidate, scenario.mode, session.tree(scenario), gradient=True, paired=paired) for paired in (True, False)
    ]
    with session.draws.apart():
        return [_distance(session, candidate, scenario, program) for program in programs]


def _distance(session: Session, candidate: Candidate, scenario: Request, program: Program) -> float:
    _, trainable, rest = candidate.parts(scenario.mode)
    leaves, targets = session.leaves(scenario)
    _, _, _, of_parameters, of_inputs, _ = program(trainable, rest, leaves, targets)
    of_leaves = [of_inputs.get(str(index)) for index in range(len(leaves))]
    length = float(jnp.sqrt(sum(jnp.sum(item**2) for item in jax.tree.leaves((of_parameters, of_leaves)) if _real(item))))
    # A gradient of zero (or NaN) has no direction to step along; the other checks compare it.
    if not length > 0:
        return 0.0
    losses = []
    # A central difference: its error is of the second order in the step.
    for step in (tolerances.SLOPE_STEP, -tolerances.SLOPE_STEP):
        parameters = jax.tree.map(lambda value, item, step=step: _moved(value, item, step / length), trainable, of_parameters)
        inputs = [_moved(value, item, step / length) for value, item in zip(leaves, of_leaves, strict=True)]
        losses.append(float(program(parameters, rest, inputs, targets)[0]))
    return abs((losses[0] - losses[1]) / (2 * tolerances.SLOPE_STEP) - length) / length


def _real(item: Any) -> bool:
    return item is not None and bool(jnp.issubdtype(item.dtype, jnp.floating))


def _moved(value: Any, item: Any, by: float) -> Any:
    return value + by * item if _real(item) else value
