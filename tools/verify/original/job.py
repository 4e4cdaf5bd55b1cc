"""The original's side of a verification: chooses the scenarios inside the sandbox, and writes the candidate's inputs and expected results.

`given/` (states, inputs, targets, `given.json`) goes to the candidate; `expected/` and the returned JSON never do. Two jobs that may run beside each
other: the examples, and the first of them with other configurations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.harness.common import budgets, input_sampling, methods, reach
from migrate_agent.tools.harness.common.argument_changes import Changes, never_given
from migrate_agent.tools.harness.common.memory_bound import bound_memory
from migrate_agent.tools.harness.common.random_streams import Drawing, zeroed
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Original, flushing
from migrate_agent.tools.harness.torch_side.precision import Undetermined
from migrate_agent.tools.verify.contract.scenario import Scenario
from migrate_agent.tools.verify.contract.schedule import LARGE_ELEMENTS, ORIGINAL_SHARE, Deadline
from migrate_agent.tools.verify.original.outputs import attempt, elements, one_line
from migrate_agent.tools.verify.original.scenarios.call_order import call_in_order
from migrate_agent.tools.verify.original.scenarios.configurations import compare, is_meant, others, refuse_large, starts
from migrate_agent.tools.verify.original.scenarios.constructions import Constructions
from migrate_agent.tools.verify.original.scenarios.menu import write_brief, write_scenarios
from migrate_agent.tools.verify.original.scenarios.methods import called_otherwise, write_method
from migrate_agent.tools.verify.original.scenarios.random import SPREAD, TILTS
from migrate_agent.tools.verify.original.scenarios.refusals import refusals
from migrate_agent.tools.verify.original.scenarios.sequence_lengths import note_lengths
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter, undetermined_reason


@dataclass(frozen=True)
class One:
    """An example that adds something: `otherwise`, a new constructor call; `new`, a new configuration, state or shapes of arguments."""

    index: int
    texts: Mapping[str, Any]
    original: Original
    otherwise: bool
    new: bool


@dataclass
class Examples:
    """The examples of a job. `errors` has those that cannot be constructed; `lines` records the lines that they run."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Path]
    errors: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _constructed: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        torch.set_num_threads(max(torch.get_num_threads(), 1))
        # The fast path is one fused kernel, which modes and hooks do not see into.
        torch.backends.mha.set_fastpath_enabled(False)
        self.base = budgets.SEED_STRIDE * int(self.arguments["seed"])
        self.lines = Lines(self.arguments["name"], Path(sys.path[0]))
        large_from = int(self.arguments.get("large_from", LARGE_ELEMENTS))
        seconds = ORIGINAL_SHARE * float(self.arguments.get("budget", 0.0))
        self.deadline = Deadline(seconds, small=True, large_from=large_from, room=int(self.arguments.get("disk", 0)))

    def __iter__(self) -> Iterator[One]:
        for index, texts in enumerate(self.arguments["examples"]):
            try:
                with self.lines:
                    original = self.make(index)
                new_construction = (texts["init"], texts["setup"]) not in self._constructed
                new = original.likeness() not in self._seen
            except Exception as error:
                self.fail(index, error)
                continue
            if new or new_construction:
                self._seen.add(original.likeness())
                yield One(index, texts, original, new_construction, new)

    def make(self, index: int, changes: Changes | None = None) -> Original:
        """The unit of this example. Raises the errors of its import and its texts."""
        texts = {**self.arguments["examples"][index], **({"changes": changes} if changes is not None else {})}
        return Original.of_job(self.arguments, texts, self.inputs.get(f"tensors{index}"), self.base)

    def ran(self, one: One) -> None:
        """Record that an example runs."""
        self._constructed.add((one.texts["init"], one.texts["setup"]))

    def fail(self, index: int, error: Exception) -> None:
        """Record the error of an example that does not run."""
        self.errors.append(f"example {index + 1}: {one_line(error)}")


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `examples` (texts, `train`, `domain`), `seed`, `memory` (bytes that it may allocate),
    `disk` (bytes that its optional calls may write). `inputs`: `tensors<i>`. Returns the expectations of the examples, and which lines they run (`Lines.told`)."""
    # Larger inputs than the example's may need more memory than there is: they are left out then.
    bound_memory(arguments["memory"])
    example_units = Examples(arguments, inputs)
    first: Any = None
    scenarios: list[list[Scenario]] = []
    examples: list[dict[str, Any]] = []
    calls: list[Any] = []
    reached: list[dict[str, frozenset[int]]] = []
    called: set[str] = set()
    paths: set[str] = set()
    constructions = Constructions()
    small: list[ScenarioWriter] = []
    count = 0
    for one in example_units:
        cls = one.original.cls
        calls += [] if one.original.method else [one.original.call]
        try:
            sizes = tuple(arguments.get("sizes", ()))
            arguments_of_all = (len(examples), one.texts, output, example_units.base, example_units.lines)
            writer = ScenarioWriter(one.original, *arguments_of_all, sizes, example_units.deadline)
            # A method's example stands after those of the module's own call, if there are any.
            if one.original.method and examples:
                facts = write_method(writer, first=one.original.method not in called)
                called.add(one.original.method)
            elif count >= budgets.MAX_EXAMPLES:
                facts = write_brief(writer, new_construction=one.otherwise and constructions.adds(one.original))
            else:
                sampled = one.otherwise and (constructions.adds(one.original) or not one.new)
                facts = write_scenarios(writer, first=not examples, new_construction=sampled, new=one.new, paths=paths)
                paths |= {writer.path()} if one.new else set()
                count += 1
            examples.append({"index": one.index, "changes": {}, **facts})
            first = cls if first is None else first
        except Exception as error:
            example_units.fail(one.index, error)
            continue
        example_units.ran(one)
        scenarios.append(writer.scenarios)
        reached.append(writer.reached)
        small += [writer] if elements(one.original) <= budgets.CONFIGURATION_ELEMENTS else []
    call_in_order(small)
    if examples and (names := attempt(lambda: never_given(cls.forward, calls))):
        examples[0]["remarks"].append(f"no example gives the call its {', '.join(names)}, and so what it does with that was not compared")
    lines = example_units.lines.told(cls) if examples else {}
    if examples:
        del one, writer, small  # a large unit's modules, which would stand beside those that this makes
        examples[0]["methods"] = surface(example_units, examples[0]["index"], first)
    return {
        "examples": examples,
        "scenarios": [scenario.to_json() for scenario in chain(*scenarios)],
        "errors": example_units.errors,
        "large": not example_units.deadline.small,
        "lines": lines,
        "reach": reach.told(dict(chain(*(rows.items() for rows in reached)))),
        "torch": torch.__version__,
    }


@flushing()
def configured(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: the first example that runs, with other configurations of the unit. `arguments` and `inputs` as in `run`; with `first`, where it is
    known which that is, and `number`, of how many that run. A unit that is too large is only constructed: its examples take memory beside this job.

    Returns what describes each configuration, their scenarios, which lines ran, and the `first` and `number` that these are right for; or an `error`.
    """
    example_units = Examples(arguments, inputs)
    ran: list[One] = []
    drops = False
    for one in example_units:
        try:
            refuse_large(one.original)
        except Undetermined as error:
            return {"wrong": {"reason": undetermined_reason(error)}}
        try:
            drops = exercised(one, example_units.lines) or drops
        except Exception:
            continue
        example_units.ran(one)
        ran.append(one)
    first, number = arguments.get("first", ran[0].index if ran else -1), arguments.get("number", len(ran))
    result: dict[str, Any] = {"first": first, "number": number, "examples": [], "scenarios": [], "lines": {}}
    if not ran:
        return {**result, "wrong": {"reason": "the examples do not run a second time"}}
    make, texts = partial(example_units.make, first), arguments["examples"][first]
    result["refusals"] = attempt(lambda: _refusals(make, texts, output, example_units)) or []

    def writer_of(unit: Original, offset: int) -> ScenarioWriter:
        return ScenarioWriter(unit, number + offset, texts, output, example_units.base, example_units.lines)

    try:
        plain = make({})
        note_lengths(plain, plain.run(plain.state(), input_sampling.recorded_inputs(plain.leaves), "eval"))
        writers = [writer_of(unit, offset) for offset, unit in enumerate(others(plain, make, example_units.lines))]
        result["examples"] = [{"index": first, **item} for item in compare(writers, drops)]
        of_methods = {one.original.method: one for one in reversed(ran) if one.original.method and one.index != first}
        # An option of a function may be looked at in one of its examples alone: `delta` where `kind="huber"`.
        of_function = [one for one in ran if one.original.is_function and one.new and one.index != first][: budgets.METHOD_CHANGES]
        for one in (*reversed(of_methods.values()), *of_function):
            found = called_otherwise(one.original, partial(example_units.make, one.index))
            for unit_of_method in islice((unit for unit in found if is_meant(unit, one.original)), budgets.METHOD_CHANGES):
                place = number + len(writers)
                writers.append(ScenarioWriter(unit_of_method, place, one.texts, output, example_units.base, example_units.lines))
                result["examples"] += [{"index": one.index, **item} for item in compare(writers[-1:], drops)]
        small = starts(make({}), make, lambda unit, offset: writer_of(unit, len(writers) + offset))
        result["examples"] += [{"index": first, **item} for item in small]
    except Exception as error:
        return {**result, "wrong": {"reason": undetermined_reason(error)}}
    scenarios = [scenario.to_json() for writer in writers for scenario in writer.scenarios]
    reached = {name: numbers for writer in writers for name, numbers in writer.reached.items()}
    return {
        **result,
        "scenarios": scenarios,
        "reach": reach.told(reached),
        "lines": example_units.lines.told(ran[-1].original.cls),
    }


def _refusals(make: Callable[[Changes], Original], texts: Mapping[str, Any], output: Path, example_units: Examples) -> list[dict[str, Any]]:
    """What the first example refuses when it is called otherwise; nothing where it is too large to be tried so often."""
    plain = make({})
    writer = ScenarioWriter(plain, 0, texts, output, example_units.base, example_units.lines)
    return refusals(writer, make) if elements(plain) <= budgets.CONFIGURATION_ELEMENTS else []


def surface(example_units: Examples, index: int, cls: Any) -> dict[str, Any]:
    """The public methods of the class, and which of them run while the example with this number is constructed and called."""
    members = methods.public_methods(cls, torch.nn.Module)
    if not members:  # most classes have none, and a large unit takes seconds to construct
        return {"names": [], "constructing": [], "calling": []}
    unit = example_units.make(index)
    state, inputs = unit.state(), input_sampling.recorded_inputs(unit.leaves)
    constructing = methods.called_in(members, unit.fresh)
    calling = methods.called_in(members, lambda: attempt(partial(unit.run, state, inputs, "eval")))
    return {"names": list(members), "constructing": sorted(constructing), "calling": sorted(calling)}


def exercised(one: One, lines: Lines) -> bool:
    """Run an example as `ScenarioWriter.write` does, for the lines that it runs; whether it has masks of dropout. Raises what the original raises."""
    if not one.new:
        return False
    unit, draws, mode = one.original, list[list[object]](), "eval"
    run = partial(unit.run, unit.state(), input_sampling.recorded_inputs(unit.leaves))
    with lines:
        draws += run("eval").draws
        if one.texts.get("train") is not False and (trained := attempt(partial(run, "train"))):
            draws, mode = [*draws, *trained.draws], "train"
        tilted = [Drawing(tilt) for tilt in TILTS if any(draw[0] in SPREAD for draw in draws)]
        for drawing in (*tilted, *(Drawing(dropped=dropped) for dropped in zeroed(draws))):
            attempt(partial(run, mode, drawing=drawing))
    return any(draw[0] == "bernoulli" for draw in draws)
