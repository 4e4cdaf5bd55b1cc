"""The corpora's fixed part under the schedule of large units: `python -m migrate_agent.evals.bench.schedule [--seconds N] [--all]`.

Each case of `corpus.FAST` (with `--all`, of the corpora) is judged as if its unit were large, so that what must run comes first, the jobs of the port run one
after the other, and what is optional runs while `--seconds` last. Exit status 1 where a right rewrite is refused, or one that is wrong survives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.measure import report
from migrate_agent.evals.mutation import corpus
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.types import Evidence, Limits
from migrate_agent.tools.verify import Options
from migrate_agent.tools.verify.contract.schedule import LATE


def judged(names: Sequence[str], seconds: float) -> Iterator[tuple[corpus.Case, Evidence]]:
    """Each case with its evidence, under a schedule with this budget."""
    originals = corpus.load_originals()
    cases = {case.id: case for case in corpus.load_cases()}
    with ProcessSandbox() as sandbox, tempfile.TemporaryDirectory(prefix="schedule-") as scratch:
        for name in names:
            case = cases[name]
            options = Options(limits=Limits(seconds=corpus.CASE_SECONDS), port=case.port, seconds=seconds, large_from=0)
            yield case, corpus.verify_case(originals[case.original], case.source, sandbox, Path(scratch) / case.original, options)


def row(names: Sequence[str], seconds: float) -> dict[str, Any]:
    """How many of each kind were verified, and which should not have been, or should."""
    began = time.monotonic()
    kinds: dict[str, list[bool]] = {kind: [] for kind in corpus.KINDS}
    misjudged, cut = [], []
    for case, evidence in judged(names, seconds):
        verified = evidence.status == "verified"
        kinds[case.kind].append(verified)
        misjudged += [{"case": case.id, **corpus.refusal_of(evidence)}] if verified != (case.kind == "right") else []
        cut += [case.id] if any(LATE in note for note in evidence.notes) else []
    counts = {kind: f"{sum(verified)} of {len(verified)} verified" for kind, verified in kinds.items()}
    return {"budget": seconds, **counts, "misjudged": misjudged, "left_something_out": cut, "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    """Judge, print JSON, and leave with 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(description="The corpora's fixed part under the schedule of large units.")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="N", help="the budget of each unit (default: 300)")
    parser.add_argument("--all", action="store_true", help="all wrong and right cases of the corpora that every sandbox takes")
    options = parser.parse_args()
    every = [case.id for case in sorted(corpus.load_cases(["wrong", "right"]), key=lambda case: case.original) if not case.only]
    result = row(every if options.all else corpus.FAST, options.seconds)
    report("schedule", [result])
    sys.exit(bool(result["misjudged"]))


if __name__ == "__main__":
    main()
