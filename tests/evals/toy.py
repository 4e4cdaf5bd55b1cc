"""A suite that needs no torch: `KEPT` finds each case as its name says, which the runner can be made to find."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from migrate_agent.evals.suite import Group, Options, Outcome, Suite

GROUPS: tuple[Group, ...] = (("one",), ("two",), ("three", "four"))


def groups(options: Options) -> Sequence[Group]:
    """The groups with a case that is wanted."""
    return [group for group in GROUPS if any(map(options.wanted, group))]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """All right but `two`; `four` kills the process, after a line that says so."""
    for name in group:
        if name == "four":
            print("no memory is left", file=sys.stderr, flush=True)
            os._exit(3)
        yield Outcome(name, "wrong" if name == "two" else "right", "off" if name == "two" else "", {"length": len(name)})


KEPT = Suite("toy", "Toys", "toys", groups, run, 60.0, lambda outcomes: {"torch": "2", "jax": "0", "flax": "0"}, kept=True)
