"""`migrate-agent assess`: what a migration comes to, for those who decide about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_agent.agent.commands.options import Debug, Repo

if TYPE_CHECKING:
    from migrate_agent.tools.assess.assessment import Assessment
    from migrate_agent.tools.assess.calibration import Range
    from migrate_agent.tools.assess.training_time import TrainingTime

SHOWN = 5
"""Lines of one kind of risk that are printed; page and report have all."""


def assess(
    repo: Repo = Path(),
    hours: Annotated[
        str,
        typer.Option(metavar="LOW,LIKELY,HIGH", help="Hours of a person for one open unit or place.", show_default="1,3,8, an assumption"),
    ] = "",
    parameters: Annotated[float, typer.Option(min=0, metavar="N", help="Parameters of the model to train, such as 7e9.")] = 0,
    tokens: Annotated[float, typer.Option(min=0, metavar="N", help="Tokens to train it on, such as 1e12.")] = 0,
    topology: Annotated[
        list[str] | None, typer.Option("--topology", metavar="CHIP:SHAPE", help="Chips to train on, such as v5e:16x16. Repeatable.")
    ] = None,
    chip_price: Annotated[
        list[str] | None, typer.Option("--chip-price", metavar="CHIP=X", help="Your price of one chip for one hour. Repeatable.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the assessment here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page here.", dir_okay=False)] = None,
    debug: Debug = False,
) -> None:
    """Say what a migration comes to: units by strategy, hours, risks, and the order of work. It runs no code of the repository."""
    from migrate_agent.agent.config.config import load_config
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.agent.loop.scope import require_units
    from migrate_agent.tools.assess.assessment import HOURS
    from migrate_agent.tools.assess.assessment import assess as judge
    from migrate_agent.tools.assess.training_time import training_line
    from migrate_agent.tools.scan import scan

    if not repo.is_dir():
        raise UsageError(f"{repo} is not a folder")
    trainings = _trainings(parameters, tokens, topology or [], chip_price or [])
    effort = _range(hours) if hours else HOURS
    root = repo.resolve()
    inventory = scan(root, exclude=load_config(root).run.exclude)
    require_units(inventory, str(root))
    result = judge(inventory, effort)
    for line in (*_lines(result, not hours), *map(training_line, trainings)):
        print(line)
    _write(root, result, not hours, trainings, report, html)


def _range(text: str) -> Range:
    from migrate_agent.tools.assess.calibration import Range

    try:
        low, likely, high = (float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOW,LIKELY,HIGH", param_hint="--hours") from None
    if not 0 <= low <= likely <= high:
        raise typer.BadParameter(f"{text!r} does not rise from 0", param_hint="--hours")
    return Range(low, likely, high)


def _trainings(parameters: float, tokens: float, topologies: Sequence[str], prices: Sequence[str]) -> list[TrainingTime]:
    """One for each topology; none where nothing is to be trained. Raises `UsageError`."""
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.tools.assess.training_time import training_time
    from migrate_agent.tools.portable.chips import TopologyError
    from migrate_agent.tools.portable.chips import topology as chips_of

    if len({bool(parameters), bool(tokens), bool(topologies)}) > 1:
        raise UsageError("training time needs all of --parameters, --tokens and --topology")
    try:
        by_chip = {name: float(price) for name, price in (text.split("=") for text in prices)}
        grids = [chips_of(text) for text in topologies]
    except TopologyError as error:
        raise UsageError(str(error)) from None
    except ValueError:
        raise UsageError(f"--chip-price {' '.join(prices)}: write CHIP=X, such as v5e=1.2") from None
    return [training_time(parameters, tokens, grid, by_chip.get(grid.chip.name)) for grid in grids]


def _basis(result: Assessment, assumed: bool) -> Iterator[str]:
    from migrate_agent.tools.assess.calibration import error_line

    low, likely, high = result.hours_each
    source = "an assumption, since nobody's time was measured" if assumed else "as you said"
    yield f"People or a model: {low:g} to {high:g} hours, likely {likely:g}, for each open unit and each place ({source})."
    yield f"Rules and machine: from {error_line()}."


def _lines(result: Assessment, assumed: bool) -> Iterator[str]:
    from migrate_agent.agent.pages.render import hour
    from migrate_agent.tools.assess.phases import PHASES

    yield f"{len(result.units)} units: {', '.join(f'{count} {name}' for name, count in result.strategies.items())}"
    rules, rest = result.rules, result.open_units
    yield f"rules alone: likely {rules.likely:.0f} of {result.strategies['rewrite']} verified ({rules.low:.0f} to {rules.high:.0f})"
    yield f"for a model or a person: {rest.likely:.0f} units ({rest.low:.0f} to {rest.high:.0f}), and {len(result.sites)} places outside of units"
    for name, spread in (("machine", result.machine_hours), ("people or a model", result.person_hours)):
        yield f"hours, {name}: likely {hour(spread.likely)} ({hour(spread.low)} to {hour(spread.high)})"
    yield from _basis(result, assumed)
    for kind, rows in groupby(result.risks, lambda row: row.kind):
        of_kind = list(rows)
        yield f"risk: {kind}: {len(of_kind)} lines"
        yield from (f"  {row.source}:{row.line} {row.text}" for row in of_kind[:SHOWN])
        if len(of_kind) > SHOWN:
            yield f"  and {len(of_kind) - SHOWN} more"
    for row in result.existing:
        yield f"exists in JAX: {row.unit} looks like {row.family} (by {row.by}): {' '.join(row.links)}"
    for phase in PHASES:
        yield f"phase {phase.name} (weeks {phase.weeks}): until {phase.leave}"


def _write(
    root: Path, result: Assessment, assumed: bool, trainings: Sequence[TrainingTime], report: Path | None, html: Path | None
) -> None:
    from migrate_agent.agent.config.json_files import plain, write, write_text
    from migrate_agent.agent.pages.render import render
    from migrate_agent.tools.assess.phases import PHASES
    from migrate_agent.tools.assess.risks import ADVICE
    from migrate_agent.tools.assess.training_time import training_line
    from migrate_agent.tools.assess.ways import facts, open_ways

    basis = list(_basis(result, assumed))
    if report is not None:
        training = [
            {**asdict(time), "hours": time.hours._asdict(), "cost": time.cost and time.cost._asdict(), "fits": time.fits}
            for time in trainings
        ]
        phases = [phase._asdict() for phase in PHASES]
        ranges = {name: getattr(result, name)._asdict() for name in ("rules", "open_units", "machine_hours", "person_hours", "hours_each")}
        risks = [risk._asdict() for risk in result.risks]
        write(
            report,
            {
                "version": 1,
                "repo": str(root),
                **plain(result),
                **ranges,
                "risks": risks,
                "phases": phases,
                "ways": [{"unit": unit.id, "open": list(open_ways(unit))} for unit in result.units],
                "facts": {"as_of": facts().as_of, "ways": list(map(asdict, facts().ways)), "hardware": list(map(asdict, facts().phases))},
                "basis": basis,
                "training": training,
            },
        )
    if html is not None:
        risks_by_kind = [(kind, list(rows)) for kind, rows in groupby(result.risks, lambda row: row.kind)]
        lines = [training_line(time) for time in trainings]
        values = {
            "facts": facts(),
            "open_ways": open_ways,
            "trainings": lines,
            "result": result,
            "lines": basis,
            "risks": risks_by_kind,
            "advice": ADVICE,
            "phases": PHASES,
        }
        write_text(html, render("assess.html", title=f"Migrating {root.name} to JAX", **values))
