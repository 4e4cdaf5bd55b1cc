"""`migrate-agent pr`: look, plan, ask, do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from migrate_agent.agent.config.errors import UsageError, UserError
from migrate_agent.agent.forge.base import Check, Forge, ForgeError, LineNote, Request
from migrate_agent.agent.forge.connect import connect
from migrate_agent.agent.forge.remote import Address, address, find_token
from migrate_agent.agent.pr import evidence
from migrate_agent.agent.pr.act import Doer, spelt_out
from migrate_agent.agent.pr.build import Built, Landed, Outcome, Remote, Stuck, build, from_branches
from migrate_agent.agent.pr.commits import Bench
from migrate_agent.agent.pr.plan import Held, Plan, Push, Seen, Wanted, plan
from migrate_agent.agent.pr.push import USERS, GitRemote, check_remote, remote_url
from migrate_agent.agent.pr.run import Finished, last_run
from migrate_agent.agent.pr.stack import PREFIX, branch_of, single, stacked
from migrate_agent.agent.pr.wanted import Asked, evidence_page, wanted
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.runs.folder import home_of, locked

NOBODY = "this would push and open requests, and nobody is there to be asked"


@dataclass(frozen=True)
class Options:
    """What `pr` was asked for. `forge`, `base_url` and `project` are "" where the remote tells."""

    asked: Asked = field(default_factory=Asked)
    single: bool = False
    dry_run: bool = False
    yes: bool = False
    remote: str = "origin"
    forge: str = ""
    base_url: str = ""
    project: str = ""


@dataclass(frozen=True)
class Talk:
    """How the command speaks: lines of progress, results and warnings, and a question (`None` where nobody is there to answer)."""

    tell: Callable[[str], None]
    show: Callable[[str], None]
    warn: Callable[[str], None]
    confirm: Callable[[str], bool] | None = None


def submit(path: Path, options: Options, talk: Talk, environment: Mapping[str, str] = os.environ) -> int:
    """Exit status 0: all requests are as they should be; 1: some cannot be. Raises `UserError`."""
    repository = open_repository(path)
    place, token = whereto(repository, options, environment)
    os.environ.setdefault(
        "GITHUB_TOKEN" if place.kind == "github" else "GITLAB_TOKEN", token
    )  # what is named there is kept out of all texts
    with locked(home_of(repository.common)), closing(connect(place, token)) as forge:
        remote = GitRemote(repository, options.remote, place.host, USERS[place.kind], token)
        return _submit(repository, forge, remote, place, options, talk)


def whereto(repository: Repository, options: Options, environment: Mapping[str, str] = os.environ) -> tuple[Address, str]:
    """The project that the remote is, and the token for it; nothing is sent. Raises `UserError` with what is missing."""
    url = remote_url(repository, options.remote)
    check_remote(repository, url)
    place = address(url, environment, options.forge, options.base_url, options.project)
    return place, find_token(place.kind, place.host, environment)


def _submit(repository: Repository, forge: Forge, git: GitRemote, place: Address, options: Options, talk: Talk) -> int:
    talk.tell(f"looking at {place.project} on {place.host}")
    project = forge.project()
    if not project.writable and not options.dry_run:
        raise UsageError(f"the token may not push to {project.path}: it needs write access (docs/pull-requests.md lists the scopes)")
    remote = git.fetch(project.default_branch)
    bench = Bench(repository, home_of(repository.common) / "scratch")
    finished = _finished(bench, remote, talk)
    chains = single(finished.changes) if options.single else stacked(finished.changes)
    outcomes = build(bench, remote, chains, finished.base, partial(evidence.files, bench))
    built = [outcome for outcome in outcomes if isinstance(outcome, Built)]
    wants = wanted(bench, forge, built, remote.target, remote.tip, options.remote, options.asked)
    held = [Held(branch_of(unit), reason) for unit, reason in finished.others.items()]
    seen = look(forge, remote, wants, outcomes)
    todo = plan(wants, held, seen)
    _told(outcomes, todo, talk)
    stuck = any(isinstance(outcome, Stuck) for outcome in outcomes) or bool(todo.told)
    stuck = stuck or any(seen.requests[each.branch].state == "open" for each in held if each.branch in seen.requests)
    if options.dry_run:
        _show(todo, seen, options.remote, talk)
    elif todo.actions:
        _checked(forge, project.default_branch, todo, seen)
        _ask(todo, place, options, talk)
        pages = {each.piece.branch: evidence_page(forge, each.piece.branch, each.sheets[0].unit) for each in built if each.sheets}
        seen = replace_requests(seen, _do(Doer(forge, git, seen, lambda branch: pages.get(branch, ""), talk.tell, talk.warn), todo))
    _summary(wants, seen, todo, options, talk)
    return 1 if stuck else 0


def _finished(bench: Bench, remote: Remote, talk: Talk) -> Finished:
    """The last run here; on a machine without one, what the remote's branches hold. Raises `UsageError` where there is nothing, or it is not pushed."""
    found = last_run(bench.repository)
    if found is None:
        if not remote.heads:
            raise UsageError(
                "nothing to submit: no run was finished here, and the remote has no branch of ours; start with `migrate-agent run`"
            )
        talk.tell("no run was finished here: going on from the branches of the remote")
        return from_branches(bench, remote)
    if not bench.contains(remote.tip, found.base):
        raise UsageError(
            f"{found.base[:12]}, which was migrated, is not on {remote.target} of the remote: push it there first (requests would hold your commits too)"
        )
    return found


def look(forge: Forge, remote: Remote, wants: Sequence[Wanted], outcomes: Sequence[Outcome]) -> Seen:
    """What the forge says, with as few questions as will do."""
    branches = [outcome.piece.branch for outcome in outcomes if not isinstance(outcome, Landed)]
    found: dict[str, Request] = {}
    for request in sorted(forge.requests(PREFIX, branches), key=lambda each: (each.state == "open", each.number)):
        found[request.branch] = request
    live = {branch: request for branch, request in found.items() if request.state == "open"}
    shas = {each.commit for each in wants if remote.heads.get(each.branch) == each.commit}
    shas |= {request.head for branch, request in live.items() if branch not in {each.branch for each in wants} and request.head}
    checks: dict[str, Check] = {sha: check for sha in sorted(shas) if (check := forge.check(sha)) is not None}
    notes: dict[int, Sequence[LineNote]] = {
        live[each.branch].number: forge.notes(live[each.branch]) for each in wants if each.notes and each.branch in live
    }
    return Seen(remote.heads, forge.sign, found, checks, notes)


def replace_requests(seen: Seen, requests: Mapping[str, Request]) -> Seen:
    """What is seen after requests were opened."""
    return Seen(seen.heads, seen.sign, {**seen.requests, **requests}, seen.checks, seen.notes)


def _checked(forge: Forge, default: str, todo: Plan, seen: Seen) -> None:
    """Raises `ForgeError` before anything is done, where a branch that would be pushed is protected."""
    for action in todo.actions:
        if isinstance(action, Push) and (action.branch == default or (action.branch in seen.heads and forge.protected(action.branch))):
            raise ForgeError(f"{action.branch} is protected: this program pushes to no protected branch")


def _ask(todo: Plan, place: Address, options: Options, talk: Talk) -> None:
    pushes = sum(isinstance(action, Push) for action in todo.actions)
    if options.yes:
        return
    if talk.confirm is None:
        raise UsageError(f"{NOBODY}: add --yes, or --dry-run to see what it is")
    if not talk.confirm(f"Push {pushes} branches and do {len(todo.actions) - pushes} more things at {place.project} on {place.host}?"):
        raise UserError("nothing was pushed or sent", 1)


def _do(doer: Doer, todo: Plan) -> dict[str, Request]:
    for place, action in enumerate(todo.actions):
        try:
            doer.do(action)
        except ForgeError as error:
            done = f"{place} of {len(todo.actions)} steps were done; run the command again when it is mended, it does the rest"
            raise ForgeError(f"{error.message}; {done}", error.exit_status) from error
    return doer.requests


def _told(outcomes: Sequence[Outcome], todo: Plan, talk: Talk) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Landed):
            talk.tell(f"{', '.join(outcome.piece.units)}: merged")
        elif isinstance(outcome, Stuck):
            talk.warn(f"{', '.join(outcome.piece.units)}: {outcome.reason}")
    for line in todo.told:
        talk.warn(line)


def _show(todo: Plan, seen: Seen, remote: str, talk: Talk) -> None:
    for action in todo.actions:
        for line in spelt_out(action, seen.names()):
            talk.show(line)
    talk.show(f"dry run: nothing was pushed to {remote} or sent ({len(todo.actions)} steps)" if todo.actions else "nothing to do")


def _summary(wants: Sequence[Wanted], seen: Seen, todo: Plan, options: Options, talk: Talk) -> None:
    if options.dry_run:
        return
    for each in wants:
        request = seen.requests.get(each.branch)
        if request is not None and request.state == "open":
            talk.show(f"{seen.sign}{request.number}  {each.title}  into {each.base}  {request.url}")
    if not todo.actions:
        talk.tell("all requests are as they should be: nothing was pushed or sent")
