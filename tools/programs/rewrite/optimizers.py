"""What the construction of an optimizer or a scheduler of torch becomes: a row of the tables, put into the program's own names."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall, SchedulerCall, names_in
from migrate_agent.tools.programs.rewrite.names import code
from migrate_agent.tools.programs.tables.arguments import literal
from migrate_agent.tools.programs.tables.registry import Text, optimizer_arguments, optimizers, row_of, schedules
from migrate_agent.tools.programs.tables.schedule_text import momentum_text, schedule_call, schedule_text, scheduled_optimizer
from migrate_agent.tools.rewrite.tables.registry import Refuse


def transform(dotted: str, call: cst.Call, optimizer: OptimizerCall, scheduler: SchedulerCall | None) -> Text:
    """The text of the transform. A `scheduler` that is stepped with each update is part of it. Raises `NotUnderstoodError`."""
    try:
        arguments = optimizer_arguments(dotted, code(call))
        if optimizer.decays:
            arguments["weight_decay"] = literal(optimizer.weight_decay)
        rate, momentum = Text(arguments["lr"].text), None
        if scheduler is not None:
            momentum = _momentum(scheduler)
        if scheduler is not None and scheduler.inner is not None:
            rate = _schedule(scheduler, call)
        elif momentum is not None:
            # Set by the scheduler before the first step.
            name = row_of(dotted, optimizers()).momentum
            momentum = Text(arguments["betas"].element(0).text if name == "b1" else arguments["momentum"].text)
        text = scheduled_optimizer(dotted, arguments, rate, momentum, optimizer.inject)
    except Refuse as error:
        raise NotUnderstoodError(str(error), call) from None
    return _masked(text, optimizer, call) if optimizer.decays else text


def _momentum(scheduler: SchedulerCall) -> Text | None:
    if scheduler.parts or row_of(scheduler.dotted, schedules()).host:
        return None
    return momentum_text(schedule_call(scheduler.dotted, code(scheduler.call)))


def _masked(text: Text, optimizer: OptimizerCall, call: cst.Call) -> Text:
    """The transform with its decay on some parameters alone."""
    by_name = "name" in names_in(optimizer.decays)
    truth = optimizer.decays if optimizer.decays.startswith("not ") else f"bool({optimizer.decays})"
    labels = f"label_parameters(lambda name, p: {truth})"
    mask = f", mask={labels}" if by_name else f", mask=lambda params: jax.tree.map(lambda p: {optimizer.decays}, params)"
    helpers = text.helpers | ({"label_parameters"} if by_name else set())
    for decay in (f"weight_decay={optimizer.weight_decay}", f"add_decayed_weights({optimizer.weight_decay}"):
        if text.code.count(decay) == 1:
            return Text(text.code.replace(decay, decay + mask), helpers)
    raise NotUnderstoodError("groups with other weight decays have no rule for this optimizer", call)


def scheduler_text(scheduler: SchedulerCall, construction: cst.Call) -> Text:
    """The object that stands for a scheduler on the host. `construction` is that of its optimizer. Raises `NotUnderstoodError`."""
    try:
        row = row_of(scheduler.dotted, schedules()) if not scheduler.parts else None
    except Refuse as error:
        raise NotUnderstoodError(str(error), scheduler.call) from None
    if row is not None and row.host:
        kept = [a for a in scheduler.call.args if a.keyword is None or a.keyword.value != "verbose"]
        return Text(f"{row.host}({', '.join(code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in kept)})", frozenset({row.host}))
    schedule, others = _schedule(scheduler, construction), Text("")
    if (momentum := _momentum(scheduler)) is not None:
        name = row_of(scheduler.optimizer_class, optimizers()).momentum
        others = Text(f", {name}={momentum.code}", momentum.helpers)
    text = f"RateSchedule({scheduler.optimizer}, {schedule.code}{others.code})"
    return Text(text, schedule.helpers | others.helpers | {"RateSchedule"})


def _schedule(scheduler: SchedulerCall, construction: cst.Call) -> Text:
    try:
        parts = [schedule_call(part.dotted, code(part.call)) for part in scheduler.parts]
        call = schedule_call(scheduler.dotted, code(scheduler.call), parts=parts)
        return schedule_text(call, optimizer_arguments(scheduler.optimizer_class, code(construction))["lr"])
    except Refuse as error:
        raise NotUnderstoodError(str(error), scheduler.call) from None
