"""What counts as not run though every call runs it is told: the lines that ran were not seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from migrate_agent.tools.types import Unit
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.reach import Reaching

CLASS = "class Net:\n    def __init__(self):\n        self.width = 1\n\n    def __call__(self, x):\n        return x\n"
INHERITED = "class Net(Base):\n    def extra(self, x):\n        return x\n"
FUNCTION = "def net(x):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "kind", "ran", "unseen"),
    [
        (CLASS, "module", set(), ["src/net_jax.py:3 (Net.__init__): self.width = 1, which every call runs"]),
        (CLASS, "module", {0}, []),
        (INHERITED, "module", set(), []),
        (FUNCTION, "function", set(), ["src/net_jax.py:2 (net): return x, which every call runs"]),
        (FUNCTION, "function", {0}, []),
    ],
)
def test_what_every_call_runs(text: str, kind: Literal["module", "function"], ran: set[int], unseen: list[str]) -> None:
    unit = cast(Unit, SimpleNamespace(name="net" if kind == "function" else "Net", target="src/net_jax.py", kind=kind))
    reaching = Reaching(cast(Any, SimpleNamespace(unit=unit, port=None)))
    digests = {f"src/net_jax.py:{key}": frozenset(row) for key, row in counted_file(text).digests_of(frozenset(ran)).items()}
    vars(reaching).update(texts={unit.target: text}, ran=digests)
    assert list(map(str, reaching._unseen())) == unseen
