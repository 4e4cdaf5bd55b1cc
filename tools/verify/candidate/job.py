"""The candidate's side of a verification, run inside the sandbox: runs the given scenarios, and writes what came out. It judges nothing.

Two jobs, two processes: `exact`, here, with everything in float64 and paired random draws; `jax_native` as a user would run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.argument_changes import CONFIGURED, REFUSABLE
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import TRAINED
from migrate_agent.tools.harness.common.signatures import describe
from migrate_agent.tools.harness.common.training_steps import NumpyOptimiser
from migrate_agent.tools.harness.jax_side.module import Candidate, modes
from migrate_agent.tools.harness.jax_side.program import Program, moved
from migrate_agent.tools.verify.candidate.export import exported
from migrate_agent.tools.verify.candidate.session import Session, stored
from migrate_agent.tools.verify.candidate.slopes import slopes

MAX_ERRORS = 2


def exact(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: specification and all float64 scenarios. Writes `<scenario>.safetensors`."""
    session = Session(arguments, inputs, output, exact=True)
    try:
        candidate = session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    result: dict[str, Any] = {"spec": specification(session, candidate), "scenarios": {}}
    if "error" in result["spec"]:
        return result
    compile_ahead(session, arguments["scenarios"])
    errors = 0
    for scenario in arguments["scenarios"]:
        try:
            result["scenarios"][scenario["name"]] = _other_state(session, scenario) or run_scenario(session, scenario)
        except Exception as error:
            result["scenarios"][scenario["name"]] = session.fail(error)
            errors += scenario["role"] not in REFUSABLE  # these say so in a note
        if errors >= MAX_ERRORS:
            break
    if not errors:
        result["curves"] = curves(session)
        result["search"] = exported(session, arguments["search"])
    return result


def specification(session: Session, candidate: Candidate) -> dict[str, Any]:
    """Signatures, state names, shapes and kinds, and whether a state comes back as it went in."""
    cls = candidate.cls
    mirror = isinstance(cls, type) and issubclass(cls, nnx.Module)
    methods = (("constructor", "__init__"), ("call", "__call__"))
    signatures = {key: describe(cls, method, nnx.Module) if mirror else None for key, method in methods}
    try:
        state = session.state("e0-s0", 0)
        names = {name: list(value.shape) for name, value in candidate.state().items()}
        before: dict[str, Any] = {"signatures": signatures, "state": names, "omitted": list(candidate.omitted)}
    except Exception as error:
        return {"signatures": signatures, **session.fail(error)}
    try:
        candidate.load(state)
        after = candidate.state()
    except Exception as error:
        return {**before, "load": session.fail(error), **session.fail(error)}
    candidate.parts("train")
    before["trains"] = not mirror or candidate.constructed == modes(candidate.model)
    kept = {name: value for name, value in state.items() if name not in candidate.omitted}
    changed = [
        name for name, value in kept.items() if name not in after or not np.array_equal(np.asarray(after[name]), value, equal_nan=True)
    ]
    return {**before, "changed": changed, "kinds": candidate.kinds(), "weights": candidate.weights()}


def _other_state(session: Session, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Of another configuration: the names where its state has not the original's shapes, or trains what torch does not, as the scenario's result."""
    if scenario["role"] != CONFIGURED:
        return {}
    described, candidate = session.arguments["described"][scenario["example"]], session.candidate(scenario["example"])
    wanted, ours = described["state"], {name: list(value.shape) for name, value in candidate.state().items()}
    wrong = sorted(name for name in {*wanted, *ours} if wanted.get(name) != ours.get(name))
    if not wrong and described["frozen"] and session.arguments["port"] is None:
        kinds = candidate.kinds()
        wrong = [name for name in described["frozen"] if kinds.get(name) == "parameter"]
    return {"state": wrong} if wrong else {}


def compile_ahead(session: Session, scenarios: Sequence[Mapping[str, Any]]) -> None:
    """Trace the programs of these scenarios one by one, while threads compile those that are traced: a compilation takes longer than a trace.

    Ends at the first that must be traced and cannot; what is not compiled here is when its scenario runs, and what that raises is told there.
    """
    loaded, known = set[int](), set[Any]()
    for scenario in scenarios:
        try:
            _compile_one(session, scenario, loaded, known)
        except Exception:
            if scenario["role"] not in REFUSABLE:
                return


def _compile_one(session: Session, scenario: Mapping[str, Any], loaded: set[int], known: set[Any]) -> None:
    """Start the compilation of a scenario's program, unless one of its form is `known`."""
    example = scenario["example"]
    drawing = session.drawing(scenario)
    form = (example, scenario["mode"], scenario["gradient"], drawing.tilt, drawing.ends, drawing.dropped is None, session.form(scenario))
    if form in known:
        return
    known.add(form)
    candidate = session.candidate(example)
    if example not in loaded:
        candidate.load(session.state(scenario["state"], example))
        loaded.add(example)
    program = session.program(candidate, scenario)
    _, trainable, rest = candidate.parts(scenario["mode"])
    leaves, targets = session.leaves(scenario)
    program.compile_ahead(session.pool, trainable, rest, leaves, targets, session.kept(scenario, ()))


def run_scenario(session: Session, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Run one scenario and write its arrays. Raises what the candidate raises."""
    candidate, given = session.candidate(scenario["example"]), session.state(scenario["state"], scenario["example"])
    candidate.load(given)
    program = session.program(candidate, scenario)
    _, trainable, rest = candidate.parts(scenario["mode"])
    leaves, targets = session.leaves(scenario)
    before = session.before(scenario)
    if before is not None:
        first = program
        if scenario["role"] == TRAINED:
            first = session.programs.get(candidate, "train", session.tree(scenario), gradient=False)
            _, trainable, rest = candidate.parts("train")
        _, _, rest, _, _, written = first(trainable, rest, before, targets)
        trainable = moved(trainable, written)
    if (kept := session.kept(scenario, ())) is not None:
        program(trainable, rest, leaves, targets, kept)
        kept = session.kept(scenario, program.traced.draws)
    value, outputs, after, of_parameters, of_inputs, written = program(trainable, rest, leaves, targets, kept)
    trainable = moved(trainable, written)
    found = {f"out/{index}": stored(item) for index, item in enumerate(outputs)}
    found |= _state_after(candidate, program, given, trainable, after, of_parameters)
    if of_inputs is not None:
        found["loss"] = np.asarray(value)
        found |= {f"input-grad/{index}": np.conj(np.asarray(item)) for index, item in of_inputs.items()}
    tensor_files.save(session.output / f"{scenario['name']}.safetensors", found)
    dtypes = [str(item.dtype) for item in outputs]
    facts = {"tree": program.traced.tree, "dtypes": dtypes, "draws": program.traced.draws, "rearranged": program.traced.rearranged}
    facts["crossed"] = program.traced.crossed
    return {**facts, "slopes": slopes(session, candidate, scenario)} if program.again and scenario["role"] == "gradient" else facts


def _state_after(
    candidate: Candidate, program: Program, given: Mapping[str, Array], trainable: Any, after: Any, gradients: Any
) -> dict[str, Array]:
    """What the call left of the state (but what it left as it was given), and gradients of parameters."""
    graphdef = program.traced.graphdef
    state = {name: stored(value) for name, value in candidate.state_of(graphdef, trainable, after).items()}
    found = {f"state/{name}": value for name, value in state.items() if not _same(value, given.get(name))}
    if gradients is not None:
        found |= {f"grad/{name}": np.conj(value) for name, value in candidate.state_of(graphdef, gradients, after).items()}
    return found


def _same(value: Array, given: Array | None) -> bool:
    """Whether two arrays are the same bytes."""
    if given is None or (value.dtype, value.shape) != (given.dtype, given.shape):
        return False
    one, other = (np.ascontiguousarray(item).reshape(-1).view(np.uint8) for item in (value, given))
    return np.array_equal(one, other)


def curves(session: Session) -> dict[str, Any] | None:
    """Losses by optimiser for the batches that torch was trained on; None where there are none."""
    wanted = session.arguments["described"][0].get("curves")
    if not wanted:
        return None
    scenarios = {scenario["name"]: scenario for scenario in session.arguments["scenarios"]}
    batches = [scenarios[name] for name in wanted["batches"]]
    try:
        return {optimiser: curve(session, wanted["state"], batches, optimiser) for optimiser in ("adamw", "sgd")}
    except Exception as error:
        return session.fail(error)


def curve(session: Session, state: str, batches: Sequence[Mapping[str, Any]], optimiser: str) -> list[float]:
    """Losses before each of the steps, and after the last. Writes the state that is there in the end to `trained.safetensors`."""
    candidate = session.candidate(0)
    candidate.load(session.state(state, 0))
    program = session.programs.get(candidate, "train", session.tree(batches[0]), gradient=True)
    _, trainable, rest = candidate.parts("train")
    frozen = _frozen(session, candidate)
    values, structure = jax.tree.flatten(trainable)
    rule = NumpyOptimiser(optimiser, session.arguments["described"][0]["curves"]["rates"][optimiser], len(values))
    prepared = [session.leaves(batch) for batch in batches]
    losses = []
    for index in range(tolerances.STEPS + 1):
        leaves, targets = prepared[index % len(prepared)]
        loss, _, rest, gradients, _, written = program(jax.tree.unflatten(structure, values), rest, leaves, targets)
        losses.append(float(loss))
        values = [written.get(str(place), value) for place, value in enumerate(values)]
        stepped = rule.step([np.asarray(value) for value in values], [np.conj(np.asarray(item)) for item in jax.tree.leaves(gradients)])
        values = [jax.device_put(np.where(fixed, old, new)) for fixed, old, new in zip(frozen, values, stepped, strict=True)]
    found = candidate.state_of(program.traced.graphdef, jax.tree.unflatten(structure, values), rest)
    tensor_files.save(session.output / "trained.safetensors", {f"state/{name}": stored(value) for name, value in found.items()})
    return losses


def _frozen(session: Session, candidate: Candidate) -> list[Array]:
    """For each trainable leaf, where torch would not train it: a state of ones and zeros is loaded, and comes out in this side's layout."""
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
