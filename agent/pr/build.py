"""From chains of pieces to commits: what each branch has to be, given what the remote holds.

What the remote holds already is kept wherever it says the same: commits are made again from the same parts, so that an unchanged unit on an
unchanged base is the same commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate_agent.agent.pr.commits import Bench, Commit, Conflict
from migrate_agent.agent.pr.run import Change, Finished, touched
from migrate_agent.agent.pr.sheet import FOLDER, NAME, Sheet, folder_of, from_text
from migrate_agent.agent.pr.stack import Chain, Piece, bottom

EvidenceOf = Callable[[Change], Mapping[str, str]]
"""Path → text of a unit's evidence, made from the commit of the run."""


@dataclass(frozen=True)
class Built:
    """What a branch has to be. `base` is the branch that its request goes into."""

    piece: Piece
    base: str
    parent: str
    commit: str
    sheets: tuple[Sheet, ...]


@dataclass(frozen=True)
class Stuck:
    """A branch that cannot be made or must not be touched."""

    piece: Piece
    reason: str


@dataclass(frozen=True)
class Landed:
    """A piece whose code is on the target branch."""

    piece: Piece


Outcome = Built | Stuck | Landed


@dataclass(frozen=True)
class Remote:
    """What the remote holds, fetched: the target branch and its commit, our branches and theirs."""

    target: str
    tip: str
    heads: Mapping[str, str]


def foreign(bench: Bench, remote: Remote, branch: str) -> Commit | None:
    """The first commit of a remote branch that is not as we made it; `None` where all are."""
    shas = bench.repository.run("rev-list", remote.heads[branch], f"^{remote.tip}").split()
    return next((commit for commit in map(bench.commit, shas) if not commit.sealed), None)


def build(bench: Bench, remote: Remote, chains: Sequence[Chain], base: str, evidence: EvidenceOf) -> list[Outcome]:
    """All pieces, chain by chain, bottom first. `base` is the commit that was migrated."""
    return [outcome for chain in chains for outcome in _chain(bench, remote, chain, base, evidence)]


def _chain(bench: Bench, remote: Remote, chain: Chain, base: str, evidence: EvidenceOf) -> Iterable[Outcome]:
    landed = [piece for piece in chain if on_commit(bench, piece, remote.tip)]
    yield from map(Landed, landed)
    parent, into, stopped = _stand(bench, remote, chain, landed, base), remote.target, ""
    for piece in (piece for piece in chain if piece not in landed):
        stopped = stopped or _why_not(bench, remote, piece)
        if stopped:
            yield Stuck(piece, stopped)
            stopped = stopped if stopped.startswith("stands on ") else f"stands on {piece.branch}, which cannot go on: {stopped}"
            continue
        try:
            commit = _piece(bench, piece, parent, remote.heads.get(piece.branch, ""), evidence)
        except Conflict as conflict:
            reason = (
                f"conflicts with {into} in {', '.join(conflict.paths)}: merge or revert what was changed there, or run again from there"
            )
            yield Stuck(piece, reason)
            stopped = f"stands on {piece.branch}, which {reason.partition(':')[0]}"
            continue
        if commit == parent:
            yield Landed(piece)
            continue
        yield Built(piece, into, parent, commit, tuple(_sheets(bench, piece, commit)))
        parent, into = commit, piece.branch


def on_commit(bench: Bench, piece: Piece, commit: str) -> bool:
    """Whether a commit holds the evidence of just this code of each of the piece's units."""
    for change in piece.changes:
        there = sheet_at(bench, commit, change.unit)
        if there is None or (there.port, there.original) != (change.sheet.port, change.sheet.original):
            return False
    return True


def sheet_at(bench: Bench, commit: str, unit: str) -> Sheet | None:
    """The evidence of a unit on a commit."""
    text = bench.read(commit, f"{folder_of(unit)}/{NAME}")
    return from_text(text) if text is not None else None


def _sheets(bench: Bench, piece: Piece, commit: str) -> Iterable[Sheet]:
    for change in piece.changes:
        sheet = sheet_at(bench, commit, change.unit)
        if sheet is not None:
            yield sheet


def _stand(bench: Bench, remote: Remote, chain: Chain, landed: Sequence[Piece], base: str) -> str:
    """Where the chain stands: where it does already, else on the commit that was migrated, else on the newest of the target branch.

    Only what is on the target branch will do, and only where all that was merged of the chain is below.
    """

    def fits(commit: str) -> bool:
        inside = bench.known(commit) and bench.contains(remote.tip, commit) and not bench.commit(commit).sealed
        return inside and all(on_commit(bench, piece, commit) for piece in landed)

    heads = [remote.heads[piece.branch] for piece in chain if piece.branch in remote.heads]
    roots = [bench.repository.answer("merge-base", head, remote.tip) for head in heads]
    return bottom([*dict.fromkeys(roots), base, remote.tip], fits)


def _why_not(bench: Bench, remote: Remote, piece: Piece) -> str:
    if piece.branch not in remote.heads:
        return ""
    other = foreign(bench, remote, piece.branch)
    if other is None:
        return ""
    who = other.author.partition(" <")[0]
    return f"the remote branch holds {other.sha[:12]} ({other.subject}) by {who}, which this program did not make: it is left as it is"


def _piece(bench: Bench, piece: Piece, parent: str, head: str, evidence: EvidenceOf) -> str:
    """The tip of the piece on `parent`; `parent` itself where nothing of it is left to bring. Raises `Conflict`."""
    before = {commit.unit: commit for commit in _own(bench, head, len(piece.changes))}
    for change in piece.changes:
        tree = bench.merged(f"{change.commit}^", parent, change.commit)
        tree = bench.with_blobs(tree, folder_of(change.unit), bench.blobs(parent, folder_of(change.unit)))
        if tree == bench.tree(parent):
            continue
        was = before.get(change.unit)
        earlier = sheet_at(bench, was.sha, change.unit) if was else None
        original = was if was and earlier and earlier.says_the_same(change.sheet) else bench.commit(change.commit)
        unchanged = original is was
        blobs = bench.blobs(original.sha, folder_of(change.unit)) if unchanged else bench.store(evidence(change))
        tree = bench.with_blobs(tree, folder_of(change.unit), blobs)
        parent = bench.seal_commit(tree, parent, original.plain, original.author, original.committer)
    return parent


def _own(bench: Bench, head: str, count: int) -> list[Commit]:
    return [bench.commit(sha) for sha in bench.repository.run("rev-list", f"--max-count={count}", head).split()] if head else []


def from_branches(bench: Bench, remote: Remote) -> Finished:
    """What the remote's branches hold, for a machine that made no run: the units on them, bottom first, with the evidence beside the code."""
    commits_by_branch = {branch: _sealed(bench, head) for branch, head in remote.heads.items() if foreign(bench, remote, branch) is None}
    order = sorted(commits_by_branch, key=lambda branch: (len(commits_by_branch[branch]), branch))
    changes: dict[str, Change] = {}
    for branch in order:
        for commit in reversed(commits_by_branch[branch]):
            sheet = sheet_at(bench, commit.sha, commit.unit) if commit.unit else None
            if sheet is not None:
                changes.setdefault(commit.unit, Change(sheet, commit.sha, code(touched(bench.repository, commit.sha))))
    bases = [change.sheet.base for change in changes.values()]
    return Finished(bases[0] if bases else "", tuple(changes.values()), {})


def code(paths: frozenset[str]) -> frozenset[str]:
    """Paths without our evidence."""
    return frozenset(path for path in paths if not path.startswith(f"{FOLDER}/"))


def _sealed(bench: Bench, head: str) -> list[Commit]:
    """The commits of ours that a branch ends with, top first: those below that were merged already, too, since what is above stands on them."""
    commits = [bench.commit(head)]
    while commits[-1].sealed and len(commits[-1].parents) == 1:
        commits.append(bench.commit(commits[-1].parents[0]))
    return [commit for commit in commits if commit.sealed]
