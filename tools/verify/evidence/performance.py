"""How long a step takes beside torch: measured where asked for, and a failure only past the configured factor."""

from __future__ import annotations

from collections.abc import Mapping

from migrate_agent.tools.verify.contract.jobs import discard
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def slowdown(seconds: Mapping[str, float]) -> float | None:
    """The candidate's median step in units of torch's quickest; None where either was not timed."""
    theirs = [value for key, value in seconds.items() if key.startswith("torch") and value > 0]
    ours = seconds.get("jax")
    return ours / min(theirs) if ours and theirs else None


def measure_steps(results: Results) -> Mapping[str, float]:
    """Median seconds of a step by what ran it (`torch_eager`, `torch_compile`, `jax`); jobs that fail leave theirs out.

    Jobs run one after the other, so that none disturbs another. The figures are kept in `results.seconds`.
    """
    scenario = _timed(results)
    if not results.performance.against or scenario is None:
        return {}  # safe: a step that nobody asked to time is not judged
    arguments = {"scenario": scenario.request().to_json(), "compile": results.performance.against == "compile"}
    seconds: dict[str, float] = {}
    for job in (results.original_job("timing:timing", scenario, arguments), results.candidate_job("timing", [scenario])):
        run = results.sandbox.run(job)
        if run.status == "ok" and isinstance(run.result, dict):
            seconds |= {str(key): float(value) for key, value in run.result.items() if isinstance(value, (int, float))}
        discard(results.sandbox, run)
    results.seconds = seconds
    return seconds


def _timed(results: Results) -> Scenario | None:
    """The scenario whose step is timed: the first with gradients, else the first of all."""
    scenarios = sorted(results.expected.scenarios, key=lambda item: item.role != Role.GRADIENT)
    return next((item for item in scenarios if item.role in (Role.GRADIENT, Role.SEED)), None)
