"""A verified program is one request, on those of the units that it imports: over real git and the stand-in for GitHub."""

from __future__ import annotations

import pytest

from migrate_agent.agent.loop.nodes import programs as node
from migrate_agent.agent.pr.run import imported_files
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.pr.team import BRANCHES, Team, again, commit
from migrate_agent.tests.agent.repositories import git, module
from migrate_agent.tools.programs.migrate import Migrated
from migrate_agent.tools.types import Draft, Evidence, Verdict

PROGRAM = {
    "train.py": module("Head").replace("import torch\n", "import torch\nfrom model import Net\n"),
    "migrate.toml": '[[program]]\nrun = "python train.py"\n',
}
REWRITE = "from model_jax import Net\n\n\nclass Head:\n    pass\n\n\nprint(Net)\n"


def migrated(program: object, *rest: object) -> Migrated:
    evidence = Evidence(
        "train.py", (Verdict("spec", "runs", "pass"), Verdict("numeric", "losses_fp64", "pass", 1e-15, 1e-10, "6 steps")), 1.0
    )
    return Migrated("train_jax.py", Draft({"train_jax.py": REWRITE}), evidence)


@pytest.mark.slow
def test_a_program_is_one_request_after_those_it_needs(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "migrate_program", migrated)
    commit(team.root, PROGRAM)
    git(team.root, "push", "-q", str(team.forge.bare), "main")
    again(team.root)
    assert team.pr("--yes") == 0, team.err
    heads = [pull["head"] for pull in team.forge.pulls]
    assert heads[-1] == "migrate-agent/pr/train.py/__main__"
    assert set(heads) == {*BRANCHES, "migrate-agent/pr/train.py/Head", heads[-1]}
    pull = team.forge.pulls[-1]
    assert pull["title"] == "Migrate train.py:__main__ to JAX"
    assert "train_jax.py" in story.changed(team.forge, pull)
    assert "Stands on" in pull["body"] and "losses_fp64" in pull["body"]
    assert team.pr("--yes") == 0 and team.quiet


def test_imports_are_read_by_their_last_part() -> None:
    assert imported_files("import a.b\nfrom c.d import e\nfrom . import f\n") == {"b", "d", "e", "", "f"}
