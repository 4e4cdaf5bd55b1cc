"""In the real configuration that an example names, state and outputs have the original's names, shapes and dtypes: nothing is computed.

Numbers come from the small configuration; what a real one adds (an option that only large models use) shows in its shapes, or as an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.contract.jobs import discard, texts
from migrate_agent.tools.verify.contract.scenario import OriginalFailed, Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import NATIVE, Results

MOST_PROBLEMS = 4


def judge(results: Results) -> Verdict | None:
    """Fail with what differs; `unverified` where the original needs numbers. Applies where an example names a `full` configuration."""
    firsts = [item for item in results.expected.scenarios if item.role == Role.SEED and item.seed == 0 and results.called(item).full]
    scenarios = [item for item in firsts if not results.expected.examples[item.example]["changes"]]
    if not scenarios or results.port is not None:
        return None
    lines = []
    for scenario in scenarios:
        theirs, ours = _theirs(results, scenario), _ours(results, scenario)
        if "error" in theirs:
            return Verdict("spec", "full_size", "unverified", detail=f"the original cannot be made without numbers: {theirs['error']}")
        problems = list(_problems(theirs, ours))
        if problems:
            return Verdict(
                "spec", "full_size", "fail", float(len(problems)), 0.0, "; ".join(problems[:MOST_PROBLEMS]), scenario=scenario.name
            )
        outputs = len(theirs["outputs"]) if "outputs" in theirs else "no"
        lines.append(f"{theirs['number']:,} parameters in {len(theirs['state'])} arrays, {outputs} outputs")
        if "no_outputs" in theirs:
            lines.append(f"torch gives no shapes of outputs: {theirs['no_outputs']}")
    return Verdict("spec", "full_size", "pass", 0.0, 0.0, "; ".join(lines))


def _theirs(results: Results, scenario: Scenario) -> Mapping[str, Any]:
    example = results.called(scenario)
    run = results.sandbox.run(
        results.original_job("full_size:run", scenario, {"full": texts(replace(example, init=example.full, method=example.method))})
    )
    try:
        if run.status != "ok":
            raise OriginalFailed(f"the original at full size ended with {run.status}: {run.error}")
        results.note_full_size("original", run.seconds, run.peak_memory_bytes)
        return dict(run.result)
    finally:
        discard(results.sandbox, run)


def _ours(results: Results, scenario: Scenario) -> Mapping[str, Any]:
    translated = results.translated[results.expected.examples[scenario.example]["index"]]
    run = results.run_job("full", [scenario], {"full": texts(replace(translated, init=translated.full))})
    results.note_full_size("candidate", run.seconds, run.peak_memory_bytes)
    return run.result


def _problems(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    if "error" in ours:
        yield f"at full size it raises {ours['error']}"
        return
    state = ours["state"]
    yield from (f"missing {name}" for name in theirs["state"] if name not in state)
    yield from (f"unexpected {name}" for name in state if name not in theirs["state"])
    for name, described in theirs["state"].items():
        if name in state and _native(described) != _native(state[name]):
            yield f"{name} is {_words(state[name])} instead of {_words(described)}"
    if "outputs" not in theirs:
        return
    if "no_outputs" in ours:
        yield f"at full size its call raises {ours['no_outputs']}"
    elif list(map(_native, theirs["outputs"])) != list(map(_native, ours["outputs"])):
        yield f"outputs are {_all(ours['outputs'])} instead of {_all(theirs['outputs'])}"


def _native(described: list[Any]) -> tuple[list[int], str]:
    """Shape and dtype, with what jax makes of 64-bit dtypes."""
    shape, dtype = described
    return list(shape), NATIVE.get(str(dtype), str(dtype))


def _words(described: list[Any]) -> str:
    return f"{described[1]}{described[0]}"


def _all(outputs: list[Any]) -> str:
    return ", ".join(map(_words, outputs)) or "none"


CHECK = Check("spec", "full_size", judge, cost=NEW_PROCESS)
