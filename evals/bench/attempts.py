"""Seconds to verify a unit, and for each further attempt on it: `python -m migrate_agent.evals.bench.attempts PATH… [--repeat N]`.

Scans, records and rewrites the folder once; then verifies each unit in one process with one warm sandbox, as a repair loop does: its rewrite, which is
right, then wrong ones (mutations of it that are refused), then the right one again. The original runs for the first attempt only.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.loop.exercising.exercise import Exercise
from migrate_agent.agent.loop.judging import lay_out
from migrate_agent.agent.loop.wiring import services
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.evals.bench.measure import arguments, repeat, report
from migrate_agent.evals.mutation.mutate import mutations
from migrate_agent.evals.suites.zoo import packages
from migrate_agent.evals.zoo_packages.zoo_run import make_repository
from migrate_agent.tools.types import Recording
from migrate_agent.tools.verify import Options, verify

WRONG = 4
"""So many wrong rewrites of each unit."""


def measured(folder: Path) -> dict[str, Any]:
    """Medians over the verified units of the folder: of the first attempt, of further ones that are refused, and of one more that is right."""
    called, config = services(lambda text: None), load_config(folder)
    inventory = called.scan(folder)
    first: dict[str, float] = {}
    again: dict[str, float] = {}
    refused: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = called.open_sandbox("process", "cpu")
        try:
            exercise = Exercise(called, config, inventory, sandbox, Path(scratch))
            recording = exercise.run_given(Recording())
            for unit in inventory.units:
                examples = examples_of(recording, unit.id)
                draft = called.compose(inventory, recording.observations, [unit.id], {}, examples)
                if not examples or draft.holes:
                    continue
                candidate = lay_out(Path(scratch) / unit.name, draft.files)
                translated = [called.translate(inventory, recording.observations, example) for example in examples]
                options, work = Options(config.limits.limits()), Path(scratch) / "work"
                arguments = (unit, examples, translated, folder, candidate, inventory, sandbox, work, options)
                one = verify(*arguments)
                # Where the right rewrite is not verified, a refusal says nothing of the cost of a wrong one.
                if one.status != "verified":
                    continue
                first[unit.name] = one.seconds
                file = candidate / unit.target
                right = file.read_text(encoding="utf-8")
                attempts = []
                for text in wrong_ones(right, unit.name):
                    file.write_text(text, encoding="utf-8")
                    attempts.append(verify(*arguments))
                refused[unit.name] = [evidence.seconds for evidence in attempts if evidence.status == "failed"]
                file.write_text(right, encoding="utf-8")
                again[unit.name] = verify(*arguments).seconds
        finally:
            sandbox.close()
    every = [seconds for evidence in refused.values() for seconds in evidence]
    return {
        "first_seconds": first,
        "refused_seconds": refused,
        "again_seconds": again,
        "median_first_seconds": statistics.median(first.values()),
        "median_refused_seconds": statistics.median(every) if every else None,
        "median_again_seconds": statistics.median(again.values()),
    }


def wrong_ones(text: str, unit: str) -> list[str]:
    """Mutations of the unit's class, spread evenly over it."""
    sources = [mutation.source for mutation in mutations(text) if mutation.place.split(".")[0] == unit]
    return sources[:: max(len(sources) // WRONG, 1)][:WRONG]


def main() -> None:
    """Measure each folder, or package of the zoo, and print JSON."""
    options = arguments(
        "Seconds to verify each unit of a repository (or package of the zoo), and for each further attempt, wrong or right."
    )
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch:
        folders = [path if path.exists() else _of_zoo(path.name, Path(scratch)) for path in options.paths]
        report("attempts", [repeat(f"{__spec__.name}:measured", folder, options.repeat) for folder in folders])


def _of_zoo(name: str, parent: Path) -> Path:
    """A repository of this package of the zoo. Raises `SystemExit` where there is none."""
    if name not in packages():
        raise SystemExit(f"{name}: no folder, and no package of the zoo; its packages are {', '.join(packages())}")
    make_repository(packages()[name], parent / name)
    return parent / name


if __name__ == "__main__":
    main()
