"""What a team sees of a stack of requests, told by the forge and its repository: opened, left alone, merged from the bottom, rebased.

The same checks hold a small repository in CI and all of `examples/vision` (`whole.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from migrate_agent.agent.forge.base import CONTEXT
from migrate_agent.agent.pr.sheet import FOLDER, NAME, Sheet, folder_of, from_text
from migrate_agent.agent.pr.stack import branch_of
from migrate_agent.tests.agent.forge import gitlab_standin
from migrate_agent.tests.agent.forge.standin import StandIn
from migrate_agent.tests.agent.repositories import git

HELPERS = ("nnx_layers.py", "nnx_layers_jax.py")
"""Where helpers with torch's semantics are copied to: each unit may bring those that it needs."""


Served = StandIn | gitlab_standin.StandIn


@dataclass(frozen=True)
class Effect:
    """What one command did at the forge: requests to its interface that read and that write, pushes, and our branches that moved."""

    reads: int = 0
    writes: int = 0
    pushes: int = 0
    moved: int = 0

    @property
    def quiet(self) -> bool:
        """Whether nothing was changed."""
        return not (self.writes or self.pushes or self.moved)

    def __str__(self) -> str:
        return f"{self.reads} reads, {self.writes} writes, {self.pushes} pushes, {self.moved} branches moved"


def heads(forge: Served) -> dict[str, str]:
    """Our branches on the forge, and their commits."""
    assert forge.bare is not None
    lines = git(forge.bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/migrate-agent").splitlines()
    return dict(line.removeprefix("refs/heads/").split() for line in lines)


def effect(forge: Served, command: Callable[[], object]) -> Effect:
    """Do it, and say what it did."""
    before = heads(forge)
    forge.sent.clear()
    forge.pushes.clear()
    command()
    after, writes = heads(forge), len(forge.writes())
    moved = sum(before.get(name) != after.get(name) for name in {*before, *after})
    return Effect(len(forge.sent) - writes, writes, len(forge.pushes), moved)


def opened(forge: StandIn) -> list[dict[str, Any]]:
    """The open requests."""
    return [pull for pull in forge.pulls if pull["state"] == "open"]


def sheet(forge: StandIn, pull: dict[str, Any]) -> Sheet:
    """The evidence of the one unit of a request."""
    unit = next(unit for unit in _units(forge, pull["head"]) if branch_of(unit) == pull["head"])
    found = from_text(git(forge.bare, "show", f"{pull['head']}:{folder_of(unit)}/{NAME}"))
    assert found is not None
    return found


def problems(forge: StandIn) -> Iterator[str]:
    """What is not as it should be in the stack of open requests: order, bases, statuses, diffs. One line each."""
    tip = forge.head("main")
    units = {(told.target, told.name) for told in (sheet(forge, pull) for pull in opened(forge))}
    below: dict[str, set[str]] = {"main": _units(forge, "main")}
    for pull in opened(forge):
        head, base, told = pull["head"], pull["base"], sheet(forge, pull)
        if base not in below:
            yield f"{head} goes into {base}, which is opened later"
        if missing := set(told.needs) - below.get(base, set()):
            yield f"{head} needs {', '.join(sorted(missing))}, which is not below it"
        below[head] = {*below.get(base, ()), told.unit}
        states = [status["state"] for status in forge.statuses.get(forge.head(head), []) if status["context"] == CONTEXT]
        if states[-1:] != ["success"]:
            yield f"{head} has the status {states[-1:]}"
        if git(forge.bare, "merge-base", head, "main") != tip:
            yield f"{head} does not stand on the newest commit of main"
        yield from (f"{head}: {problem}" for problem in _foreign(forge, base, head, told, units))


def changed(forge: StandIn, pull: dict[str, Any]) -> list[str]:
    """Files of a request's diff."""
    return git(forge.bare, "diff", "--name-only", f"{pull['base']}...{pull['head']}").splitlines()


def _foreign(forge: StandIn, base: str, head: str, told: Sheet, units: set[tuple[str, str]]) -> Iterator[str]:
    """What a diff holds beside its unit: other evidence, other files than the draft's, other units, changes of what was there."""
    own = (f"{folder_of(told.unit)}/", f".migrate/verified/{told.source}/{told.name}.json")
    for path in changed(forge, {"base": base, "head": head}):
        if path.startswith(own):
            continue
        if path not in told.files:
            yield f"its diff holds {path}"
        elif path.endswith(".py") and path.rpartition("/")[2] not in HELPERS:
            before, after = (_definitions(_text(forge, commit, path)) for commit in (base, head))
            others = {name for name, text in before.items() if after.get(name) != text}
            others |= {name for place, name in units if place == path and name in after and name not in before}
            if others := others - {told.name}:
                yield f"its diff changes {', '.join(sorted(others))} of {path}"


def _units(forge: StandIn, branch: str) -> set[str]:
    """Units whose evidence lies on a branch."""
    files = git(forge.bare, "ls-tree", "-r", "--name-only", branch, "--", FOLDER).splitlines()
    found = [path.removeprefix(f"{FOLDER}/").removesuffix(f"/{NAME}") for path in files if path.endswith(f"/{NAME}")]
    return {":".join(path.rsplit("/", 1)) for path in found}


def _text(forge: StandIn, commit: str, path: str) -> str:
    listed = git(forge.bare, "ls-tree", commit, "--", path)
    return git(forge.bare, "show", f"{commit}:{path}") if listed else ""


def _definitions(text: str) -> dict[str, str]:
    """Source of each top-level class and function by name."""
    return {node.name: ast.unparse(node) for node in ast.parse(text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
