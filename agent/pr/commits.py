"""Commits of our branches, made without a working tree: a unit's change put on another commit, sealed so that we know it again.

The seal is a trailer with a digest of the commit's tree, parent and message. A commit that anyone amended, rebased or wrote by hand does not
carry a right one, and is never rewritten.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from migrate_agent.agent.config.secrets import redacted
from migrate_agent.agent.repository.git import GitFailed, Repository

T = TypeVar("T")
SEAL = "Migrate-Agent-Seal"
UNIT = "Migrate-Agent-Unit"


class Conflict(Exception):
    """A change that cannot be put on another commit, since both changed the same lines. `paths` are the files."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


@dataclass(frozen=True)
class Commit:
    """A commit as git stores it; `who` is `name <email> seconds zone`."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    committer: str
    message: str

    @property
    def sealed(self) -> bool:
        """Whether it is just as we made it."""
        text, _, last = self.message.rstrip("\n").rpartition("\n")
        return last == f"{SEAL}: {seal(self.tree, self.parents, text)}"

    @property
    def plain(self) -> str:
        """The message without the seal."""
        lines = self.message.rstrip("\n").split("\n")
        return "\n".join(line for line in lines if not line.startswith(f"{SEAL}: "))

    @property
    def unit(self) -> str:
        """The unit that it brings, "" where it names none."""
        lines = self.message.split("\n")
        return next((line.removeprefix(f"{UNIT}: ") for line in lines if line.startswith(f"{UNIT}: ")), "")

    @property
    def subject(self) -> str:
        """The first line."""
        return self.message.partition("\n")[0]


def seal(tree: str, parents: tuple[str, ...], text: str) -> str:
    """The digest that a commit of ours ends with."""
    return hashlib.sha256("\0".join((tree, *parents, text)).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Bench:
    """Where commits are made: objects of the user's repository, an index and a folder of our own."""

    repository: Repository
    folder: Path
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False)
    """What was read of commits and trees: what has an id never changes."""

    def _once(self, key: tuple[str, ...], look: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = look()
        value: T = self._known[key]
        return value

    def commit(self, sha: str) -> Commit:
        """Read a commit, by its id or a revision that git knows."""
        return self._once(("commit", sha), lambda: self._commit(sha))

    def _commit(self, sha: str) -> Commit:
        head, _, message = self.repository.run("cat-file", "commit", sha).partition("\n\n")
        fields: dict[str, list[str]] = {}
        for line in head.split("\n"):
            name, _, value = line.partition(" ")
            fields.setdefault(name, []).append(value)
        tree, author, committer = fields["tree"][0], fields["author"][0], fields["committer"][0]
        return Commit(sha, tree, tuple(fields.get("parent", ())), author, committer, message)

    def tree(self, commit: str) -> str:
        """The tree of a commit."""
        return self._once(("tree", commit), lambda: self.repository.run("rev-parse", f"{commit}^{{tree}}"))

    def contains(self, commit: str, other: str) -> bool:
        """Whether `other` is this commit or an ancestor of it."""
        return self._once(("contains", commit, other), lambda: self._contains(commit, other))

    def _contains(self, commit: str, other: str) -> bool:
        try:
            self.repository.run("merge-base", "--is-ancestor", other, commit)
        except GitFailed:
            return False
        return True

    def known(self, commit: str) -> bool:
        """Whether the commit is there."""
        return bool(commit) and bool(self.repository.answer("rev-parse", "--verify", "-q", f"{commit}^{{commit}}"))

    def read(self, commit: str, path: str) -> str | None:
        """A file of a commit; `None` where it is not there."""
        return self._once(("read", commit, path), lambda: self._read(commit, path))

    def _read(self, commit: str, path: str) -> str | None:
        entry = self.repository.answer("ls-tree", commit, "--", path)
        return self.repository.run("cat-file", "blob", entry.split()[2]) if entry else None

    def blobs(self, commit: str, folder: str) -> dict[str, str]:
        """Path → object of the files below a folder of a commit or tree."""
        return self._once(("blobs", commit, folder), lambda: self._blobs(commit, folder))

    def _blobs(self, commit: str, folder: str) -> dict[str, str]:
        lines = self.repository.run("ls-tree", "-r", "-z", commit, "--", f"{folder}/").split("\0")
        return {line.partition("\t")[2]: line.split()[2] for line in lines if line}

    def store(self, files: Mapping[str, str]) -> dict[str, str]:
        """Path → object of texts."""
        if not files:
            return {}
        with self._scratch() as scratch:
            names = [str(scratch / str(number)) for number in range(len(files))]
            for name, text in zip(names, files.values(), strict=True):
                Path(name).write_text(redacted(text), encoding="utf-8", newline="\n")
            objects = self.repository.run("hash-object", "-w", "--no-filters", *names).split()
        return dict(zip(files, objects, strict=True))

    def merged(self, before: str, onto: str, after: str) -> str:
        """The tree of `onto` with what changed from `before` to `after`. Raises `Conflict`."""
        trees = [self.tree(commit) for commit in (before, onto, after)]
        if trees[0] == trees[1]:
            return trees[2]
        with self._scratch() as scratch:
            env = self._env(scratch)
            self._git(scratch / "tree", env, "read-tree", "-i", "-m", "--aggressive", *trees)
            if self._git(scratch / "tree", env, "ls-files", "-u"):
                try:
                    self._git(scratch / "tree", env, "merge-index", "-o", "-q", "git-merge-one-file", "-a")
                except GitFailed:
                    unmerged = self._git(scratch / "tree", env, "ls-files", "-u", "-z").split("\0")
                    raise Conflict(tuple(dict.fromkeys(line.partition("\t")[2] for line in unmerged if line))) from None
            return self._git(scratch / "tree", env, "write-tree")

    def with_blobs(self, tree: str, folder: str, blobs: Mapping[str, str]) -> str:
        """The tree with exactly these files below a folder."""
        if self.blobs(tree, folder) == dict(blobs):
            return tree
        with self._scratch() as scratch:
            env = self._env(scratch)
            self._git(scratch / "tree", env, "read-tree", tree)
            gone = [path for path in self.blobs(tree, folder) if path not in blobs]
            if gone:
                self._git(scratch / "tree", env, "update-index", "--force-remove", "--", *gone)
            added = [word for path, blob in blobs.items() for word in ("--cacheinfo", f"100644,{blob},{path}")]
            if added:
                self._git(scratch / "tree", env, "update-index", "--add", *added)
            return self._git(scratch / "tree", env, "write-tree")

    def seal_commit(self, tree: str, parent: str, text: str, author: str, committer: str) -> str:
        """Make the commit. Making it again gives the same one."""
        plain = text.rstrip("\n")
        message = f"{plain}\n{SEAL}: {seal(tree, (parent,), plain)}\n"
        env = {**_person("AUTHOR", author), **_person("COMMITTER", committer)}
        with self._scratch() as scratch:
            (scratch / "message").write_text(message, encoding="utf-8", newline="\n")
            return self.repository.run("commit-tree", tree, "-p", parent, "-F", str(scratch / "message"), env=env)

    def added(self, before: str, after: str, path: str) -> list[int]:
        """Lines (1-based, of `after`) that are new in a file."""
        lines: list[int] = []
        options = ("--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        for line in self.repository.run("diff", *options, before, after, "--", path).split("\n"):
            if line.startswith("@@"):
                start, _, count = line.split(" ")[2].removeprefix("+").partition(",")
                lines += range(int(start), int(start) + int(count or 1))
        return lines

    def _git(self, cwd: Path, env: Mapping[str, str], *arguments: str) -> str:
        return self.repository.run(*arguments, cwd=cwd, env=env)

    def _env(self, scratch: Path) -> dict[str, str]:
        env = {"GIT_DIR": str(self.repository.common), "GIT_INDEX_FILE": str(scratch / "index"), "GIT_WORK_TREE": str(scratch / "tree")}
        return {**env, "GIT_LITERAL_PATHSPECS": "1"}

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            (folder / "tree").mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _person(role: str, who: str) -> dict[str, str]:
    name, _, rest = who.rpartition(" <")
    email, _, date = rest.partition("> ")
    return {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email, f"GIT_{role}_DATE": date}
