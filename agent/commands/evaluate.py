"""`migrate-agent eval`: run a suite of `evals/`."""

from __future__ import annotations

import importlib
from typing import Any

from migrate_agent.agent.config.errors import MissingError

RUNNER = "migrate_agent.evals.runner"


def evaluate(**options: Any) -> int:
    """Run a suite and return the exit status. The options are those of `evals.runner.command`.

    Raises `MissingError` outside a checkout, and where a package that the suite needs is not installed.
    """
    # The suites measure the agent, so `evals` imports `agent` and not the other way round; the wheel has no `evals` either. Only the
    # command's name has to be here, hence the import by name when the command runs.
    try:
        runner: Any = importlib.import_module(RUNNER)
        status: int = runner.command(**options)
    except ModuleNotFoundError as error:
        if RUNNER.startswith(str(error.name)):
            raise MissingError("the suites are in a checkout of this project, not in the package: run `migrate-agent eval` there") from None
        raise MissingError(f"the suites need {error.name}: pip install -e '.[dev]'") from error
    return status
