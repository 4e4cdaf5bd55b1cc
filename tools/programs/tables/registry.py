"""The rows of optimizers and schedules, and how they are found.

A row's `to` gives source text: `optax.` is imported as needed, and `vendored.f(...)` copies `f` from `tools/programs/vendored/` into the target
and calls it by its bare name. It raises `Refuse(reason)` where a call has no exact form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from migrate_agent.tools.discovery import modules_below
from migrate_agent.tools.programs.tables.arguments import Argument, Arguments, bind
from migrate_agent.tools.rewrite.tables.registry import Refuse

DROPPED = ("foreach", "fused", "capturable", "differentiable")
"""Arguments of torch's optimizers that say how, not what, is computed."""


@dataclass(frozen=True)
class Optimizer:
    """A class of `torch.optim`.

    `signature` is torch's without `params` and without those of `DROPPED` that the class has.
    `to(arguments)` gives the text of an `optax.GradientTransformation` of which `lr` may be a number or a schedule.
    `slots` says where the state of a parameter in torch's state dictionary lies in the optax state: name → `StateClass.field`, one for each
    form that `to` may give; none where torch alone counts, as some classes count their steps.
    """

    name: str
    signature: str
    to: Callable[[Arguments], str]
    slots: Mapping[str, tuple[str, ...]]
    options: tuple[str, ...] = ("",)
    """Arguments that the tests run, beside those of the signature."""
    momentum: str = ""
    """What schedules that cycle the momentum change here: `momentum`, `b1`, or "" where torch refuses."""
    axes: int = 0
    """Least number of axes of parameters whose update depends on the order of the axes; 0 where none does."""
    limit: float = 1e-12
    """Largest relative deviation from torch after 50 steps in float64."""
    note: str = ""
    """What differs from optax's optimizer of that name."""


@dataclass(frozen=True)
class Refused:
    """Something of `torch.optim` that has no row, and the reason that a user reads."""

    name: str
    reason: str


@dataclass(frozen=True)
class Schedule:
    """A class of `torch.optim.lr_scheduler`.

    `signature` is torch's without `optimizer`. `to(arguments, lr)` gives the text of a schedule, count of steps → rate, where `lr` is the
    optimizer's own rate. `momentum_to` gives that of the momentum where the class cycles it. `host` names the vendored class that computes
    the rate outside the step. `factor` says that torch's class multiplies the rate, so that several may be chained.
    """

    name: str
    signature: str
    to: Callable[[Arguments, Argument], str] | None = None
    momentum_to: Callable[[Arguments], str] | None = None
    host: str = ""
    factor: bool = False
    length: str = ""
    """A call's configured length as an expression over its arguments, for the tests."""
    options: tuple[str, ...] = ()
    """Arguments that the tests run."""
    note: str = ""


@dataclass(frozen=True)
class Function:
    """A function or class of torch beside the optimizers. `signature` is torch's; `to(arguments)` gives the text of the call.

    Texts of arguments are those of the target already. Where torch takes parameters to change their gradients, the text that stands for them is
    that of the gradients.
    """

    name: str
    signature: str
    to: Callable[[Arguments], str]
    note: str = ""


@dataclass(frozen=True)
class Text:
    """Source text as the target holds it, and the helpers that it calls."""

    code: str
    helpers: frozenset[str] = field(default_factory=frozenset)


def resolve(template: str) -> Text:
    """A row's text with its `vendored.` prefixes taken off, and the helpers that they named."""
    helpers = frozenset(re.findall(r"\bvendored\.(\w+)", template))
    return Text(re.sub(r"\bvendored\.(\w+)", r"\1", template), helpers)


def _index(kind: type[Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for module in modules_below("migrate_agent.tools.programs.tables"):
        for value in vars(module).values():
            for row in value if isinstance(value, tuple) else (value,):
                # Two rows for one name would make the result depend on the order of the files.
                if isinstance(row, kind) and rows.setdefault(row.name, row) is not row:
                    raise ValueError(f"two rows for {row.name}")
    return rows


@cache
def optimizers() -> Mapping[str, Optimizer]:
    """Dotted name → row. Raises `ValueError` on two rows of one name."""
    return _index(Optimizer)


@cache
def schedules() -> Mapping[str, Schedule]:
    """Dotted name → row. Raises `ValueError` on two rows of one name."""
    return _index(Schedule)


@cache
def functions() -> Mapping[str, Function]:
    """Dotted name → row. Raises `ValueError` on two rows of one name."""
    return _index(Function)


@cache
def refused() -> Mapping[str, Refused]:
    """Dotted name → what is refused, with the reason."""
    return _index(Refused)


def row_of(name: str, rows: Mapping[str, Any]) -> Any:
    """The row of a dotted name. Raises `Refuse` with the reason where there is none."""
    if name in rows:
        return rows[name]
    known = refused().get(name)
    raise Refuse(known.reason if known else f"{name} has no counterpart in the tables of optimizers and schedules")


def optimizer_arguments(name: str, call: str, values: Mapping[str, Any] | None = None) -> dict[str, Argument]:
    """The arguments of a constructor call of torch's optimizer, `params` left out. Raises `Refuse`.

    `call` is source text, such as `"SGD(model.parameters(), lr=args.lr)"`; `values` are those that a recording saw, by name.
    """
    signature = row_of(name, optimizers()).signature
    dropped = ", ".join(f"{argument}=None" for argument in DROPPED)
    arguments = bind(f"params, {signature}{', ' if '*' in signature else ', *, '}{dropped}", call, values)
    return {key: argument for key, argument in arguments.items() if key not in ("params", *DROPPED)}


def optimizer_text(name: str, arguments: Arguments) -> Text:
    """The optax form of a torch optimizer with these arguments. Raises `Refuse`."""
    return resolve(row_of(name, optimizers()).to(arguments))


def function_text(name: str, call: str, values: Mapping[str, Any] | None = None) -> Text:
    """The form of a call of one of `functions()`, from its source text. Raises `Refuse`."""
    row = row_of(name, functions())
    return resolve(row.to(bind(row.signature, call, values)))
