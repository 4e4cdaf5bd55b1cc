"""What the original did: its scenarios and training curves, in memory, and how rounding noise moves them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import reach, tensor_files
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run, Unit
from migrate_agent.tools.verify.contract.jobs import discard, entry, importing, original_job, source_file, tensor_inputs, texts
from migrate_agent.tools.verify.contract.scenario import Expectations, Lost, Noise, OriginalFailed, Scenario
from migrate_agent.tools.verify.contract.schedule import LARGE_ELEMENTS, longer


def expectations(
    unit: Unit,
    examples: Sequence[Example],
    original: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    folder: Path,
    job_limits: Limits,
    seed: int = 0,
    sizes: Sequence[int] = (),
    budget: float = 0.0,
    large_from: int = LARGE_ELEMENTS,
) -> Expectations:
    """Run the original. `folder/given` afterwards holds what candidates get. `sizes`: numbers that the candidate compares sizes with. `budget`:
    seconds for what is optional of a large unit, which has `large_from` elements or takes long.

    Raises `OriginalFailed`.
    """
    file = source_file(inventory, unit)
    rows = [texts(example) for example in examples]
    budgeted = {"budget": budget, "large_from": large_from}
    limits = longer(job_limits, budget)
    bounded = {"memory": limits.memory_bytes * 3 // 4, "disk": limits.file_bytes // 2}
    arguments = {"examples": rows, "seed": seed, "sizes": list(sizes), **bounded, **budgeted}
    arguments |= importing(file, inventory, unit, examples)
    job = original_job("job:run", unit, file, original, limits, arguments, tensor_inputs(examples))
    beside = replace(job, entry=entry("original", "job:configured"), limits=job_limits)
    runs: list[Run] = []
    try:
        with ThreadPoolExecutor(1) as pool:
            configured = pool.submit(sandbox.run, beside)
            runs.append(sandbox.run(job))
        runs.append(configured.result())
        _say_whether_it_runs(runs[0])
        first = {"first": runs[0].result["examples"][0]["index"], "number": len(runs[0].result["examples"])}
        # The second job runs beside the first and guesses which example runs first; a wrong guess costs one more run.
        if runs[1].status == "ok" and any(runs[1].result.get(key, value) != value for key, value in first.items()):
            runs.append(sandbox.run(replace(beside, arguments={**job.arguments, **first})))
        return _collect(runs[0], runs[-1], folder, examples, job, sandbox)
    finally:
        for run in runs:
            discard(sandbox, run)


def _say_whether_it_runs(run: Run) -> None:
    """Raises `OriginalFailed` where it does not."""
    if run.status != "ok":
        raise OriginalFailed(f"the original ended with {run.status}: {run.error}")
    if not run.result["scenarios"]:
        raise OriginalFailed("the original does not run: " + ("; ".join(run.result["errors"]) or "there is no example"))


def _collect(run: Run, configured: Run, folder: Path, given_examples: Sequence[Example], job: Job, sandbox: Sandbox) -> Expectations:
    """What a run of the examples gave, and a further one of other configurations."""
    examples, scenarios, lines = run.result["examples"], run.result["scenarios"], Lines(job.arguments["name"], job.root)
    lines.add(run.result["lines"])
    reached = reach.heard(run.result["reach"])
    outputs, given_folder = [run.output], folder / "given"
    # A lost run says nothing about the original: to go on would compare less than the next verification does.
    if configured.status == "lost":
        raise Lost(f"the run of other configurations was lost: {configured.error}")
    wrong = configured.result.get("wrong") if configured.status == "ok" else {"reason": f"their run ended with {configured.status}"}
    if wrong is not None:
        examples[0]["skipped"].append({"name": "other configurations", **wrong})
    else:
        examples, scenarios = [*examples, *configured.result["examples"]], [*scenarios, *configured.result["scenarios"]]
        lines.add(configured.result["lines"])
        reached |= reach.heard(configured.result["reach"])
        outputs.append(configured.output)
    # Candidates may read this folder, so nothing of an earlier run, and nothing of `expected`, may lie in it.
    shutil.rmtree(given_folder, ignore_errors=True)
    for output in outputs:
        if (output / "given").is_dir():
            shutil.copytree(output / "given", given_folder, dirs_exist_ok=True)
    expected = {file.name: file for output in outputs for file in (output / "expected").glob("*.safetensors")}
    noise = _noise([given_examples[item["index"]] for item in examples], examples, scenarios, given_folder, job, sandbox)
    loaded = [Scenario.from_json(row, tensor_files.load(expected[f"{row['name']}.safetensors"]), noise) for row in scenarios]
    initial, exact = (
        {
            number: tensor_files.load(expected[name])
            for number in range(len(examples))
            if (name := f"{kind}-{number}.safetensors") in expected
        }
        for kind in ("initial", "exact")
    )
    trained = tensor_files.load(expected["trained.safetensors"]) if "trained.safetensors" in expected else {}
    peak, unrun = max(run.peak_memory_bytes, configured.peak_memory_bytes), lines.missed(run.result["lines"]["file"])
    return Expectations(
        examples,
        run.result["errors"],
        loaded,
        initial,
        given_folder,
        peak,
        exact_initial=exact,
        trained=trained,
        noise=noise,
        reached=reached,
        large=bool(run.result.get("large")),
        refusals=configured.result.get("refusals", ()) if configured.status == "ok" else (),
        unrun=unrun,
    )


def _noise(
    examples: Sequence[Example],
    described: Sequence[Mapping[str, Any]],
    scenarios: Sequence[Mapping[str, Any]],
    given_folder: Path,
    job: Job,
    sandbox: Sandbox,
) -> Noise:
    """What asks for the noise of these scenarios, where it is not among their facts."""
    arguments = {**job.arguments, "examples": [texts(example, item["changes"]) for example, item in zip(examples, described, strict=True)]}
    asking = replace(
        job, entry=entry("original", "noise:run"), arguments=arguments, inputs={"given": given_folder, **tensor_inputs(examples)}
    )
    return Noise(asking, sandbox, [row for row in scenarios if "noise" not in row], described[0].get("curves"))
