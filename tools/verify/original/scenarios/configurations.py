"""Finds other configurations that the original takes. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files, trees
from migrate_agent.tools.harness.common.argument_changes import CALL, LENGTH, Changes, at_an_end
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.harness.torch_side.precision import OperatorMode, Undetermined
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt, elements, finite_share, redraws, same
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.degenerate import at_ends, constructed_small, of_few_rows
from migrate_agent.tools.verify.original.scenarios.long_inputs import decided
from migrate_agent.tools.verify.original.scenarios.menu import describe, sample_initial_values, sample_redrawn_values
from migrate_agent.tools.verify.original.scenarios.random import drawn_otherwise
from migrate_agent.tools.verify.original.scenarios.special_sizes import with_inputs, with_tied, with_zeros
from migrate_agent.tools.verify.original.scenarios.strings import written
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

if TYPE_CHECKING:
    from migrate_agent.tools.harness.torch_side.line_coverage import Lines

SETS = frozenset(
    {"Parameter", "register_buffer", "init", "data", "weight", "bias", "copy_", "fill_", "mul_", "normal_", "uniform_", "zero_"}
)
"""Names in code that sets initial values itself, beside those of torch's layers."""


class Count(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that counts the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        self.number += 1
        return func(*args, **(kwargs or {}))


class Trials:
    """Tries configurations of the unit on the example's inputs, each once.

    `make` constructs the unit with the given changes. `usual` is the share of finite elements in the
    example's own outputs.
    """

    def __init__(self, make: Callable[[Changes], Original], usual: float, lines: Lines) -> None:
        self.make, self.usual, self.lines = make, usual, lines
        self._taken: dict[str, bool] = {}
        self._elsewhere: dict[str, bool] = {}

    def takes(self, changes: Changes) -> bool:
        """Whether the unit takes these changes, and is as finite with them."""
        key = repr(sorted(changes.items()))
        if key not in self._taken:
            finite = attempt(lambda: share(self.make(changes)))
            self._taken[key] = finite is not None and finite >= self.usual
        return self._taken[key]

    def elsewhere(self, changes: Changes) -> bool:
        """Whether the unit takes these changes, and runs lines with them that no example runs."""
        key = repr(sorted(changes.items()))
        if key not in self._elsewhere:
            self._elsewhere[key] = self.takes(changes) and bool(attempt(lambda: self.lines.more(partial(self._train, changes))))
        return self._elsewhere[key]

    def _train(self, changes: Changes) -> None:
        unit = self.make(changes)
        attempt(lambda: unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "train"))

    def split(self, changes: Changes) -> tuple[Changes, Changes]:
        """The changes that can be made together, and those that run other code and are made alone."""
        if not changes or not self.elsewhere(changes):
            return changes, {}
        # A rewrite may lack that code and raise: all other changes in the same scenario would go
        # unjudged.
        apart = {name: value for name, value in changes.items() if self.elsewhere({name: value})}
        together = {name: value for name, value in changes.items() if name not in apart}
        return together if together and self.takes(together) else {}, apart

    def furthest(self, values: Mapping[str, tuple[Any, ...]], tries: int, start: Changes = MappingProxyType({})) -> Changes:
        """As many changes as the unit takes together, in addition to those in `start`."""
        changes = dict(start)
        for proposal, _ in zip(_proposals(values, changes), range(tries), strict=False):
            if self.takes({**changes, **proposal}):
                changes.update(proposal)
        return changes


def refuse_large(unit: Original) -> None:
    """Raises `Undetermined` where a unit is too large to be made and called in other configurations."""
    if elements(unit) > budgets.CONFIGURATION_ELEMENTS:
        raise Undetermined(f"it holds more than {budgets.CONFIGURATION_ELEMENTS:,} numbers")


def others(plain: Original, make: Callable[[Changes], Original], lines: Lines) -> list[Original]:
    """The unit in other configurations that it takes, on the example's inputs.

    As many numbers as possible are changed together, as many bools, and one string each. Changes that run
    other code than the examples (`lines`) are made alone. Lists of the call are also empty, sizes that the inputs have, or that are
    tied to a number, change with it, and ints are zero, each alone. Rates are at the ends of their range, and ints so that the state has few rows. `make`
    constructs the unit with the given changes. Raises `Undetermined` where the unit is too large.
    """
    values, words = plain.proposals(), written(plain.strings(), plain.native)
    if not values and not words:
        return []
    refuse_large(plain)
    flags = {name: options for name, options in values.items() if isinstance(options[0], bool)}
    numbers = {name: options for name, options in values.items() if name not in flags}
    trials = Trials(make, share(plain, count := Count()), lines)
    tries = min(budgets.CONFIGURATION_TRIES, budgets.CONFIGURATION_OPERATORS // max(count.number, 1))
    # By the bits of their index, so that every two bools differ from each other in some
    # configuration.
    halves = [dict(rows) for bit in (1, 2) if (rows := [row for number, row in enumerate(flags.items()) if number & bit])]
    with_numbers = trials.furthest(numbers, tries)
    turned = trials.furthest(flags, tries)
    proposed = [trials.furthest(half, tries, with_numbers) for half in halves] or [with_numbers]
    if turned:
        proposed.insert(1, trials.furthest(numbers, tries, turned))
    proposed += _small(numbers, plain, trials)
    proposed += _without_effect(numbers, plain, trials, tries)
    together, apart = list[Changes](), dict[str, Any]()
    for changes in proposed:
        shared, other = trials.split(changes)
        apart = {**other, **apart}
        together += [shared] if shared and shared not in together else []
    alone = [{name: value} for name, value in apart.items()][: budgets.APART]
    lists = [{name: 0} for name in values if name.startswith(CALL) and name.endswith(f".{LENGTH}")][: budgets.EMPTIED]
    empty = [changes for changes in lists if trials.takes(changes)]
    far = list(islice(_far(numbers, trials), budgets.APART)) if plain.is_function else []
    found = [
        *(make(changes) for changes in (*together, *alone, *empty, *far)),
        *islice(_with_strings(plain, words[:tries], trials), budgets.STRINGS),
        *islice(with_inputs(plain, make, numbers, trials.usual), budgets.SIZED),
        *islice(with_tied(plain, make, numbers, trials.usual), budgets.TIED),
        *islice(with_zeros(plain, make, numbers, trials.usual), budgets.ZEROS),
        *islice(at_ends(plain, make, trials.usual), budgets.ENDS),
        *islice(of_few_rows(plain, make, numbers, trials.usual), budgets.FEW_ROWS),
    ]
    return [unit for unit in found if is_meant(unit, plain)]


def is_meant(unit: Original, plain: Original) -> bool:
    """Whether a function that is given numbers in place of None gives the same containers. Else a number stands where a tensor is meant:
    `torch.max(x, 0)` is no maximum of two."""
    if not plain.is_function or not plain.absent().keys() & unit.changes.keys():
        return True
    forms = [attempt(partial(_result, one)) for one in (unit, plain)]
    return all(forms) and trees.skeleton(forms[0].tree) == trees.skeleton(forms[1].tree)  # type: ignore[union-attr]


def _far(numbers: Mapping[str, tuple[Any, ...]], trials: Trials) -> Iterator[Changes]:
    """Ints of a function that are as large as real runs have them: limits of a schedule are met only there.

    Left out where that makes the function longer, whose loop over so many steps nobody would wait for.
    """
    for name, options in numbers.items():
        changes = {name: budgets.FAR}
        if type(options[0]) is not int or name.endswith(f".{LENGTH}") or not trials.takes(changes):
            continue
        count = Count()
        if attempt(lambda: share(trials.make(changes), count)) is not None and count.number <= budgets.FAR_OPERATORS:  # noqa: B023
            yield changes


def _small(numbers: Mapping[str, tuple[Any, ...]], plain: Original, trials: Trials) -> list[Changes]:
    """Changes that make ints smaller than the sizes of the inputs: a window, or a largest length, that the example does not reach.

    Each alone where a comparison or a bound decides otherwise with it; all at once where the code bounds
    or divides Python's own ints.
    """
    longest = max((size for leaf in plain.leaves for size in leaf.value.shape[1:]), default=0)
    least = (3, 2) if longest > 4 else (2, 3)
    small = {name: least for name, effective in numbers.items() if type(effective[0]) is int and min(effective) > 1}
    decisions, effective = set(decided(plain, trials.lines).found), list[Changes]()
    for name in list(small)[: budgets.SMALL_TRIES]:
        accepted = next((changes for value in least if trials.takes(changes := {name: value})), None)
        new = attempt(lambda accepted=accepted: decided(trials.make(accepted), trials.lines)) if accepted else None  # type: ignore[misc]
        if accepted and new is not None and (not new.found <= decisions or trials.elsewhere(accepted)):
            effective.append(accepted)
            decisions |= new.found
    together = trials.furthest(small, budgets.SMALL_TRIES) if source_literals.counts(plain.native) else {}
    return [*effective[: budgets.SMALL], *([together] if together and together not in effective else [])]


def _without_effect(numbers: Mapping[str, tuple[Any, ...]], plain: Original, trials: Trials, tries: int) -> list[Changes]:
    """Changes of floats that have no effect when halved (a bound that nothing reaches): larger or smaller until one has an effect."""
    halves = {name: values[0] for name, values in numbers.items() if type(values[0]) is float}
    usual = _marks(plain) if halves else []

    def acts(changes: Changes) -> bool:
        marks = attempt(lambda: _marks(trials.make(changes)))
        return marks is not None and not _alike(marks, usual)

    effective = list[Changes]()
    for name, half in list(halves.items())[: min(budgets.QUIET, tries // 4)]:
        if not acts({name: half}):
            larger = ({name: half * times} for times in budgets.QUIET_TIMES)
            effective += islice((changes for changes in larger if trials.takes(changes) and acts(changes)), 1)
    return effective


def _marks(unit: Original) -> list[Mapping[str, Any]]:
    """The results that a number may change: the unit's initial state, and its outputs in both modes."""
    state, inputs = unit.state(), input_sampling.recorded_inputs(unit.leaves)
    results = [attempt(partial(unit.run, state, inputs, mode)) for mode in ("eval", "train")]
    return [state, *(result.arrays if result else {} for result in results)]


def _alike(one: list[Mapping[str, Any]], other: list[Mapping[str, Any]]) -> bool:
    """Whether two lists of results are equal."""
    return all(
        mine.keys() == theirs.keys()
        and all(np.array_equal(value, theirs[key], equal_nan=value.dtype.kind in "fc") for key, value in mine.items())
        for mine, theirs in zip(one, other, strict=True)
    )


def compare(writers: Sequence[ScenarioWriter], drops: bool) -> list[dict[str, Any]]:
    """Add the scenarios of other configurations to their writers. `drops`: the example itself has masks of dropout.

    Returns what describes each, its initial values too where the code itself sets some: of the first, and of others as far as they have few.
    """
    descriptions, tensors = [], 0
    for writer in writers:
        descriptions.append({"changes": writer.original.changes, **_compare(writer, drops)})
        constructed = any(not name.startswith(CALL) for name in writer.original.changes)
        count = len(writer.original.state())
        if (
            constructed
            and writer.scenarios
            and source_literals.uses(writer.original.native, SETS)
            and (not tensors or tensors + count <= budgets.INIT_CONFIGURED)
        ):
            descriptions[-1]["inits"] = sample_initial_values(writer)
            tensors += count
    return descriptions


def starts(
    unit: Original, make: Callable[[Changes], Original], writer_of: Callable[[Original, int], ScenarioWriter]
) -> list[dict[str, Any]]:
    """What describes the unit with one of its ints at one each, and the initial values that it has then, where its own code sets some. Nothing is
    called."""
    if not source_literals.uses(unit.native, SETS) or unit.is_function:
        return []
    writers = [
        writer_of(small, number) for number, small in enumerate(islice(constructed_small(unit, make, unit.proposals()), budgets.STARTS))
    ]
    return [
        {"changes": writer.original.changes, **describe(writer), "inits": sample_initial_values(writer), "skipped": []}
        for writer in writers
    ]


def _compare(writer: ScenarioWriter, drops: bool) -> dict[str, Any]:
    """One call, in training mode where it trains, and in evaluation mode where that gives something else; with gradients where the code stops
    some, and at the ends of a range, where those may not be finite."""
    unit = writer.original
    writer.states = {0: writer.sample_state(0)}
    tensor_files.save(writer.folder / f"given/states/{writer.state_name(0)}.safetensors", writer.states[0])
    with writer.lines:
        attempt(unit.fresh)
        usual = attempt(lambda: unit.run(writer.states[0], writer.values(0), writer.modes[0]))
    if unit.method and usual is not None and redraws(unit, usual):
        return {**describe(writer), "inits": sample_redrawn_values(writer, usual), "skipped": []}
    stops, values = at_an_end(unit.changes) or source_literals.uses(unit.native, source_literals.STOPS), writer.values(0)
    for mode in writer.modes:
        if not writer.scenarios or writer.trains():
            add = partial(writer.add, f"{Role.CONFIGURATION}-{mode}", Role.CONFIGURATION, mode, 0, values)
            _ = (stops and add(gradient=True)) or add()
    if writer.scenarios and not drops:
        drawn_otherwise(writer, writer.scenarios[0], values, Role.CONFIGURATION_DROPPED)
    return {**describe(writer), "skipped": []}


def _with_strings(plain: Original, strings: list[Changes], trials: Trials) -> Iterator[Original]:
    """The unit with each of these strings that it takes, and with which it gives something else than with its own, and than with those before."""
    results = [_result(plain)]
    for changes in strings:
        unit = attempt(partial(trials.make, changes))
        result = attempt(partial(_result, unit)) if unit is not None else None
        if (
            result is not None
            and finite_share(result) >= trials.usual
            and not any(result.tree == other.tree and same(result, other) for other in results)
        ):
            results.append(result)
            yield unit  # type: ignore[misc]


def share(unit: Original, watch: Any = None) -> float:
    """The share of finite elements in its outputs for the example's inputs. Raises its errors."""
    # A function may give infinities on purpose: logits that are filtered out, the scores of a mask.
    return finite_share(_result(unit, watch), infinite=unit.is_function)


def _result(unit: Original, watch: Any = None) -> Result:
    return unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "eval", watch=watch)


def _proposals(values: Mapping[str, tuple[Any, ...]], changes: Changes) -> Iterator[Changes]:
    """All bools or all floats at once; then each argument alone, until it is among the changes."""
    together = {name: options[0] for name, options in values.items() if isinstance(options[0], (bool, float))}
    if len(together) > 1:
        yield together
    for name, options in values.items():
        for value in options:
            if name not in changes:
                yield {name: value}
