"""Which units stand in the way of one whose draft holds them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.agent.loop.dependencies import blocking
from migrate_agent.tools.types import Cause, Draft, Evidence, Example, Inventory, Kind, Raised, Recording, Unit, UnitReport, Verdict

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


@pytest.mark.parametrize(
    ("init", "error", "blocked"),
    [
        ("Block, 4", "NameError", True),
        ("blocks=[m.Block]", "AttributeError", True),
        ("Block=4, kind='Block'", "NameError", False),
        ("Block, 4", "TypeError", False),
        ("Net, 4", "NameError", False),
    ],
)
def test_units_that_an_example_names(init: str, error: str, blocked: bool) -> None:
    """An example that is built of a unit which is not there needs that unit, whatever the error says."""
    block = Unit("m.py", "Block", "m_jax.py", "rewrite")
    inventory = Inventory(Path(), (), (block, Unit("m.py", "Net", "m_jax.py", "rewrite")))
    settled = {block.id: UnitReport("m.py", "Block", "m_jax.py", "unverified", reason="1 hole: m.py:3: item()")}
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(order=(block.id, "m.py:Net"), cycle=lambda unit: (unit,), scope=()),
        inventory=inventory,
        recording=Recording((Example("m.py:Net", init, "torch.randn(2)"),)),
        settled=lambda position: settled,
        waits=lambda position: False,
    )
    verdict = Verdict("spec", "candidate_runs", "fail", raised=Raised(error, "what it says"))
    reason = blocking(context, 1, Draft({"m_jax.py": TEXT}), Evidence("m.py:Net", (verdict,)))
    assert bool(reason) is blocked
    assert not blocked or reason == "needs m.py:Block, which its example names and which is unverified (1 hole: m.py:3: item())"
