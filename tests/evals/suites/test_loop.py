"""The suite `loop`: over a scripted endpoint (plumbing) that knows two answers, with the real rules and the real verifier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from migrate_agent.evals.model_loop.loop_cases import CASES
from migrate_agent.evals.model_loop.scripted_endpoint import Move, endpoint
from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.evals.suites.loop import MODES, groups, report, run, summary


def test_every_case_in_every_mode() -> None:
    assert len(groups(Options())) == len(MODES) * len(CASES)
    assert groups(Options("both/aten")) == [("both/aten",)]
    assert all(name.startswith("rules/zoo/") for (name,) in groups(Options("rules/zoo/")))


@pytest.mark.slow
def test_rules_and_model_do_what_neither_does_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: dict[str, Any], number: int) -> Move:
        code = (
            "return jnp.tanh(self.fc(x))"
            if "torch.ops.aten.tanh(self.fc(x))" in request["messages"][1]["content"].partition("The draft")[2]
            else "pass"
        )
        return json.dumps({"holes": [{"number": 1, "code": code}], "whole_class": "", "reason": ""})

    with endpoint(answer) as script:
        monkeypatch.setenv("MIGRATE_AGENT_MODEL", "scripted")
        monkeypatch.setenv("OPENAI_BASE_URL", script.url)
        outcomes = [outcome for mode in MODES for outcome in run((f"{mode}/aten",), Options(sandbox="process"))]
    assert {outcome.case: outcome.status for outcome in outcomes} == {
        "rules/aten/Unit": "refused",
        "model/aten/Unit": "refused",
        "both/aten/Unit": "right",
    }, [outcome.reason for outcome in outcomes]
    modes = summary(outcomes)["modes"]
    assert modes["both"]["verified_within_attempts"] == {"1": 0, "2": 1, "3": 1, "4": 1}
    assert modes["rules"]["tokens_per_unit"] == 0 and modes["both"]["tokens_per_unit"] == 110
    assert modes["model"]["calls_per_unit"] == 3 and modes["model"]["verified"] == 0


def test_figures_of_the_tiny_model_carry_their_label() -> None:
    details = {"mode": "both", "verified": False, "attempts": 4, "calls": 3, "input_tokens": 900, "output_tokens": 90, "cost": 0.0}
    outcomes = [Outcome("both/norm/Unit", "refused", "", {**details, "label": "proves the harness"})]
    assert list(report(outcomes)) == [
        "both: 0 of 1 verified (attempts ≤1: 0, ≤2: 0, ≤3: 0, ≤4: 0); 990 tokens a unit",
        "the model: proves the harness",
    ]
    assert "label" not in summary([Outcome("both/norm/Unit", "right", "", details)])
