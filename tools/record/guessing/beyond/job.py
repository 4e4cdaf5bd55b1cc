"""The job inside the sandbox: which other calls and constructions of an example that runs reach code that it does not.

Within a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import reach
from migrate_agent.tools.harness.common.example_text import import_module
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.guessing.beyond.search import Search, Start, reaching_most
from migrate_agent.tools.record.guessing.beyond.trial import trial_of
from migrate_agent.tools.record.guessing.trials.own_seconds import OwnSeconds
from migrate_agent.tools.record.session import import_roots
from migrate_agent.tools.types import Example


def further_calls(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry. `arguments`: `files` and `parts` as for other jobs, `units`: rows of `module`, `name`, `examples` and `seconds`. Inputs
    `<unit>-<example>` are their tensors. Returns rows of `unit` and `example` (their indices), `init` and `call`: what runs and reaches new code."""
    import torch

    torch.set_num_threads(1)
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = import_roots(root, arguments)
    reach.count(root)
    use_parts(arguments["parts"], root)
    rows = []
    for number, unit in enumerate(arguments["units"]):
        examples = [
            Example("", row["init"], row["call"], row["setup"], tensors=inputs.get(f"{number}-{index}"), method=row.get("method", ""))
            for index, row in enumerate(unit["examples"])
        ]
        # An example that does not run here is told where it is recorded.
        with suppress(Exception, SystemExit):
            files = [(root / path, module_name) for path, module_name, _ in arguments["files"]]
            for index, other in _of_unit(unit["module"], unit["name"], examples, OwnSeconds(unit["seconds"]), root, files):
                rows.append({"unit": number, "example": index, "init": other.init, "call": other.call})
    return rows


def _of_unit(
    module_name: str, name: str, examples: Sequence[Example], time: OwnSeconds, root: Path, files: Sequence[tuple[Path, str]]
) -> Iterator[tuple[int, Example]]:
    """The number of an example and a call: of the examples those that run what earlier ones do not, then other calls that do."""
    module = import_module(module_name)
    search = Search(module, name, time, root, examples[0].method if examples else "", files)
    starts = []
    for index, example in enumerate(examples):
        trial = trial_of(module, name, example)
        starts.append(Start(index, example, trial))
        if search.adds(trial):
            yield index, example
    further = list[Start]()
    with suppress(Exception, SystemExit):  # what was reached before an error counts
        further.extend(search.beyond(starts))
    for start in reaching_most(further, frozenset().union(*(start.trial.ran for start in starts)), search.most):
        yield start.number, start.example
