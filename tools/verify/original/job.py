"""The original's side of a verification, run inside the sandbox: chooses the scenarios, and writes what the candidate is given and must give.

`given/` (states, inputs, targets, `given.json`) goes to the candidate; `expected/` and the returned JSON never do. Two jobs that may run beside each
other: the examples, and the first of them with other configurations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.harness.common import input_sampling, tolerances
from migrate_agent.tools.harness.common.argument_changes import Changes, never_given
from migrate_agent.tools.harness.common.random_streams import Drawing, zeroed
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Original, flushing
from migrate_agent.tools.verify.original.outputs import attempt, one_line
from migrate_agent.tools.verify.original.scenarios.configurations import compare, others
from migrate_agent.tools.verify.original.scenarios.menu import write_scenarios
from migrate_agent.tools.verify.original.scenarios.random import SPREAD, TILTS
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter, undetermined_reason


@dataclass(frozen=True)
class One:
    """An example that is not like one before it. `otherwise`: it is constructed otherwise than those before; `new`: it exercises something else."""

    index: int
    texts: Mapping[str, Any]
    original: Original
    otherwise: bool
    new: bool


@dataclass
class Examples:
    """The examples of a job, those that cannot be made ready among the `errors`. What they run is noted in `lines`."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Path]
    errors: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _constructed: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        torch.set_num_threads(max(torch.get_num_threads(), 1))
        torch.backends.mha.set_fastpath_enabled(False)
        self.base = tolerances.SEED_STRIDE * int(self.arguments["seed"])
        self.lines = Lines(self.arguments["name"], Path(sys.path[0]))

    def __iter__(self) -> Iterator[One]:
        for index, texts in enumerate(self.arguments["examples"]):
            try:
                with self.lines:
                    original = self.make(index)
                otherwise = (texts["init"], texts["setup"]) not in self._constructed
                new = original.likeness() not in self._seen
            except Exception as error:
                self.fail(index, error)
                continue
            if new or otherwise:
                self._seen.add(original.likeness())
                yield One(index, texts, original, otherwise, new)

    def make(self, index: int, changes: Changes | None = None) -> Original:
        """The unit of this example. Raises what its import and its texts raise."""
        texts = {**self.arguments["examples"][index], **({"changes": changes} if changes is not None else {})}
        return Original(self.arguments["module"], self.arguments["name"], texts, self.inputs.get(f"tensors{index}"), self.base)

    def ran(self, one: One) -> None:
        """Take note that an example runs."""
        self._constructed.add((one.texts["init"], one.texts["setup"]))

    def fail(self, index: int, error: Exception) -> None:
        """Take note that it does not."""
        self.errors.append(f"example {index + 1}: {one_line(error)}")


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `examples` (texts, `train`, `domain`), `seed`. `inputs`: `tensors<i>`. Returns the expectations of the
    examples, and which lines they run (`Lines.told`)."""
    given = Examples(arguments, inputs)
    scenarios: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    calls: list[Any] = []
    for one in given:
        cls = one.original.cls
        calls.append(one.original.call)
        try:
            writer = ScenarioWriter(one.original, len(examples), one.texts, output, given.base, given.lines)
            examples.append(
                {"index": one.index, "changes": {}, **write_scenarios(writer, first=not examples, otherwise=one.otherwise, new=one.new)}
            )
        except Exception as error:
            given.fail(one.index, error)
            continue
        given.ran(one)
        scenarios += writer.scenarios
    if examples and (names := attempt(lambda: never_given(cls.forward, calls))):
        examples[0]["remarks"].append(f"no example gives the call its {', '.join(names)}, and so what it does with that was not compared")
    lines = given.lines.told(cls) if examples else {}
    return {"examples": examples, "scenarios": scenarios, "errors": given.errors, "lines": lines, "torch": torch.__version__}


@flushing()
def configured(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: the first example that runs, with other configurations of the unit. `arguments` and `inputs` as in `run`; with `first`, where it is
    known which that is, and `number`, of how many that run.

    Returns what describes each configuration, their scenarios, which lines ran, and the `first` and `number` that these are right for; or an `error`.
    """
    given = Examples(arguments, inputs)
    ran: list[One] = []
    drops = False
    for one in given:
        try:
            drops = exercised(one, given.lines) or drops
        except Exception:
            continue
        given.ran(one)
        ran.append(one)
    first, number = arguments.get("first", ran[0].index if ran else -1), arguments.get("number", len(ran))
    found: dict[str, Any] = {"first": first, "number": number, "examples": [], "scenarios": [], "lines": {}}
    if not ran:
        return {**found, "wrong": {"reason": "the examples do not run a second time"}}
    make, texts = partial(given.make, first), arguments["examples"][first]
    try:
        units = enumerate(others(make({}), make, given.lines))
        writers = [ScenarioWriter(unit, number + place, texts, output, given.base, given.lines) for place, unit in units]
        found["examples"] = [{"index": first, **item} for item in compare(writers, drops)]
    except Exception as error:
        return {**found, "wrong": {"reason": undetermined_reason(error)}}
    scenarios = [scenario for writer in writers for scenario in writer.scenarios]
    return {**found, "scenarios": scenarios, "lines": given.lines.told(ran[-1].original.cls)}


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
