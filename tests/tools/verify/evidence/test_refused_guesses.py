"""Methods that only guesses call become stubs where the port refuses one of these calls, and nothing else runs their lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrate_agent.tools.types import Example
from migrate_agent.tools.verify.checks.numeric import dropout
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import CandidateRun, Results
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.refused_guesses import methods_of, refused_guesses
from migrate_agent.tools.verify.verifier import _refused

PATH = "net_jax.py"
PORT = """class Net:
    def __call__(self, x):
        return self.inner(x)

    def inner(self, x):
        return x

    def outer(self, x):
        return -x

    @property
    def kept(self):
        return 1

    @kept.setter
    def kept(self, value):
        self.held = value
"""
LINES = {"": 3, "inner": 6, "outer": 9, "kept": 13, "kept=": 17}
"""Method → the line that its call runs."""


Called = list[tuple[str, str, bool]]
"""Of each scenario the methods that come first ("-": none) and then, and whether it raised."""


def guesses(called: Called, origin: str = "inference", before: tuple[str, ...] = ()) -> frozenset[str]:
    """What is found of these scenarios. `before`: methods that ran for other units."""
    file, methods = counted_file(PORT), list(LINES)
    examples = [Example("net.py:Net", "", "", method=method, origin=cast(Any, origin if method else "config")) for method in methods]

    def numbers(*names: str) -> frozenset[int]:
        lines = {LINES[name] for name in names if name != "-"} | ({LINES["inner"]} if "" in names else set())
        return frozenset(number for number, place in enumerate(file.places) if place.line in lines)

    scenarios = [
        SimpleNamespace(name=f"s{number}", example=methods.index(then), prior=-1 if first == "-" else methods.index(first))
        for number, (first, then, _) in enumerate(called)
    ]
    described = [{"index": index} for index in range(len(methods))]
    asked = {scenario.name: methods_of(cast(Scenario, scenario), described, examples) for scenario in scenarios}
    rows = [sorted(numbers(first, then)) for first, then, _ in called]
    reach = {"sets": [{PATH: row} for row in rows], "of": {f"s{number}": number for number in range(len(rows))}}
    answered = {"scenarios": {f"s{number}": {"error": "x"} if raised else {} for number, (*_, raised) in enumerate(called)}, "reach": reach}
    digests = {f"{PATH}:{owner}": row for owner, row in file.digests_of(numbers(*before)).items()}
    return refused_guesses(examples, asked, answered, {PATH: file}, digests)


USUAL = ("-", "", False)


@pytest.mark.parametrize(
    ("called", "more", "expected"),
    [
        ([USUAL, ("-", "outer", False), ("-", "outer", True)], {}, {"outer"}),
        ([USUAL, ("-", "outer", False), ("outer", "", True)], {}, {"outer"}),  # what comes after it fails
        ([USUAL, ("-", "outer", False), ("outer", "", False), ("-", "outer", True)], {}, {"outer"}),
        ([USUAL, ("-", "outer", False)], {}, set()),
        ([USUAL, ("-", "inner", False), ("-", "inner", True)], {}, set()),  # the module's own call runs its lines
        ([USUAL, ("-", "outer", False), ("-", "outer", True)], {"before": ("outer",)}, set()),  # another unit ran its lines
        ([USUAL, ("-", "outer", True)], {"origin": "config"}, set()),  # a user asks for it
        ([USUAL, ("-", "kept", False), ("-", "kept=", True)], {}, {"kept="}),  # the property is read by another function
        ([USUAL, ("-", "kept=", False), ("-", "kept", True)], {}, {"kept"}),
    ],
)
def test_guesses_that_are_refused(called: Called, more: dict[str, Any], expected: set[str]) -> None:
    assert guesses(called, **more) == expected


def test_a_job_that_tells_its_lines_in_another_form() -> None:
    answered = {"scenarios": {"s0": {"error": "x"}, "s1": None}, "reach": {"sets": 3}}
    examples = [Example("net.py:Net", "", "", method="outer", origin="inference")]
    assert not refused_guesses(examples, {"s0": frozenset({"outer"})}, answered, {PATH: counted_file(PORT)}, {})


def test_a_first_look_asks_for_no_further_run() -> None:
    """A repair is looked at by its first call before the whole job, which says what guesses are refused, has run."""
    made = object.__new__(Results)
    made.unreached, made.examples, made.runs = "stub", [Example("net.py:Net", "", "", method="outer", origin="inference")], {}
    made.original = SimpleNamespace(scenarios=[SimpleNamespace(name="s0", arrays={}, state="e0-s0")], examples=[{"index": 0}])  # type: ignore[assignment]
    made.obtain = lambda results, kind: pytest.fail(f"the {kind} job runs again")
    run = CandidateRun({"scenarios": {"s0": {"tree": None}}}, {}, {}, 0.0)
    assert _refused(made, run) in (True, False)


@pytest.mark.parametrize(
    ("others", "status"),
    [((), None), ((SimpleNamespace(mode="train", draws=[["bernoulli"]], role=Role.GRADIENT, name="s1"),), "unverified")],
)
def test_randomness_of_a_stub_says_nothing_of_what_draws_elsewhere(others: tuple[Any, ...], status: str | None) -> None:
    stub = SimpleNamespace(mode="train", draws=[["normal"]], role=Role.GRADIENT, name="s0")
    made = SimpleNamespace(
        native={"dropout": {"error": "NotImplementedError"}},
        expected=SimpleNamespace(scenarios=[stub, *others]),
        refuses_guess=lambda scenario: scenario is stub,
    )
    verdict = dropout.judge(cast(Results, made))
    assert (verdict.status if verdict is not None else None) == status
