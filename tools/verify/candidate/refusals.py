"""Whether the candidate refuses what the original refuses on purpose. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate_agent.tools.harness.common import reach, tensor_files
from migrate_agent.tools.harness.common.argument_changes import CALL
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.verify.candidate.session import Session


def refused(session: Session) -> dict[str, str]:
    """Name of what the original refuses → the candidate's error, "" where it raises none. Nothing is compiled: shapes decide, and plain arguments.

    A port with a constructor of its own is not asked for what the original's constructor refuses.
    """
    answers, constructed = {}, Constructed(session)
    for row in session.arguments["refusals"]:
        if session.arguments["port"] is not None and any(not name.startswith(CALL) for name in row["changes"]):
            continue
        try:
            _trace(session, constructed.by(row["changes"]), row)
            answers[row["name"]] = ""
        except Exception as error:
            answers[row["name"]] = str(session.fail(error)["error"])
    reach.take()  # what ran here was compared with nothing
    return answers


@dataclass
class Constructed:
    """The candidate with other arguments, or the error of its constructor: several calls ask for the same. All are kept, since programs are found by
    the identity of their candidate."""

    session: Session
    _made: dict[str, Candidate | Exception] = field(default_factory=dict)

    def by(self, changes: Mapping[str, Any]) -> Candidate:
        """The candidate of the first example with these arguments. Raises the errors of its constructor."""
        key = repr(sorted(changes.items()))
        if key not in self._made:
            try:
                self._made[key] = self._construct(changes)
            except Exception as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, Exception):
            raise made
        return made

    def _construct(self, changes: Mapping[str, Any]) -> Candidate:
        if all(name.startswith(CALL) for name in changes):
            return self.session.candidate(0)  # the row's tree has those of the call
        texts = {**self.session.arguments["examples"][0], "changes": changes}
        module, name, kind = (self.session.arguments[key] for key in ("module", "name", "kind"))
        return Candidate(module, name, texts, self.session.inputs.get("tensors0"), exact=self.session.exact, kind=kind)


def _trace(session: Session, candidate: Candidate, row: Mapping[str, Any]) -> None:
    """Call the candidate as a row says. Raises its errors."""
    stored = tensor_files.load(session.given / f"inputs/{row['name']}.safetensors")
    values = [stored[f"in/{index}"] for index in range(len(row["leaf_dtypes"]))]
    leaves = session.placed(values, row["tree"], 0, row["leaf_dtypes"])
    program = session.programs.get(candidate, "eval", row["tree"], gradient=False, on_host=session.on_host(0))
    _, trainable, rest = candidate.parts("eval")
    program.jitted.trace(trainable, rest, leaves, {}, None)
