"""Runs the candidate as a user would: float32, initialisation, real randomness, compilation, lowering. Runs inside the sandbox."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import budgets, reach, tensor_files, tolerances, trees
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.xla_flags import quick
from migrate_agent.tools.harness.jax_side.backward_draws import Heard
from migrate_agent.tools.harness.jax_side.errors import telling_of_compiler
from migrate_agent.tools.harness.jax_side.keys import keys, no_key
from migrate_agent.tools.harness.jax_side.module import called, is_key, is_leaf, split_kept
from migrate_agent.tools.harness.jax_side.own_seeds import varied_seeds
from migrate_agent.tools.harness.jax_side.precision import configure, counting_compilations, tracers_as_data
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.harness.jax_side.structure import changed, plain_values
from migrate_agent.tools.verify.candidate import pallas_kernels
from migrate_agent.tools.verify.candidate.job import compile_ahead, curves, run_scenario
from migrate_agent.tools.verify.candidate.session import Session, stored
from migrate_agent.tools.verify.contract.scenario import Request, Role, first_drawing
from migrate_agent.tools.verify.contract.schedule import NATIVE_SHARE, in_order, required


@telling_of_compiler
def native(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: runs scenarios in float32, initialisation, dropout and training, and checks compilation and lowering."""
    session = Session(arguments, inputs, output, exact=False)
    configure("jax_disable_most_optimizations", False)  # a job before this one in the process may have left it on
    counts: dict[str, int] = {}
    result: dict[str, Any] = {"scenarios": {}}
    try:
        session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    session.ran()
    compile_ahead(session, _natively(_first_calls(session), gradient=True))
    constructed = [number for number, described in enumerate(session.arguments["described"]) if "inits" in described]
    fresh = {
        number: _counted(session, number, partial(session.once, ("fresh", number), partial(_fresh, session, number)))
        for number in constructed
    }
    _must(session, result, constructed, fresh, counts)
    _optional(session, result, counts)
    result["reach"] = reach.told(session.reached)
    return result


@telling_of_compiler
def uncompiled(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: runs scenarios in float32 in Python, one operator after the other."""
    described = [{**one, "on_host": True} for one in arguments["described"]]
    session = Session({**arguments, "described": described}, inputs, output, exact=False)
    try:
        session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    session.ran()
    result: dict[str, Any] = {"scenarios": {}}
    _run(session, result, session.requests)
    return result


@telling_of_compiler
def optimised(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: runs scenarios in float32, gradients too, compiled as a user's program is: without optimisations, sums are added up one by one."""
    session = Session(arguments, inputs, output, exact=False)
    configure("jax_disable_most_optimizations", False)
    try:
        session.candidate(0)
    except Exception as error:
        return {"construction": session.fail(error)}
    session.ran()
    result: dict[str, Any] = {"scenarios": {}}
    _run(session, result, session.requests)
    configure("jax_disable_most_optimizations", True)
    return result


def _must(session: Session, result: dict[str, Any], constructed: Sequence[int], fresh: Mapping[int, Any], counts: dict[str, int]) -> None:
    """Run what is judged of every unit; of one that is not large these are all scenarios."""
    calls = _first_calls(session)
    # Only forward passes count, compiled as a user's: gradients are compiled without optimisations,
    # and by other programs.
    _forward(session, result, _natively(calls, gradient=False), counts)
    result["compile"] = _guarded(session, lambda: contract(session))
    configure("jax_disable_most_optimizations", True)
    _run(session, result, _natively(calls, gradient=True))
    result["curves"] = _guarded(session, lambda: curves(session))
    result["initial"] = {
        str(number): _counted(session, number, partial(_guarded, session, partial(initial, session, number, fresh[number])))
        for number in constructed
    }
    result["dropout"] = _guarded(session, lambda: dropout(session))


def _optional(session: Session, result: dict[str, Any], counts: dict[str, int]) -> None:
    """Run the other scenarios of a large unit while the budget lasts; `result["left"]` names those that were left out."""
    if not session.large:
        return
    calls = _first_calls(session)
    deadline, result["left"] = session.deadline(NATIVE_SHARE), []
    for call in in_order([item for item in session.requests if item.native and item not in calls], ()):
        if deadline.passed:
            result["left"].append(call.name)
            continue
        began = time.monotonic()
        configure("jax_disable_most_optimizations", call.gradient)
        if call.gradient:
            _run(session, result, [call])
        else:
            _forward(session, result, [call], counts)
        deadline.note(began)
    configure("jax_disable_most_optimizations", True)


def _first_calls(session: Session) -> Sequence[Request]:
    """The scenarios that must run: all of them, but of a large unit."""
    if not session.large:
        return session.requests
    return [item for item in session.requests if required(item, session.curve_batches)]


def _natively(calls: Sequence[Request], *, gradient: bool) -> list[Request]:
    """Those of the calls that run natively, with gradients or without."""
    return [item for item in calls if item.native and item.gradient == gradient]


def _forward(session: Session, result: dict[str, Any], calls: Sequence[Request], counts: dict[str, int]) -> None:
    with counting_compilations(counts):
        _run(session, result, calls)
    result["compilations"] = sum(count for name, count in counts.items() if "candidate_step" in name)


def _run(session: Session, result: dict[str, Any], calls: Sequence[Request]) -> None:
    for scenario in calls:
        reach.take()
        if lacking := session.candidate(scenario.example).lacks(scenario.conditions):
            result.setdefault("lacking", []).append(lacking)
            continue
        result["scenarios"][scenario.name] = _guarded(session, partial(run_scenario, session, scenario))
        session.ran(scenario.name)


def _counted(session: Session, example: int, action: Callable[[], Any]) -> Any:
    """What an action gives. What it runs of the candidate counts where the example's method draws a state anew: no scenario calls that."""
    reach.take()
    result = action()
    if "state" in session.arguments["described"][example]["inits"]:
        session.ran()
    return result


def _guarded(session: Session, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return session.fail(error)


def _first(session: Session, role: Role) -> Request | None:
    return next((scenario for scenario in session.requests if scenario.role == role), None)


def contract(session: Session) -> dict[str, Any]:
    """The compile contract of one forward pass (training mode where torch trains)."""
    scenario = _first(session, Role.GRADIENT) or _first(session, Role.SEED)
    if scenario is None or session.on_host(scenario.example):
        return {}
    return session.once(("contract", scenario.name, session.form(scenario)), lambda: compile_contract(session, scenario))


def compile_contract(session: Session, scenario: Request) -> dict[str, Any]:
    """Tracer leaks, stability of the module's structure, and lowering for TPU and CUDA, of one forward pass."""
    candidate = session.candidate(scenario.example)
    session.load(candidate, scenario.state, scenario.example)
    program = session.programs.get(candidate, scenario.mode, session.tree(scenario), gradient=False, paired=False)
    graphdef, trainable, rest = candidate.parts(scenario.mode)
    leaves, _ = session.leaves(scenario)
    facts: dict[str, Any] = {"leak": "", "lowering": {}}
    with jax.checking_leaks():
        try:
            jax.make_jaxpr(lambda *args: program.candidate_step(*args)[:2])(trainable, rest, leaves, {})
        except Exception as error:
            if (leak := leak_of(error)) is None:
                raise
            facts["leak"] = session.fail(leak)["error"]
    traced = jax.jit(program.candidate_step).trace(trainable, rest, leaves, {})
    facts["stable"] = program.traced.graphdef == graphdef
    if not facts["stable"]:
        facts["changed"] = changed(graphdef, program.traced.graphdef)
        facts["settles"] = _settles(program, trainable, rest, leaves)
        values = plain_values(program.traced.graphdef)
        facts["resolved"] = {path: values[path] for path in facts["changed"] if path in values}
    for platform in ("tpu", "cuda"):
        facts["lowering"][platform] = _lower(session, traced, platform)
    facts["kernels"] = (
        pallas_kernels.on_tpu(session, *pallas_kernels.given(session, scenario)) if pallas_kernels.differs(traced.jaxpr) else None
    )
    return facts


def leak_of(error: Exception) -> Exception | None:
    """What tells of a leaked tracer, where this was raised under `jax.checking_leaks`; `None` where it is an error of the candidate."""
    frames = traceback.extract_tb(error.__traceback__)
    # JAX finds no words where nothing but a running function holds the dictionary with the tracer. It looks for them when its context is left.
    if isinstance(error, IndexError) and frames and Path(frames[-1].filename).name == "contextlib.py":
        return RuntimeError("a tracer leaked: an attribute or a global name keeps what a call computed")
    return error if "leak" in str(error).lower() else None


def _settles(program: Program, trainable: Any, rest: Any, leaves: Sequence[Any]) -> bool:
    """Whether a second call leaves the module's structure as the first one made it."""
    first = program.traced.graphdef
    try:
        after = jax.eval_shape(program.candidate_step, trainable, rest, leaves, {})[2]
        again = program.of_structure(first)
        jax.eval_shape(again.candidate_step, trainable, after, leaves, {})
    except Exception:  # what the call left behind is no state of a module
        return False
    return bool(again.traced.graphdef == first)


def _lower(session: Session, traced: Any, platform: str) -> str:
    """The error of lowering for a platform; "" where the program lowers."""
    try:
        traced.lower(lowering_platforms=(platform,))
    except Exception as error:
        return str(session.fail(error)["error"])
    return ""


def _fresh(session: Session, example: int) -> Future[Any] | None:
    """The program from random keys [n] to the states of n new modules, compiled by a thread; None where it cannot be traced."""

    def build(key: Any) -> Any:
        with jax.ensure_compile_time_eval():  # what a constructor computes of its arguments, it may look at
            return nnx.split(_renewed(session, example, key))[1]

    try:
        candidate = session.candidate(example)
        if not candidate.initialises:
            return None
        with tracers_as_data():
            return session.pool.submit(jax.jit(jax.vmap(build)).lower(next(_keys(session, example))).compile, quick())
    except Exception:
        return None


def _renewed(session: Session, example: int, key: Any) -> Any:
    """A new module; one with the given state whose method was called, where the example has a method that draws its state anew. Raises what they raise."""
    candidate, state = session.candidate(example), session.arguments["described"][example]["inits"].get("state")
    rngs = nnx.Rngs(key)
    with varied_seeds(jax.random.fold_in(key, 2)):
        model = candidate.fresh(rngs)
    if state is not None:
        candidate.load(session.state(state, example), model)
        args, kwargs = trees.decode(session.arguments["described"][example]["tree"], [], session.arguments["renamed"])
        called(model, candidate.method, args, kwargs, nnx.Rngs(jax.random.fold_in(key, 1)))
    return model


def _seeds(session: Session, example: int) -> list[int]:
    return [session.seed(2000 + number) for number in range(session.arguments["described"][example]["inits"]["total"])]


def _keys(session: Session, example: int) -> Iterator[Any]:
    """Random keys of all constructions, in groups whose states fit into memory together."""
    seeds = np.array(_seeds(session, example))
    elements = len(seeds) * sum(value.size for value in session.candidate(example).state().values())
    parts = 1 if elements <= budgets.INIT_TOGETHER else len(seeds)
    yield from map(keys, np.split(seeds, parts))


def initial(session: Session, example: int, fresh: Future[Any] | None) -> dict[str, Any]:
    """Sample the initial values of several constructions as on torch's side. Writes `initial-<example>.safetensors`."""
    candidate, method = session.candidate(example), session.arguments["examples"][example].get("method", "")
    if not candidate.has(method):
        return {"lacking": method}
    if not candidate.initialises:
        return {"skipped": True}
    try:
        rows, dtypes = _sampled(session, example, _compiled_states(session, example, fresh) if fresh else _states(session, example))
    except Exception:  # what a constructor cannot do under a trace
        rows, dtypes = _sampled(session, example, _states(session, example))
    tensor_files.save(session.output / f"initial-{example}.safetensors", {name: np.stack(values) for name, values in rows.items()})
    return {"dtypes": dtypes}


def _sampled(session: Session, example: int, states: Iterable[dict[str, Array]]) -> tuple[dict[str, list[Array]], dict[str, str]]:
    """Name → sampled elements of each construction, and name → dtype."""
    counts = session.arguments["described"][example]["inits"]
    rows: dict[str, list[Array]] = {}
    dtypes: dict[str, str] = {}
    for number, state in enumerate(states):
        for name, value in state.items():
            if number >= counts["count"] and name not in counts["small"]:
                continue
            dtypes[name] = str(value.dtype)
            flat = stored(value).reshape(-1)
            flat = flat if flat.dtype.kind == "c" else flat.astype(np.float64)
            rows.setdefault(name, []).append(flat[tensor_files.sample_indices(flat.size, budgets.INIT_SAMPLE)])
    return rows, dtypes


def _compiled_states(session: Session, example: int, fresh: Future[Any]) -> Iterator[dict[str, Array]]:
    """The states of new modules under torch's names. Raises the errors of the program and its compilation."""
    candidate = session.candidate(example)
    graphdef = nnx.split(candidate.model)[0]
    for group in _keys(session, example):
        leaves, structure = jax.tree.flatten(fresh.result()(group))
        # States under torch's names have no keys, so any keys of the right shape do.
        columns = [[no_key(leaf.shape[1:])] * len(leaf) if is_key(leaf) else np.asarray(leaf) for leaf in leaves]
        yield from (candidate.state_of(graphdef, jax.tree.unflatten(structure, row)) for row in zip(*columns, strict=True))


def _states(session: Session, example: int) -> Iterator[dict[str, Array]]:
    """The states of modules that are constructed one by one. Raises the errors of their constructor."""
    candidate = session.candidate(example)
    for seed in _seeds(session, example):
        yield candidate.state(_renewed(session, example, jax.random.key(seed)))


def _of_form(after: Any, before: Any) -> Any:
    """The state after a call as the program takes it: without what the call added, such as arrays that it left for a log."""
    values, rows = dict(nnx.to_flat_state(after)), list(nnx.to_flat_state(before))
    if values.keys() == {path for path, _ in rows}:
        return after
    return nnx.from_flat_state([(path, values.get(path, value)) for path, value in rows])


def dropout(session: Session) -> dict[str, Any] | None:
    """Real randomness in training mode: rates of masks, equal results for equal keys, new results for new keys.

    None where torch draws nothing.
    """
    scenario = first_drawing(session.requests)
    if scenario is None:
        return None
    candidate = session.candidate(scenario.example)
    session.load(candidate, scenario.state, scenario.example)
    graphdef, trainable, rest = candidate.parts("train")
    options: dict[str, Any] = {"gradient": False, "paired": False, "method": candidate.method}
    options["changes_objects"] = candidate.changes_objects
    program = Program(graphdef, session.tree(scenario), session.programs.renamed, session.draws, **options)
    leaves, _ = session.leaves(scenario)
    kinds: list[tuple[str, float | None]] = []

    def step(rest: Any, leaves: Any) -> Any:
        model = nnx.merge(graphdef, trainable, rest, copy=True)
        # A function of plain arguments alone has no array among them.
        with session.draws.watching(next(iter(jax.tree.leaves((leaves, rest))), None)) as draws:
            outputs: list[Any] = []
            trees.encode(program.call(model, leaves)[0], outputs, is_leaf)
        kinds[:] = [(draw.kind, draw.rate) for draw in draws]
        outputs = [value.get_value() if isinstance(value, nnx.Variable) else jnp.asarray(value) for value in outputs]
        return outputs, split_kept(model)[2], ([draw.values for draw in draws], [draw.key for draw in draws])

    with session.draws.apart():
        run = jax.jit(step, compiler_options=quick())
        session.draws.rates.clear()
        session.draws.branching = False
        first, after, drawn = run(rest, leaves)
        noted = [rate for rate, _ in session.draws.rates]
        rates = [[rate, [candidate.copies, *shape]] for rate, shape in session.draws.rates]
        again = run(rest, leaves)[0]
        fresh, history, states = False, [drawn], [rest]
        # Several calls, because two small masks may be equal by chance.
        for _ in range(tolerances.FRESH_CALLS):
            states.append(after := _of_form(after, rest))
            later, after, drawn = run(after, leaves)
            fresh = fresh or not _equal(first, later)
            history.append(drawn)
    values, keys = ([list(map(np.asarray, row)) for row in zip(*(drawn[part] for drawn in history), strict=True)] for part in (0, 1))
    stale = stale_draws(kinds, values) or reused_keys(kinds, keys)
    if None in noted or len(noted) > sum(kind == "_bernoulli" for kind, _ in kinds):  # not all masks are drawn where they can be seen
        rates, reason = _told(session, step, states, leaves)
        stale = stale or reason
    else:
        # Equal results of new masks: what they fall on is zero, as a padded input is. What is made of a mask is compared with torch's own masks elsewhere.
        fresh = fresh or any(not np.array_equal(mask, other) for mask, *others in values for other in others)
    return {"rates": rates, "repeatable": _equal(first, again), "fresh": fresh, "stale": stale, "branching": session.draws.branching}


def _told(session: Session, step: Callable[..., Any], states: Sequence[Any], leaves: Any) -> tuple[list[Any], str]:
    """Rates and shapes of the masks of one call, as the running program reports them, and a message on stale keys.

    Reported are also masks in loops, under `vmap` and in functions that are compiled on their own. Stale is a
    key that every call uses, or that masks of several shapes or rates share.
    """
    heard = Heard()
    with session.draws.hearing(heard):
        run = jax.jit(lambda rest, leaves: step(rest, leaves)[0])
        calls = []
        for rest in states:
            run(rest, leaves)
            calls.append(heard.take())
    stale = "a mask is the same at every call" if set.intersection(*calls) else ""
    if not stale and len({draw.key for draw in calls[0]}) < len(calls[0]):
        stale = "masks of several shapes or rates use the same key"
    return [[draw.rate, list(draw.what)] for draw in calls[0]], stale


def stale_draws(kinds: Sequence[tuple[str, float | None]], history: Sequence[Sequence[Array]]) -> str:
    """A message on a draw whose numbers are equal in every call, or equal to those of another draw in every call; "" where there is none.

    `history` has the values of each draw in each call. A draw that may repeat itself by chance is not
    judged.
    """
    judged = [index for index, (kind, rate) in enumerate(kinds) if _would_differ(kind, rate, history[index])]
    for index in judged:
        if all(np.array_equal(values, history[index][0]) for values in history[index]):
            return f"draw {index + 1} of {len(kinds)} gives the same numbers at every call"
    for position, index in enumerate(judged):
        for other in judged[:position]:
            equal = kinds[index] == kinds[other] and all(map(np.array_equal, history[index], history[other]))
            if equal:
                return f"draws {other + 1} and {index + 1} give the same numbers as each other at every call"
    return ""


def reused_keys(kinds: Sequence[tuple[str, float | None]], keys: Sequence[Sequence[Array]]) -> str:
    """A message on a draw whose key is equal in every call, or equal to that of another draw of its kind; "" where there is none.

    `keys` has the keys of each draw in each call. Keys also judge draws that are too small to be judged by
    their numbers.
    """
    # Every sampler draws its bits with its own key, so equal keys of different kinds are normal.
    judged = [index for index, (kind, _) in enumerate(kinds) if kind != "_random_bits"]
    for index in judged:
        if all(np.array_equal(key, keys[index][0]) for key in keys[index]):
            return f"draw {index + 1} of {len(kinds)} uses the same key at every call"
    for position, index in enumerate(judged):
        for other in judged[:position]:
            if kinds[index][0] == kinds[other][0] and all(map(np.array_equal, keys[index], keys[other])):
                return f"draws {other + 1} and {index + 1} use the same keys"
    return ""


def _would_differ(kind: str, rate: float | None, values: Sequence[Array]) -> bool:
    """Whether right draws of this kind differ between calls, except with negligible probability."""
    size = values[0].size
    if kind in ("_uniform", "_normal", "_exponential"):
        return size > 0
    if kind != "_bernoulli" or rate is None or not 0 < rate < 1:
        return False
    repeat_probability = rate**2 + (1 - rate) ** 2
    return float(repeat_probability ** (size * (len(values) - 1))) < tolerances.FRESH_ALPHA


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=a.dtype.kind in "fc") for a, b in zip(one, other, strict=True))
