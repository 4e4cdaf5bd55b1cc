"""How long a step takes beside torch: measured where asked for, and a failure only past the configured factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from migrate_agent.tools.types import Job

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Results
    from migrate_agent.tools.verify.evidence.original import Scenario

Timed = Literal["", "eager", "compile"]


@dataclass(frozen=True)
class Performance:
    """`against`: what is timed beside the candidate: nothing, torch's eager mode, or `torch.compile` too (which takes a C++ compiler and time).

    `max_slowdown`: how many times as long as torch's quickest the candidate may take; 0 for no limit.
    """

    against: Timed = ""
    max_slowdown: float = 0.0


NOT_TIMED = Performance()


def slowdown(seconds: Mapping[str, float]) -> float | None:
    """The candidate's median step in units of torch's quickest; None where either was not timed."""
    theirs = [value for key, value in seconds.items() if key.startswith("torch") and value > 0]
    ours = seconds.get("jax")
    return ours / min(theirs) if ours and theirs else None


def timed(results: Results) -> Scenario | None:
    """The scenario whose step is timed: the first with gradients, else the first of all."""
    found = sorted(results.expected.scenarios, key=lambda item: item.facts["role"] != "gradient")
    return next((item for item in found if item.facts["role"] in ("gradient", "seed")), None)


def measure(results: Results, scenario: Scenario) -> dict[str, float]:
    """Median seconds by what ran: `torch_eager`, `torch_compile`, `jax`."""
    from migrate_agent.tools.verify.evidence.original import discard

    seconds: dict[str, float] = {}
    for job in (_original_job(results, scenario), results.candidate_job("timing", [scenario.facts])):
        run = results.sandbox.run(job)
        if run.status == "ok" and isinstance(run.result, dict):
            seconds |= {str(key): float(value) for key, value in run.result.items() if isinstance(value, (int, float))}
        discard(results.sandbox, run)
    return seconds


def _original_job(results: Results, scenario: Scenario) -> Job:
    from migrate_agent.tools.verify.evidence.original import SIDE, texts

    example = results.examples[results.expected.examples[scenario.facts["example"]]["index"]]
    arguments: dict[str, Any] = {
        "module": results.file.module,
        "name": results.unit.name,
        "example": texts(example),
        "scenario": {key: scenario.facts[key] for key in ("name", "state", "mode", "gradient")},
        "compile": results.performance.against == "compile",
    }
    inputs = {"given": results.expected.given, **({"tensors": example.tensors} if example.tensors else {})}
    return Job(
        "original",
        f"{SIDE}.original.timing:timing",
        results.original_root / results.file.import_root,
        arguments,
        inputs,
        results.job_limits,
    )
