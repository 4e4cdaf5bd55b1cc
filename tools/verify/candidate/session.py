"""A job on the candidate's side: sets jax up, and loads the given states and inputs. Used inside the sandbox."""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common import budgets, reach, tensor_files, trees
from migrate_agent.tools.harness.common.argument_changes import CALL
from migrate_agent.tools.harness.common.conditions import AS_MADE
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.partial_import import use_roots
from migrate_agent.tools.harness.common.random_streams import AXES, Customs, Drawing, Dropped
from migrate_agent.tools.harness.common.xla_flags import EMITTERS, SPLITS, set_flag
from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions
from migrate_agent.tools.harness.jax_side.errors import describe_error
from migrate_agent.tools.harness.jax_side.host_arrays import HostArray, constants
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.harness.jax_side.precision import Draws, configure, lift_to_float64, untraced_origins
from migrate_agent.tools.harness.jax_side.program import Prior, Program, Programs
from migrate_agent.tools.verify.candidate.many_seeds import first
from migrate_agent.tools.verify.contract.scenario import Request, Role
from migrate_agent.tools.verify.contract.schedule import Deadline

if TYPE_CHECKING:
    from migrate_agent.tools.harness.jax_side.ports import PortCandidate

NATIVE_DTYPES = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}

Made = TypeVar("Made")


@dataclass
class Session:
    """The state that all parts of a job share: arguments, candidates by example, programs and paired draws."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Path]
    output: Path
    exact: bool

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        configure("jax_enable_compilation_cache", False)
        untraced_origins()
        set_flag(SPLITS, "1")
        quick_convolutions()
        if self.exact:
            set_flag(EMITTERS, "false")
            lift_to_float64()
            configure("jax_disable_most_optimizations", True)  # halves the compile time; float64 results do not need speed
        self.root = Path(sys.path[0])
        reach.count(self.root, self.arguments.get("folder", ""))
        use_roots(self.arguments.get("roots", ()))
        self.given = self.inputs["given"]
        self.requests = [Request.from_json(row) for row in self.arguments["scenarios"]]
        shared = self._first()
        self.draws: Draws = Draws() if shared is self else shared.draws
        self.programs: Programs = Programs(self.arguments["renamed"], self.draws) if shared is self else shared.programs
        self.candidates: dict[int, Candidate] = {} if shared is self else shared.candidates
        self._made: dict[Any, Any] = {} if shared is self else shared._made
        self._last: tuple[tuple[str, int, str], int, Mapping[str, Any]] | None = None
        """Of the state that was loaded last: its name, example and width, the candidate's id, and what that holds of it."""
        self.reached: dict[str, set[int]] = {} if shared is self else shared.reached
        compiling = partial(ThreadPoolExecutor, budgets.COMPILING_THREADS, thread_name_prefix="compile")
        self.pool: ThreadPoolExecutor = compiling() if shared is self else shared.pool

    def _first(self) -> Session:
        """The session whose modules and programs this one uses: itself, except inside `sharing`."""
        if self.arguments.get("port") is not None:
            return self
        constructed = [self.exact, *(self.arguments[key] for key in ("module", "name", "examples", "renamed"))]
        return first(json.dumps(constructed, sort_keys=True), self)

    @property
    def budget(self) -> float:
        """Seconds for what is optional of a large unit, on both sides and in all jobs; 0 for any other unit."""
        return float(self.arguments.get("budget", 0.0))

    @property
    def large(self) -> bool:
        """Whether the unit has a schedule (`contract.schedule`)."""
        return self.budget > 0

    @property
    def curve_batches(self) -> Sequence[str]:
        """Names of the calls whose inputs the training steps are taken on."""
        return tuple((self.arguments["described"][0].get("curves") or {}).get("batches", ()))

    def deadline(self, share: float) -> Deadline:
        """The end of this share of the budget, from the session's beginning."""
        return Deadline(share * self.budget, began=self.began)

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """The result of the first call of `make` under this key, in this session or one that it shares with.

        Only for results that do not depend on the values of states and inputs.
        """
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def ran(self, scenario: str = "") -> None:
        """Note that the places of the candidate's code that ran since the last call ran for a scenario, or for all of them."""
        self.reached.setdefault(scenario, set()).update(reach.take())

    def candidate(self, example: int) -> Candidate:
        """The candidate of an example, constructed in the first call. Raises the errors of import, setup and constructor."""
        if example not in self.candidates:
            texts, tensors = self.arguments["examples"][example], self.inputs.get(f"tensors{example}")
            module, name = self.arguments["module"], self.arguments["name"]
            kind = self.arguments["kind"]
            port = self._port(module, name, tensors, example) if kind == "module" else None
            alike = self._alike(texts, tensors) if port is None else None
            constructed = alike or port or Candidate(module, name, texts, tensors, exact=self.exact, kind=kind)
            self.candidates[example] = constructed
            # Such a port is one function of a parameter tree, the method's where the example calls one. Its parts cannot be set one by one.
            if port is not None:
                self.requests = [request for request in self.requests if not _of_parts(request) and port.has(self.method(request))]
            constructed.method = texts.get("method", "") if port is None else ""
            constructed.customs = Customs.of(self.arguments["described"][example]["customs"])
            constructed.held = self.arguments["described"][example].get("held", ())
            constructed.changes_objects = self.arguments["described"][example]["changes_objects"]
        return self.candidates[example]

    def _alike(self, texts: Mapping[str, Any], tensors: Path | None) -> Candidate | None:
        """The module of an earlier example that constructs it alike, if any. Each scenario loads its state into it."""

        def construction(row: Mapping[str, Any]) -> tuple[Any, ...]:
            changes = {name: value for name, value in row.get("changes", {}).items() if not name.startswith(CALL)}
            return row["init"], row["setup"], changes

        if "_tensors" in texts["init"] + texts["setup"]:
            return None
        rows = self.arguments["examples"]
        twin = next((one for number, one in self.candidates.items() if construction(rows[number]) == construction(texts)), None)
        return copy.copy(twin) if twin is not None else None

    def _port(self, module: str, name: str, tensors: Path | None, example: int) -> PortCandidate | None:
        """The candidate as a port, where a port file describes it or it is no NNX class; None for a mirror."""
        port = self.arguments.get("port")
        if port is None:
            return None
        from migrate_agent.tools.harness.jax_side.ports import PortCandidate, is_mirror

        if is_mirror(module, name, port):
            return None
        if any(not change.startswith(CALL) for change in self.arguments["examples"][example].get("changes", ())):
            raise TypeError("a port that is no mirror has a constructor of its own")

        def sample() -> Any:
            # Parameters are made by the module's own call, where there is one: a method may use some of them.
            own = [item for item in self.requests if not self.method(item)]
            scenario = own[0] if own else next(item for item in self.requests if item.example == example)
            return trees.decode(self.tree(scenario), self._arrays(scenario), self.arguments["renamed"])

        method = self.arguments["examples"][example].get("method", "")
        texts = {"setup": port.get("setup", ""), "init": port.get("init", self.arguments["plain"][example]), "method": method}
        return PortCandidate(module, name, texts, tensors, port, self.arguments["described"][example], sample, exact=self.exact)

    def state(self, name: str, example: int, width: str = "") -> dict[str, Array]:
        """A state by torch's names; in a native job in torch's own dtypes, its floats in `width` where that is given."""
        state = tensor_files.load(self.given / f"states/{name}.safetensors")
        if self.exact:
            return state
        dtypes = self.arguments["described"][example]["state_dtypes"]
        return {key: value.astype(_native(width if width and value.dtype.kind == "f" else dtypes[key])) for key, value in state.items()}

    def load(self, candidate: Candidate, name: str, example: int, width: str = "") -> Mapping[str, Array]:
        """Put a state into the candidate; that of the last time is neither read nor drawn again. Gives it as `state` does."""
        key = name, example, width
        if self._last is not None and self._last[:2] == (key, id(candidate)) and candidate.loaded is self._last[2] and candidate.keeps_all:
            candidate.reload()
            return candidate.as_loaded()
        state = self.state(name, example, width)
        candidate.load(state)
        self._last = key, id(candidate), candidate.loaded
        return state

    def leaves(self, scenario: Request) -> tuple[list[Any], dict[str, Any]]:
        """Inputs and targets of a scenario as jax arrays, those of a method that is called before in front; targets by the output's number."""
        stored_inputs = tensor_files.load(self.given / f"inputs/{scenario.name}.safetensors")
        inputs = [stored_inputs[f"in/{index}"] for index in range(len(scenario.leaf_dtypes))]
        targets = {key[7:]: jax.device_put(value) for key, value in stored_inputs.items() if key.startswith("target/")}
        earlier = self._leaves_of(scenario, "prior") if scenario.prior >= 0 else []
        return [*earlier, *self.placed(inputs, self.tree(scenario), scenario.example, scenario.leaf_dtypes)], targets

    def placed(self, values: Sequence[Array], tree: Any, example: int, dtypes: Sequence[str]) -> list[Any]:
        """The arrays of a call of an example, in these dtypes in a native job, as it is given them: NumPy's as constants where it needs that."""
        host = trees.host_leaves(tree)
        are_constants = bool(host) and self.takes_constants(example)
        return [
            self._on_host(value, dtype) if are_constants and index in host else self._on_device(value, dtype)
            for index, (value, dtype) in enumerate(zip(values, dtypes, strict=True))
        ]

    def _on_host(self, value: Array, dtype: str) -> HostArray:
        return HostArray(value if self.exact or not dtype else value.astype(dtype))

    def _on_device(self, value: Array, dtype: str) -> Any:
        # `jnp.asarray` would compile a program for each shape.
        return jax.device_put(value if self.exact or not dtype else value.astype(_native(dtype)))

    def _arrays(self, scenario: Request) -> list[Any]:
        """The inputs of a scenario, all as jax arrays."""
        stored_inputs = tensor_files.load(self.given / f"inputs/{scenario.name}.safetensors")
        return [self._on_device(stored_inputs[f"in/{index}"], dtype) for index, dtype in enumerate(scenario.leaf_dtypes)]

    def takes_constants(self, example: int) -> bool:
        """Whether NumPy's arrays among the arguments of an example stay NumPy's: the call runs in Python, or the candidate takes no traced ones there.

        Such arrays are constants of the programs, as they are where the candidate's callers have them on the host.
        """
        return self.on_host(example) or self.once(("constants", example), lambda: self._refuses_traced(example))

    def _refuses_traced(self, example: int) -> bool:
        scenario = next((item for item in self.requests if item.example == example and item.role == Role.SEED), None)
        if scenario is None or scenario.prior >= 0:
            return False
        program, parts = self.program(self.candidate(example), scenario), self.candidate(example).parts(scenario.mode, scenario.conditions)
        self.ran(scenario.name)
        try:
            program.jitted.trace(*parts[1:], self._arrays(scenario), {}, self.kept(scenario, ()))
        except Exception:  # safe: it is asked the same with constants, and its errors there are told
            return True
        finally:
            reach.take()  # what ran here was compared with nothing
        return False

    def form(self, scenario: Request) -> tuple[Any, ...]:
        """Names, shapes and dtypes of a scenario's arrays: scenarios of equal form, example and mode run the same program."""
        stored_inputs = tensor_files.load(self.given / f"inputs/{scenario.name}.safetensors")
        shapes = sorted((key, value.shape, str(value.dtype)) for key, value in stored_inputs.items() if not key.startswith("before/"))
        return (*shapes, constants(self.leaves(scenario)[0])) if trees.host_leaves(self.tree(scenario)) else tuple(shapes)

    def before(self, scenario: Request) -> list[Any] | None:
        """The inputs of a preceding call, in float64; None where there is none."""
        return self._leaves_of(scenario, "before") if scenario.before else None

    def prior(self, scenario: Request) -> Prior | None:
        """The method that is called before, of another example, and its arguments; None where there is none."""
        if scenario.prior < 0:
            return None
        tree = self.arguments["described"][scenario.prior]["tree"]
        return Prior(str(self.arguments["examples"][scenario.prior].get("method", "")), tree, len(self._leaves_of(scenario, "prior")))

    def _leaves_of(self, scenario: Request, kind: str) -> list[Any]:
        stored_inputs = tensor_files.load(self.given / f"inputs/{scenario.name}.safetensors")
        values = [stored_inputs[key] for index in range(len(stored_inputs)) if (key := f"{kind}/{index}") in stored_inputs]
        example = scenario.prior if kind == "prior" else scenario.example
        tree = self.arguments["described"][example]["tree"]
        host = trees.host_leaves(tree) if kind == "before" else ()
        return self.placed(values, tree, example, [scenario.leaf_dtypes[index] if index in host else "" for index in range(len(values))])

    def method(self, scenario: Request) -> str:
        """The method that a scenario calls; "" where it calls the module."""
        return str(self.arguments["examples"][scenario.example].get("method", ""))

    def tree(self, scenario: Request) -> Any:
        """The argument tree of a scenario's example."""
        return self.arguments["described"][scenario.example]["tree"]

    def program(self, candidate: Candidate, scenario: Request) -> Program:
        """The program of a scenario, with paired draws. One program serves all choices of zero masks, which are its argument (`kept`)."""
        gradient, drawing = scenario.gradient, self.drawing(scenario)
        usual = drawing._replace(dropped=None if drawing.dropped is None else Dropped())
        conditions, second = scenario.conditions.of_module, scenario.role == Role.SECOND
        return self.programs.get(
            candidate,
            scenario.mode,
            self.tree(scenario),
            gradient=gradient,
            drawing=usual,
            conditions=conditions,
            second=second,
            prior=self.prior(scenario),
            on_host=self.on_host(scenario.example),
        )

    def on_host(self, example: int) -> bool:
        """Whether the original gives NumPy's arrays in an example, and no tensor: such a call runs in Python, and is not compiled."""
        return bool(self.arguments["described"][example].get("on_host"))

    def drawing(self, scenario: Request) -> Drawing:
        """How a scenario draws its random numbers."""
        return scenario.drawing

    def kept(self, scenario: Request, draws: Sequence[Sequence[Any]]) -> Any:
        """The argument `mask_ones`, bool [MASKS, 1 + AXES], where some masks are zero; `draws` are the candidate's, as far as they are known."""
        dropped = self.drawing(scenario).dropped
        if dropped is None:
            return None
        shapes = [(shape, rate) for kind, shape, rate in draws if kind == "bernoulli"]
        rows = [dropped.kept(number, shape, rate) for number, (shape, rate) in enumerate(shapes[: budgets.MASKS])]
        # A fixed number of rows, so that the program does not depend on how many masks there are.
        return jax.device_put(np.stack([*rows, *[np.zeros(1 + AXES, bool)] * (budgets.MASKS - len(rows))]))

    def seed(self, number: int) -> int:
        """The seed of this number, which depends on the verification's own seed."""
        return budgets.SEED_STRIDE * int(self.arguments.get("seed", 0)) + number

    def fail(self, error: BaseException) -> dict[str, Any]:
        """The error as JSON (see `describe_error`)."""
        return describe_error(error, self.root)


def _of_parts(request: Request) -> bool:
    return request.conditions._replace(width="") != AS_MADE or request.prior >= 0


def _native(dtype: str) -> Any:
    name = NATIVE_DTYPES.get(dtype, dtype)
    return np.dtype(jnp.bfloat16) if name == "bfloat16" else np.dtype(name)


def stored(value: Any) -> Array:
    """A result as a numpy array of the same shape; bfloat16 and float16 become float32."""
    array = np.asarray(value)
    return array.astype(np.float32) if str(array.dtype) in ("bfloat16", "float16") else array
