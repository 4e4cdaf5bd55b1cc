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

from migrate_agent.agent.commands.assess import assess
from migrate_agent.agent.commands.compare import compare
from migrate_agent.agent.commands.manifest import manifest
from migrate_agent.agent.commands.options import Cluster, Debug, Repo, Sandbox, SandboxKind
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
from migrate_agent.tools.syntax_trees import build_one_at_a_time

if TYPE_CHECKING:
    from migrate_agent.agent.runs.progress import Progress

CRASH = 70
"""Exit status of a fault of ours (EX_SOFTWARE), apart from the four of the contract."""


class DeviceKind(StrEnum):
    """What untrusted code may compute on."""

    cpu = "cpu"
    gpu = "gpu"


class Fallback(StrEnum):
    """What becomes of modules that cannot be rewritten."""

    torchax = "torchax"


def _show_version(requested: bool) -> None:
    if requested:
        print(f"migrate-agent {version_of('migrate-agent')}")
        raise typer.Exit


app = typer.Typer(
    name="migrate-agent",
    help="Rewrite PyTorch modules to JAX (Flax NNX). Only what a fixed verifier finds equivalent is committed.",
    epilog="Exit status: 0 all units in scope verified, 1 some are not, 2 wrong usage or configuration, 3 something needed is missing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)] = False,
) -> None:
    """Options of the program itself."""


@app.command()
def scan(
    repo: Repo = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    debug: Debug = False,
) -> None:
    """List the modules to rewrite, in order, and what needs a redesign. It runs no code and needs no git."""
    from migrate_agent.agent.commands.scan import scan as show

    show(repo, as_json)


@app.command()
def run(
    repo: Repo = Path(),
    module: Annotated[
        list[str] | None, typer.Option("--module", metavar="FILE[:NAME]", help="Migrate only this unit and what it needs. Repeatable.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing. Each verified unit is accepted.")] = False,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Use the rules alone. No model is asked.")] = False,
    no_rules: Annotated[bool, typer.Option("--no-rules", help="Let the model alone write the classes. This measures a model.")] = False,
    sandbox: Sandbox = None,
    device: Annotated[
        DeviceKind | None,
        typer.Option(
            "--device",
            help="What the code may compute on. gpu passes accelerators into the sandbox.",
            show_default="from migrate.toml, else cpu",
        ),
    ] = None,
    branch: Annotated[str, typer.Option(metavar="NAME", help="Name of the new branch.", show_default="migrate-agent/<base commit>")] = "",
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report here as JSON.", dir_okay=False)] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Verify N units at the same time.", show_default="from migrate.toml, else 1")
    ] = None,
    cluster: Cluster = "",
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Language model for what the rules leave open. Several are asked in turn.",
            show_default="MIGRATE_AGENT_MODEL",
        ),
    ] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Endpoint of the model.", show_default="OPENAI_BASE_URL")] = "",
    ensemble: Annotated[
        bool,
        typer.Option("--ensemble", help="Ask all models each time. Of the verified answers, the one with the smallest change wins."),
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the model's answers from this saved trajectory.", exists=True, dir_okay=False)
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most proposals for one unit.", show_default="4")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, metavar="USD", help="Most that the calls of the run may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, metavar="N", help="Most tokens that the run may use.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, metavar="S", help="Ask no model after this many seconds.")] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="First run the repository's tests and scripts in the sandbox, for examples. It says which.")
    ] = False,
    fallback: Annotated[
        Fallback | None,
        typer.Option("--fallback", help="What becomes of modules that cannot be rewritten. torchax runs the original inside JAX."),
    ] = None,
    pr: Annotated[bool, typer.Option("--pr", help="Then open pull requests, as `migrate-agent pr` does.")] = False,
    debug: Debug = False,
) -> None:
    """Migrate the repository. Each verified unit is one commit, on a branch of its own."""
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
        cluster=cluster,
        model=model,
        base_url=base_url,
        replay=replay,
        ensemble=ensemble,
        explore=explore,
        fallback=fallback.value if fallback else "",
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
    """Go on with a run that was killed, crashed or paused. Nothing is lost, and nothing is done twice."""
    from migrate_agent.agent.loop.run import resume as take_up
    from migrate_agent.agent.loop.session import ask

    progress, services = _tools()
    result = take_up(repo, services, progress, ask, debug)
    _tell(progress, repo, result)
    raise typer.Exit(result.exit_status)


@app.command(context_settings={"allow_interspersed_args": False})
def record(
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD...", help="A command that runs the model, such as `python train.py --steps 1`.")
    ],
    repo: Repo = Path(),
    debug: Debug = False,
) -> None:
    """Run a command and keep every call of the repository's modules as an example. `run` and `verify` use these examples."""
    from migrate_agent.agent.commands.record import record as capture

    raise typer.Exit(capture(repo, command))


@app.command()
def verify(
    module: Annotated[str, typer.Argument(metavar="FILE[:NAME]", help="The original module, or a program by its file.")],
    repo: Repo = Path(),
    against: Annotated[str, typer.Option(metavar="PATH[:NAME]", help="The rewrite.", show_default="same name in the mirror file")] = "",
    weights: Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON on a port under other names or of another library (docs/verify/ports.md).", dir_okay=False, exists=True
        ),
    ] = None,
    replay: Annotated[Path | None, typer.Option(metavar="FILE", help="Run a saved failure again, call by call.", dir_okay=False)] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the verdicts here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page with plots here.", dir_okay=False)] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Seed of the weights and inputs that are drawn.", show_default="from migrate.toml, else 0"),
    ] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Verify a rewrite in the working tree against its original, whoever wrote it."""
    from migrate_agent.agent.commands.verify import VerifyOptions
    from migrate_agent.agent.commands.verify import verify as verify_rewrite
    from migrate_agent.agent.commands.verify_program import is_program, verify_program

    options = VerifyOptions(against, weights, replay, report, html, sandbox.value if sandbox else "", -1 if seed is None else seed)
    progress, services = _tools()
    if is_program(module):
        raise typer.Exit(verify_program(repo, _relative(module, repo), options, services, progress))
    raise typer.Exit(verify_rewrite(repo, _relative(module, repo), options, services, progress))


@app.command(context_settings={"ignore_unknown_options": True})
def curves(
    program: Annotated[str, typer.Argument(metavar="FILE", help="The original training script.")],
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION…]", help="Its options.", show_default="as in its [[program]] table")
    ] = None,
    repo: Repo = Path(),
    against: Annotated[str, typer.Option(metavar="PATH", help="The rewrite.", show_default="the mirror file")] = "",
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write both losses here, as logs for `compare`.", file_okay=False)
    ] = None,
    sandbox: Sandbox = None,
    debug: Debug = False,
) -> None:
    """Train a program and its rewrite from the same weights, and show both loss curves. It exits with 0 where both print the same lines."""
    from migrate_agent.agent.commands.curves import curves as train_both

    progress, services = _tools()
    raise typer.Exit(
        train_both(repo, _relative(program, repo), against, options or [], logs, sandbox.value if sandbox else "", services, progress)
    )


app.command()(check)
app.command("pr")(submit)
app.command()(weights)
app.command()(tpu)
app.command()(assess)
app.command()(compare)
app.command()(manifest)
app.add_typer(sandbox_app, name="sandbox")


@app.command("eval")
def evaluate(
    suite: Annotated[str, typer.Option("--suite", metavar="NAME", help="Suite to run: modules, ops, peers, zoo, …")],
    only: Annotated[
        str, typer.Option("--filter", metavar="TEXT[,TEXT]", help="Run only cases with one of these texts in their name.")
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Run N processes at the same time.")] = 1,
    samples: Annotated[str, typer.Option(metavar="N|all", help="Most inputs of one case.")] = "20",
    quick: Annotated[bool, typer.Option("--quick", help="zoo: compare in float64 only. The verifier does not run.")] = False,
    sandbox: Annotated[SandboxKind, typer.Option(help="zoo: where the code of the packages runs.")] = SandboxKind.auto,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip groups that are measured already, in suites that keep results by group.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="verifier: most mutants of one file.")] = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="verifier: judge each case with N seeds.")] = 1,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="draw: only the packages that seed N drew.")] = None,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="draw, repositories: leave the mirrors here.", file_okay=False)] = None,
    sources: Annotated[
        Path | None, typer.Option(metavar="DIR", help="repositories: the folder of clones.", file_okay=False, exists=True)
    ] = None,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.", file_okay=False)] = Path("evals/results"),
    cluster: Cluster = "",
    debug: Debug = False,
) -> None:
    """Run a suite that measures this program. The exit status is 0 where all cases in scope are right, else 1. It needs a clone."""
    from migrate_agent.agent.commands.evaluate import evaluate as measure

    measured = {"limit": limit, "seeds": seeds, "seed": seed, "keep": keep, "sources": sources, "cluster": cluster}
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
    option = "" if repo == Path() else f" --repo {repo}"
    return f"nothing is lost; go on with `migrate-agent resume{option}`"


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def main() -> None:
    """Entry point of the console script."""
    sys.exit(guarded(sys.argv[1:]))


def guarded(arguments: list[str]) -> int:
    """Run a command line and give its exit status; whatever goes wrong is told in one line on stderr."""
    _listen_to_signals()
    build_one_at_a_time()
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
    separate = dict(itertools.pairwise(arguments)).get("--repo", "")
    joined = next((text.removeprefix("--repo=") for text in arguments if text.startswith("--repo=")), "")
    return Path(separate or joined)


def _listen_to_signals() -> None:
    """Any polite request to stop lets the run write what it knows; what the caller told us to ignore (`nohup`) stays ignored."""

    def stop(number: int, frame: object) -> None:
        raise Interrupted(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


if __name__ == "__main__":
    main()
