"""The candidate's side of a verification, run inside the sandbox: runs the given scenarios, and writes what came out. It judges nothing.

Two jobs, two processes: `exact` with everything in float64 and paired random draws, `native` as a user would run it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools import weights
from migrate_agent.tools.verify import arrays, limits
from migrate_agent.tools.verify.curves import NumpyOptimiser
from migrate_agent.tools.verify.jax_modes import Draws, configure, counting_compilations, lift_to_float64, tracers_as_data
from migrate_agent.tools.verify.jax_unit import Candidate, Program, Programs, describe_error, is_leaf
from migrate_agent.tools.verify.sampling import Array
from migrate_agent.tools.verify.signatures import describe

MAX_ERRORS = 2
NATIVE_DTYPES = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}


@dataclass
class Session:
    """What all parts of a job share."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Path]
    output: Path
    exact: bool

    def __post_init__(self) -> None:
        configure("jax_enable_compilation_cache", False)
        if self.exact:
            lift_to_float64()
            configure("jax_disable_most_optimizations", True)  # halves the compile time; float64 results do not need speed
        else:
            configure("jax_default_prng_impl", "unsafe_rbg")  # compiles in half the time of threefry
        self.root = Path(sys.path[0])
        self.draws = Draws()
        self.programs = Programs(self.arguments["renamed"], self.draws)
        self.given = self.inputs["given"]
        self.candidates: dict[int, Candidate] = {}

    def candidate(self, example: int) -> Candidate:
        """The candidate of an example, constructed at the first call."""
        if example not in self.candidates:
            texts, tensors = self.arguments["examples"][example], self.inputs.get(f"tensors{example}")
            self.candidates[example] = Candidate(self.arguments["module"], self.arguments["name"], texts, tensors, exact=self.exact)
        return self.candidates[example]

    def state(self, name: str, example: int) -> dict[str, Array]:
        """A given state; natively in torch's own dtypes."""
        state = arrays.load(self.given / f"states/{name}.safetensors")
        if self.exact:
            return state
        dtypes = self.arguments["described"][example]["state_dtypes"]
        return {key: value.astype(_native(dtypes[key])) for key, value in state.items()}

    def leaves(self, scenario: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Inputs and targets of a scenario as jax arrays."""
        given = arrays.load(self.given / f"inputs/{scenario['name']}.safetensors")
        dtypes = scenario["leaf_dtypes"]
        inputs = [given[f"in/{index}"] for index in range(len(dtypes))]
        if not self.exact:
            inputs = [value.astype(_native(dtype)) for value, dtype in zip(inputs, dtypes, strict=True)]
        targets = {key[7:]: jnp.asarray(value) for key, value in given.items() if key.startswith("target/")}
        return [jnp.asarray(value) for value in inputs], targets

    def tree(self, scenario: Mapping[str, Any]) -> Any:
        """The argument tree of a scenario's example."""
        return self.arguments["described"][scenario["example"]]["tree"]

    def fail(self, error: BaseException) -> dict[str, str]:
        """The error as data."""
        return describe_error(error, self.root)


def _native(dtype: str) -> Any:
    name = NATIVE_DTYPES.get(dtype, dtype)
    return np.dtype(jnp.bfloat16) if name == "bfloat16" else np.dtype(name)


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
    errors = 0
    for scenario in arguments["scenarios"]:
        try:
            result["scenarios"][scenario["name"]] = run_scenario(session, scenario)
        except Exception as error:
            result["scenarios"][scenario["name"]] = session.fail(error)
            errors += 1
        if errors >= MAX_ERRORS:
            break
    if not errors:
        result["curves"] = curves(session)
    return result


def specification(session: Session, candidate: Candidate) -> dict[str, Any]:
    """Signatures, state names, shapes and kinds, and whether a state comes back as it went in."""
    cls = candidate.cls
    signatures = {"constructor": describe(cls, "__init__", nnx.Module), "call": describe(cls, "__call__", nnx.Module)}
    try:
        state = session.state("e0-s0", 0)
        names = {name: list(value.shape) for name, value in weights.state_dict(candidate.model).items()}
        before: dict[str, Any] = {"signatures": signatures, "state": names}
    except Exception as error:
        return {"signatures": signatures, **session.fail(error)}
    try:
        candidate.load(state)
        after = weights.state_dict(candidate.model)
    except Exception as error:
        return {**before, "load": session.fail(error), **session.fail(error)}
    changed = [
        name for name, value in state.items() if name not in after or not np.array_equal(np.asarray(after[name]), value, equal_nan=True)
    ]
    return {**before, "changed": changed, "kinds": candidate.kinds()}


def run_scenario(session: Session, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Run one scenario and write its arrays. Raises what the candidate raises."""
    candidate = session.candidate(scenario["example"])
    candidate.load(session.state(scenario["state"], scenario["example"]))
    program = session.programs.get(candidate, scenario["mode"], session.tree(scenario), gradient=scenario["gradient"] and session.exact)
    _, trainable, rest = candidate.parts(scenario["mode"])
    leaves, targets = session.leaves(scenario)
    value, outputs, after, of_parameters, of_inputs = program(trainable, rest, leaves, targets)
    found = {f"out/{index}": _stored(item) for index, item in enumerate(outputs)}
    found |= _state_after(candidate, program, trainable, after, of_parameters)
    if of_inputs is not None:
        found["loss"] = np.asarray(value)
        found |= {f"input-grad/{index}": np.conj(np.asarray(item)) for index, item in of_inputs.items()}
    arrays.save(session.output / f"{scenario['name']}.safetensors", found)
    return {"tree": program.traced.tree, "dtypes": [str(item.dtype) for item in outputs], "draws": program.traced.draws}


def _stored(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.float32) if str(array.dtype) in ("bfloat16", "float16") else array


def _state_after(candidate: Candidate, program: Program, trainable: Any, after: Any, gradients: Any) -> dict[str, Array]:
    graphdef = program.traced.graphdef
    found = {f"state/{name}": _stored(value) for name, value in candidate.state_of(graphdef, trainable, after).items()}
    if gradients is not None:
        found |= {f"grad/{name}": np.conj(value) for name, value in candidate.state_of(graphdef, gradients, after).items()}
    return found


def curves(session: Session) -> dict[str, Any] | None:
    """Losses by optimiser for the batches that torch was trained on; None where there are none."""
    wanted = session.arguments["described"][0].get("curves")
    if not wanted:
        return None
    scenarios = {scenario["name"]: scenario for scenario in session.arguments["scenarios"]}
    batches = [scenarios[name] for name in wanted["batches"]]
    try:
        return {optimiser: curve(session, wanted["state"], batches, optimiser) for optimiser in ("sgd", "adamw")}
    except Exception as error:
        return session.fail(error)


def curve(session: Session, state: str, batches: Sequence[Mapping[str, Any]], optimiser: str) -> list[float]:
    """Losses before each of the steps, and after the last."""
    candidate = session.candidate(0)
    candidate.load(session.state(state, 0))
    program = session.programs.get(candidate, "train", session.tree(batches[0]), gradient=True)
    _, trainable, rest = candidate.parts("train")
    frozen = _frozen(session, candidate)
    values, structure = jax.tree.flatten(trainable)
    rule = NumpyOptimiser(optimiser, session.arguments["described"][0]["curves"]["rates"][optimiser], len(values))
    prepared = [session.leaves(batch) for batch in batches]
    losses = []
    for index in range(limits.STEPS + 1):
        leaves, targets = prepared[index % len(prepared)]
        loss, _, rest, gradients, _ = program(jax.tree.unflatten(structure, values), rest, leaves, targets)
        losses.append(float(loss))
        stepped = rule.step([np.asarray(value) for value in values], [np.conj(np.asarray(item)) for item in jax.tree.leaves(gradients)])
        values = [jnp.asarray(np.where(fixed, old, new)) for fixed, old, new in zip(frozen, values, stepped, strict=True)]
    return losses


def _frozen(session: Session, candidate: Candidate) -> list[Array]:
    """For each trainable leaf, where torch would not train it: a state of ones and zeros is loaded, and comes out in this side's layout."""
    described = session.arguments["described"][0]
    frozen, graphdef_state = set(described["frozen"]), candidate.parts("train")
    before = jax.tree.leaves(graphdef_state[1])
    if not frozen:
        return [np.zeros(value.shape, bool) for value in before]
    marks = {name: np.full(shape, float(name in frozen)) for name, shape in described["state"].items()}
    keep = dict(weights.state_dict(candidate.model))
    candidate.load({name: marks[name].astype(np.asarray(value).dtype) for name, value in keep.items()})
    marked = [np.asarray(value) > 0.5 for value in jax.tree.leaves(candidate.parts("train")[1])]
    candidate.load(keep)
    return marked


def native(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: everything as a user would run it: float32, initialisation, real randomness, compilation, lowering for other platforms."""
    session = Session(arguments, inputs, output, exact=False)
    counts: dict[str, int] = {}
    result: dict[str, Any] = {"scenarios": {}}
    try:
        session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    with counting_compilations(counts):
        for scenario in arguments["scenarios"]:
            if scenario["native"] is not None:
                result["scenarios"][scenario["name"]] = _guarded(session, partial(run_scenario, session, scenario))
        result["compilations"] = sum(count for name, count in counts.items() if "candidate_step" in name)
    configure("jax_disable_most_optimizations", True)
    result["curves"] = _guarded(session, lambda: curves(session))
    result["compile"] = _guarded(session, lambda: compile_contract(session))
    result["initial"] = _guarded(session, lambda: initial(session))
    result["dropout"] = _guarded(session, lambda: dropout(session))
    return result


def _guarded(session: Session, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return session.fail(error)


def _first(session: Session, role: str) -> Mapping[str, Any] | None:
    return next((scenario for scenario in session.arguments["scenarios"] if scenario["role"] == role), None)


def compile_contract(session: Session) -> dict[str, Any]:
    """Leaks, stability of the module's structure, and lowering for TPU and CUDA, of one forward pass (training mode where torch trains)."""
    scenario = _first(session, "gradient") or _first(session, "seed")
    if scenario is None:
        return {}
    candidate = session.candidate(0)
    candidate.load(session.state(scenario["state"], 0))
    program = session.programs.get(candidate, scenario["mode"], session.tree(scenario), gradient=False, paired=False)
    graphdef, trainable, rest = candidate.parts(scenario["mode"])
    leaves, _ = session.leaves(scenario)
    found: dict[str, Any] = {"leak": "", "lowering": {}}
    with jax.checking_leaks():
        try:
            jax.make_jaxpr(lambda *args: program.candidate_step(*args)[:2])(trainable, rest, leaves, {})
        except Exception as error:
            if "leak" not in str(error).lower():
                raise
            found["leak"] = session.fail(error)["error"]
    traced = jax.jit(program.candidate_step).trace(trainable, rest, leaves, {})
    found["stable"] = program.traced.graphdef == graphdef
    for platform in ("tpu", "cuda"):
        found["lowering"][platform] = _lower(session, traced, platform)
    return found


def _lower(session: Session, traced: Any, platform: str) -> str:
    """Nothing where the program lowers, else why not."""
    try:
        traced.lower(lowering_platforms=(platform,))
    except Exception as error:
        return session.fail(error)["error"]
    return ""


def initial(session: Session) -> dict[str, Any]:
    """Fresh initial values, several constructions, sampled as on torch's side. Writes `initial.safetensors`."""
    candidate = session.candidate(0)

    def build(key: Any) -> Any:
        return nnx.split(candidate.fresh(nnx.Rngs(key)))[1]

    graphdef = nnx.split(candidate.model)[0]
    jitted = jax.jit(build)
    rows: dict[str, list[Array]] = {}
    dtypes: dict[str, str] = {}
    for seed in range(session.arguments["described"][0]["inits"]):
        try:
            with tracers_as_data():
                model = nnx.merge(graphdef, jitted(jax.random.key(2000 + seed)))
        except Exception:
            model = candidate.fresh(nnx.Rngs(2000 + seed))
        for name, value in weights.state_dict(model).items():
            dtypes[name] = str(value.dtype)
            flat = _stored(value).reshape(-1)
            flat = flat if flat.dtype.kind == "c" else flat.astype(np.float64)
            rows.setdefault(name, []).append(flat[arrays.sample_indices(flat.size, limits.INIT_SAMPLE)])
    arrays.save(session.output / "initial.safetensors", {name: np.stack(values) for name, values in rows.items()})
    return {"dtypes": dtypes}


def dropout(session: Session) -> dict[str, Any] | None:
    """Real randomness in training mode: rates asked for, equal results for equal keys, new ones for new keys. None where torch draws nothing."""
    scenario = _first(session, "gradient")
    if scenario is None or scenario["mode"] != "train" or not scenario["draws"]:
        return None
    candidate = session.candidate(0)
    candidate.load(session.state(scenario["state"], 0))
    graphdef, trainable, rest = candidate.parts("train")
    program = Program(graphdef, session.tree(scenario), session.programs.renamed, session.draws, gradient=False, paired=False)
    leaves, _ = session.leaves(scenario)
    session.draws.rates.clear()
    first, after = program(trainable, rest, leaves, {})[1:3]
    rates = list(session.draws.rates)
    again = program(trainable, rest, leaves, {})[1]
    fresh = False
    for _ in range(limits.FRESH_CALLS):
        later, after = program(trainable, after, leaves, {})[1:3]
        fresh = fresh or not _equal(first, later)
    return {"rates": rates, "repeatable": _equal(first, again), "fresh": fresh}


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=a.dtype.kind in "fc") for a, b in zip(one, other, strict=True))


def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: inputs and outputs of every submodule in one scenario, run eagerly in float64. Writes `captured.safetensors`."""
    session = Session(arguments, inputs, output, exact=True)
    scenario = arguments["scenarios"][0]
    candidate = session.candidate(scenario["example"])
    candidate.load(session.state(scenario["state"], scenario["example"]))
    graphdef, trainable, rest = candidate.parts(scenario["mode"])
    model = nnx.merge(graphdef, trainable, rest)
    recorder = Recorder({id(module): module_path(path) for path, module in nnx.iter_modules(model)})
    recorder.watch({type(module) for _, module in nnx.iter_modules(model)})
    leaves, _ = session.leaves(scenario)
    program = Program(graphdef, session.tree(scenario), arguments["renamed"], session.draws, gradient=False, paired=True)
    program.call(model, leaves)
    arrays.save(output / "captured.safetensors", recorder.found)
    return recorder.records


def module_path(path: Sequence[Any]) -> str:
    """`h.0.attn`, torch's spelling: `nnx.Sequential`'s own `layers` does not appear."""
    return ".".join(str(part) for part in path if part != "layers")


class Recorder:
    """Notes what goes into and comes out of the watched modules' calls."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self.paths = paths
        self.records: list[dict[str, Any]] = []
        self.found: dict[str, Array] = {}

    def watch(self, classes: set[type]) -> None:
        """Wrap `__call__` of these classes, each where it is defined."""
        owners = {owner for cls in classes for owner in cls.__mro__ if "__call__" in vars(owner) and issubclass(owner, nnx.Module)}
        for owner in owners:
            self._wrap(owner)

    def _wrap(self, owner: Any) -> None:
        own = vars(owner)["__call__"]

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = own(module, *args, **kwargs)
            if id(module) in self.paths and type(module).__call__ is owner.__call__:
                self._note(module, (args, kwargs), result)
            return result

        owner.__call__ = call

    def _note(self, module: Any, given: Any, result: Any) -> None:
        ins, outs = _arrays(given), _arrays(result)
        if ins is None or outs is None:
            return
        number = len(self.records)
        self.found.update({f"{number}/in/{index}": value for index, value in enumerate(ins)})
        self.found.update({f"{number}/out/{index}": value for index, value in enumerate(outs)})
        self.records.append({"path": self.paths[id(module)], "type": type(module).__name__, "inputs": len(ins), "outputs": len(outs)})


def _arrays(value: Any) -> list[Array] | None:
    """The arrays in nested containers, in order; None inside a transformation, where they have no values."""
    leaves = [leaf for leaf in jax.tree.leaves(value) if is_leaf(leaf)]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    return [_stored(leaf) for leaf in leaves if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]
