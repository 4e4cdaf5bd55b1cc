"""`migrate-agent compare`: whether a run on the new side is as good as one on the old side."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from migrate_agent.agent.commands.options import Debug, Repo

if TYPE_CHECKING:
    from migrate_agent.tools.compare.compare import Comparison
    from migrate_agent.tools.compare.limits import Limits

STATUS = {"go": 0, "roll back": 1, "cannot say": 2}


class AxisKind(StrEnum):
    """What places are counted in."""

    auto = "auto"
    step = "step"
    tokens = "tokens"
    epoch = "epoch"


def _limit(text: str, default: str) -> Any:
    return typer.Option(min=0, metavar="X", help=text, show_default=f"from migrate.toml, else {default}")


def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="Log of the old side: a file, a folder of runs, or several with commas.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Log of the new side.")],
    repo: Repo = Path(),
    by: Annotated[AxisKind | None, typer.Option(help="What places are counted in.", show_default="from migrate.toml, else auto")] = None,
    at: Annotated[str, typer.Option(metavar="N,…", help="Places to compare at.", show_default="from migrate.toml, else chosen")] = "",
    metric: Annotated[list[str] | None, typer.Option("--metric", metavar="NAME", help="Judge this metric alone. Repeatable.")] = None,
    loss: Annotated[float | None, _limit("A loss may differ by this part.", "0.005")] = None,
    loss_rollback: Annotated[float | None, _limit("Roll back where a loss differs by more.", "0.01")] = None,
    slower: Annotated[float | None, _limit("A step may take longer by this part.", "0.05")] = None,
    slower_rollback: Annotated[float | None, _limit("Roll back where a step takes longer by more.", "0.1")] = None,
    error_rate: Annotated[float | None, _limit("Roll back where a larger share of requests fails.", "0.001")] = None,
    latency: Annotated[float | None, _limit("Roll back where a latency grows by more.", "0.25")] = None,
    noise: Annotated[
        float | None, _limit("Relative standard deviation between runs of different seeds.", "estimated from the runs")
    ] = None,
    points: Annotated[int | None, typer.Option(min=1, metavar="N", help="Places that both sides must have.", show_default="5")] = None,
    window: Annotated[
        float | None, typer.Option(min=0, max=1, metavar="X", help="Average over this part of the places.", show_default="0.05")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page with curves here.", dir_okay=False)] = None,
    debug: Debug = False,
) -> None:
    """Compare the logs of two runs, or of several a side. The exit status is 0 go, 1 roll back, 2 cannot say."""
    from migrate_agent.agent.config.config import load_config
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.tools.compare.compare import compare as judge
    from migrate_agent.tools.compare.log import LogError
    from migrate_agent.tools.compare.runs import read_side

    options = {
        "by": by and by.value,
        "at": _places(at),
        "metrics": tuple(metric or ()) or None,
        "points": points,
        "window": window,
        "loss": loss,
        "loss_rollback": loss_rollback,
        "slower": slower,
        "slower_rollback": slower_rollback,
        "error_rate": error_rate,
        "latency": latency,
        "noise": noise,
    }
    limits = load_config(repo).compare.limits({key: value for key, value in options.items() if value is not None})
    try:
        a, b = read_side(run_a), read_side(run_b)
    except LogError as error:
        raise UsageError(f"cannot say: {error}") from None
    result = judge(a, b, limits)
    names = ([log.name for log in a], [log.name for log in b])
    _show(result)
    _write(result, limits, names, report, html)
    raise typer.Exit(STATUS[result.decision])


def _places(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(",")) if text else None
    except ValueError:
        raise typer.BadParameter(f"{text!r} are no numbers with commas between them", param_hint="--at") from None


def _show(result: Comparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    from migrate_agent.agent.runs.progress import stdout
    from migrate_agent.tools.compare.finding import percent

    out = stdout()
    if result.findings:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("metric", "at", "A", "B", "change", "noise", "decision"):
            table.add_column(column)
        for finding in result.findings:
            numbers = ["" if value is None else f"{value:.5g}" for value in (finding.a, finding.b)]
            change = "" if finding.change is None else percent(finding.change)
            noise = "" if finding.noise is None else f"±{percent(finding.noise)}"
            table.add_row(escape(finding.metric), finding.at, *numbers, change, noise, finding.decision)
        out.print(table)
    for note in result.notes:
        out.print(f"note: {escape(note)}", soft_wrap=True)
    out.print(escape(result.line), soft_wrap=True)


def _write(result: Comparison, limits: Limits, names: tuple[list[str], list[str]], report: Path | None, html: Path | None) -> None:
    from migrate_agent.agent.config.json_files import write, write_text
    from migrate_agent.agent.pages.render import render

    if report is not None:
        rows = [asdict(finding) for finding in result.findings]
        document = {"version": 1, "decision": result.decision, "line": result.line, "a": names[0], "b": names[1], "limits": asdict(limits)}
        write(report, {**document, "findings": rows, "notes": result.notes})
    if html is not None:
        marks: dict[str, list[float]] = {metric: [] for metric in result.curves}
        for finding in result.findings:
            if finding.metric in marks and finding.at:
                marks[finding.metric].append(float(finding.at.split()[-1]))
        write_text(html, render("compare.html", title="Run A and run B", result=result, a=names[0], b=names[1], marks=marks))
