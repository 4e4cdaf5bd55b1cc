"""`--jobs N`: several units are verified at the same time, and what a run comes to is what it comes to without."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.model.connect import connect
from migrate_agent.agent.model.interface import Proposal, Request
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState
from migrate_agent.agent.runs.stops import Interrupted
from migrate_agent.evals.model_loop.scripted_endpoint import Move, Script, endpoint
from migrate_agent.sandbox.base import SandboxError
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.types import Evidence, Usage

FILES = {
    "a.py": module("A"),
    "b.py": f"from a import A\n{module('B', needs='A')}",
    "c.py": module("C", "script: fail"),
    "d.py": module("D", "script: hole"),
    "e.py": module("E", "script: unjudged"),
    "f.py": module("F", "script: no example"),
    "g.py": f"from a import A\n{module('G', needs='A')}",
    "h.py": module("H"),
}


class Repairs:
    """Repairs what failed, and fills what was left open."""

    def fill(self, request: Request) -> Proposal:
        """A text of its own."""
        return Proposal({request.unit.id: f"class {request.unit.name}:\n    '''repaired'''\n"}, Usage(1, 2, 3))

    repair = fill


def never(context: Context, state: RunState) -> str:
    raise AssertionError("no question may be asked")


def outcome(root: Path, jobs: int, services: Services) -> tuple[Any, str]:
    """The report without times and the folder, and the branch's commits."""
    report = root.parent / f"{root.name}.json"
    start(repository(root, FILES), Options(jobs=jobs, report=report), services, Progress(Console(quiet=True)), never)
    document = json.loads(report.read_text())
    document.pop("repo")
    for unit in document["units"]:
        unit.pop("seconds")
    assert not list(root.rglob("ahead-*"))
    return document, git(root, "log", "--format=%H %s", document["branch"])


@pytest.mark.parametrize("model", [None, Repairs()])
@pytest.mark.parametrize("jobs", [2, 5])
def test_a_run_comes_to_the_same(tmp_path: Path, jobs: int, model: Repairs | None) -> None:
    expected = outcome(tmp_path / "one", 1, scripted.services(model=model))
    assert {unit["status"] for unit in expected[0]["units"]} >= {"verified", "unverified"}
    assert outcome(tmp_path / "many", jobs, scripted.services(model=model)) == expected


class Meeting:
    """A verifier that waits until `jobs` verifications are under way, and counts those that a unit had."""

    def __init__(self, jobs: int) -> None:
        self._barrier = threading.Barrier(jobs)
        self.verified: list[str] = []

    def verify(self, *arguments: Any) -> Evidence:
        """As scripted, once there are enough."""
        self._barrier.wait(timeout=60)
        self.verified.append(arguments[0].id)
        return scripted.verify(*arguments)


def test_units_are_verified_at_the_same_time_and_once(tmp_path: Path) -> None:
    """Four units, two threads: were it one after the other, the barrier would break, and the units would be unverified."""
    files = {f"{name}.py": module(name.upper()) for name in "abcd"}
    meeting = Meeting(2)
    root = repository(tmp_path / "repo", files)
    result = start(root, Options(jobs=2), scripted.services(verify=meeting.verify), Progress(Console(quiet=True)), never)
    assert [unit.status for unit in result.units] == ["verified"] * 4
    assert sorted(meeting.verified) == sorted(f"{name}.py:{name.upper()}" for name in "abcd")


@pytest.mark.parametrize("error", [SandboxError("gone"), Interrupted(130)])
def test_the_end_of_a_run_ends_its_threads(tmp_path: Path, error: BaseException) -> None:
    """What one unit raises stops the run; the others are not waited for beyond their present stage."""
    begun = threading.Event()

    def verify(*arguments: Any) -> Evidence:
        if arguments[0].name == "A":
            assert begun.wait(60)
            raise error
        begun.set()
        for _ in range(600):
            arguments[-1]("stage")  # raises once the run has ended
            threading.Event().wait(0.1)
        raise AssertionError("nobody ended it")

    root = repository(tmp_path / "repo", {f"{name}.py": module(name.upper()) for name in "abc"})
    with pytest.raises(BaseException, match=r"gone|signal 2"):
        start(root, Options(jobs=2), scripted.services(verify=verify), Progress(Console(quiet=True)), never)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]
    assert not list(root.rglob("ahead-*"))


def test_models_are_asked_for_several_units_at_the_same_time_and_once(tmp_path: Path) -> None:
    """The endpoint answers when two requests are there: were they made one after the other, it would never."""
    files = {f"{name}.py": module(name.upper(), "script: hole") for name in "ab"}
    meeting = threading.Barrier(2)

    def answer(request: dict[str, Any], number: int) -> Move:
        name = "A" if "class A(" in request["messages"][1]["content"] else "B"
        return json.dumps({"holes": [{"number": 1, "code": f"class {name}:\n    filled = True"}], "whole_class": "", "reason": ""})

    class Together(Script):
        def move(self, request: dict[str, Any], key: str) -> Move:
            meeting.wait(timeout=60)
            return super().move(request, key)

    root = repository(tmp_path / "repo", files)
    with endpoint(answer, Together) as script:
        options = Options(jobs=2, model="m", base_url=script.url)
        result = start(root, options, scripted.services(connect=connect), Progress(Console(quiet=True)), never)
    assert [unit.status for unit in result.units] == ["verified"] * 2
    assert [unit.llm.calls for unit in result.units] == [1, 1] and len(script.asked) == 2


def test_nothing_is_asked_early_for_a_unit_that_may_be_blocked(tmp_path: Path) -> None:
    files = {"a.py": module("A", "script: hole"), "b.py": f"from a import A\n{module('B', 'script: hole', needs='A')}"}
    root = repository(tmp_path / "repo", files)
    with endpoint(["nonsense"] * 9) as script:
        options = Options(jobs=4, model="m", base_url=script.url)
        result = start(root, options, scripted.services(connect=connect), Progress(Console(quiet=True)), never)
    assert [unit.llm.calls for unit in result.units] == [3, 0] and len(script.asked) == 3
