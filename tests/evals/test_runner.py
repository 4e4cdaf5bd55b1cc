"""Running suites: what is kept, what is taken up again, what ends a group, and what is told of wrong usage."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.evals import runner
from migrate_agent.evals.processes import Ended, Processes, Stopped
from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.tests.evals.toy import GROUPS, KEPT, run


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    """The toy suite, run in this process; gives the groups that were run."""
    seen: list[Group] = []

    def once(self: Processes, suite: Suite, group: Group, options: Options) -> Ended:
        seen.append(group)
        found = run(tuple(name for name in group if name != "four"), options)
        return Ended(list(found), "no memory is left" if "four" in group else "")

    monkeypatch.setattr(runner, "suite_names", lambda: ("toy",))
    monkeypatch.setattr(runner, "load_suite", {"toy": KEPT}.__getitem__)
    monkeypatch.setattr(Processes, "_once", once)
    return seen


def stored(folder: Path, name: str = "toy.json") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return content


def test_a_case_that_ends_its_process_costs_the_others_nothing(toys: list[Group], tmp_path: Path) -> None:
    assert runner.run("toy", Options(), output=tmp_path) == 1
    assert {case["case"]: case["status"] for case in stored(tmp_path)["cases"]} == {
        "one": "right",
        "two": "wrong",
        "three": "right",
        "four": "wrong",
    }
    assert next(case for case in stored(tmp_path)["cases"] if case["case"] == "four")["reason"].endswith("no memory is left")
    assert toys == [("one",), ("two",), ("three", "four"), ("three",), ("four",)]


def test_results_of_groups_are_kept_and_taken_up(toys: list[Group], tmp_path: Path) -> None:
    assert runner.run("toy", Options("one"), output=tmp_path) == 0
    assert stored(tmp_path)["missing"] == ["two", "three"]
    toys.clear()
    runner.run("toy", Options(), output=tmp_path, resume=True)
    assert toys[:2] == [("two",), ("three", "four")]
    assert (stored(tmp_path)["missing"], len(stored(tmp_path)["cases"])) == ([], 4)
    assert {case["length"] for case in stored(tmp_path)["cases"] if case["status"] == "right"} == {3, 5}
    toys.clear()
    runner.run("toy", Options("two"), output=tmp_path)
    assert toys == [("two",)]


def test_what_is_done_stays_when_the_suite_is_stopped(toys: list[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = Processes._once

    def stops(self: Processes, suite: Suite, group: Group, options: Options) -> Ended:
        if group == ("two",):
            raise KeyboardInterrupt
        return once(self, suite, group, options)

    monkeypatch.setattr(Processes, "_once", stops)
    with pytest.raises(KeyboardInterrupt):
        runner.run("toy", Options("one,two"), output=tmp_path)
    assert [case["case"] for case in stored(tmp_path)["cases"]] == ["one"]


def test_quick_results_are_a_part(toys: list[Group], tmp_path: Path) -> None:
    runner.run("toy", Options("one", quick=True), output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.part.json"]


def test_groups_may_be_called_like_paths(toys: list[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "load_suite", {"toy": replace(KEPT, groups=lambda options: [("a/one",), ("b",)])}.__getitem__)
    runner.run("toy", Options(), output=tmp_path)
    assert (tmp_path / "toy" / "a" / "one.json").exists()
    assert (stored(tmp_path)["missing"], len(stored(tmp_path)["cases"])) == ([], 2)


def test_a_part_of_a_group_is_not_kept(toys: list[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "load_suite", {"toy": replace(KEPT, groups=parts)}.__getitem__)
    runner.run("toy", Options("three"), output=tmp_path)
    assert toys == [("three",)]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.part.json"]


def parts(options: Options) -> list[Group]:
    """The groups without the cases that are not wanted."""
    found = [tuple(name for name in group if options.wanted(name)) for group in GROUPS]
    return [group for group in found if group]


WORKER = "import sys; {body}"
LINE = '{"case": "one", "status": "right", "reason": "", "details": {}}'


@pytest.mark.parametrize(
    ("body", "limit", "outcomes"),
    [
        (f"print('{LINE}')", 60.0, [Outcome("one", "right")]),
        (
            f"print('{LINE}'); sys.exit('gone')",
            60.0,
            [Outcome("one", "right"), Outcome("one", "wrong", "the suite's process died: gone")],
        ),
        ("sys.exit(4)", 60.0, [Outcome("one", "wrong", "the suite's process died: exit status 4")]),
        ("import time; time.sleep(60)", 0.2, [Outcome("one", "wrong", "the suite's process died: no end after 0 s")]),
    ],
)
def test_processes(body: str, limit: float, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    start = Processes._start
    monkeypatch.setattr(Processes, "_start", lambda self, command: start(self, [sys.executable, "-c", WORKER.format(body=body)]))
    assert Processes().run(replace(KEPT, seconds=limit), ("one",), Options()) == outcomes


def test_a_long_group_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    body = f"print('{LINE}'); print('{LINE.replace('right', 'wrong')}')"
    start = Processes._start
    monkeypatch.setattr(Processes, "_start", lambda self, command: start(self, [sys.executable, "-c", WORKER.format(body=body)]))
    monkeypatch.setattr(runner, "SILENCE", 0.0)
    (done,) = runner.run_groups(KEPT, [("one", "two")], Options(), 1)
    assert len(done.outcomes) == 2
    said = capsys.readouterr().err
    assert "toy: one, two: 1 done, of these 1 of 1 (100.0 %) right" in said
    assert "toy: one, two: 2 done, of these 1 of 2 (50.0 %) right" in said


def test_stopped_processes_end_with_what_they_started() -> None:
    running = Processes()
    process = running._start([sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"])
    running.close()
    assert process.communicate(timeout=60) == ("", "")  # ends when nobody holds the pipes any more
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(Stopped):
        running.run(KEPT, ("one",), Options())


@pytest.fixture
def handlers() -> Iterator[None]:
    """The signal handlers put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--suite", "nothing"], "there is no suite 'nothing'; --suite is one of toy"),
        (["--suite", "toy", "--filter", "zero"], "no case of the suite toy has 'zero' in its name (--filter)"),
        (["--suite", "toy", "--samples", "few"], "--samples is a number of at least 1 or `all`, not 'few'"),
        (["--suite", "toy", "--samples", "0"], "--samples is a number of at least 1 or `all`, not '0'"),
        (["--suite", "toy", "--quick", "--resume"], "--resume: quick results are not kept by group"),
        (["--suite", "toy", "--jobs", "0"], "Invalid value for '--jobs'"),
        ([], "Missing option '--suite'"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], line: str, toys: list[Group], handlers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["eval", *arguments, "--output", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("migrate-agent: ") and line in error
    assert error.count("\n") == 1
    assert toys == []


def test_the_command_line_runs_a_suite(toys: list[Group], handlers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["eval", "--suite", "toy", "--filter", "one,two", "--output", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "Toys: 1 of 2 (50.0 %) toys right" in printed.out
    assert "Wrong: 1\n  two: off\n" in printed.out
    assert "[1/2] one: 1 of 1 (100.0 %) right" in printed.err
