"""Examples of which no call of their own can be compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.original.scenarios.menu import _require_calls


@pytest.mark.parametrize(
    ("roles", "enough"), [([], False), ([Role.EDGE, Role.SHAPE], False), ([Role.SEED], True), ([Role.EDGE, Role.GRADIENT], True)]
)
def test_variations_alone_are_no_evidence(roles: list[Role], enough: bool) -> None:
    scenarios = [Scenario(name=str(number), role=role) for number, role in enumerate(roles)]
    writer = cast(
        Any, SimpleNamespace(scenarios=scenarios, skipped=[{"name": "eval-s0", "reason": "ties"}, {"name": "eval-s1", "reason": ""}])
    )
    if enough:
        _require_calls(writer)
    else:
        with pytest.raises(RuntimeError, match="no call of the example can be compared: ties"):
            _require_calls(writer)
