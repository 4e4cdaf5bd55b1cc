"""`migrate-agent eval`: runs a suite of `evals/`, which lies above this room: it is found by its name, and never imported from here."""

from __future__ import annotations

import importlib
from typing import Any

from migrate_agent.agent.config.errors import MissingError

RUNNER = "migrate_agent.evals.runner"


def evaluate(**options: Any) -> int:
    """Run a suite (`evals.runner.command` says what the options are); gives the exit status. Raises `MissingError` where a suite needs more."""
    try:
        runner: Any = importlib.import_module(RUNNER)
    except ModuleNotFoundError as error:
        raise MissingError(f"the suites need {error.name}: pip install -c constraints.txt -e '.[dev]'") from error
    status: int = runner.command(**options)
    return status
