"""Whether the candidate refuses what the original refuses on purpose. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from migrate_agent.tools.harness.common import reach, tensor_files
from migrate_agent.tools.harness.common.argument_changes import CALL
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.verify.candidate.session import Session


def refused(session: Session) -> dict[str, str]:
    """Name of what the original refuses → the candidate's error, "" where it raises none. Nothing is compiled: shapes decide, and plain arguments.

    A port with a constructor of its own is not asked for what the original's constructor refuses.
    """
    answers = {}
    for row in session.arguments["refusals"]:
        if session.arguments["port"] is not None and any(not name.startswith(CALL) for name in row["changes"]):
            continue
        try:
            _trace(session, row)
            answers[row["name"]] = ""
        except Exception as error:
            answers[row["name"]] = str(session.fail(error)["error"])
    reach.take()  # what ran here was compared with nothing
    return answers


def _trace(session: Session, row: Mapping[str, Any]) -> None:
    """Construct and call the candidate as a row says. Raises the errors of the candidate."""
    candidate = session.candidate(0) if not row["changes"] else _changed(session, row["changes"])
    stored = tensor_files.load(session.given / f"inputs/{row['name']}.safetensors")
    leaves = [jax.device_put(stored[f"in/{index}"]) for index in range(len(row["leaf_dtypes"]))]
    program = session.programs.get(candidate, "eval", row["tree"], gradient=False)
    _, trainable, rest = candidate.parts("eval")
    program.jitted.trace(trainable, rest, leaves, {}, None)


def _changed(session: Session, changes: Mapping[str, Any]) -> Candidate:
    """The candidate of the first example with changed arguments."""
    if all(name.startswith(CALL) for name in changes):
        return session.candidate(0)  # the row's tree has them
    texts = {**session.arguments["examples"][0], "changes": changes}
    module, name, kind = (session.arguments[key] for key in ("module", "name", "kind"))
    return Candidate(module, name, texts, session.inputs.get("tensors0"), exact=session.exact, kind=kind)
