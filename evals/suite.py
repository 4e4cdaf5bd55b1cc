"""What a suite is: groups of cases, each run in a process of its own, and one outcome a case."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from migrate_agent.evals import suites

Status = Literal["right", "wrong", "refused", "excluded", "tidy", "untidy"]
STATUSES: tuple[Status, ...] = get_args(Status)
COUNTED: tuple[Status, ...] = ("right", "wrong", "refused")
"""What makes up the denominator."""


@dataclass(frozen=True)
class Outcome:
    """How one case ended.

    `right`: the rewrite does what torch does. `wrong`: it does something else, or does not run. `refused`: the tool itself says that it could not
    (a hole, or a verdict that is missing). `excluded`: out of the suite's scope, for the reason given, and not in the denominator.
    `tidy`, `untidy`: what the static check found in the generated files of a group; these are not cases, and in no denominator.
    """

    case: str
    status: Status
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How a suite is run. `samples` bounds the inputs of one case (None: all); `quick` asks for the suite's cheaper judgement, where it has one.

    `limit` bounds the cases of one group (None: all), and `seeds` says how often a case is judged, where a suite draws at random.
    `seed` chooses one draw of packages (None: all). Below the folder `keep`, repositories with their mirrors stay, to be read (empty: they are removed).
    `sources` is a folder of clones of public repositories.
    """

    filter: str = ""
    samples: int | None = 20
    quick: bool = False
    sandbox: str = "auto"
    limit: int | None = None
    seeds: int = 1
    seed: int | None = None
    keep: str = ""
    sources: str = ""

    def wanted(self, name: str) -> bool:
        """Whether the filter (comma-separated parts of names, any of which must occur) lets this case through."""
        return any(part.strip() in name for part in self.filter.split(","))


Group = tuple[str, ...]
"""Names of cases that one process runs; where it dies, each is run alone."""


@dataclass(frozen=True)
class Suite:
    """A suite.

    `groups` splits the wanted cases; `run` judges a group, in a process of its own; `seconds` is what one case may take at most.
    `unit` says what is counted, in the plural. With `kept`, the results of each group are stored by themselves, so that a run can be taken up
    again and a group measured anew; with `first_look`, the first results of a group are never overwritten.
    With `brief`, cases that are right are counted and not listed. `summary` gives what else the result file says about these outcomes,
    and `report` the lines that are printed before the rate.
    """

    name: str
    title: str
    unit: str
    groups: Callable[[Options], Sequence[Group]]
    run: Callable[[Group, Options], Iterator[Outcome]]
    seconds: float = 120.0
    versions: Callable[[Iterable[Outcome]], Mapping[str, str]] = lambda outcomes: {}
    kept: bool = False
    first_look: bool = False
    brief: bool = False
    summary: Callable[[Sequence[Outcome]], Mapping[str, Any]] = lambda outcomes: {}
    report: Callable[[Sequence[Outcome]], Iterable[str]] = lambda outcomes: ()


def suite_names() -> tuple[str, ...]:
    """The files of `evals/suites/`, which are called as their suites are."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(suites.__path__)))


def load_suite(name: str) -> Suite:
    """The suite of that name. Imports what it imports, PyTorch among it. Raises `KeyError`."""
    if name not in suite_names():
        raise KeyError(name)
    module = importlib.import_module(f"{suites.__name__}.{name}")
    return next(value for value in vars(module).values() if isinstance(value, Suite) and value.name == name)
