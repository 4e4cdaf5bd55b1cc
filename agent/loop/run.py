"""A run from the command line: start or take up again, drive the graph to its end, tell the result."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from migrate_agent.agent.cluster.workers import LocalWorkers
from migrate_agent.agent.config.config import CONFIG_FILE, PYPROJECT_FILE, Config, load_config
from migrate_agent.agent.config.errors import MissingError, UsageError, UserError
from migrate_agent.agent.config.json_files import read, write, write_text
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.graph import Graph, build
from migrate_agent.agent.loop.judging import Bench, cluster_of
from migrate_agent.agent.loop.report import exit_status, report_rows, write_partial
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.speculation import Speculation
from migrate_agent.agent.loop.torchax import require_torchax
from migrate_agent.agent.model.interface import Model
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.runs.folder import RunFolder, clear_old, home_of, locked, new_run, runs
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState, Settings
from migrate_agent.agent.runs.stops import Interrupted, Quit
from migrate_agent.sandbox.base import Device, SandboxError
from migrate_agent.tools.types import UnitReport

CHECKPOINTS = "checkpoints.sqlite"
STEPS = 1_000_000
"""LangGraph's limit on steps is no budget of ours: every cycle has its own."""


class Result(NamedTuple):
    """How a run ended."""

    units: list[UnitReport]
    exit_status: int
    branch: str
    paused: bool


@dataclass(frozen=True)
class Options:
    """What `run` was asked for."""

    modules: tuple[str, ...] = ()
    interactive: bool = False
    llm: bool = True
    rules: bool = True
    sandbox: str = ""
    device: Device | None = None
    branch: str = ""
    report: Path | None = None
    jobs: int = 0
    cluster: str = ""
    model: str = ""
    base_url: str = ""
    replay: Path | None = None
    ensemble: bool = False
    explore: bool = False
    fallback: Literal["", "torchax"] = ""
    max_attempts: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None


Ask = Callable[[Context, RunState], str | Mapping[str, str]]
"""Shows a unit and gives `quit`, or what `nodes.review` takes."""


def start(path: Path, options: Options, services: Services, progress: Progress, ask: Ask, debug: bool = False) -> Result:
    """Start a fresh run. Raises `UserError` for what the user has to mend."""
    repository = open_repository(path)
    config = load_config(repository.root)
    home = home_of(repository.common)
    with locked(home):
        unfinished = [folder for folder in runs(home)[-1:] if not folder.finished]
        if unfinished:
            progress.warn("the run before was interrupted; `migrate-agent resume` would have gone on with it, this one starts afresh")
        clear_old(home)
        settings = settings_of(repository, config, options)
        folder = new_run(home, settings.base)
        settings = replace(settings, id=folder.id)
        keep_config(repository.root, folder)
        write(folder / "settings.json", settings)
        try:
            return _work(repository, folder, services, progress, ask, debug)
        except UserError:
            _forget_without_plan(folder)
            raise


def resume(path: Path, services: Services, progress: Progress, ask: Ask, debug: bool = False) -> Result:
    """Take up the last run where it stopped. Raises `UsageError` where there is none to take up."""
    repository = open_repository(path)
    home = home_of(repository.common)
    with locked(home):
        last = runs(home)[-1:]
        if not last or last[0].finished:
            raise UsageError("nothing to resume: the last run is finished" if last else "nothing to resume: no run was started here")
        return _work(repository, last[0], services, progress, ask, debug)


def _writable(report: Path | None) -> str:
    """The report's absolute path. Raises `UsageError` now rather than at the end of a long run."""
    if report is None:
        return ""
    folder = report.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--report {report}: {error.strerror}") from None
    if report.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--report {report}: cannot be written")
    return str(report.resolve())


def settings_of(repository: Repository, config: Config, options: Options) -> Settings:
    """What a run with these options is started with, but for its id. Raises `UsageError` for what cannot be."""
    base = repository.base()
    name, email = repository.identity()
    wanted = next((table.module for table in config.unit if table.strategy == "torchax"), "")
    if options.fallback or config.run.fallback or wanted:
        require_torchax("--fallback torchax" if options.fallback else "fallback in [run]" if config.run.fallback else f"[[unit]] {wanted}")
    branch = repository.free_branch(options.branch or config.run.branch, f"migrate-agent/{base.sha[:7]}")
    return Settings(
        id="",
        root=str(repository.root),
        base=base.sha,
        branch=branch,
        time=base.time,
        author=name,
        email=email,
        modules=options.modules,
        interactive=options.interactive,
        sandbox=options.sandbox or config.run.sandbox,
        device=options.device or config.run.device,
        jobs=options.jobs or (0 if options.cluster else config.run.jobs),
        cluster=options.cluster,
        report=_writable(options.report),
        llm=options.llm,
        rules=options.rules,
        model=options.model or os.environ.get("MIGRATE_AGENT_MODEL", "") or config.model.name,
        base_url=options.base_url or os.environ.get("OPENAI_BASE_URL", "") or config.model.base_url,
        replay=str(options.replay.resolve()) if options.replay else "",
        ensemble=options.ensemble or config.model.ensemble,
        explore=options.explore,
        fallback=options.fallback or config.run.fallback,
        max_attempts=options.max_attempts,
        max_cost=options.max_cost,
        max_tokens=options.max_tokens,
        max_seconds=options.max_seconds,
    )


def keep_config(root: Path, folder: RunFolder) -> None:
    """A resumed run reads what the run was started with."""
    (folder / "config").mkdir()
    for name in (CONFIG_FILE, PYPROJECT_FILE):
        if (root / name).is_file():
            write_text(folder / "config" / name, (root / name).read_text(encoding="utf-8"))


def _work(repository: Repository, folder: RunFolder, services: Services, progress: Progress, ask: Ask, debug: bool) -> Result:
    settings = read(folder / "settings.json", Settings)
    config = bounded(load_config(folder / "config"), settings)
    model = connected(settings, config, folder, services, progress)
    cluster = cluster_of(settings.cluster, services, settings.sandbox, settings.device, settings.jobs)
    # Closed in this order: the graph, the sandbox and the cluster with what runs in them, the threads that waited for it.
    with (
        contextlib.closing(Speculation(cluster.capacity if cluster else settings.jobs)) as speculation,
        contextlib.closing(cluster) if cluster else contextlib.nullcontext(),
        contextlib.closing(services.open_sandbox(settings.sandbox, settings.device)) as sandbox,
    ):
        workers = cluster or LocalWorkers(Bench(services, sandbox), settings.jobs)
        context = Context(services, settings, folder, repository, config, sandbox, progress, speculation, workers, model, debug)
        with _checkpointed(context) as graph, progress.live():
            return _drive(context, graph, ask)


def bounded(config: Config, settings: Settings) -> Config:
    """The configuration with what the command line said in its place."""
    limits = {"attempts": settings.max_attempts, "cost": settings.max_cost, "tokens": settings.max_tokens, "seconds": settings.max_seconds}
    budget = config.budget.model_copy(update={name: value for name, value in limits.items() if value is not None})
    return config.model_copy(update={"budget": budget, "model": config.model.model_copy(update={"ensemble": settings.ensemble})})


def connected(settings: Settings, config: Config, folder: RunFolder, services: Services, progress: Progress) -> Model | None:
    """The model of a run that may use one and names one (or a trajectory in its place)."""
    if not settings.llm:
        return None
    if services.model is not None or services.connect is None or not (settings.model or settings.replay):
        return services.model
    return services.connect(settings, config, folder, lambda text: progress.stage("model", text))


@contextlib.contextmanager
def _checkpointed(context: Context) -> Iterator[Graph]:
    with contextlib.closing(sqlite3.connect(context.folder / CHECKPOINTS, check_same_thread=False)) as connection:
        # A checkpoint that a power cut takes back would have later files than itself, such as the commit of a unit that it does not know.
        connection.execute("PRAGMA synchronous=FULL")
        yield build(context, SqliteSaver(connection))


def _drive(context: Context, graph: Graph, ask: Ask) -> Result:
    thread: Any = {"configurable": {"thread_id": context.settings.id}, "recursion_limit": STEPS}
    snapshot = graph.get_state(thread)
    if snapshot.values:
        context.branch.close()
        context.progress.total = len(context.plan.order) if (context.folder / "plan.json").exists() else 0
        context.progress.note(f"taking up the run of {context.settings.id[:15]} on branch {context.settings.branch}")
    try:
        _steps(context, graph, thread, ask, fresh=not snapshot.values)
    except SandboxError as error:
        raise MissingError(f"{error}; nothing is lost: `migrate-agent resume` goes on from here") from error
    except (Quit, Interrupted) as error:
        state = graph.get_state(thread).values
        write_partial(context, cast(RunState, state))
        if not isinstance(error, Quit):
            raise
        units = report_rows(context, state.get("position", 0))
        return Result(units, 1, context.settings.branch, paused=True)
    return _finish(context, cast(RunState, graph.get_state(thread).values))


def _steps(context: Context, graph: Graph, thread: Any, ask: Ask, fresh: bool) -> None:
    """Run the graph to its end; each interrupt is a question to the user."""
    step: Any = {"outcome": ""} if fresh else None
    while True:
        graph.invoke(step, thread, durability="sync")
        snapshot = graph.get_state(thread)
        if not snapshot.next:
            return
        answer = ask(context, cast(RunState, snapshot.values))
        if answer == "quit":
            raise Quit
        step = Command(resume=answer)


def _finish(context: Context, state: RunState) -> Result:
    units = report_rows(context, state["position"])
    status = exit_status(units, context.plan.skipped)
    context.branch.close()
    write(context.folder / "finished", {"exit_status": status})
    return Result(units, status, context.settings.branch, paused=False)


def _forget_without_plan(folder: RunFolder) -> None:
    """A run that did not get as far as a plan leaves nothing behind; a later fault can be mended and resumed."""
    if not (folder / "scope.json").exists():
        shutil.rmtree(folder.path, ignore_errors=True)
