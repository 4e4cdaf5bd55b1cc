"""The graph's ways: the model's two nodes and the review, over scripted services and a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.loop import session
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.graph import NODES, ROUTES
from migrate_agent.agent.loop.run import Options, Result, resume, start
from migrate_agent.agent.model.interface import Proposal, Request
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.types import Example, Recording, UnitReport, Usage


class ScriptedModel:
    """Answers with what it was given, in turn, and keeps what it was asked. Empty answers when it has no more."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, Request]]()

    def fill(self, request: Request) -> Proposal:
        """The next answer."""
        return self._answer("fill", request)

    def repair(self, request: Request) -> Proposal:
        """The next answer."""
        return self._answer("repair", request)

    def ask(self, request: Request, question: str) -> tuple[str, Usage]:
        """The next answer."""
        self.asked.append(("ask", request))
        return self.answers.pop(0), Usage(1, 100, 10)

    def _answer(self, what: str, request: Request) -> Proposal:
        self.asked.append((what, request))
        texts = {request.unit.id: self.answers.pop(0)} if self.answers else {}
        return Proposal(texts, Usage(1, 100, 10))


def never(context: Context, state: RunState) -> str:
    raise AssertionError("no question may be asked")


def answering(answers: Sequence[str]) -> Callable[[Context, RunState], str]:
    left = list(answers)
    return lambda context, state: left.pop(0)


def quiet() -> Progress:
    return Progress(Console(quiet=True))


def row(result: Result, name: str) -> UnitReport:
    return next(unit for unit in result.units if unit.name == name)


GOOD, WRONG = "class {0}:\n    repaired = True\n", "class {0}:\n    wrong = True\n"
ATTEMPTS = Config().budget.attempts


@pytest.mark.parametrize(
    ("script", "answers", "asked", "status", "attempts"),
    [
        ("hole", [GOOD], ["fill"], "verified", 2),
        ("hole", [], ["fill"], "unverified", 1),
        ("fail", [WRONG, GOOD], ["repair", "repair"], "verified", 3),
        ("fail", [WRONG], ["repair", "repair"], "failed", 2),
        ("fail", [f"{WRONG}    number = {number}\n" for number in range(9)], ["repair"] * (ATTEMPTS - 1), "failed", ATTEMPTS),
        ("fail", [WRONG] * 9, ["repair"] * (ATTEMPTS - 1), "failed", ATTEMPTS),
    ],
)
def test_model_fills_and_repairs_within_its_attempts(
    tmp_path: Path, script: str, answers: list[str], asked: list[str], status: str, attempts: int
) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", f"script: {script}"), "b.py": module("B")})
    model = ScriptedModel(*(answer.format("A") for answer in answers))
    result = start(root, Options(), scripted.services(model=model), quiet(), never)
    unit = row(result, "A")
    assert [what for what, _ in model.asked] == asked
    assert (unit.status, unit.attempts, unit.proposer) == (status, attempts, "llm")
    assert unit.llm == Usage(len(asked), 100 * len(asked), 10 * len(asked))
    assert row(result, "B").status == "verified" and row(result, "B").proposer == "rules"
    if status == "verified":
        assert git(root, "show", f"{result.branch}:a_jax.py") == GOOD.format("A").strip()
    if "repair" in asked:
        evidence = model.asked[0][1].evidence
        assert evidence is not None and evidence.status == "failed"


def test_without_leave_the_model_is_not_asked(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: hole")})
    model = ScriptedModel(GOOD)
    result = start(root, Options(llm=False), scripted.services(model=model), quiet(), never)
    assert model.asked == []
    assert "a language model could fill them" in row(result, "A").reason


def test_texts_of_an_accepted_unit_stay_in_later_drafts(tmp_path: Path) -> None:
    files = {"m.py": module("A", "script: hole") + module("B").replace("import torch\nfrom torch import nn\n", "")}
    root = repository(tmp_path / "repo", files)
    result = start(root, Options(), scripted.services(model=ScriptedModel(GOOD.format("A"))), quiet(), never)
    assert result.exit_status == 0
    assert git(root, "show", f"{result.branch}:m_jax.py") == f"{GOOD.format('A')}class B:\n    pass"


def test_review_accepts_skips_and_quits_and_is_taken_up_again(tmp_path: Path) -> None:
    files = {"a.py": module("A"), "b.py": module("B"), "c.py": module("C"), "d.py": f"from b import B\n{module('D', needs='B')}"}
    root = repository(tmp_path / "repo", files)
    paused = start(root, Options(interactive=True), scripted.services(), quiet(), answering(["accept", "skip", "quit"]))
    assert paused.paused and paused.exit_status == 1
    assert [unit.status for unit in paused.units] == ["verified", "skipped", "unverified", "unverified"]
    done = resume(root, scripted.services(), quiet(), answering(["accept", "skip"]))
    assert not done.paused and done.exit_status == 1
    assert [unit.status for unit in done.units] == ["verified", "skipped", "verified", "unverified"]
    assert row(done, "B").reason == "verified, but not accepted in the review"
    assert row(done, "D").reason == "needs b.py:B, which is skipped (verified, but not accepted in the review)"
    assert git(root, "log", "--format=%s", done.branch).splitlines() == [
        "Report the migration",
        "Migrate c.py:C to JAX",
        "Migrate a.py:A to JAX",
        "first",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_review_shows_both_sides_and_the_verdicts(tmp_path: Path, width: int) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("Alpha", "Docs [bold]not markup[/].")})
    console = Console(record=True, width=width, file=(tmp_path / "out").open("w"))

    def look(context: Context, state: RunState) -> str:
        session.show(console, context, state, context.load(state))
        return "accept"

    start(root, Options(interactive=True), scripted.services(), quiet(), look)
    shown = console.export_text()
    console.file.close()
    for words in ("a.py", "a_jax.py", "Docs [bold]not markup[/].", "class Alpha:", "forward_fp64", "pass", "1e-14"):
        assert words in shown
    assert max(map(len, shown.splitlines())) <= width


def test_where_no_one_looks_what_is_verified_is_accepted(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A")})
    result = start(root, Options(interactive=True), scripted.services(), quiet(), session.ask)
    assert result.exit_status == 0


def test_a_given_example_that_does_not_run_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A"), "b.py": module("B")})
    given = tuple(Example(f"{name}.py:{name.upper()}", "", "x", origin="config") for name in "ab")

    def record(*arguments: Any) -> Recording:
        found = scripted.record(*arguments)
        kept = tuple(example for example in found.examples if example != given[0])
        return replace(found, examples=kept, errors={given[0].unit: "TypeError: too many arguments"})

    console = Console(file=StringIO(), width=200)
    services = scripted.services(record=record, examples=lambda inventory, config: given)
    result = start(root, Options(), services, Progress(console), never)
    assert [unit.status for unit in result.units] == ["verified", "verified"]
    told = [line for line in console.file.getvalue().splitlines() if "warning" in line]  # type: ignore[attr-defined]
    assert told == ["warning: an example of a.py:A does not run, and is left out: TypeError: too many arguments"]
    assert "an example given for it does not run: TypeError: too many arguments" in row(result, "A").notes
    assert not row(result, "B").notes


def test_every_route_leads_to_a_node() -> None:
    names = {node.__name__ for node in NODES}
    assert set(ROUTES) == names
    assert {target for routes in ROUTES.values() for target in routes.values()} - names == {"__end__"}
