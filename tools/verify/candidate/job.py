"""The candidate's side of a verification: runs the given scenarios inside the sandbox, and writes their results. It judges nothing.

Two jobs in two processes: `exact`, here, with everything in float64 and paired random draws; and
`native`, as a user would run it. They cannot share a process, because float64 is set for all of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import budgets, reach, tensor_files
from migrate_agent.tools.harness.common.class_values import class_values
from migrate_agent.tools.harness.common.compare_arrays import equal
from migrate_agent.tools.harness.common.conditions import AS_MADE
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.signatures import describe, describe_methods
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.harness.common.training_steps import OPTIMISERS, NumpyOptimiser
from migrate_agent.tools.harness.jax_side.errors import telling_of_compiler
from migrate_agent.tools.harness.jax_side.host_arrays import constants
from migrate_agent.tools.harness.jax_side.module import Candidate, modes, split
from migrate_agent.tools.harness.jax_side.program import CHOSEN, HELD, Program, moved
from migrate_agent.tools.verify.candidate.export import exported
from migrate_agent.tools.verify.candidate.refusals import refused
from migrate_agent.tools.verify.candidate.session import Session, stored
from migrate_agent.tools.verify.candidate.slopes import slopes
from migrate_agent.tools.verify.contract.scenario import REFUSABLE, Request, Role, refuses_surplus
from migrate_agent.tools.verify.contract.schedule import EXACT_SHARE, MAX_ERRORS, SEARCH, in_order, required


@telling_of_compiler
def exact(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: specification and all float64 scenarios. Writes `<scenario>.safetensors`."""
    session = Session(arguments, inputs, output, exact=True)
    try:
        candidate = session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    session.programs.listening = bool(arguments.get("listening"))
    result: dict[str, Any] = {"spec": specification(session, candidate), "scenarios": {}}
    if "error" in result["spec"]:
        return result
    session.ran()
    if session.large:
        errors = _by_schedule(session, result)
    else:
        compile_ahead(session, session.requests)
        errors = _answer(session, session.requests, result)
        result |= {"curves": curves(session)} if not errors else {}
    result["refusals"] = refused(session)
    if not errors:
        result["search"] = exported(session, session.arguments["search"])
    result["reach"] = reach.told(session.reached)
    return result


def _by_schedule(session: Session, result: dict[str, Any]) -> int:
    """Answer what must be, take the training steps, then answer what else the budget allows: one program at a time, so that no two are in
    memory. Gives the number of errors; `result["left"]` names what was left out."""
    needed, deadline = session.curve_batches, session.deadline(EXACT_SHARE)
    must = [call for call in session.requests if required(call, needed)]
    compile_ahead(session, must)
    errors = _answer(session, must, result)
    result |= {"curves": curves(session)} if not errors else {}
    result["left"] = []
    for call in in_order(session.requests, needed)[len(must) :]:
        if errors >= MAX_ERRORS:
            break  # safe for the reason given in `_answer`
        if deadline.passed:
            result["left"].append(call.name)
            continue
        began = time.monotonic()
        errors += _answer(session, [call], result)
        deadline.note(began)
    if deadline.passed and session.arguments["search"]:
        session.arguments = {**session.arguments, "search": ""}
        result["left"].append(SEARCH)
    return errors


def _answer(session: Session, calls: Sequence[Request], result: dict[str, Any]) -> int:
    """Run these calls, and put what they gave into `result["scenarios"]`. Gives the number of errors; ends after `MAX_ERRORS`."""
    errors = 0
    for scenario in calls:
        try:
            result["scenarios"][scenario.name] = (
                _absent(session, scenario) or _other_state(session, scenario) or run_scenario(session, scenario)
            )
        except Exception as error:
            facts = result["scenarios"][scenario.name] = session.fail(error)
            own = not session.method(scenario) and scenario.prior < 0
            # These say so in a note, or in their own calls alone.
            optional = scenario.role in REFUSABLE or scenario.empty or refuses_surplus(scenario.name, facts)
            errors += not optional and own
        session.ran(scenario.name)
        # Leaving early is safe: a scenario without an answer counts as failed, and two errors
        # explain a rewrite that does not run.
        if errors >= MAX_ERRORS:
            break
    return errors


def specification(session: Session, candidate: Candidate) -> dict[str, Any]:
    """Signatures, state names, shapes and kinds, and the names whose values change in a round trip."""
    cls = candidate.cls
    mirror = isinstance(cls, type) and issubclass(cls, nnx.Module)
    methods = (("constructor", "__init__"), ("call", "__call__"))
    signatures: dict[str, Any] = {key: describe(cls, method, nnx.Module) if mirror else None for key, method in methods}
    uncalled = None if type(candidate) is Candidate else [name for name in dir(cls) if not name.startswith("_")]
    arguments = candidate.arguments() if mirror else None
    values = class_values(cls, arguments, sys.path[0], nnx.Module) if arguments is not None else None
    signatures["methods"] = describe_methods(cls, nnx.Module) if mirror else {}
    try:
        names = candidate.shapes()
        before: dict[str, Any] = {
            "signatures": signatures,
            "state": names,
            "omitted": list(candidate.omitted),
            "values": values,
            "uncalled": uncalled,
            "parts": candidate.part_paths() if type(candidate) is Candidate else [],
            "library": candidate.library,
        }
    except Exception as error:
        return {"signatures": signatures, **session.fail(error)}
    try:
        state = session.load(candidate, "e0-s0", 0)
        after = candidate.state()
    except Exception as error:
        return {**before, "load": session.fail(error), **session.fail(error)}
    candidate.parts("train")
    # Read before `parts`, which sets the modes: a new module of torch is in training mode, and so
    # must this one be.
    before["trains"] = not mirror or candidate.constructed == modes(candidate.model)
    checked = {name: value for name, value in state.items() if name not in candidate.omitted}
    changed = [name for name, value in checked.items() if name not in after or not equal(np.asarray(after[name]), value)]
    return {**before, "changed": changed, "kinds": candidate.kinds(), "weights": candidate.weights()}


def _other_state(session: Session, scenario: Request) -> dict[str, Any]:
    """A scenario result for another configuration whose state has other names, shapes or kinds than the original's; else empty."""
    if scenario.role != Role.CONFIGURATION:
        return {}
    described, candidate = session.arguments["described"][scenario.example], session.candidate(scenario.example)
    theirs, ours = described["state"], candidate.shapes()
    wrong = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
    if not wrong and described["frozen"] and session.arguments["port"] is None:
        kinds = candidate.kinds()
        wrong = [name for name in described["frozen"] if kinds.get(name) == "parameter"]
    return {"state": wrong} if wrong else {}


def _absent(session: Session, scenario: Request) -> dict[str, Any]:
    """A scenario result for a candidate without what the scenario sets; else empty."""
    if scenario.conditions.of_module == AS_MADE:
        return {}
    name = session.candidate(scenario.example).absent(scenario.conditions)
    return {"absent": name} if name else {}


def compile_ahead(session: Session, scenarios: Sequence[Request]) -> None:
    """Trace the programs of these scenarios one by one, while threads compile the traced ones: compilation takes longer than tracing.

    Ends at the first error of a scenario that must run.
    """
    loaded, forms = set[int](), set[Any]()
    for scenario in scenarios:
        try:
            _compile_one(session, scenario, loaded, forms)
        except Exception:
            # Leaving is safe: what is not compiled ahead compiles when its scenario runs, and raises its
            # error there.
            if scenario.role not in REFUSABLE:
                return
        finally:
            session.ran(scenario.name)


def _compile_one(session: Session, scenario: Request, loaded: set[int], forms: set[Any]) -> None:
    """Start the compilation of a scenario's program, unless its form is among `forms`."""
    example = scenario.example
    drawing = session.drawing(scenario)
    drawn = (drawing.tilt, drawing.ends, drawing.dropped is None)
    second = scenario.role == Role.SECOND
    called = (scenario.prior, scenario.mode, scenario.gradient, second)
    form = (example, called, drawn, scenario.conditions.of_module, session.form(scenario))
    if form in forms:
        return
    forms.add(form)
    candidate = session.candidate(example)
    if _absent(session, scenario):
        return
    if example not in loaded:
        session.load(candidate, scenario.state, example)
        loaded.add(example)
    program = session.program(candidate, scenario)
    _, trainable, rest = candidate.parts(scenario.mode, scenario.conditions)
    leaves, targets = session.leaves(scenario)
    program.compile_ahead(session.pool, trainable, rest, leaves, targets, session.kept(scenario, ()))


def run_scenario(session: Session, scenario: Request) -> dict[str, Any]:
    """Run one scenario and write its arrays. Raises the errors of the candidate."""
    candidate, conditions = session.candidate(scenario.example), scenario.conditions
    state = session.load(candidate, scenario.state, scenario.example, conditions.width)
    with candidate.cast(AS_MADE if session.exact else conditions):
        return _run_loaded(session, scenario, candidate, state)


def _run_loaded(session: Session, scenario: Request, candidate: Candidate, state: Mapping[str, Array]) -> dict[str, Any]:
    """Run one scenario of a candidate that has its state."""
    conditions = scenario.conditions
    program = session.program(candidate, scenario)
    _, trainable, rest = candidate.parts(scenario.mode, conditions)
    leaves, targets = session.leaves(scenario)
    before = session.before(scenario)
    if before is not None:
        first = program
        if scenario.role == Role.AGAIN_TRAINED:
            first = session.programs.get(candidate, "train", session.tree(scenario), gradient=False)
            _, trainable, rest = candidate.parts("train")
        elif scenario.prior >= 0:
            first = session.programs.get(candidate, scenario.mode, session.tree(scenario), gradient=False)
        _, _, rest, _, _, written = first(trainable, rest, before, targets)
        trainable = moved(trainable, written)
        if first.restructured:
            program, trainable, rest = _continued(first, program, trainable, rest)
    if (mask_ones := session.kept(scenario, ())) is not None:
        # A first run logs the candidate's masks: which of them are zero depends on their order,
        # shapes and rates.
        program(trainable, rest, leaves, targets, mask_ones)
        mask_ones = session.kept(scenario, program.traced.draws)
    before_call = trainable, rest
    value, outputs, after, of_parameters, of_inputs, written = program(trainable, rest, leaves, targets, mask_ones)
    trainable = moved(trainable, written)
    arrays = {f"out/{index}": stored(item) for index, item in enumerate(outputs)}
    arrays |= _state_after(candidate, program, state, trainable, after, of_parameters)
    if scenario.role in (Role.SEED, Role.GRADIENT):
        arrays |= {key: stored(value) for key, value in written.items() if key.startswith(HELD)}
    if of_inputs is not None:
        arrays["loss"] = np.asarray(value)
        arrays |= {f"input-grad/{index}": np.conj(np.asarray(item)) for index, item in of_inputs.items()}
    tensor_files.save(session.output / f"{scenario.name}.safetensors", sketched(arrays))
    dtypes = [str(item.dtype) for item in outputs]
    draws = program.executed(*before_call, leaves, mask_ones)
    facts = {"tree": program.traced.tree, "dtypes": dtypes, "draws": draws, "rearranged": program.traced.rearranged}
    facts["crossed"] = program.traced.crossed
    facts["constants"] = [text for text in dict.fromkeys(map(constants, (leaves, before or ()))) if text]
    facts |= _chosen(program, written)
    if not session.exact:
        facts["narrow"] = program.narrow(trainable, rest, leaves, targets, mask_ones)
        facts |= {"kinds": program.narrow_kinds(trainable, rest, leaves, targets, mask_ones)} if scenario.role == Role.NARROW else {}
    return {**facts, "slopes": slopes(session, candidate, scenario)} if program.again and scenario.role == Role.GRADIENT else facts


def _continued(first: Program, program: Program, trainable: Any, rest: Any) -> tuple[Program, Any, Any]:
    """The program for the module as a first call left it, and the parts of that; a first call in training mode is followed by one in evaluation mode."""
    graphdef = first.traced.graphdef
    if first is not program:
        model = nnx.merge(graphdef, trainable, rest, copy=True)
        model.eval()
        graphdef, trainable, rest = split(model)
    return program.of_structure(graphdef), trainable, rest


def _chosen(program: Program, written: Mapping[str, Any]) -> dict[str, Any]:
    """For each call by which data chooses: the file and its number there, and whether its condition held somewhere, and failed somewhere."""
    rows = zip(program.traced.choices, written.get(CHOSEN, ()), strict=False)
    told = [[*reach.choice(number), bool(somewhere), not bool(everywhere)] for number, (somewhere, everywhere) in rows]
    return {"chosen": told} if told else {}


def _state_after(
    candidate: Candidate, program: Program, loaded: Mapping[str, Array], trainable: Any, after: Any, gradients: Any
) -> dict[str, Array]:
    """The state arrays that the call changed, and gradients of parameters, under torch's names."""
    graphdef = program.traced.graphdef
    state = {name: stored(value) for name, value in candidate.state_of(graphdef, trainable, after, changed=True).items()}
    arrays = {f"state/{name}": value for name, value in state.items() if not _same(value, loaded.get(name))}
    if gradients is not None:
        arrays |= {f"grad/{name}": _conjugated(value) for name, value in candidate.state_of(graphdef, gradients, after).items()}
    return arrays


def _conjugated(value: Array) -> Array:
    """The complex conjugate; a real array itself, without a copy."""
    return np.conj(value) if value.dtype.kind == "c" else value


def _same(value: Array, other_array: Array | None) -> bool:
    """Whether two arrays are equal byte by byte, so that equal NaN count as unchanged."""
    if other_array is None or (value.dtype, value.shape) != (other_array.dtype, other_array.shape):
        return False
    one, other = (np.ascontiguousarray(item).reshape(-1).view(np.uint8) for item in (value, other_array))
    return np.array_equal(one, other)


def curves(session: Session) -> dict[str, Any] | None:
    """Losses by optimiser for the batches that torch was trained on; None where torch was not trained."""
    described = session.arguments["described"][0].get("curves")
    if not described:
        return None
    scenarios = {scenario.name: scenario for scenario in session.requests}
    batches = [scenarios[name] for name in described["batches"]]
    try:
        return {
            optimiser: curve(session, described["state"], batches, optimiser) for optimiser in OPTIMISERS if optimiser in described["rates"]
        }
    except Exception as error:
        return session.fail(error)


def curve(session: Session, state: str, batches: Sequence[Request], optimiser: str) -> list[float]:
    """The `STEPS` + 1 losses before each step and after the last. Writes the final state to `trained.safetensors`."""
    candidate = session.candidate(0)
    session.load(candidate, state, 0)
    program = session.programs.get(candidate, "train", session.tree(batches[0]), gradient=True)
    _, trainable, rest = candidate.parts("train")
    frozen = _frozen(session, candidate)
    values, structure = jax.tree.flatten(trainable)
    del trainable
    rule = NumpyOptimiser(optimiser, session.arguments["described"][0]["curves"]["rates"][optimiser], len(values))
    prepared = [session.leaves(batch) for batch in batches]
    losses = []
    for index in range(budgets.STEPS + 1):
        leaves, targets = prepared[index % len(prepared)]
        loss, _, rest, gradients, _, written = program(jax.tree.unflatten(structure, values), rest, leaves, targets)
        losses.append(float(loss))
        if not index and program.restructured:
            program = program.of_structure(program.traced.graphdef)
        values = [written.get(str(number), value) for number, value in enumerate(values)]
        remaining = jax.tree.leaves(gradients)
        del gradients
        rule.begin()
        # torch's optimisers leave parameters without gradient alone; a fused leaf may be frozen in part. One leaf at a time: those of a
        # large unit fit into memory a few times only.
        for number, fixed in enumerate(frozen):
            old, gradient = np.asarray(values[number]), _conjugated(np.asarray(remaining[number]))
            values[number] = jax.device_put(np.where(fixed, old, rule.step_one(number, old, gradient)))
            remaining[number] = None
    trained = candidate.state_of(program.traced.graphdef, jax.tree.unflatten(structure, values), rest)
    tensor_files.save(session.output / "trained.safetensors", sketched({f"state/{name}": stored(value) for name, value in trained.items()}))
    return losses


def _frozen(session: Session, candidate: Candidate) -> list[Array]:
    """For each trainable leaf a bool array: the elements that torch does not train.

    A state of ones and zeros is loaded and read from the leaves, which gives the flags in their layout.
    """
    described = session.arguments["described"][0]
    frozen, graphdef_state = {*described["frozen"], *described["curves"]["untrained"]}, candidate.parts("train")
    before = jax.tree.leaves(graphdef_state[1])
    if not frozen:
        return [np.zeros(value.shape, bool) for value in before]
    marks = {name: np.full(shape, float(name in frozen)) for name, shape in described["state"].items()}
    keep = candidate.state()
    candidate.load({name: marks[name].astype(np.asarray(value).dtype) for name, value in keep.items()})
    marked = [np.asarray(value) > 0.5 for value in jax.tree.leaves(candidate.parts("train")[1])]
    candidate.load(keep)
    return marked
