"""Times the candidate's compiled step in its own dtypes. Runs inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from migrate_agent.tools.harness.common.stopwatch import median_seconds
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.verify.candidate.session import Session


def timing(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, float]:
    """Job entry: median seconds of the same step as torch's, without its compilation."""
    session = Session(arguments, inputs, output, exact=False)
    scenario = session.requests[0]
    candidate = session.candidate(scenario.example)
    candidate.load(session.state(scenario.state, scenario.example))
    graphdef, trainable, rest = candidate.parts(scenario.mode)
    leaves, targets = session.leaves(scenario)
    options: dict[str, Any] = {"gradient": scenario.gradient, "paired": False, "method": candidate.method}
    options["changes_objects"] = candidate.changes_objects
    program = Program(graphdef, session.tree(scenario), arguments["renamed"], session.draws, **options)
    # jax returns before the computation ends.
    wait: Any = jax.block_until_ready
    return {"jax": median_seconds(lambda: wait(program.jitted(trainable, rest, leaves, targets)[:2]))}
