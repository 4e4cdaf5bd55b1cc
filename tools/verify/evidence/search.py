"""The search for the worst input, seen from outside the sandbox.

The candidate's step (forward, and gradients of the distance to given targets) leaves its process as StableHLO, which calls nothing on the host.
A job on the original's side runs it beside the original and ascends their distance; so no candidate's process ever sees the original's answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Job

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Answer, Results
    from migrate_agent.tools.verify.evidence.original import Scenario

EXPORTED = ("search.bin", "search.safetensors")
ENTRY, STEP = "migrate_agent.tools.verify.original.adversarial_search:run", "step"
"""The job on the original's side, and its input with what the candidate exported."""


@dataclass(frozen=True)
class Worst:
    """What a search found: the largest relative error, how many inputs were tried, and those (if any) where it is beyond the floor."""

    error: float
    tried: int
    found: tuple[tuple[Scenario, Answer], ...]


def searched(results: Results) -> Scenario | None:
    """The scenario whose inputs the search starts from: that of the smallest example with gradients; None where no input is a float."""
    found = [item for item in results.expected.scenarios if item.facts["role"] == "gradient" and item.name.endswith("-s0")]
    moving = [item for item in found if any("float" in dtype for dtype in item.facts["leaf_dtypes"])]
    return min(moving, key=lambda item: _size(results, item), default=None)


def _size(results: Results, scenario: Scenario) -> int:
    folder = results.expected.given
    return sum(
        (folder / kind).stat().st_size for kind in (f"states/{scenario.facts['state']}.safetensors", f"inputs/{scenario.name}.safetensors")
    )


def search_job(results: Results, scenario: Scenario, layout: Mapping[str, Any], folder: Path) -> Job:
    """The job on the original's side. `folder` holds what the candidate exported."""
    from migrate_agent.tools.verify.evidence.original import texts

    example = results.examples[results.expected.examples[scenario.facts["example"]]["index"]]
    arguments = {
        "module": results.file.module,
        "name": results.unit.name,
        "example": texts(example),
        "seed": results.seed,
        "scenario": {key: scenario.facts[key] for key in ("name", "state", "mode")},
        "layout": dict(layout),
    }
    inputs = {"given": results.expected.given, STEP: folder, **({"tensors": example.tensors} if example.tensors else {})}
    root = results.original_root / results.file.import_root
    return Job("original", ENTRY, root, arguments, inputs, results.job_limits)


def collect(results: Results, scenario: Scenario, result: Mapping[str, Any], output: Path) -> Worst:
    """What the job found; the inputs beyond the floor become scenarios of their own."""
    from migrate_agent.tools.verify.evidence.candidate import Answer
    from migrate_agent.tools.verify.evidence.original import Scenario

    stored = tensor_files.load(output / "found.safetensors")
    answered = next(answer for each, answer in results.answers("gradient") if each.name == scenario.name)
    found = []
    for index, point in enumerate(result["points"]):
        name = f"{scenario.name.partition('-')[0]}-worst-s{index}"
        of = _under(stored, f"{index}/")
        given = tensor_files.load(results.expected.given / f"inputs/{scenario.name}.safetensors")
        given |= {key: value for key, value in of.items() if key.startswith("in/")}
        tensor_files.save(results.expected.given / f"inputs/{name}.safetensors", given)
        facts = {**scenario.facts, "name": name, "role": "worst", "noise": point["noise"]}
        theirs = {key: value for key, value in of.items() if key.startswith("out/")}
        ours = {key.removeprefix("got/"): value for key, value in of.items() if key.startswith("got/")}
        found.append((Scenario(facts, theirs), Answer(answered.facts, ours)))
    return Worst(float(result["error"]), int(result["tried"]), tuple(found))


def _under(stored: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {key.removeprefix(prefix): value for key, value in stored.items() if key.startswith(prefix)}
