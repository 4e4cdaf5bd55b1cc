"""What `migrate-agent assess` is calibrated on: the first looks in `evals/results/`, and how wrong each would have been estimated from the others.

python -m migrate_agent.evals.bench.assess            # the rows of tools/assess/calibration.py, from what is stored now
python -m migrate_agent.evals.bench.assess --error    # each row of the calibration, estimated from all others
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from migrate_agent.evals import records
from migrate_agent.tools.assess.calibration import Measured, error_line, holdouts


def stored(folder: Path = records.FOLDER) -> Iterator[Measured]:
    """Drawn packages with their examples, and public repositories; groups in which nothing was in scope are left out."""
    for file in [*sorted(folder.glob("draw/*/*/examples.json")), *sorted(folder.glob("repositories/*.json"))]:
        document = json.loads(file.read_text(encoding="utf-8"))
        cases = [case for case in document["cases"] if case["status"] != "excluded"]
        name = document["group"][0].removesuffix("/examples")
        name = name if file.match("draw/*/*/*") else f"repositories/{name}"
        if cases:
            verified = sum(case["status"] == "right" for case in cases)
            yield Measured(name, len(cases), verified, round(sum(case.get("seconds", 0) for case in cases)))


def main(arguments: list[str]) -> int:
    """Print the rows, or the error of holdout."""
    if arguments == ["--error"]:
        for holdout in holdouts():
            row = holdout.row
            likely = holdout.share.likely * row.units
            print(
                f"{row.name}: {row.verified} of {row.units} verified, {likely:.0f} estimated; {row.seconds:.0f} s for {holdout.seconds.likely * row.units:.0f}"
            )
        print(error_line())
        return 0
    for row in stored():
        print(f'    Measured("{row.name}", {row.units}, {row.verified}, {row.seconds:.0f}),')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
