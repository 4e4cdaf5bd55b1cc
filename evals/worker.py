"""Runs one group of a suite in this process: `python -m migrate_agent.evals.worker` reads the order from stdin and writes one outcome a line."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import asdict

from migrate_agent.evals.suite import Options, Outcome


def main() -> None:
    """Read `{"suite", "group", "options"}`, write outcomes to the stream that was standard output; anything else that prints goes to stderr."""
    order = json.load(sys.stdin)
    # What is measured may print, and a line of its own among the outcomes could not be read.
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    # After the redirection, because importing a suite imports packages that print.
    from migrate_agent.evals.suite import load_suite

    for outcome in load_suite(order["suite"]).run(tuple(order["group"]), Options(**order["options"])):
        stream.write(encode(outcome) + "\n")
        stream.flush()


def encode(outcome: Outcome) -> str:
    """An outcome as one line."""
    return json.dumps(asdict(outcome), default=str)


def decode(line: str) -> Outcome:
    """The outcome of a line."""
    return Outcome(**json.loads(line))


if __name__ == "__main__":
    main()
