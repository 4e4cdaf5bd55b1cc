"""Every hostile program is contained by every backend that claims to contain it, and the page says what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox import BACKENDS, Sandbox, open_sandbox
from migrate_agent.tests.sandbox.hostile.harness import CANARY, Program, escapes, programs
from migrate_agent.tests.sandbox.hostile.table import documented
from migrate_agent.tests.sandbox.support import REASONS, containers

CONTAINING = ("docker", "bubblewrap")
KINDS = [pytest.param(kind, marks=pytest.mark.skipif(bool(REASONS[kind]), reason=f"{kind}: {REASONS[kind]}")) for kind in CONTAINING]
PROGRAMS = programs()


@pytest.fixture(scope="module", params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARY)
        folder = tmp_path_factory.mktemp("h")
        sandbox = open_sandbox(request.param, folder=folder)
        yield sandbox, folder
        sandbox.close()
        assert containers(folder) == []
        assert not list(folder.glob("migrate-agent-sandbox-*"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.id)
def test_contained(opened: tuple[Sandbox, Path], program: Program) -> None:
    assert escapes(program, *opened) == []


def test_there_are_enough_and_they_differ() -> None:
    assert len(PROGRAMS) >= 40
    assert len({program.text for program in PROGRAMS}) == len(PROGRAMS)
    assert all(program.text for program in PROGRAMS)


def test_the_page_tells_what_is_held() -> None:
    table = documented()
    assert table.keys() == {(program.text, kind) for program in PROGRAMS for kind in BACKENDS}, "run tests/sandbox/hostile/table.py"
    assert {key for key, held in table.items() if not held and key[1] in CONTAINING} == set()
    assert any(not held for held in table.values()), "a plain process cannot hold all of them"


def test_the_harness_sees_what_is_not_held(tmp_path: Path) -> None:
    """The same eyes on a plain process: without this, containment could be a blind spot of the harness."""
    seeing = {"host_file": "canary came out", "unix_socket": "network reached", "write_root": "code changed"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARY)
        sandbox = open_sandbox("process", folder=tmp_path)
    wanted = [program for program in PROGRAMS if program.name in seeing and program.theme != "outputs"]
    found = {program.name: escapes(program, sandbox, tmp_path) for program in wanted}
    sandbox.close()
    assert {name: seeing[name] in what for name, what in found.items()} == dict.fromkeys(seeing, True)
