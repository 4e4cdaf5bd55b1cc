"""The texts of schedules: single, in sequence, chained, stepped once an epoch, and put into an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.programs.tables.arguments import Argument, Arguments, bind
from migrate_agent.tools.programs.tables.registry import Schedule, Text, optimizers, resolve, row_of, schedules
from migrate_agent.tools.rewrite.tables.registry import Refuse

SEQUENTIAL = "torch.optim.lr_scheduler.SequentialLR"
CHAINED = "torch.optim.lr_scheduler.ChainedScheduler"


@dataclass(frozen=True)
class ScheduleCall:
    """A scheduler of the program: its dotted class, its arguments, and the schedulers that it is made of."""

    name: str
    arguments: Arguments
    parts: tuple[ScheduleCall, ...] = ()


def schedule_call(name: str, call: str, values: Mapping[str, Any] | None = None, parts: Sequence[ScheduleCall] = ()) -> ScheduleCall:
    """A scheduler from the source text of its constructor, such as `"StepLR(optimizer, 30)"`. Raises `Refuse`.

    `values` are those of arguments that a recording saw; `parts` are the schedulers of `SequentialLR` and `ChainedScheduler`, in order.
    """
    if name == SEQUENTIAL:
        return ScheduleCall(name, bind("optimizer, schedulers, milestones, last_epoch=-1", call, values), tuple(parts))
    if name == CHAINED:
        return ScheduleCall(name, bind("schedulers, optimizer=None", call, values), tuple(parts))
    arguments = bind(f"optimizer, {row_of(name, schedules()).signature}", call, values)
    last = arguments.get("last_epoch")
    if last and not last.is_default(-1):
        raise Refuse(f"last_epoch={last.text} goes on from the middle of a schedule: restore the count with the optimizer's state")
    return ScheduleCall(name, arguments)


def schedule_text(call: ScheduleCall, lr: Argument, steps_per_epoch: str = "") -> Text:
    """The text of a schedule over counts of updates; `lr` is the optimizer's own rate, `steps_per_epoch` text where it is stepped once an epoch.

    Raises `Refuse` where the schedule has no formula.
    """
    return resolve(_each_epoch(_template(call, lr), steps_per_epoch))


def momentum_text(call: ScheduleCall, steps_per_epoch: str = "") -> Text | None:
    """The text of the momentum's schedule, or `None` where the scheduler leaves the momentum alone. Raises `Refuse`."""
    row = schedules().get(call.name)
    if row is None or row.momentum_to is None:
        return None
    cycles = call.arguments["cycle_momentum"]
    if not cycles.known:
        raise Refuse(
            f"whether the momentum is cycled depends on cycle_momentum={cycles.text}, whose value is not known: record the program"
        )
    return resolve(_each_epoch(row.momentum_to(call.arguments), steps_per_epoch)) if cycles.value else None


def scheduled_optimizer(name: str, arguments: Arguments, rate: Text, momentum: Text | None = None, inject: bool = False) -> Text:
    """The text of an optimizer whose rate is `rate`, a number or a schedule, and whose momentum may be a schedule.

    With `inject`, and where the momentum is a schedule, the hyper-parameters are part of the optimizer's state, so that the program can set and
    read them. Raises `Refuse` where the optimizer has no momentum.
    """
    row = row_of(name, optimizers())
    if not inject and momentum is None:
        made = resolve(row.to({**arguments, "lr": Argument(rate.code)}))
        return Text(made.code, made.helpers | rate.helpers)
    names, values = ["learning_rate"], [f"learning_rate={rate.code}"]
    changed = {**arguments, "lr": Argument("learning_rate")}
    if momentum is not None:
        if not row.momentum:
            raise Refuse(f"{name} has no momentum, and the schedule cycles it")
        names.append(row.momentum)
        values.append(f"{row.momentum}={momentum.code}")
        changed |= _with_momentum(row.momentum, arguments)
    # The other hyper-parameters stay constants: injected ones are rounded to the parameters' dtype, and float32 has no exact 0.999.
    made = resolve(row.to(changed))
    helpers = made.helpers | rate.helpers | (momentum.helpers if momentum else frozenset())
    return Text(f"optax.inject_hyperparams(lambda {', '.join(names)}: {made.code})({', '.join(values)})", helpers)


def _with_momentum(momentum: str, arguments: Arguments) -> dict[str, Argument]:
    if momentum == "b1":
        return {"betas": Argument(f"(b1, {arguments['betas'].element(1).text})")}
    return {"momentum": Argument("momentum")}


def _each_epoch(template: str, steps_per_epoch: str) -> str:
    return f"vendored.per_epoch({template}, {steps_per_epoch})" if steps_per_epoch else template


def _template(call: ScheduleCall, lr: Argument) -> str:
    if call.name == SEQUENTIAL:
        parts = ", ".join(_part(part, lr) for part in call.parts)
        return f"optax.join_schedules([{parts}], {call.arguments['milestones'].text})"
    if call.name == CHAINED:
        factors = ", ".join(_factor(part) for part in call.parts)
        return f"vendored.chained({lr.text}, {factors})"
    row = _row(call)
    assert row.to is not None
    return row.to(call.arguments, lr)


def _part(call: ScheduleCall, lr: Argument) -> str:
    row = schedules().get(call.name)
    if row is None or row.momentum_to is not None:
        raise Refuse(f"{call.name} inside SequentialLR has no exact form")
    return _template(call, lr)


def _factor(call: ScheduleCall) -> str:
    row = schedules().get(call.name)
    if row is None or not row.factor or row.to is None:
        raise Refuse(f"{call.name} inside ChainedScheduler does not multiply the rate that it finds")
    return row.to(call.arguments, Argument("1.0", 1.0))


def _row(call: ScheduleCall) -> Schedule:
    row = row_of(call.name, schedules())
    assert isinstance(row, Schedule)
    if row.to is None:
        raise Refuse(f"{call.name} computes the rate outside the step: use the helper {row.host} and an injected learning rate")
    return row
