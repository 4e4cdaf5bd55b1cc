"""What expressions evaluate to in each of several examples, apart from the others."""

from __future__ import annotations

import json
from collections.abc import Sequence

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.jobs import by_process, job
from migrate_agent.tools.record.store import APART, LARGEST, observations_from_json
from migrate_agent.tools.types import Example, Inventory, Limits, Observations

ENTRY = "migrate_agent.tools.record.worker:observe_examples"


def observe_apart(inventory: Inventory, examples: Sequence[Example], sandbox: Sandbox, limits: Limits) -> list[Observations | None]:
    """The observations of each example, as `record` has those of all of them; None of one that did not run.

    Examples of one process import the files once: what a file evaluates at its top is observed with the first of them.
    """
    found = dict[int, Observations]()
    places = {id(example): number for number, example in enumerate(examples)}
    for visible, needed, group in by_process(inventory, examples):
        run = sandbox.run(job(ENTRY, visible, needed, group, limits, 0))
        try:
            path = run.output / APART
            rows = json.loads(path.read_text()) if run.status == "ok" and path.is_file() and path.stat().st_size <= LARGEST else []
            for example, row in zip(group, rows, strict=False):
                if isinstance(row, dict):
                    found[places[id(example)]] = observations_from_json(row)
        except (OSError, ValueError, TypeError, IndexError):  # the job ran the user's code, and may have written anything
            pass
        finally:
            sandbox.release(run)
    return [found.get(number) for number in range(len(examples))]
