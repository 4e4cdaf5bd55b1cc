"""The command line: options, exit statuses, and errors as one line.

What a command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import itertools
import signal
import sys
from enum import StrEnum
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from migrate_agent.agent.commands.options import Debug, Repo, Sandbox, SandboxKind
from migrate_agent.agent.commands.options import relative as _relative
from migrate_agent.agent.commands.options import tools as _tools
from migrate_agent.agent.commands.ports import check, weights
from migrate_agent.agent.commands.pull_requests import after_run, before_run
from migrate_agent.agent.commands.pull_requests import pr as submit
from migrate_agent.agent.commands.sandbox import app as sandbox_app
from migrate_agent.agent.commands.tpu import tpu
from migrate_agent.agent.config.errors import UserError
from migrate_agent.agent.config.secrets import redacted
from migrate_agent.agent.runs.stops import Interrupted

if TYPE_CHECKING:
    from migrate_agent.agent.runs.progress import Progress

CRASH = 70
"""Exit status of a fault of ours (EX_SOFTWARE), apart from the four of the contract."""


class DeviceKind(StrEnum):
    """What untrusted code may compute on."""

    cpu = "cpu"
    gpu = "gpu"


def _show_version(asked: bool) -> None:
    if asked:
        print(f"migrate-agent {version_of('migrate-agent')}")
        raise typer.Exit


app = typer.Typer(
    name="migrate-agent",
    help="Rewrite PyTorch modules to JAX (Flax NNX), and commit only what a fixed verifier finds equivalent.",
    epilog="Exit status: 0 all units in scope verified, 1 some are not, 2 wrong usage or configuration, 3 something needed is missing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)] = False,
) -> None:
    """Options of the program itself."""


app.add_typer(sandbox_app, name="sandbox")
app.command()(check)
app.command()(weights)
app.command()(tpu)
app.command("pr")(submit)


@app.command()
def run(
    repo: Repo = Path(),
    module: Annotated[
        list[str] | None, typer.Option("--module", metavar="FILE[:NAME]", help="Only this, and what it needs. Repeatable.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: accept what is verified.")] = False,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Rules alone; no model is asked.")] = False,
    no_rules: Annotated[bool, typer.Option("--no-rules", help="The model alone writes the classes, to measure it.")] = False,
    sandbox: Sandbox = None,
    device: Annotated[
        DeviceKind | None,
        typer.Option(
            "--device", help="What that code may compute on; gpu passes accelerators through.", show_default="from migrate.toml, else cpu"
        ),
    ] = None,
    branch: Annotated[str, typer.Option(help="Name of the branch to make.", show_default="migrate-agent/<base>")] = "",
    report: Annotated[Path | None, typer.Option(help="Write the report here as JSON.", dir_okay=False)] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Units verified side by side.", show_default="from migrate.toml, else 1")] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Language model; several are asked in turn.", show_default="MIGRATE_AGENT_MODEL")
    ] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Its endpoint.", show_default="OPENAI_BASE_URL")] = "",
    ensemble: Annotated[
        bool,
        typer.Option("--ensemble", help="Ask all models each time; of the answers that are verified, the one that changes least wins."),
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the model's answers from a saved trajectory.", exists=True, dir_okay=False)
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Proposals for one unit.", show_default="4")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, metavar="USD", help="What the run's calls may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, metavar="N", help="Tokens that the run may use.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, metavar="S", help="Seconds after which no model is asked.")] = None,
    pr: Annotated[bool, typer.Option("--pr", help="Then push and open pull requests, as `migrate-agent pr` does.")] = False,
    debug: Debug = False,
) -> None:
    """Migrate the repository: one commit for each verified unit, on a branch of its own."""
    from migrate_agent.agent.loop.run import Options, start
    from migrate_agent.agent.loop.session import ask

    options = Options(
        modules=tuple(_relative(text, repo) for text in module or ()),
        interactive=not yes and _terminal(),
        llm=not no_llm,
        rules=not no_rules,
        sandbox=sandbox.value if sandbox else "",
        device=device.value if device else None,
        branch=branch,
        report=report,
        jobs=jobs or 0,
        model=model,
        base_url=base_url,
        replay=replay,
        ensemble=ensemble,
        max_attempts=max_attempts,
        max_cost=max_cost,
        max_tokens=max_tokens,
        max_seconds=max_seconds,
    )
    if pr:
        before_run(repo, yes)
    progress, services = _tools()
    result = start(repo, options, services, progress, ask, debug)
    _tell(progress, repo, result)
    requested = after_run(repo, yes) if pr and not result.paused else 0
    raise typer.Exit(result.exit_status or requested)


@app.command()
def resume(repo: Repo = Path(), debug: Debug = False) -> None:
    """Go on with a run that was killed, crashed or paused: nothing is lost or done twice."""
    from migrate_agent.agent.loop.run import resume as take_up
    from migrate_agent.agent.loop.session import ask

    progress, services = _tools()
    result = take_up(repo, services, progress, ask, debug)
    _tell(progress, repo, result)
    raise typer.Exit(result.exit_status)


@app.command()
def scan(
    repo: Repo = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show what is there, what must be rewritten and by which strategy, in what order. Runs no code, needs no git."""
    from migrate_agent.agent.commands.scan import scan as show

    show(repo, as_json)


@app.command(context_settings={"allow_interspersed_args": False})
def record(
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD...", help="A command that runs the model, such as `python train.py --steps 1`.")
    ],
    repo: Repo = Path(),
    debug: Debug = False,
) -> None:
    """Run a command and note every call of every module class of the repository; `run` and `verify` use what it saw."""
    from migrate_agent.agent.commands.record import record as capture

    raise typer.Exit(capture(repo, command))


@app.command()
def verify(
    module: Annotated[str, typer.Argument(metavar="FILE:NAME", help="The original.")],
    repo: Repo = Path(),
    against: Annotated[
        str, typer.Option(metavar="PATH[:NAME]", help="The rewrite.", show_default="the mirror file and the same name")
    ] = "",
    weights: Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON on a port under other names or of another library (docs/verify/ports.md).", dir_okay=False, exists=True
        ),
    ] = None,
    replay: Annotated[Path | None, typer.Option(help="Run a saved failure again, call by call.", dir_okay=False)] = None,
    report: Annotated[Path | None, typer.Option(help="Write the verdicts here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots here.", dir_okay=False)] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Draw other states and inputs.", show_default="from migrate.toml, else 0")] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Judge a rewrite that lies in the working tree, whoever wrote it, against its original."""
    from migrate_agent.agent.commands.verify import Asked
    from migrate_agent.agent.commands.verify import verify as judge

    asked = Asked(against, weights, replay, report, html, sandbox.value if sandbox else "", -1 if seed is None else seed)
    progress, services = _tools()
    raise typer.Exit(judge(repo, _relative(module, repo), asked, services, progress))


@app.command("eval")
def evaluate(
    suite: Annotated[str, typer.Option("--suite", metavar="NAME", help="Which: modules, ops, peers, zoo, …")],
    only: Annotated[str, typer.Option("--filter", metavar="TEXT[,TEXT]", help="Only cases with one of these texts in their name.")] = "",
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes at a time.")] = 1,
    samples: Annotated[str, typer.Option(metavar="N|all", help="Inputs of one case, at most.")] = "20",
    quick: Annotated[bool, typer.Option("--quick", help="zoo: compare in float64 only, without the verifier.")] = False,
    sandbox: Annotated[SandboxKind, typer.Option(help="zoo: where the packages' code runs.")] = SandboxKind.auto,
    resume: Annotated[
        bool, typer.Option("--resume", help="Leave out what is measured already (suites that keep results by group).")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="verifier: mutants of one file, at most.")] = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="verifier: how often each case is judged, with other seeds.")] = 1,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where results go.", file_okay=False)] = Path("evals/results"),
    debug: Debug = False,
) -> None:
    """Measure this program on cases that nobody here wrote. Exit status 0 where all cases in scope are right, 1 where some are not."""
    from migrate_agent.agent.commands.evaluate import evaluate as measure

    measured = {"limit": limit, "seeds": seeds}
    status = measure(
        suite=suite, only=only, jobs=jobs, samples=samples, quick=quick, sandbox=sandbox.value, resume=resume, output=output, **measured
    )
    raise typer.Exit(status)


def _tell(progress: Progress, repo: Path, result: Any) -> None:
    """Show the table of a run."""
    from migrate_agent.agent.runs.progress import stdout
    from migrate_agent.agent.runs.tables import unit_table

    stdout().print(unit_table(result.units))
    if result.paused:
        progress.note(f"paused: {_how_to_resume(repo)}")
    else:
        progress.note(f"branch {result.branch}: `git diff HEAD...{result.branch}`; the whole report is .migrate/report.md there")


def _how_to_resume(repo: Path) -> str:
    where = "" if repo == Path() else f" --repo {repo}"
    return f"nothing is lost; go on with `migrate-agent resume{where}`"


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def main() -> None:
    """Entry point of the console script."""
    sys.exit(guarded(sys.argv[1:]))


def guarded(arguments: list[str]) -> int:
    """Run a command line and give its exit status; whatever goes wrong is told in one line on stderr."""
    _listen_to_signals()
    debug = "--debug" in arguments
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except UserError as error:
        return _fail(error.message, error.exit_status, debug)
    except (typer.Abort, KeyboardInterrupt):
        return _stopped(arguments, 130)
    except Interrupted as error:
        return _stopped(arguments, error.exit_status)
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or ''}", 3, debug)
    except Exception as error:
        if isinstance(error, _CLICK):
            return _fail(error.format_message(), 2, debug)
        hint = "" if debug else " (run it again with --debug for the traceback)"
        return _fail(f"internal error: {type(error).__name__}: {str(error).strip()}{hint}", CRASH, debug)


_CLICK: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""Base of the errors in usage; typer brings click in different places, by version."""


def _fail(message: str, status: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    line = redacted(" ".join(message.split()))
    print(f"migrate-agent: {line}", file=sys.stderr)
    return status


def _stopped(arguments: list[str], status: int) -> int:
    line = "interrupted"
    if arguments[:1] in (["run"], ["resume"]):
        line = f"interrupted: {_how_to_resume(_repo_of(arguments))}"
    print(f"\nmigrate-agent: {line}", file=sys.stderr)
    return status


def _repo_of(arguments: list[str]) -> Path:
    given = dict(itertools.pairwise(arguments)).get("--repo", "")
    joined = next((text.removeprefix("--repo=") for text in arguments if text.startswith("--repo=")), "")
    return Path(given or joined)


def _listen_to_signals() -> None:
    """Any polite request to stop lets the run write what it knows; what the caller told us to ignore (`nohup`) stays ignored."""

    def stop(number: int, frame: object) -> None:
        raise Interrupted(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


if __name__ == "__main__":
    main()
