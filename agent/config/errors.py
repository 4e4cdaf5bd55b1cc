"""Errors that are the user's to mend. The command line prints the message as one line and leaves with the exit status.

0 all units in scope verified · 1 some are not · 2 wrong usage or configuration · 3 something needed is missing.
"""

from __future__ import annotations

from migrate_agent.agent.config.secrets import redacted
from migrate_agent.tools import extras


class UserError(Exception):
    """What was wrong, where, and what to do, in one line. `exit_status` is what the command line leaves with."""

    exit_status = 1

    def __init__(self, message: str, exit_status: int | None = None) -> None:
        self.message = redacted(message)  # it may quote a server, and ends in a checkpoint
        super().__init__(self.message)
        if exit_status is not None:
            self.exit_status = exit_status


class UsageError(UserError):
    """The command was called in a way that cannot work: not a git repository, an unknown `--module`, a target that exists."""

    exit_status = 2


class ConfigError(UserError):
    """The configuration file is broken; the message names file, line and key."""

    exit_status = 2


class MissingError(UserError):
    """Something needed is not there: git, an extra of this package, a sandbox engine that was demanded, the model endpoint."""

    exit_status = 3


def require(extra: str, purpose: str, alternative: str = "") -> None:
    """Raises `MissingError` where this extra of the package is not installed; the arguments are those of `extras.advice`."""
    if not extras.installed(extra):
        raise MissingError(extras.advice(extra, purpose, alternative))
