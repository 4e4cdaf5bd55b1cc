"""Which further constructions have their initial values compared. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from migrate_agent.tools.harness.common import budgets, reach
from migrate_agent.tools.harness.torch_side.module import Original


class Constructions:
    """The constructions whose initial values are compared: one takes hundreds of modules, and a compilation on the other side."""

    def __init__(self) -> None:
        self._ran: set[int] = set()
        self._tensors = 0

    def adds(self, unit: Original) -> bool:
        """Whether this construction runs code of the unit's own classes, or of functions, that none before ran, or has few tensors: note it then.

        What the constructors of its parts do is judged where these are units.
        """
        names = {base.__qualname__ for base in unit.cls.__mro__}
        own, count = reach.within(unit.constructed, names), len(unit.state())
        if own <= self._ran and self._tensors + count > budgets.INIT_CONFIGURED:
            return False
        self._ran |= own
        self._tensors += count
        return True
