"""`migrate-agent pr`: look, plan, ask, do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from migrate_agent.agent.config.errors import UsageError, UserError, require
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
from migrate_agent.agent.pr.wanted import RequestOptions, evidence_page, wanted
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.runs.folder import home_of, locked

NOBODY = "this would push and open requests, and nobody is there to be asked"


@dataclass(frozen=True)
class Options:
    """What `pr` was asked for. `forge`, `base_url` and `project` are "" where the remote tells."""

    asked: RequestOptions = field(default_factory=RequestOptions)
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
    address, token = address_of(repository, options, environment)
    os.environ.setdefault(
        "GITHUB_TOKEN" if address.kind == "github" else "GITLAB_TOKEN", token
    )  # what is named there is kept out of all texts
    with locked(home_of(repository.common)), closing(connect(address, token)) as forge:
        remote = GitRemote(repository, options.remote, address.host, USERS[address.kind], token)
        return _submit(repository, forge, remote, address, options, talk)


def address_of(repository: Repository, options: Options, environment: Mapping[str, str] = os.environ) -> tuple[Address, str]:
    """The project that the remote is, and the token for it; nothing is sent. Raises `UserError` with what is missing."""
    require("forges", "pull requests")
    url = remote_url(repository, options.remote)
    check_remote(repository, url)
    located = address(url, environment, options.forge, options.base_url, options.project)
    return located, find_token(located.kind, located.host, environment)


def _submit(repository: Repository, forge: Forge, git: GitRemote, address: Address, options: Options, talk: Talk) -> int:
    talk.tell(f"looking at {address.project} on {address.host}")
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
    holds = [Held(branch_of(unit), reason) for unit, reason in finished.others.items()]
    present = look(forge, remote, wants, outcomes)
    todo = plan(wants, holds, present)
    _print_outcomes(outcomes, todo, talk)
    stuck = any(isinstance(outcome, Stuck) for outcome in outcomes) or bool(todo.told)
    stuck = stuck or any(present.requests[hold.branch].state == "open" for hold in holds if hold.branch in present.requests)
    if options.dry_run:
        _show(todo, present, options.remote, talk)
    elif todo.actions:
        _checked(forge, project.default_branch, todo, present)
        _ask(todo, address, options, talk)
        pages = {hold.piece.branch: evidence_page(forge, hold.piece.branch, hold.sheets[0].unit) for hold in built if hold.sheets}
        present = replace_requests(
            present, _do(Doer(forge, git, present, lambda branch: pages.get(branch, ""), talk.tell, talk.warn), todo)
        )
    _summary(wants, present, todo, options, talk)
    return 1 if stuck else 0


def _finished(bench: Bench, remote: Remote, talk: Talk) -> Finished:
    """The last run here; on a machine without one, what the remote's branches hold. Raises `UsageError` where there is nothing, or it is not pushed."""
    finished = last_run(bench.repository)
    if finished is None:
        if not remote.heads:
            raise UsageError(
                "nothing to submit: no run was finished here, and the remote has no branch of ours; start with `migrate-agent run`"
            )
        talk.tell("no run was finished here: going on from the branches of the remote")
        return from_branches(bench, remote)
    if not bench.contains(remote.tip, finished.base):
        raise UsageError(
            f"{finished.base[:12]}, which was migrated, is not on {remote.target} of the remote: push it there first (requests would hold your commits too)"
        )
    return finished


def look(forge: Forge, remote: Remote, wants: Sequence[Wanted], outcomes: Sequence[Outcome]) -> Seen:
    """What the forge says, with as few questions as will do."""
    branches = [outcome.piece.branch for outcome in outcomes if not isinstance(outcome, Landed)]
    by_branch: dict[str, Request] = {}
    for request in sorted(forge.requests(PREFIX, branches), key=lambda item: (item.state == "open", item.number)):
        by_branch[request.branch] = request
    live = {branch: request for branch, request in by_branch.items() if request.state == "open"}
    shas = {item.commit for item in wants if remote.heads.get(item.branch) == item.commit}
    shas |= {request.head for branch, request in live.items() if branch not in {item.branch for item in wants} and request.head}
    checks: dict[str, Check] = {sha: check for sha in sorted(shas) if (check := forge.check(sha)) is not None}
    notes: dict[int, Sequence[LineNote]] = {
        live[item.branch].number: forge.notes(live[item.branch]) for item in wants if item.notes and item.branch in live
    }
    return Seen(remote.heads, forge.sign, by_branch, checks, notes)


def replace_requests(present: Seen, requests: Mapping[str, Request]) -> Seen:
    """What is seen after requests were opened."""
    return Seen(present.heads, present.sign, {**present.requests, **requests}, present.checks, present.notes)


def _checked(forge: Forge, default: str, todo: Plan, present: Seen) -> None:
    """Raises `ForgeError` before anything is done, where a branch that would be pushed is protected."""
    for action in todo.actions:
        if isinstance(action, Push) and (action.branch == default or (action.branch in present.heads and forge.protected(action.branch))):
            raise ForgeError(f"{action.branch} is protected: this program pushes to no protected branch")


def _ask(todo: Plan, address: Address, options: Options, talk: Talk) -> None:
    pushes = sum(isinstance(action, Push) for action in todo.actions)
    if options.yes:
        return
    if talk.confirm is None:
        raise UsageError(f"{NOBODY}: add --yes, or --dry-run to see what it is")
    if not talk.confirm(f"Push {pushes} branches and do {len(todo.actions) - pushes} more things at {address.project} on {address.host}?"):
        raise UserError("nothing was pushed or sent", 1)


def _do(doer: Doer, todo: Plan) -> dict[str, Request]:
    for index, action in enumerate(todo.actions):
        try:
            doer.do(action)
        except ForgeError as error:
            progress = f"{index} of {len(todo.actions)} steps were done; run the command again when it is mended, it does the rest"
            raise ForgeError(f"{error.message}; {progress}", error.exit_status) from error
    return doer.requests


def _print_outcomes(outcomes: Sequence[Outcome], todo: Plan, talk: Talk) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Landed):
            talk.tell(f"{', '.join(outcome.piece.units)}: merged")
        elif isinstance(outcome, Stuck):
            talk.warn(f"{', '.join(outcome.piece.units)}: {outcome.reason}")
    for line in todo.told:
        talk.warn(line)


def _show(todo: Plan, present: Seen, remote: str, talk: Talk) -> None:
    for action in todo.actions:
        for line in spelt_out(action, present.names()):
            talk.show(line)
    talk.show(f"dry run: nothing was pushed to {remote} or sent ({len(todo.actions)} steps)" if todo.actions else "nothing to do")


def _summary(wants: Sequence[Wanted], present: Seen, todo: Plan, options: Options, talk: Talk) -> None:
    if options.dry_run:
        return
    for want in wants:
        request = present.requests.get(want.branch)
        if request is not None and request.state == "open":
            talk.show(f"{present.sign}{request.number}  {want.title}  into {want.base}  {request.url}")
    if not todo.actions:
        talk.tell("all requests are as they should be: nothing was pushed or sent")
