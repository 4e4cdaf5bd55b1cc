"""The user's repository: read the base commit, and grow a branch of our own in a worktree of our own.

Neither the user's index, working tree, current branch, stash nor hooks take part. Commits carry fixed dates and one identity,
so a run that is killed and resumed makes the very same commits: making one again is harmless, it is the same object.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.agent.config.errors import MissingError, UsageError, UserError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.tools.scan.walk import MANIFEST

try:
    import git
except ImportError as error:  # GitPython refuses to be imported where there is no git
    raise MissingError("git is not installed: install it (2.30 or later)") from error

EVIDENCE = ".migrate/evidence"
"""The evidence of the units that were merged one by one, each of which names its files."""
TRAILER = "Migrate-Agent-Base"
_FIXED = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0", "-c", "i18n.commitEncoding=UTF-8", "-c", "core.quotePath=false"),
)
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE")


class GitFailed(MissingError):
    """git refused a command that should work: a full disk, a lock left by another process, missing rights."""

    def __init__(self, command: str, stderr: str) -> None:
        self.stderr = stderr
        lines = stderr.replace("stderr: ", "").strip(" \n'").splitlines()
        super().__init__(f"git {command} failed: {lines[-1] if lines else 'no message'}")


class Base(NamedTuple):
    """The commit that is migrated: its id and its date in seconds since the epoch."""

    sha: str
    time: int


class Identity(NamedTuple):
    """Who signs the commits."""

    name: str
    email: str


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree. `common` is the git folder that all its worktrees share."""

    root: Path
    common: Path

    def run(self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run one git command and give its output. Raises `GitFailed`."""
        command = ["git", *_FIXED, *arguments]
        try:
            return str(git.Git(str(cwd or self.root)).execute(command, env={"GIT_LFS_SKIP_SMUDGE": "1", **(env or {})}))
        except git.GitCommandError as error:
            raise GitFailed(arguments[0], str(error.stderr)) from error

    def answer(self, *arguments: str) -> str:
        """Like `run`, but "" where git says no."""
        try:
            return self.run(*arguments)
        except GitFailed:
            return ""

    def base(self) -> Base:
        """The commit at HEAD (a branch or detached). Raises `UsageError` where there is none yet."""
        sha = self.answer("rev-parse", "--verify", "-q", "HEAD^{commit}")
        if not sha:
            raise UsageError(f"{self.root} has no commit yet: commit the code first, since the migration starts from HEAD")
        return Base(sha, int(self.run("log", "-1", "--format=%ct", sha)))

    def identity(self) -> Identity:
        """The user's, or ours where none is configured."""
        name = os.environ.get("GIT_AUTHOR_NAME") or self.answer("config", "user.name")
        email = os.environ.get("GIT_AUTHOR_EMAIL") or self.answer("config", "user.email")
        return Identity(name or "migrate-agent", email or "migrate-agent@localhost")

    def tip(self, branch: str) -> str:
        """The commit that a branch points to, "" where there is no such branch."""
        return self.answer("rev-parse", "--verify", "-q", f"refs/heads/{branch}^{{commit}}")

    def made_by_us(self, branch: str) -> bool:
        """Whether the last commit of a branch is one of ours."""
        return f"\n{TRAILER}: " in self.run("log", "-1", "--format=%B", f"refs/heads/{branch}")

    def export(self, sha: str, folder: Path, prepare: Callable[[Path], None] = lambda folder: None) -> None:
        """The files of a commit as a plain folder, complete or not there at all. `prepare` may change files of it."""
        if folder.exists():
            return
        # The folder gets its name last: a kill in between leaves a partial folder, which the next try removes.
        partial, index = folder.with_name(f"{folder.name}.partial"), folder.with_name(f"{folder.name}.index")
        shutil.rmtree(partial, ignore_errors=True)
        index.unlink(missing_ok=True)
        partial.mkdir(parents=True)
        env = {"GIT_INDEX_FILE": str(index)}
        self.run("read-tree", sha, env=env)
        self.run("checkout-index", "--all", "--force", f"--prefix={partial}{os.sep}", env=env)
        index.unlink(missing_ok=True)
        prepare(partial)
        partial.rename(folder)

    def free_branch(self, requested: str, default: str) -> str:
        """A branch name that does not exist yet: as wanted, or with `-2`, `-3`, …

        Raises `UsageError` where the wanted name is none for git, or names a branch that is not ours.
        """
        name = requested or default
        if not self.answer("check-ref-format", "--branch", name):
            raise UsageError(f"--branch {name}: git allows no such branch name")
        if requested and self.tip(requested) and not self.made_by_us(requested):
            raise UsageError(f"--branch {requested}: this branch exists and was not made by migrate-agent: take another name")
        number, free = 1, name
        while self.tip(free):
            number += 1
            free = f"{name}-{number}"
        self._check_path(free)
        return free

    def _check_path(self, branch: str) -> None:
        parts = branch.split("/")
        above = ["/".join(parts[:end]) for end in range(1, len(parts))]
        clash = next((name for name in above if self.tip(name)), "") or self.answer("for-each-ref", "--count=1", f"refs/heads/{branch}/")
        if clash:
            raise UsageError(f"branch {branch} cannot be made beside {clash.split('refs/heads/')[-1]}: choose another name with --branch")

    def conflicts(self, base: Path, targets: Iterable[str]) -> list[str]:
        """Which of these target files exist already and are not as we once wrote them.

        Looks in the base commit (exported to `base`) and the user's working tree.
        """
        ours = _written_by_us(base)
        return [path for path in targets if any(_foreign(tree / path, ours.get(path, ())) for tree in (base, self.root))]


@dataclass(frozen=True)
class Branch:
    """Our branch, checked out in our worktree."""

    repository: Repository
    name: str
    worktree: Path
    identity: Identity
    time: int

    def open(self, head: str) -> None:
        """Check the branch out afresh at `head`; leftovers of a killed process go."""
        self.close()
        # A process that was killed inside `update-ref` leaves its lock, and git refuses the branch while it is there. The run holds the lock of
        # the whole repository (`runs.folder.locked`), so the lock belongs to nobody who lives.
        for lock in self.repository.common.glob(f"refs/heads/{self.name}.lock"):
            lock.unlink(missing_ok=True)
        self.worktree.parent.mkdir(parents=True, exist_ok=True)
        if not self.repository.tip(self.name):
            self.repository.run("update-ref", f"refs/heads/{self.name}", head)
        self.repository.run("worktree", "add", "--force", "--quiet", str(self.worktree), self.name)

    def close(self) -> None:
        """Remove the worktree, so that the user can check the branch out."""
        shutil.rmtree(self.worktree, ignore_errors=True)
        self.repository.run("worktree", "prune")

    def commit(self, parent: str, files: Mapping[str, str], message: str, number: int) -> str:
        """Commit `files` (path → text) on top of `parent`, as the `number`-th of our commits; gives the commit's id.

        Doing it again gives the same commit. Raises `UserError` where someone else moved the branch.
        """
        if not (self.worktree / ".git").exists():
            self.open(parent)
        self._git("read-tree", "--reset", "-u", parent)
        for path, text in files.items():
            write_text(self.worktree / path, text)
        # Forced, since a `.gitignore` of the user may match our files.
        self._git("add", "--force", "--", *files)
        commit = self._commit_tree(self._git("write-tree"), parent, message, number)
        self._advance(parent, commit)
        return commit

    def take_off(self, commit: str) -> str:
        """Put the branch back to the parent of this commit, which is its tip; gives the parent. Doing it again changes nothing.

        Raises `UserError` where someone else moved the branch.
        """
        parent = self.repository.run("rev-parse", f"{commit}^")
        self._advance(commit, parent)
        return parent

    def _commit_tree(self, tree: str, parent: str, message: str, number: int) -> str:
        # No clock: a commit that is made again after a kill must have the same id. The number keeps `git log` in order.
        date = f"{self.time + number} +0000"
        env = {
            f"GIT_{who}_{description}": value for who in ("AUTHOR", "COMMITTER") for description, value in (("DATE", date), *self._who())
        }
        text = self.worktree.with_name(f"{self.worktree.name}.message")
        write_text(text, message)  # by a file, since `write_text` leaves out the user's keys
        return self._git("commit-tree", tree, "-p", parent, "-F", str(text), env=env)

    def _who(self) -> tuple[tuple[str, str], ...]:
        return (("NAME", self.identity.name), ("EMAIL", self.identity.email))

    def _advance(self, parent: str, commit: str) -> None:
        now = self.repository.tip(self.name)
        if now not in (parent, commit):
            raise UserError(
                f"branch {self.name} was moved to {now[:12]} by someone else during the run: put it back to {parent[:12]} and resume", 2
            )
        if now != commit:
            # With the old value, git itself refuses where somebody moves the branch between the look above and this line.
            self.repository.run("update-ref", "-m", "migrate-agent", f"refs/heads/{self.name}", commit, now)

    def _git(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        return self.repository.run(*arguments, cwd=self.worktree, env={"GIT_LITERAL_PATHSPECS": "1", **(env or {})})


def open_repository(path: Path) -> Repository:
    """The repository whose root is `path`. Raises `UsageError` with what to do where it is none, bare, or a folder inside one."""
    for name in _INHERITED:
        os.environ.pop(name, None)
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder")
    root = path.resolve()
    here = Repository(root, root)
    try:
        bare, common = here.run("rev-parse", "--is-bare-repository", "--git-common-dir").splitlines()
    except GitFailed as error:
        raise UsageError(_why_not(root, error.stderr)) from None
    if bare == "true":
        raise UsageError(f"{root} is a bare repository: give a clone that has its files checked out")
    top = here.answer("rev-parse", "--show-toplevel")
    if not top:
        raise UsageError(f"{root} lies inside a git folder: give the folder that holds the code")
    if Path(top).resolve() != root:
        raise UsageError(f"{root} lies inside the repository {top}: use --repo {top} (with --module to migrate a part of it)")
    return Repository(root, (root / common).resolve())


def _why_not(root: Path, stderr: str) -> str:
    if "dubious ownership" in stderr:
        return f"{root} belongs to another user, and git refuses it: run `git config --global --add safe.directory {root}`"
    return f"{root} is not a git repository: run `git init` and commit the code there, or give --repo"


def _written_by_us(base: Path) -> dict[str, set[str]]:
    """Target files that earlier migrations left in the base commit: path → SHA-256 of the contents that we wrote."""
    texts: dict[str, set[str]] = {}
    for listed in (_listed(base / MANIFEST), *(_listed(sheet).get("files") for sheet in (base / EVIDENCE).rglob("evidence.json"))):
        for path, digest in listed.items() if isinstance(listed, dict) else ():
            texts.setdefault(path, set()).add(str(digest))
    return texts


def _listed(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _foreign(file: Path, digests: Collection[str]) -> bool:
    return os.path.lexists(file) and (not file.is_file() or _digest(file.read_bytes()) not in digests)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(files: Mapping[str, str]) -> str:
    """The text of `MANIFEST`: what we wrote, so that a later run knows its own files from the user's."""
    return json.dumps({path: _digest(text.encode()) for path, text in sorted(files.items())}, indent=1) + "\n"
