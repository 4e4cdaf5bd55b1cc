"""The search for the worst input, seen from outside the sandbox.

The candidate's step (forward, and gradients of the distance to given targets) leaves its process as StableHLO, which calls nothing on the host.
A job on the original's side runs it beside the original and ascends their distance; so no candidate's process ever sees the original's answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.verify.contract.jobs import discard
from migrate_agent.tools.verify.contract.scenario import Answer, NoiseOfScenario, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import CandidateRun, Results

FUNCTION, STEP = "adversarial_search:run", "step"
"""The job on the original's side, and its input with what the candidate exported."""


@dataclass(frozen=True)
class Worst:
    """What a search found: the largest relative error, how many inputs were tried, and those (if any) where it is beyond the floor."""

    error: float
    tried: int
    found: tuple[tuple[Scenario, Answer], ...]


def start(results: Results) -> Future[Worst | str]:
    """The search, which is started beside what runs next unless it was before. The exact job must have ended."""
    if results.search is None:
        results.search = results.pool.submit(_search, results, results.runs["exact"])
    return results.search


def outcome(results: Results) -> Worst | str:
    """What the search found, or why there was none. Raises what the exact job raises."""
    results.of("exact")
    return start(results).result()


def all_scenarios(results: Results) -> list[Scenario]:
    """The original's scenarios, and those that the search found, where it has ended."""
    search = results.search
    # A search that still runs, or that failed, has given no verdict yet; only its scenarios are wanted here.
    worst = search.result() if search is not None and search.done() and not search.exception() else ""
    return [*results.expected.scenarios, *(scenario for scenario, _ in (() if isinstance(worst, str) else worst.found))]


def _search(results: Results, exact: CandidateRun) -> Worst | str:
    scenario, layout = results.expected.search_start, exact.result.get("search")
    if scenario is None or not layout:
        return "the candidate's step was not exported"
    if "error" in layout:
        return f"the candidate's step cannot be exported: {layout['error']}"
    with tempfile.TemporaryDirectory(prefix="migrate-agent-search-") as folder:
        for name, content in exact.files.items():
            (Path(folder) / name).write_bytes(content)
        arguments = {
            "seed": results.seed,
            "scenario": scenario.request().to_json(),
            "layout": dict(layout),
        }
        run = results.sandbox.run(results.original_job(FUNCTION, scenario, arguments, {STEP: Path(folder)}))
    try:
        if run.status != "ok":
            return f"the search ended with {run.status}: {run.error}"
        return _worst(results, scenario, exact, run.result, run.output)
    finally:
        discard(results.sandbox, run)


def _worst(results: Results, scenario: Scenario, exact: CandidateRun, result: Mapping[str, Any], output: Path) -> Worst:
    """What the job found; the inputs beyond the floor become scenarios of their own."""
    stored = tensor_files.load(output / "found.safetensors")
    answered = results.answer(exact, scenario)
    beyond = []
    for index, point in enumerate(result["points"]):
        name = f"e{scenario.example}-worst-s{index}"
        arrays = _under(stored, f"{index}/")
        inputs = tensor_files.load(results.expected.given / f"inputs/{scenario.name}.safetensors")
        inputs |= {key: value for key, value in arrays.items() if key.startswith("in/")}
        tensor_files.save(results.expected.given / f"inputs/{name}.safetensors", inputs)
        theirs = {key: value for key, value in arrays.items() if key.startswith("out/")}
        noise = NoiseOfScenario(point["noise"], tuple(point["undecided"]))
        worst = replace(scenario, name=name, role=Role.WORST, noise=noise, arrays=theirs, noise_source=None)
        beyond.append((worst, Answer(answered.facts, _under(arrays, "got/"))))
    return Worst(float(result["error"]), int(result["tried"]), tuple(beyond))


def _under(stored: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {key.removeprefix(prefix): value for key, value in stored.items() if key.startswith(prefix)}
