"""A unit on a mesh: shardings proposed, checked on simulated devices, compiled with their collectives, and written where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.tools.portable.ahead import Ahead, Target, Variant
from migrate_agent.tools.portable.annotate import annotate
from migrate_agent.tools.portable.chips import Topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.mesh_check import MeshCheck, check
from migrate_agent.tools.portable.refusal import Refusal
from migrate_agent.tools.portable.sharding import MeshError, Proposal, parse_mesh, propose


@dataclass(frozen=True)
class Sharded:
    """What became of a mesh. `written` are the files that carry the annotations now."""

    proposal: Proposal
    check: MeshCheck
    notes: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def axes_of(text: str) -> dict[str, int]:
    """`--mesh` as sizes by axis. Raises `UsageError`."""
    try:
        return parse_mesh(text)
    except MeshError as error:
        raise UsageError(str(error)) from None


def shard(ahead: Ahead, variant: Variant, axes: dict[str, int]) -> Sharded:
    """The proposal for the unit, and its step on simulated devices beside one device. Raises `PortableError`, `UsageError`."""
    facts = _facts(ahead, variant)
    proposal = propose(facts["train"]["arguments"], facts["layers"], axes)
    return Sharded(proposal, check(ahead, proposal), proposal.notes)


def costs(ahead: Ahead, variant: Variant, topologies: Sequence[Topology], proposal: Proposal) -> list[Cost]:
    """The sharded programs compiled for the topologies. Raises `ExtraMissing`, `PortableError`, `UsageError`."""

    def specs(rows: Any, batch: int, target: Target) -> Any:
        try:
            return proposal.specs(rows, batch)
        except MeshError as error:
            # A batch that does not divide refuses this program alone, so that the others of the table still compile.
            return Refusal("batch", "", str(error), "give another --batch")

    count = math.prod(proposal.axes.values())
    for chips in topologies:
        # A chip is one device or two, by its generation.
        if count > chips.chips * 2:
            raise UsageError(f"the mesh has {count} devices, {chips.name} has {chips.chips} chips")
    return ahead.costs(variant, [Target(chips, proposal.axes) for chips in topologies], specs=specs)


def write_annotations(ahead: Ahead, variant: Variant, result: Sharded, root: Path) -> Sharded:
    """Write the annotations into the rewrite in the working tree, once NNX reads them as they are meant. Raises `UsageError`."""
    # A sharding that changes results would be found much later once it is in a file.
    if not result.check.equal:
        raise UsageError(
            f"nothing is written: the sharded step differs from one device ({result.check.worst}: {result.check.measured:.1e})"
        )
    facts = _facts(ahead, variant)
    paths = {file for file, _ in facts["owners"].values()}
    lacking = sorted(path for path in paths if not (root / path).is_file())
    if lacking:
        raise UsageError(f"--write: {lacking[0]} is not in the working tree: merge the branch that `migrate-agent run` made first")
    annotated = annotate(
        {path: (root / path).read_text(encoding="utf-8") for path in paths}, result.proposal, facts["owners"], facts["layers"]
    )
    for path, text in annotated.files.items():
        (ahead.candidate / path).write_text(text, encoding="utf-8")
    # The facts so far are of the text without annotations.
    ahead.forget()
    read = _facts(ahead, variant)["annotations"]
    specs = {parameter.path: list(parameter.spec) for parameter in result.proposal.placed if parameter.spec}
    # Read back by NNX itself, since only what it reads has an effect.
    if any(specs.get(path) != spec for path, spec in read.items()):
        raise UsageError("nothing is written: NNX does not read the annotations as they are meant")
    for path, text in annotated.files.items():
        write_text(root / path, text)
    return replace(result, notes=(*result.notes, *annotated.notes), written=tuple(sorted(annotated.files)))


def mesh_lines(result: Sharded) -> Iterator[str]:
    """The proposal and the check, for people."""
    for parameter in result.proposal.placed:
        if parameter.spec:
            yield f"{parameter.path} {'x'.join(map(str, parameter.shape))} ({parameter.layer}): ({', '.join(str(axis) for axis in parameter.spec)}): {parameter.why}"
    yield f"{sum(not parameter.spec for parameter in result.proposal.placed)} further parameters are whole on every device"
    yield from (f"activations of {line}" for line in result.proposal.activations)
    comparison = result.check
    verdict = "is that of one device" if comparison.equal else "DIFFERS from one device"
    yield (
        f"a training step on {comparison.devices} simulated devices {verdict}: {comparison.compared} results compared in float64, worst {comparison.worst}: "
        f"{comparison.problem or f'{comparison.measured:.1e}'}, limit {comparison.limit:.1e}; {comparison.split} arguments were split"
    )
    yield from (f"note: {note}" for note in result.notes)
    yield from (f"annotations written to {path}" for path in result.written)


def _facts(ahead: Ahead, variant: Variant) -> dict[str, Any]:
    (facts,) = ahead.facts([variant])
    refused = facts.get("refused") or facts["train"].get("refused")
    if refused:
        raise UsageError(f"{ahead.unit.id}: its training step cannot be exported: {refused['text'].splitlines()[0][:300]}")
    return facts
