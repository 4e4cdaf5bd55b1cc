"""Which programs the suite has: ours in `examples/programs/`, and public ones by address and commit."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from migrate_agent.evals.programs.stand_ins import stand_in
from migrate_agent.evals.suites.repositories import Repository, lay_out_commit
from migrate_agent.evals.zoo_packages.packages import Package, PackageError
from migrate_agent.evals.zoo_packages.zoo_run import commit_all

LISTS = Path(__file__).parent
OWN = LISTS.parents[1] / "examples"


@dataclass(frozen=True)
class Listed:
    """A program: the command that runs it, and what it covers of training code. `address` and `commit` are empty for ours.

    `refused` is what the tool must name as the reason where it cannot migrate the program by design; such a program is out of scope. Of a public one
    `paths` are laid out (all, where there are none), and `data` names files that stand in for those that it downloads: kind and folder,
    `"digits:data"` (`stand_ins.py`). `edits` are changes of its text, each file, old and new text: to run with the packages of today, or for a shorter
    run where constants say how long it is.
    """

    name: str
    run: str
    covers: tuple[str, ...]
    refused: str = ""
    address: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    data: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    place: str = ""
    """Where ours lies in `examples`; `programs/NAME` unless it is said."""
    steps: int = 0
    """After how many optimizer steps it is ended, as `steps` in a user's `migrate.toml`; 0: it ends by itself."""

    @property
    def own(self) -> Path:
        """The folder of one of ours."""
        return OWN / (self.place or f"programs/{self.name}")

    @property
    def folder(self) -> str:
        """The folder that it runs in, relative to the repository; "" for that itself."""
        words = self.run.split()
        return words[1] if words[0] == "cd" else ""

    @property
    def script(self) -> str:
        """The script, relative to the repository."""
        return (PurePosixPath(self.folder) / self._word).as_posix()

    @property
    def _word(self) -> str:
        return next(word for word in self.run.split() if word.endswith(".py"))

    @property
    def arguments(self) -> list[str]:
        """The options after the script."""
        words = self.run.split()
        return words[words.index(self._word) + 1 :]


def load_programs(folder: Path = LISTS) -> dict[str, Listed]:
    """Name → program, of each `[[program]]` of the TOML files."""
    rows = [row for file in sorted(folder.glob("*.toml")) for row in tomllib.loads(file.read_text(encoding="utf-8"))["program"]]
    return {
        row["name"]: Listed(
            **{
                **row,
                "covers": tuple(row["covers"]),
                "paths": tuple(row.get("paths", ())),
                "edits": tuple(tuple(edit) for edit in row.get("edits", ())),
            }
        )
        for row in rows
    }


def lay_out_program(program: Listed, sources: str, folder: Path, seconds: float) -> None:
    """Make `folder` a git repository of one commit with the program and a `migrate.toml` for it. Raises `PackageError` without its clone."""
    if program.address:
        package = Package(program.name, "repository", (), ())
        lay_out_commit(Repository(package, program.address, program.commit, ()), Path(sources), folder)
        _keep(folder, program.paths)
        _edit(folder, program.edits)
        if program.data:
            stand_in(folder, program.data)
    else:
        shutil.copytree(program.own, folder)
    steps = f"steps = {program.steps}\n" if program.steps else ""
    text = f"[[program]]\nrun = {json.dumps(program.run)}\n{steps}\n[limits]\nseconds = {seconds}\n"
    (folder / "migrate.toml").write_text(text, encoding="utf-8")
    commit_all(folder)


def _edit(folder: Path, edits: Sequence[tuple[str, str, str]]) -> None:
    """Put texts in place of others. Raises `PackageError` where one is not there."""
    for path, old, new in edits:
        text = (folder / path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise PackageError(f"{path}: {old!r} stands there {text.count(old)} times")
        (folder / path).write_text(text.replace(old, new), encoding="utf-8")


def _keep(folder: Path, paths: Sequence[str]) -> None:
    """Leave these files and folders alone."""
    for path in sorted(folder.rglob("*")) if paths else ():
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(name == one or name.startswith(f"{one}/") for one in paths):
            path.unlink()
