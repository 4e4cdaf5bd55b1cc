"""Other numbers for the constructor and its configurations, by what an error says of numbers that do not fit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_init
from migrate_agent.tools.record.guessing.values import Fields

USUAL_SIZE = "64"


def without_negative(
    attempt: Attempt, outcome: Outcome, init: Mapping[str, inspect.Parameter], sizes_without_default: Callable[[str], Sequence[str]]
) -> Iterator[Attempt]:
    """A size in the place of a default that stands for none: `vocab_size: int = -1`, of the constructor itself or of an object that it takes. `init` are the parameters
    of the constructor; `sizes_without_default` gives the fields of a class whose defaults are negative."""
    if not re.search(r"negative dimension|must be positive|cannot be negative|non-?negative|greater than 0", outcome.error):
        return
    for name, parameter in init.items():
        if type(parameter.default) is int and parameter.default < 0:
            yield set_init(attempt, name, USUAL_SIZE)
    for name, value in attempt.init:
        if isinstance(value, str) and (match := re.fullmatch(r"([A-Za-z_][\w.]*)\((.*)\)", value)):
            for text in sizes_without_default(match[1]):
                if f"{text}=" not in match[2]:
                    yield set_init(attempt, name, f"{match[1]}({', '.join(part for part in (match[2], f'{text}={USUAL_SIZE}') if part)})")


def other_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with one number that the constructor was given replaced: by a fraction, or by the size that was expected."""
    yield from _fractions_for_integers(attempt, outcome)
    yield from _fields_of_sizes(attempt, outcome)


def _fractions_for_integers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where an operation was given whole numbers and takes others: a fraction for each whole number of the constructor, of which the model may
    have made a tensor; those first that the failed statement depends on."""
    if not re.search(
        r"floating.point.*([Gg]ot|found) (Long|Int)|Float but (got|found) (Long|Int)|not implemented for '(Long|Int)'", outcome.error
    ):
        return
    numbers = [name for name, value in attempt.init if isinstance(value, str) and value.isdigit()]
    for name in sorted(numbers, key=lambda name: name not in outcome.place.init):
        yield set_init(attempt, name, "0.5")


TWO_SHAPES = re.compile(r"[Ee]xpected .{0,30}?[(\[](?P<wanted>\d[\d, ]*)[)\]].{0,12}?[Gg]ot:? [(\[](?P<now>\d[\d, ]*)[)\]]")


def _fields_of_sizes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where a state of other sizes was wanted: a field of a configuration, or a number of the constructor, that is the one size which differs."""
    match = TWO_SHAPES.search(outcome.error)
    wanted, now = ([int(size) for size in re.findall(r"\d+", match[name])] if match else [] for name in ("wanted", "now"))
    pairs = {(str(b), str(a)) for a, b in zip(wanted, now, strict=False) if a != b} if len(wanted) == len(now) else set()
    for before, after in pairs if len(pairs) == 1 else ():
        for name, value in attempt.init:
            if value == before:
                yield set_init(attempt, name, after)
            for at, (field, text) in enumerate(value.items if isinstance(value, Fields) else ()):
                if text == before:
                    assert isinstance(value, Fields)
                    yield set_init(attempt, name, replace(value, items=(*value.items[:at], (field, after), *value.items[at + 1 :])))


def negative_fields(cls: object) -> tuple[str, ...]:
    """The parameters of a class whose defaults are negative integers."""
    try:
        parameters = inspect.signature(cls).parameters.values() if isinstance(cls, type) else ()
    except (TypeError, ValueError):
        return ()
    return tuple(item.name for item in parameters if type(item.default) is int and item.default < 0)
