"""Runs the parts of a candidate that only a TPU runs: its Pallas kernels and its branches by platform. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.jax_side.interpreted import interpreted
from migrate_agent.tools.harness.jax_side.jaxprs import equations, live_kernels
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.verify.candidate.session import Session
from migrate_agent.tools.verify.contract.scenario import Request

FILE = "kernels.safetensors"


def differs(jaxpr: Any) -> bool:
    """Whether a program differs on a TPU: it has kernels, or branches by platform."""
    return any(equation.primitive.name == "pallas_call" or _apart(equation) for equation in equations(jaxpr.jaxpr))


def _apart(equation: Any) -> bool:
    """Whether an equation selects another branch on a TPU than on a CPU."""
    if equation.primitive.name != "platform_index":
        return False
    groups = [group or ("cpu", "tpu") for group in equation.params["platforms"]]
    first = {name: next((i for i, group in enumerate(groups) if name in group), -1) for name in ("cpu", "tpu")}
    return first["cpu"] != first["tpu"]


def on_tpu(session: Session, program: Program, arguments: Sequence[Any]) -> dict[str, Any]:
    """Count the program's kernels and the live ones, and run it as on a TPU, with kernels interpreted.

    Writes the results on both platforms to `kernels.safetensors`: `plain/output 0`, `tpu/output 0`,
    `plain/gradient 0` and so on.
    """
    jaxpr = jax.jit(program.candidate_step).trace(*arguments).jaxpr
    everything = list(equations(jaxpr.jaxpr))
    count = sum(equation.primitive.name == "pallas_call" for equation in everything)
    facts: dict[str, Any] = {"kernels": count, "live": live_kernels(jaxpr.jaxpr), "followed": True}
    try:
        with interpreted(on_tpu=True):
            # A new function, because jax would find the trace of `candidate_step` for the CPU in
            # its cache.
            special = jax.jit(lambda *step_arguments: program.candidate_step(*step_arguments))
            inner = special.trace(*arguments).jaxpr
            facts["followed"] = not any(map(_apart, equations(inner.jaxpr)))
            tpu = _results(special(*arguments)) if facts["followed"] else {}
        # Without branches by platform, the kernels have no plain version in the program to compare
        # with.
        plain = _results(program.jitted(*arguments)) if any(map(_apart, everything)) else tpu
    except Exception as error:
        return {**facts, **session.fail(error)}
    tensor_files.save(
        session.output / FILE, {f"{side}/{key}": x for side, arrays in (("plain", plain), ("tpu", tpu)) for key, x in arrays.items()}
    )
    return facts


def _results(step: Any) -> dict[str, Any]:
    _, outputs, _, of_parameters, of_inputs, *_ = step
    parts = (("output", outputs), ("gradient", (of_parameters, of_inputs)))
    return {f"{name} {index}": np.asarray(value) for name, part in parts for index, value in enumerate(jax.tree.leaves(part))}


def given(session: Session, scenario: Request) -> tuple[Program, Sequence[Any]]:
    """The program of a scenario with gradients and real randomness, and its arguments."""
    candidate = session.candidate(0)
    program = session.programs.get(candidate, scenario.mode, session.tree(scenario), gradient=True, paired=False)
    _, trainable, rest = candidate.parts(scenario.mode)
    leaves, targets = session.leaves(scenario)
    return program, (trainable, rest, list(leaves), dict(targets))
