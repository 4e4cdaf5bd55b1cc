"""The scenarios of a method that is called in place of the module. Used inside the sandbox, on the original's side.

Fewer than those of the module's own call: what the two share was compared there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from migrate_agent.tools.harness.common import budgets, input_sampling, methods, tensor_files
from migrate_agent.tools.harness.common.argument_changes import CALL, Changes, bind
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt, finite_share, make_targets, redraws, same
from migrate_agent.tools.verify.original.scenarios.long_inputs import longer
from migrate_agent.tools.verify.original.scenarios.menu import add_edges, describe, sample_redrawn_values
from migrate_agent.tools.verify.original.scenarios.random import drawn_otherwise
from migrate_agent.tools.verify.original.scenarios.sizes import together
from migrate_agent.tools.verify.original.scenarios.strings import written
from migrate_agent.tools.verify.original.scenarios.widths import narrow_inputs
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

ABSENT = (3, 0.5, True)
"""Values for an argument of a call that is None: a count, a share, a switch."""


def write_method(writer: ScenarioWriter, *, first: bool) -> dict[str, Any]:
    """Write the scenarios of an example that calls a method; of a further example of the method its own call alone.

    Raises the errors of the original on the example itself.
    """
    unit = writer.original
    with writer.lines:
        writer.once(unit.state(), writer.values(0), "eval")
        if writer.texts.get("train") is not False:
            attempt(lambda: unit.run(unit.state(), writer.values(0), "train"))
    writer.note_lengths()
    seeds = range(1 if writer.deadline.passed else budgets.METHOD_SEEDS)
    writer.states = {seed: writer.sample_state(seed) for seed in seeds}
    for seed in seeds:
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(seed)}.safetensors", writer.states[seed])
    inputs = {seed: writer.sample_inputs(seed) for seed in seeds}
    usual = attempt(partial(writer.once, writer.states[0], inputs[0], "eval"))
    if usual is not None and redraws(unit, usual):
        return {**describe(writer), "inits": sample_redrawn_values(writer, usual)}
    for seed in seeds:
        writer.add(f"eval-s{seed}", Role.SEED, "eval", seed, inputs[seed], native=seed == 0)
    differentiable = usual is not None and any(size.size for size in make_targets(usual, 0).values())
    for mode in writer.modes if differentiable or writer.trains() else ():
        if writer.add(f"gradient-{mode}-s0", Role.GRADIENT, mode, 0, inputs[0], gradient=differentiable, native=differentiable):
            break
    if writer.deadline.passed:
        writer.late("all but the example's own call")
        return describe(writer)
    if writer.scenarios:
        with writer.lines:
            drawn_otherwise(writer, writer.scenarios[-1], inputs[0])
        writer.add("again-eval", Role.AGAIN, "eval", 0, inputs[max(inputs)], before=inputs[0], runs=1)
    if first and unit.leaves:
        add_edges(writer)
        narrow_inputs(writer)
        longer(writer)
        if writer.scenarios[-1].role != Role.LONG:
            _other_size(writer)
    return describe(writer)


def _other_size(writer: ScenarioWriter) -> None:
    """Add the first other size that the original accepts, alone or together with others; each costs one compilation."""
    for label, _, values, _ in input_sampling.shape_variants(writer.original.leaves, writer.base):
        if writer.add(f"shape-{label}", Role.SHAPE, "eval", 0, values, runs=1):
            return
    together(writer, 1)


def called_otherwise(plain: Original, make: Callable[[Changes], Original]) -> Iterator[Original]:
    """The unit with other plain arguments of the method that it takes, and that give something else: all numbers at once, others alone. A string is each
    that gives something else, since code compares with one after the other."""
    first = attempt(partial(_result, plain))
    if first is None:
        return
    usual = finite_share(first)
    results, varied = [first], set[str]()
    for changes in islice(_proposals(plain), budgets.CONFIGURATION_TRIES):
        # One other value of each argument shows whether it is looked at; each further one is a compilation.
        if varied.issuperset(changes) and not any(isinstance(value, str) for value in changes.values()):
            continue
        unit = attempt(partial(make, changes))
        result = attempt(partial(_result, unit)) if unit is not None else None
        if unit is None or result is None or finite_share(result) < usual:
            continue
        if all(result.tree != other.tree or not same(result, other) for other in results):
            results.append(result)
            varied |= changes.keys()
            yield unit


def _proposals(plain: Original) -> Iterator[Changes]:
    """Changes of the call's arguments, those that change several first: they show most for one compilation."""
    values = {name: options for name, options in plain.proposals().items() if name.startswith(CALL)}
    absent = [
        f"{CALL}{name}"
        for name, value in list(bind(methods.unbound(plain.cls, plain.method), *plain.call).arguments.items())[1:]
        if value is None
    ]
    numbers = {name: options[0] for name, options in values.items() if not isinstance(options[0], bool)}
    if len(numbers) > 1:
        yield numbers
    yield from ({name: value} for name in absent for value in ABSENT)
    yield from ({name: value} for name, options in values.items() for value in options)
    yield from (changes for changes in written(plain.strings(), plain.native) if all(name.startswith(CALL) for name in changes))


def _result(unit: Original) -> Any:
    return unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "eval")
