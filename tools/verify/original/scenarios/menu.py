"""The menu of scenarios: which calls of the original are compared for one example. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array, Extreme
from migrate_agent.tools.harness.common.random_streams import Customs
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.harness.common.training_steps import OPTIMISERS, first_rate, overflows, torch_curve
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.harness.torch_side.precision import Undetermined
from migrate_agent.tools.verify.contract.scenario import Role, Scenario, redrawn
from migrate_agent.tools.verify.contract.schedule import LARGE_ELEMENTS, MOST_STEPS, ORIGINAL_SHARE, is_large
from migrate_agent.tools.verify.original.outputs import (
    attempt,
    described,
    elements,
    exact_initial_values,
    finite_share,
    initial_values,
    large_inputs,
    own_modes,
    redrawn_values,
)
from migrate_agent.tools.verify.original.scenarios import fill_values, source_literals
from migrate_agent.tools.verify.original.scenarios.later import set_later
from migrate_agent.tools.verify.original.scenarios.random import drawn_otherwise, further_gradients
from migrate_agent.tools.verify.original.scenarios.sizes import another_rank, other_sizes
from migrate_agent.tools.verify.original.scenarios.special_states import special_states
from migrate_agent.tools.verify.original.scenarios.widths import add_forms, add_widths, casts, extremes
from migrate_agent.tools.verify.original.scenarios.writer import BEGUN, COUNTED, LATER, STRONG, ScenarioWriter
from migrate_agent.tools.verify.original.scenarios.zero_parameters import zero_parameters

MODE = frozenset({"training"})
"""The name by which code asks for the mode."""
STEP_FORWARDS = 3
"""Forward passes that a forward and backward pass takes as long as."""


def write_scenarios(
    writer: ScenarioWriter, *, first: bool, new_construction: bool = False, new: bool = True, paths: Container[str] = ()
) -> dict[str, Any]:
    """Write all scenarios of the example; fewer unless it is the `first`. Raises the errors of the original on the example itself.

    `new_construction`: no earlier example has its constructor call, so that initial values may differ.
    Without `new`, only those are written. `paths` are the ways that calls of earlier examples took through the code (`ScenarioWriter.path`).
    """
    unit = writer.original
    if not new:
        return {**describe(writer), **({} if unit.is_function else {"inits": sample_initial_values(writer)})}
    seconds = first_calls(writer)
    writer.note_lengths()
    if first and writer.deadline.seconds and is_large(elements(unit), STEP_FORWARDS * seconds, writer.deadline.large_from):
        writer.deadline.small = False
        return write_large(writer)
    seeds = range(budgets.SEEDS if first else 1)
    writer.states = {seed: writer.sample_state(seed) for seed in seeds}
    for seed in seeds:
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(seed)}.safetensors", writer.states[seed])
    inputs = {seed: writer.sample_inputs(seed) for seed in seeds}
    for seed in seeds:
        writer.add(f"eval-s{seed}", Role.SEED, "eval", seed, inputs[seed], native=seed < 2, sampled=True)
    gradients = [scenario for seed in seeds if (scenario := add_gradient(writer, seed, inputs[seed])) is not None]
    _require_calls(writer)
    with writer.lines:
        drawn_otherwise(writer, writer.scenarios[-1], inputs[0])
    add_labels(writer)
    if first:
        other_sizes(writer)
        add_counters(writer)
        add_begun(writer)
        add_edges(writer)
        special_states(writer)
        add_hidden_numbers(writer, inputs)
        add_widths(writer)
        add_gradient_edges(writer, gradients)
        add_training_edges(writer, gradients)
        add_second_derivatives(writer, inputs)
        set_later(writer)
        add_second_calls(writer, inputs, gradients)
        remark_layouts(writer)
        another_rank(writer)
    elif writer.path() not in paths:
        # What a mask or a narrow dtype comes to is up to the code that it meets.
        add_forms(writer)
    if not first and unit.is_function and unit.leaves:
        # What a constructor takes of a module, each call takes of a function: another example is another configuration.
        add_edges(writer)
        extremes(writer)
        add_second_derivatives(writer, inputs)
    description = {**describe(writer), "casts": casts(writer)}
    if first:
        description["curves"] = train_curves(writer, [scenario for scenario in gradients if scenario.seed != STRONG], inputs)
    # What a function is handed was initialised by somebody else.
    if (first or new_construction) and not unit.is_function:
        description["inits"] = sample_initial_values(writer)
    return description


def write_brief(writer: ScenarioWriter, *, new_construction: bool) -> dict[str, Any]:
    """Write one call of an example that is there for the code that it reaches: in training mode where it trains, with gradients, and in evaluation mode
    where that gives something else. Initial values too, of a constructor call that no earlier example has. Raises the errors of the original."""
    with writer.lines:
        writer.once(writer.original.state(), writer.values(0), "eval")
    writer.note_lengths()
    writer.states = {0: writer.sample_state(0)}
    tensor_files.save(writer.folder / f"given/states/{writer.state_name(0)}.safetensors", writer.states[0])
    values = writer.values(0)
    trained = add_gradient(writer, 0, values, native=False)
    if trained is None or (trained.mode == "train" and writer.trains()):
        writer.add("eval-s0", Role.SEED, "eval", 0, values)
    description = describe(writer)
    if new_construction and not writer.original.is_function:
        description["inits"] = sample_initial_values(writer)
    return description


def first_calls(writer: ScenarioWriter) -> float:
    """Call the example once in each mode, for the lines that it runs; the seconds of the quicker call. Raises the errors of the original."""
    unit, times = writer.original, []
    with writer.lines:
        began = time.monotonic()
        writer.once(unit.state(), writer.values(0), "eval")
        times.append(time.monotonic() - began)
        if writer.texts.get("train") is not False:
            began = time.monotonic()
            attempt(lambda: unit.run(unit.state(), writer.values(0), "train"))
            times.append(time.monotonic() - began)
    return min(times)


def write_large(writer: ScenarioWriter) -> dict[str, Any]:
    """Write the scenarios of a large unit's first example: those that must run, then the others while the budget lasts, what finds most for its
    cost first (`schedule.ORDER`). Raises the errors of the original on the example itself."""
    unit, inputs = writer.original, dict[int, Sequence[Array]]()
    gradients = add_seed(writer, 0, inputs)
    quick = writer.deadline.longest < MOST_STEPS * writer.deadline.seconds / ORIGINAL_SHARE
    gradients += add_seed(writer, 1, inputs) if quick else []
    curves = train_curves(writer, gradients, inputs, OPTIMISERS if quick else ("sgd",))
    description = {"curves": curves, **({} if unit.is_function else {"inits": sample_initial_values(writer)})}
    for seed in range(len(inputs), budgets.SEEDS):
        add_seed(writer, seed, inputs)
    _require_calls(writer)
    steps: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("edges", lambda: add_edges(writer)),
        ("special parameters", lambda: special_states(writer)),
        ("labels", lambda: add_labels(writer)),
        ("counters", lambda: add_counters(writer)),
        ("flags", lambda: add_begun(writer)),
        ("other draws and masks", lambda: drawn_otherwise(writer, (gradients or writer.scenarios)[0], inputs[0])),
        ("other sizes", lambda: other_sizes(writer)),
        ("second calls", lambda: add_second_calls(writer, inputs, gradients)),
        ("gradients at edges", lambda: add_gradient_edges(writer, gradients)),
        ("edges in training", lambda: add_training_edges(writer, gradients)),
        ("layouts", lambda: remark_layouts(writer)),
        ("narrow inputs", lambda: add_widths(writer)),
        ("modes of parts, attributes", lambda: set_later(writer)),
        ("second derivatives", lambda: add_second_derivatives(writer, inputs)),
        ("one more axis", lambda: another_rank(writer)),
        ("hidden numbers", lambda: add_hidden_numbers(writer, inputs)),
    )
    for name, step in steps:
        if writer.deadline.passed:
            writer.late(name)
        else:
            step()
    return {**describe(writer), "casts": casts(writer), **description}


def add_seed(writer: ScenarioWriter, seed: int, inputs: dict[int, Sequence[Array]]) -> list[Scenario]:
    """Draw a state and inputs, and add their forward pass and gradients; nothing where the budget is spent. Gives the scenarios with gradients."""
    if seed and writer.deadline.passed:
        writer.late(f"seed {seed}")
        return []
    writer.states[seed] = writer.sample_state(seed)
    tensor_files.save(writer.folder / f"given/states/{writer.state_name(seed)}.safetensors", writer.states[seed])
    inputs[seed] = writer.sample_inputs(seed)
    writer.add(f"eval-s{seed}", Role.SEED, "eval", seed, inputs[seed], native=seed < 2, sampled=True)
    scenario = add_gradient(writer, seed, inputs[seed])
    if seed and elements(writer.original) >= LARGE_ELEMENTS:
        del writer.states[seed]  # the other steps take the first state of units of that size
    return [scenario] if scenario is not None else []


def _require_calls(writer: ScenarioWriter) -> None:
    """Raise `RuntimeError` where none of the calls that all others vary is compared: what else there is would be no evidence."""
    if not any(scenario.role in (Role.SEED, Role.GRADIENT) for scenario in writer.scenarios):
        reasons = dict.fromkeys(row["reason"] for row in writer.skipped if row["reason"])
        raise RuntimeError(f"no call of the example can be compared{': ' if reasons else ''}{'; '.join(reasons)}"[:300])


def describe(writer: ScenarioWriter) -> dict[str, Any]:
    """The facts of an example that the spec stage compares, with remarks and skipped scenarios."""
    return {"skipped": writer.skipped, "remarks": writer.remarks, "customs": customs(writer), **described(writer.original)}


def customs(writer: ScenarioWriter) -> Customs:
    """How the original uses its draws. A mask with a rate of its own dropout always counts as dropout, not as a comparison."""
    draws = [draw for scenario in writer.scenarios for draw in scenario.draws]
    kinds, rates = {draw[0] for draw in draws}, {draw[2] for draw in draws if draw[2] is not None}
    apart = [
        number
        for number in writer.compared
        if all(min(abs(rate - number), abs(rate - 1 + number)) > 2 * budgets.COMPARED for rate in rates)
    ]
    return Customs(tuple(apart), "exponential" in kinds and "uniform" not in kinds)


def add_gradient(writer: ScenarioWriter, seed: int, values: Sequence[Array], *, native: bool = True) -> Scenario | None:
    """Add a forward and backward pass in training mode where possible, else in evaluation mode. Returns it; None where neither runs. With `native` the
    first is also run in the user's dtypes, and may be where the search for the worst input starts."""
    for mode in writer.modes:
        if writer.add(
            f"gradient-{mode}-s{seed}", Role.GRADIENT, mode, seed, values, gradient=True, native=native and seed == 0, sampled=native
        ):
            return writer.scenarios[-1]
    return None


def add_counters(writer: ScenarioWriter) -> None:
    """Add scenarios with later values of counters and flags among the buffers: an int far on, or one further; the other bool."""
    state = with_later_counters(writer)
    if any(value is not writer.states[0][name] for name, value in state.items()):
        writer.states[COUNTED] = state
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(COUNTED)}.safetensors", state)
        writer.add("eval-counted", Role.SEED, "eval", COUNTED, writer.values(0), runs=1)
        if writer.trains():
            writer.add("train-counted", Role.GRADIENT, "train", COUNTED, writer.values(0), runs=1)


def with_later_counters(writer: ScenarioWriter) -> dict[str, Array]:
    """The first state, in which all counters and flags among the buffers are further on that may be without making the original raise or less finite."""
    unit, state = writer.original, dict(writer.states[0])
    usual = finite_share(writer.once(state, writer.values(0), "eval"))
    options = {
        name: (~value,) if value.dtype.kind == "b" else (np.full_like(value, LATER.get(value.dtype.name, 100)), value + 1)
        for name, value in state.items()
        if name not in unit.parameters and value.size == 1 and value.dtype.kind in "biu"
    }
    # All at once first: a model has a counter for each of its hundreds of normalisations, and each trial is a forward pass.
    groups = [list(options)] if options else []
    while groups:
        names = groups.pop(0)
        for values in [[value] for value in options[names[0]]] if len(names) == 1 else [[options[name][0] for name in names]]:
            later = {**state, **dict(zip(names, values, strict=True))}
            result = attempt(partial(writer.once, later, writer.values(0), "eval"))
            # A counter may be an index, which must stay in range.
            if result is not None and finite_share(result) >= usual:
                state = later
                break
        else:
            half = len(names) // 2
            groups[:0] = [names[:half], names[half:]] if half else []
    return state


def add_begun(writer: ScenarioWriter) -> None:
    """Add calls in which float flags among the buffers are as the constructor leaves them: a first call may set parameters, `if not self.initialised`."""
    begun, unit = writer.original.state(), writer.original
    flags = {
        name: begun[name]
        for name, value in writer.states[0].items()
        if name not in unit.parameters and value.size == 1 and value.dtype.kind == "f" and name in begun and begun[name] in (0.0, 1.0)
    }
    if any(value != writer.states[0][name] for name, value in flags.items()):
        writer.states[BEGUN] = {**writer.states[0], **flags}
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(BEGUN)}.safetensors", writer.states[BEGUN])
        writer.attempt("eval-begun", Role.SEED, BEGUN, writer.values(0), runs=1)
        writer.attempt(f"{writer.modes[0]}-begun", Role.GRADIENT, BEGUN, writer.values(0), mode=writer.modes[0], gradient=True, runs=1)


def add_edges(writer: ScenarioWriter) -> None:
    """Zeros, large, tiny and negative values, NaN and infinities; integers and booleans all alike; rows that are all alike."""
    for label, values in input_sampling.edges(writer.original.leaves, budgets.LARGE).items():
        finite = all(np.isfinite(value).all() for value in values if value.dtype.kind in "fc")
        if not finite and writer.original.takes_sparse:
            # JAX's own sparse arrays leave out the same products; an array has them all.
            writer.skip(f"edge-{label}", Undetermined("zero times NaN or infinity is left out of a sparse tensor, and NaN in an array"))
            continue
        role, extreme = Role.EDGE if finite else Role.NONFINITE, input_sampling.EXTREMES.get(label, Extreme.NONE)
        writer.add(f"edge-{label}", role, "eval", 0, values, native=True, runs=1, extreme=extreme)
    alike = input_sampling.equal_rows(writer.original.leaves, writer.values(0))
    if alike is not None:
        (
            writer.add("edge-equal-rows", Role.EDGE, "eval", 0, alike, runs=1, layout="expanded")
            or writer.add("edge-equal-rows", Role.EDGE, "eval", 0, alike, runs=1)
        )
    numbers = source_literals.at(writer.original.leaves, source_literals.numbers(writer.original.native))
    if numbers is not None:
        writer.add("edge-numbers", Role.EDGE, "eval", 0, numbers, exact_inputs=True)
    _add_graded_masks(writer)


def _add_graded_masks(writer: ScenarioWriter) -> None:
    """Masks of floats with other values than two, where the original is as finite with them: `mask > 0` and `mask != 0` differ there alone."""
    usual = attempt(lambda: writer.once(writer.states[0], writer.values(0), "eval"))
    for values in input_sampling.graded_masks(writer.original.leaves):
        result = attempt(lambda values=values: writer.once(writer.states[0], values, "eval"))  # type: ignore[misc]
        if usual is not None and result is not None and finite_share(result) >= finite_share(usual):
            writer.attempt("edge-graded-masks", Role.EDGE, 0, values, runs=1, exact_inputs=True)
            return


def add_labels(writer: ScenarioWriter) -> None:
    """Integers of the original's code (a label that is ignored, the id of padding) where it takes them, each input on its own."""
    model, recorded = writer.original.native, writer.values(0)
    numbers = source_literals.whole(source_literals.numbers(model), source_literals.speaks_of_ignored(model))

    def changed(index: int, value: Array, numbers: Sequence[int]) -> list[Array]:
        values = [*recorded[:index], source_literals.among(value, numbers), *recorded[index + 1 :]]
        return input_sampling.legitimate(writer.original.leaves, values)

    for index, value in enumerate(recorded):
        if value.dtype.kind != "i" or not value.size:
            continue

        def taken(number: int, index: int = index, value: Array = value) -> bool:
            values = changed(index, value, [number])
            result = attempt(lambda: writer.original.run(writer.states[0], values, "eval"))
            return result is not None and finite_share(result) == 1

        candidates = [number for number in numbers if (value != number).all()][: budgets.LABELS]
        last = [number - 1 for number in numbers[::-1] if number - 1 > value.max()][: budgets.LAST_LABELS]  # of tables with so many rows
        if fitting := [*islice(filter(taken, last), 1), *filter(taken, candidates)]:
            values = changed(index, value, fitting)
            writer.add(f"edge-labels-input{index}", Role.EDGE, "eval", 0, values, exact_inputs=True)
            writer.add(f"gradient-eval-labels-input{index}", Role.GRADIENT_EDGE, "eval", 0, values, gradient=True, runs=1)


def add_hidden_numbers(writer: ScenarioWriter, drawn: Mapping[int, Sequence[Array]]) -> None:
    """Add inputs so large that otherwise hidden numbers have an effect, such as the fill value of masked scores."""
    unit = writer.original
    size = sum(value.size for value in (*writer.states[0].values(), *drawn[0]))
    if size > budgets.REACH_ELEMENTS or not any(leaf.value.size and input_sampling.is_signal(leaf.value) for leaf in unit.leaves):
        return

    def run(seed: int, values: Sequence[Array], watch: fill_values.Numbers | None) -> Result:
        return unit.run(writer.states[seed], values, "eval", watch=watch)

    for number, (name, value) in enumerate(fill_values.hidden(run, drawn[0])[: budgets.REACH_NUMBERS]):
        seed, pair = fill_values.reaching(run, unit.leaves, drawn, (name, value)) or (0, [])
        for side, values in zip(("past", "below"), pair, strict=False):
            writer.add(f"edge-{side}-number{number}", Role.EDGE, "eval", seed, values, exact_inputs=True)


def add_gradient_edges(writer: ScenarioWriter, gradients: Sequence[Scenario]) -> None:
    """Add gradients in evaluation mode where formulas divide by zero, saturate or tie, as far as the outputs are finite."""
    for label, values in input_sampling.gradient_edges(writer.original.leaves, budgets.LARGE).items() if gradients else ():
        extreme = input_sampling.EXTREMES.get(label, Extreme.NONE)
        values = (extreme == Extreme.LARGE and large_inputs(writer.original, writer.states[0])) or values
        writer.add(f"gradient-eval-edge-{label}", Role.GRADIENT_EDGE, "eval", 0, values, gradient=True, runs=1, extreme=extreme)
    if gradients:
        zero_parameters(writer)
    further_gradients(writer, len(gradients))


def add_training_edges(writer: ScenarioWriter, gradients: Sequence[Scenario]) -> None:
    """Add the edges in training mode too, where the user's own code asks for the mode: a bound there may be met by large inputs alone. They run the
    program of the gradients."""
    if not gradients or gradients[0].mode != "train" or not source_literals.uses(writer.original.native, MODE):
        return
    for label, values in input_sampling.edges(writer.original.leaves, budgets.LARGE).items():
        if all(np.isfinite(value).all() for value in values if value.dtype.kind in "fc"):
            extreme = input_sampling.EXTREMES.get(label, Extreme.NONE)
            writer.attempt(f"edge-train-{label}", Role.EDGE, 0, values, mode="train", gradient=True, runs=1, extreme=extreme)


def add_second_derivatives(writer: ScenarioWriter, inputs: Mapping[int, Sequence[Array]]) -> None:
    """Add the gradients of the squared length of the gradients, where torch differentiates twice by formulas: of an `autograd.Function` the second
    derivatives are what comes of how its first ones are written.

    At new inputs: recorded ones may hold exact zeros (padding), where a second derivative jumps and its value is a convention. Of `elu` torch's is 0
    there, and the limit from below 1.
    """
    values = inputs.get(1, inputs[0])
    numbers = (*values, *writer.states[0].values())
    if source_literals.defines_gradients(writer.original.native):
        return
    if not any(value.dtype.kind == "c" for value in numbers) and sum(value.size for value in numbers) <= budgets.CONFIGURATION_ELEMENTS:
        writer.attempt(f"second-{writer.modes[0]}", Role.SECOND, 0, values, mode=writer.modes[0], gradient=True, runs=1)


def add_second_calls(writer: ScenarioWriter, inputs: Mapping[int, Sequence[Array]], gradients: Sequence[Scenario]) -> None:
    """Add a second call of the same module on other inputs, which shows the state that the first one left."""
    first, second = inputs[0], inputs[1] if 1 in inputs else writer.values(1)
    writer.add("again-eval", Role.AGAIN, "eval", 0, second, before=first, runs=1)
    if gradients and gradients[0].mode == "train":
        writer.add("again-train", Role.AGAIN, "train", 0, second, before=first, runs=1, gradient=True)
        if writer.trains() and not own_modes(writer.original.native):
            writer.add("again-trained", Role.AGAIN_TRAINED, "eval", 0, second, before=first, runs=1)


def remark_layouts(writer: ScenarioWriter) -> None:
    """Add a remark where the original's result depends on the memory layout of its inputs: jax's arrays have no strides."""
    if all(leaf.value.ndim < 1 or leaf.value.size < 2 for leaf in writer.original.leaves):
        return
    usual = writer.once(writer.states[0], writer.values(0), "eval")
    strided = attempt(lambda: writer.original.run(writer.states[0], writer.values(0), "eval", layout="strided"))
    if strided is None:
        writer.skip("inputs that are not contiguous")
    elif any(not np.allclose(value, strided.arrays[key], rtol=1e-6, equal_nan=True) for key, value in usual.arrays.items()):
        writer.remarks.append("the original's result depends on the strides of its inputs; the rewrite was compared on contiguous ones")
    if writer.original.takes_sparse:
        writer.remarks.append("sparse tensors are arrays in the port, with all of their zeros; gradients of them were not compared")
    if usual.mutated:
        writer.remarks.append("the original changes its arguments in place, which no function of jax can: callers must use what it returns")


def train_curves(
    writer: ScenarioWriter, gradients: Sequence[Scenario], inputs: Mapping[int, Sequence[Array]], optimisers: Sequence[str] = OPTIMISERS
) -> dict[str, Any] | None:
    """Training curves by optimiser (the last is SGD) and precision; None where there is nothing to train."""
    unit = writer.original
    trained = any(value.requires_grad for value in unit.parameters.values())
    if writer.texts.get("train") is False or not trained or not gradients or not all(scenario.mode == "train" for scenario in gradients):
        return None
    names = [scenario.name for scenario in gradients]
    targets = [tensor_files.load(writer.folder / f"given/inputs/{name}.safetensors") for name in names]
    goals = [{int(key[7:]): value for key, value in target.items() if key.startswith("target/")} for target in targets]
    if not any(goals):
        return None
    rates = {
        "sgd": first_rate(writer.steepness[names[0]], [writer.states[0][key] for key in unit.parameters]),
        "adamw": budgets.LEARNING_RATE_ADAMW,
    }
    rates = {name: rate for name, rate in rates.items() if name in optimisers}
    values = [inputs[scenario.seed] for scenario in gradients]
    buffers: dict[str, Array] = {}
    kinds: dict[str, dict[str, Any]] = {
        "exact": {"native": False, "buffers": buffers},
        "native": {"native": True},
    }
    untrained: set[str] = set()
    narrow = next((scenario.narrow for scenario in writer.scenarios if scenario.narrow), "")
    curves: dict[str, Any] = {"batches": names, "state": writer.state_name(0), "rates": rates, "narrow": narrow}
    try:
        with writer.released(0) as draw_state:
            for optimiser in optimisers:  # whose buffers are kept, both sides' of the last
                run = partial(torch_curve, unit, draw_state, values, goals, optimiser, rates[optimiser], untrained=untrained)
                curves[optimiser] = {kind: run(**options) for kind, options in kinds.items()}
    except Exception as error:
        writer.skip("training curves", error)
        return None
    tensor_files.save(writer.folder / "expected/trained.safetensors", sketched(buffers))
    if overflows(curves):
        writer.remarks.append(
            "native training curves were not compared: the distance of the original's outputs to targets overflows there on inputs like the example's"
        )
    if len(optimisers) < len(OPTIMISERS):
        writer.late("a training curve of AdamW")
    return {**curves, "untrained": sorted(untrained)}


def sample_redrawn_values(writer: ScenarioWriter, usual: Result) -> dict[str, Any]:
    """Sample what a method that draws a new state leaves behind, in several calls on the first state. Returns the numbers of calls and the state's
    name. `usual`: one of these calls."""
    writer.reached[redrawn(writer.index)] = writer.original.constructed | usual.reached
    count, rows = redrawn_values(writer.original, writer.states[0], writer.base)
    tensor_files.save(writer.folder / f"expected/initial-{writer.index}.safetensors", rows)
    return {**count, "state": writer.state_name(0)}


def sample_initial_values(writer: ScenarioWriter) -> dict[str, Any]:
    """Sample the initial values of several constructions, for tensors that the constructor sets. Returns the numbers of constructions."""
    count, rows = initial_values(writer.original, writer.base)
    tensor_files.save(writer.folder / f"expected/initial-{writer.index}.safetensors", rows)
    exact = exact_initial_values(writer.original)
    tensor_files.save(writer.folder / f"expected/exact-{writer.index}.safetensors", {name: exact[name] for name in rows if name in exact})
    return count
