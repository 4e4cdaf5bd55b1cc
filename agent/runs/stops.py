"""Ways in which a run stops before its end without being at fault."""

from __future__ import annotations


class Quit(Exception):
    """The user left the session; `resume` takes it up again."""


class Interrupted(BaseException):
    """A signal asked us to stop. `exit_status` is 128 + its number."""

    def __init__(self, exit_status: int) -> None:
        super().__init__(f"signal {exit_status - 128}")
        self.exit_status = exit_status
