"""Which units stand in the way of one whose draft holds them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.agent.loop.dependencies import blocking
from migrate_agent.tools.types import Cause, Draft, Inventory, Kind, Unit, UnitReport

TEXT = "def helper(x):\n    return x\n\n\nclass Helper:\n    pass\n\n\nclass Net:\n    pass\n"


@pytest.mark.parametrize(
    ("name", "kind", "report", "blocked"),
    [
        ("helper", "function", {"status": "failed", "reason": "numeric/forward_fp64: wrong"}, True),
        ("helper", "function", {"status": "unverified", "cause": Cause.UNDECIDED}, False),
        ("helper", "function", {"status": "verified"}, False),
        ("helper", "function", None, False),
        ("Helper", "module", {"status": "failed"}, True),
        ("Helper", "module", {"status": "unverified", "cause": Cause.UNDECIDED}, True),
        ("Helper", "module", {"status": "unverified", "cause": Cause.NO_EXAMPLE}, False),
        ("Absent", "module", {"status": "failed"}, False),
    ],
)
def test_blocking(name: str, kind: Kind, report: dict[str, Any] | None, blocked: bool) -> None:
    other = Unit("m.py", name, "m_jax.py", "rewrite", kind=kind)
    inventory = Inventory(Path(), (), (other, Unit("m.py", "Net", "m_jax.py", "rewrite")))
    settled = {} if report is None else {other.id: UnitReport("m.py", name, "m_jax.py", **report)}
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(order=(other.id, "m.py:Net"), cycle=lambda unit: (unit,), scope=()),
        inventory=inventory,
        settled=lambda position: settled,
        waits=lambda position: False,
    )
    reason = blocking(context, 1, Draft({"m_jax.py": TEXT}))
    assert bool(reason) is blocked
    assert not blocked or other.id in reason
