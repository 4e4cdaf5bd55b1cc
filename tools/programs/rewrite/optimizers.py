"""What the construction of an optimizer or a scheduler of torch becomes: a row of the tables, put into the program's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall, PartGroup, SchedulerCall, names_in
from migrate_agent.tools.programs.rewrite.names import code
from migrate_agent.tools.programs.tables.arguments import Argument, literal
from migrate_agent.tools.programs.tables.registry import Text, optimizer_arguments, optimizers, row_of, schedules
from migrate_agent.tools.programs.tables.schedule_text import momentum_text, schedule_call, schedule_text, scheduled_optimizer
from migrate_agent.tools.rewrite.tables.registry import Refuse


def transform(dotted: str, call: cst.Call, optimizer: OptimizerCall, scheduler: SchedulerCall | None) -> Text:
    """The text of the transform. A `scheduler` that is stepped with each update is part of it. Raises `NotUnderstoodError`."""
    if optimizer.parts:
        texts = [_plain(dotted, call, optimizer, scheduler, dict(group.options)) for group in optimizer.parts]
        return _partition([group.part for group in optimizer.parts], texts)
    return _plain(dotted, call, optimizer, scheduler, {"weight_decay": optimizer.weight_decay} if optimizer.decays else {})


def _partition(parts: Sequence[str], texts: Sequence[Text]) -> Text:
    """One transform for each part of a module, by the first name in the path of a parameter."""
    if len(texts) == 1:
        return texts[0]
    choices = " else ".join([*(f'"{part}" if name.startswith("{part}.")' for part in parts[:-1]), f'"{parts[-1]}"'])
    transforms = ", ".join(f'"{part}": {text.code}' for part, text in zip(parts, texts, strict=True))
    helpers = frozenset({"label_parameters"}).union(*(text.helpers for text in texts))
    return Text(f"optax.partition({{{transforms}}}, label_parameters(lambda name, p: {choices}))", helpers)


def _plain(dotted: str, call: cst.Call, optimizer: OptimizerCall, scheduler: SchedulerCall | None, options: Mapping[str, str]) -> Text:
    """The transform with other options than those of the call."""
    try:
        arguments = optimizer_arguments(dotted, code(call))
        if unknown := sorted(set(options) - set(arguments)):
            raise NotUnderstoodError(f"groups of parameters with {unknown[0]} have no rule", call)
        arguments |= {name: literal(text) for name, text in options.items()}
        rate, momentum = Text(arguments["lr"].text), None
        if scheduler is not None:
            momentum = _momentum(scheduler)
        if scheduler is not None and scheduler.inner is not None:
            rate = _schedule(scheduler, arguments["lr"])
        elif momentum is not None:
            # Set by the scheduler before the first step.
            name = row_of(dotted, optimizers()).momentum
            momentum = Text(arguments["betas"].element(0).text if name == "b1" else arguments["momentum"].text)
        if optimizer.stacked and row_of(dotted, optimizers()).axes:
            raise NotUnderstoodError(
                "this optimizer looks at the axes of each parameter, and stacked layers ([rewrite] scan_layers) have one more", call
            )
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
    if optimizer.stacked and "p" in names_in(optimizer.decays):
        if by_name:
            raise NotUnderstoodError("groups by name and rank have no rule where layers are stacked ([rewrite] scan_layers)", call)
        mask, helper = f"by_layer({optimizer.model}, lambda p: {optimizer.decays})", {"by_layer"}
    elif by_name:
        mask, helper = labels, {"label_parameters"}
    else:
        mask, helper = f"lambda params: jax.tree.map(lambda p: {optimizer.decays}, params)", set()
    mask, helpers = f", mask={mask}", text.helpers | helper
    for decay in (f"weight_decay={optimizer.weight_decay}", f"add_decayed_weights({optimizer.weight_decay}"):
        if text.code.count(decay) == 1:
            return Text(text.code.replace(decay, decay + mask), helpers)
    raise NotUnderstoodError("groups with other weight decays have no rule for this optimizer", call)


def scheduler_text(scheduler: SchedulerCall, construction: cst.Call, groups: Sequence[PartGroup] = ()) -> Text:
    """The object that stands for a scheduler on the host. `construction` is that of its optimizer, whose `groups` may have rates of their own. Raises
    `NotUnderstoodError`.
    """
    try:
        row = row_of(scheduler.dotted, schedules()) if not scheduler.parts else None
    except Refuse as error:
        raise NotUnderstoodError(str(error), scheduler.call) from None
    if row is not None and row.host:
        kept = [a for a in scheduler.call.args if a.keyword is None or a.keyword.value != "verbose"]
        return Text(f"{row.host}({', '.join(code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in kept)})", frozenset({row.host}))
    lr = optimizer_arguments(scheduler.optimizer_class, code(construction))["lr"]
    schedule, others = _schedule(scheduler, lr), Text("")
    if any("lr" in dict(group.options) for group in groups):
        rates = [dict(group.options).get("lr") for group in groups]
        rows = [_schedule(scheduler, literal(rate) if rate is not None else lr) for rate in rates]
        named = ", ".join(f'"{group.part}": {row.code}' for group, row in zip(groups, rows, strict=True))
        schedule = Text(f"{{{named}}}", schedule.helpers.union(*(row.helpers for row in rows)))
    if (momentum := _momentum(scheduler)) is not None:
        name = row_of(scheduler.optimizer_class, optimizers()).momentum
        others = Text(f", {name}={momentum.code}", momentum.helpers)
    text = f"RateSchedule({scheduler.optimizer}, {schedule.code}{others.code})"
    return Text(text, schedule.helpers | others.helpers | {"RateSchedule"})


def _schedule(scheduler: SchedulerCall, lr: Argument) -> Text:
    try:
        parts = [schedule_call(part.dotted, code(part.call)) for part in scheduler.parts]
        call = schedule_call(scheduler.dotted, code(scheduler.call), parts=parts)
        return schedule_text(call, lr)
    except Refuse as error:
        raise NotUnderstoodError(str(error), scheduler.call) from None
