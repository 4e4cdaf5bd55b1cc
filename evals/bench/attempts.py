"""Seconds to verify a unit, and for each further attempt on it: `python -m migrate_agent.evals.bench.attempts PATH… [--repeat N]`.

Scans, records and rewrites the folder once; then verifies each unit's rewrite twice in one process with one warm sandbox, as a repair loop
does: the original runs for the first attempt only.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from migrate_agent.agent.config import load_config
from migrate_agent.agent.exercise import Exercise
from migrate_agent.agent.judge import lay_out
from migrate_agent.agent.real import services
from migrate_agent.agent.recordings import examples_of
from migrate_agent.evals.bench.measure import arguments, repeat, report
from migrate_agent.tools.types import Recording
from migrate_agent.tools.verify import Options, verify

ATTEMPTS = 2


def measured(folder: Path) -> dict[str, Any]:
    """Medians over the verified units of the folder; `further` is the mean of the attempts after the first."""
    called, config = services(lambda text: None), load_config(folder)
    inventory = called.scan(folder)
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        sandbox = called.open_sandbox("process", "cpu")
        try:
            exercise = Exercise(called, config, inventory, sandbox, Path(place))
            recording = exercise.known(Recording())
            for unit in inventory.units:
                examples = examples_of(recording, unit.id)
                draft = called.compose(inventory, recording.observations, [unit.id], {}, examples)
                if not examples or draft.holes:
                    continue
                candidate = lay_out(Path(place) / unit.name, draft.files)
                translated = [called.translate(inventory, recording.observations, example) for example in examples]

                options, work = Options(config.limits.limits()), Path(place) / "work"
                runs = [verify(unit, examples, translated, folder, candidate, inventory, sandbox, work, options) for _ in range(ATTEMPTS)]
                if all(run.status == "verified" for run in runs):
                    rows[unit.name] = [run.seconds for run in runs]
        finally:
            sandbox.close()
    further = {name: statistics.mean(seconds[1:]) for name, seconds in rows.items()}
    return {
        "unit_seconds": rows,
        "median_first_seconds": statistics.median(seconds[0] for seconds in rows.values()),
        "median_further_seconds": statistics.median(further.values()),
    }


def main() -> None:
    """Measure each folder, and print JSON."""
    options = arguments("Seconds to verify each unit of a repository, and for each further attempt.")
    report("attempts", [repeat(f"{__spec__.name}:measured", path, options.repeat) for path in options.paths])


if __name__ == "__main__":
    main()
