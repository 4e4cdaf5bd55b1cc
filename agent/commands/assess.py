"""`migrate-agent assess`: what a migration comes to, for those who decide about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from migrate_agent.agent.commands.options import Debug, Repo, Sandbox, relative, tools

if TYPE_CHECKING:
    from migrate_agent.tools.assess.accelerators import Accelerators
    from migrate_agent.tools.assess.assessment import Assessment
    from migrate_agent.tools.assess.calibration import Range
    from migrate_agent.tools.assess.step_cost import StepCost
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
        list[str] | None,
        typer.Option("--topology", metavar="CHIP:SHAPE", help="Chips or GPUs to train on, such as v5e:16x16 or h100:8. Repeatable."),
    ] = None,
    chip_price: Annotated[
        list[str] | None, typer.Option("--chip-price", metavar="CHIP=X", help="Your price of one chip or GPU for one hour. Repeatable.")
    ] = None,
    measure: Annotated[
        str, typer.Option(metavar="FILE:NAME", help="Measure a training step of this unit's rewrite, for --topology. Its code is run.")
    ] = "",
    steps: Annotated[float, typer.Option(min=0, metavar="N", help="With --measure: training steps to take.")] = 0,
    batch: Annotated[int, typer.Option(min=0, metavar="N", help="With --measure: batch size.", show_default="that of the example")] = 0,
    init: Annotated[
        str, typer.Option(metavar="ARGUMENTS", help="With --measure: the constructor's arguments.", show_default="those of the example")
    ] = "",
    call: Annotated[
        str, typer.Option(metavar="ARGUMENTS", help="With --measure: the call's arguments.", show_default="those of the example")
    ] = "",
    bf16: Annotated[bool, typer.Option("--bf16", help="With --measure: bfloat16 in place of float32.")] = False,
    sandbox: Sandbox = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the assessment here as JSON.", dir_okay=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page here.", dir_okay=False)] = None,
    debug: Debug = False,
) -> None:
    """Say what a migration comes to: units by strategy, hours, risks, and the order of work. Without --measure, no code of the repository is run."""
    from migrate_agent.agent.config.config import load_config
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.agent.loop.scope import require_units
    from migrate_agent.tools.assess.assessment import HOURS
    from migrate_agent.tools.assess.assessment import assess as judge
    from migrate_agent.tools.assess.step_cost import step_lines
    from migrate_agent.tools.assess.training_time import training_line
    from migrate_agent.tools.scan import scan

    if not repo.is_dir():
        raise UsageError(f"{repo} is not a folder")
    kinds, prices = _kinds(topology or [], chip_price or [])
    if bool(kinds) != bool(measure or parameters or tokens):
        raise UsageError("--topology says on what to train: it goes with --measure, or with --parameters and --tokens")
    trainings = _trainings(parameters, tokens, kinds, prices)
    if not measure and (steps or batch or init or call or bf16):
        raise UsageError("--steps, --batch, --init, --call and --bf16 say what --measure FILE:NAME measures")
    effort = _range(hours) if hours else HOURS
    root = repo.resolve()
    inventory = scan(root, exclude=load_config(root).run.exclude)
    require_units(inventory, str(root))
    result = judge(inventory, effort)
    measured: list[StepCost] = []
    if measure:
        # Only here, since this loads jax and torch.
        from migrate_agent.agent.tpu.command import TpuOptions
        from migrate_agent.agent.tpu.measure import measure as measure_step

        progress, services = tools()
        options = TpuOptions(batch=batch, init=init, call=call, dtype="bf16" * bf16, sandbox=sandbox.value if sandbox else "")
        measured = measure_step(root, relative(measure, repo), options, kinds, steps, prices, services, progress)
    lines = [*map(training_line, trainings), *step_lines(measured, steps)]
    for line in (*_lines(result, not hours), *lines):
        print(line)
    _write(root, result, not hours, (trainings, measured, lines), report, html)


def _range(text: str) -> Range:
    from migrate_agent.tools.assess.calibration import Range

    try:
        low, likely, high = (float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOW,LIKELY,HIGH", param_hint="--hours") from None
    if not 0 <= low <= likely <= high:
        raise typer.BadParameter(f"{text!r} does not rise from 0", param_hint="--hours")
    return Range(low, likely, high)


def _kinds(texts: Sequence[str], prices: Sequence[str]) -> tuple[list[Accelerators], dict[str, float]]:
    """The accelerators, and the price of an hour of one chip or GPU by its name. Raises `UsageError`."""
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.tools.assess.accelerators import accelerators
    from migrate_agent.tools.portable.chips import TopologyError

    try:
        return [accelerators(text) for text in texts], {name: float(price) for name, price in (text.split("=") for text in prices)}
    except TopologyError as error:
        raise UsageError(str(error)) from None
    except ValueError:
        raise UsageError(f"--chip-price {' '.join(prices)}: write CHIP=X, such as v5e=1.2") from None


def _trainings(parameters: float, tokens: float, kinds: Sequence[Accelerators], prices: Mapping[str, float]) -> list[TrainingTime]:
    """The law of training time for each; none where no size of a training is given. Raises `UsageError`."""
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.tools.assess.training_time import training_time

    if bool(parameters) != bool(tokens):
        raise UsageError("training time needs both of --parameters and --tokens")
    return [training_time(parameters, tokens, kind, prices.get(kind.kind)) for kind in kinds] if tokens else []


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
    root: Path,
    result: Assessment,
    assumed: bool,
    costs: tuple[Sequence[TrainingTime], Sequence[StepCost], Sequence[str]],
    report: Path | None,
    html: Path | None,
) -> None:
    """Write report and page. `costs` is what trainings take by the law, what measured steps take, and both as lines."""
    from migrate_agent.agent.config.json_files import plain, write, write_text
    from migrate_agent.agent.pages.render import render
    from migrate_agent.tools.assess.phases import PHASES
    from migrate_agent.tools.assess.risks import ADVICE
    from migrate_agent.tools.assess.ways import facts, open_ways

    trainings, measured, lines_of_costs = costs
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
                "measured": [_measured_row(cost) for cost in measured],
            },
        )
    if html is not None:
        risks_by_kind = [(kind, list(rows)) for kind, rows in groupby(result.risks, lambda row: row.kind)]
        values = {
            "facts": facts(),
            "open_ways": open_ways,
            "trainings": lines_of_costs,
            "result": result,
            "lines": basis,
            "risks": risks_by_kind,
            "advice": ADVICE,
            "phases": PHASES,
        }
        write_text(html, render("assess.html", title=f"Migrating {root.name} to JAX", **values))


def _measured_row(cost: StepCost) -> dict[str, Any]:
    ranges = {"hours": cost.hours and cost.hours._asdict(), "cost": cost.cost and cost.cost._asdict()}
    return {**asdict(cost), **ranges, "fits": cost.fits}
