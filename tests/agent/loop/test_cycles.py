"""Units whose rewrites name each other are committed together, over scripted services: all that hold beside each other, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.run import Ask, Options, Result, start
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.types import Draft, Evidence, Inventory, Observations

NAMES = {"A": ("B",), "B": ("C", "A"), "C": ("A",), "D": ("A",)}
"""Which classes the rewrites name: A, B and C form a cycle, and D needs it."""


def never(context: Context, state: RunState) -> str:
    raise AssertionError("no question may be asked")


class Scripted:
    """Drafts that hold what `NAMES` says, stubs of what is refused; counts the verifications of each unit."""

    def __init__(self) -> None:
        self.verified: list[str] = []

    def mentions(self, inventory: Inventory, observations: Observations, unit: str, examples: Sequence[Any]) -> tuple[str, ...]:
        """As `NAMES` has it."""
        return tuple(each.id for each in inventory.units if each.name in NAMES[unit[-1]])

    def compose(self, inventory: Inventory, *arguments: Any) -> Draft:
        """All units wanted, and stubs of those refused."""
        refused: Sequence[str] = arguments[-1]
        draft = scripted.compose(inventory, *arguments)
        stubs = [each for each in inventory.units if each.id in refused]
        files: Mapping[str, str] = {each.target: f"class {each.name}:\n    stub = True\n" for each in stubs}
        return Draft({**draft.files, **files}, draft.holes, draft.notes, tuple(each.id for each in stubs))

    def verify(self, *arguments: Any) -> Evidence:
        """As scripted."""
        self.verified.append(arguments[0].name)
        return scripted.verify(*arguments)


def run(folder: Path, fates: Mapping[str, str], options: Options, ask: Ask = never) -> tuple[Path, Result, Scripted]:
    files = {f"{name.lower()}.py": module(name, f"script: {fates[name]}" if name in fates else "A layer.") for name in NAMES}
    root, service = repository(folder / "repo", files), Scripted()
    services = scripted.services(mentions=service.mentions, compose=service.compose, verify=service.verify)
    return root, start(root, options, services, Progress(Console(quiet=True)), ask), service


CASES = [
    pytest.param({}, "verified verified verified verified", "ABCD", id="all hold"),
    pytest.param({"C": "fail"}, "verified verified failed verified", "ABCABD", id="the others hold without the one that fails"),
    pytest.param({"B": "hole"}, "verified unverified verified verified", "ACAD", id="a hole of another is left out"),
    pytest.param({"B": "no example"}, "verified unverified verified verified", "ACD", id="one that nothing runs is in no cycle"),
    pytest.param({"A": "fail", "B": "fail", "C": "fail"}, "failed failed failed verified", "ABCD", id="none holds"),
]


@pytest.mark.parametrize(("fates", "statuses", "verified"), CASES)
def test_what_holds_together_is_committed(tmp_path: Path, fates: Mapping[str, str], statuses: str, verified: str) -> None:
    root, result, service = run(tmp_path, fates, Options())
    assert [unit.status for unit in result.units] == statuses.split()
    assert "".join(service.verified) == verified
    for unit in result.units:
        if unit.status != "verified":
            continue
        assert git(root, "log", "-1", "--format=%s", unit.commit) == f"Migrate {unit.source}:{unit.name} to JAX"
        assert "stub" not in git(root, "show", f"{result.branch}:{unit.target}")


def test_the_first_commit_holds_them_all_and_undoing_takes_all(tmp_path: Path) -> None:
    answers = ["accept", "accept", "accept", "undo", "accept", "accept", "skip", "skip"]
    root, result, service = run(tmp_path, {}, Options(interactive=True), lambda context, state: answers.pop(0))
    assert not answers and [unit.status for unit in result.units] == ["verified", "verified", "skipped", "skipped"]
    subjects = git(root, "log", "--format=%s", result.branch).splitlines()
    assert subjects == ["Report the migration", "Migrate b.py:B to JAX", "Migrate a.py:A to JAX", "first"]
    assert "class B" in git(root, "show", f"{result.units[0].commit}:b_jax.py")
    assert "stub" in git(root, "show", f"{result.branch}:c_jax.py")
    assert "".join(service.verified) == "ABCD" + "BC" + "AB" + "D"


def test_looking_ahead_comes_to_the_same(tmp_path: Path) -> None:
    one, many = (run(tmp_path / str(jobs), {"C": "fail"}, Options(jobs=jobs)) for jobs in (1, 3))
    assert [unit.commit for unit in one[1].units] == [unit.commit for unit in many[1].units]
