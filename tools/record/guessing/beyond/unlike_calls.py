"""Calls of a construction that does not take those of the example: a recurrent variant takes a hidden state. They are inferred as examples are."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.tools.record.guessing.arguments import Call
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Stage, Trial
from migrate_agent.tools.types import Example

SECONDS = 3.0
"""For the calls of one construction."""
MOST = 3
"""Constructions of one unit whose calls are inferred."""


def with_inferred_call(cls: type, module: Any, example: Example, files: Sequence[tuple[Path, str]], root: Path) -> Example | None:
    """The example with a call that its construction takes; None where none was found, or one that needs other imports. Raises the errors of the
    unit's file."""
    trial = Trial(cls, module, [str(root)], example.method)
    trial.setups |= _names_set_up(example.setup)
    init = Call.of(example.init)
    if init is None:
        return None
    texts = init.by_name([parameter.name for parameter in trial.init_parameters])
    best = Search(trial, Options(trial, files, root), SECONDS).run_from(Attempt(tuple(texts.items())))
    if best is None or best.outcome.stage is not Stage.DONE:
        return None
    inferred = trial.example(best.attempt)
    imported = set(inferred.setup.splitlines()) <= set(example.setup.splitlines())
    return replace(example, init=inferred.init, call=inferred.call) if imported else None


def _names_set_up(setup: str) -> Mapping[str, str]:
    """Names that the statements of a set-up bind → the statement."""
    names: dict[str, str] = {}
    for statement in ast.parse(setup).body:
        text = ast.get_source_segment(setup, statement) or ""
        match statement:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.partition(".")[0]: text for alias in aliases}
            case ast.Assign(targets=[ast.Name(id=name)]):
                names[name] = text
    return names
