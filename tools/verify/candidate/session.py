"""What all parts of a job on the candidate's side share: how jax is set up, and what was given. Used inside the sandbox."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common import tensor_files, tolerances, trees
from migrate_agent.tools.harness.common.argument_changes import CALL
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import AXES, Customs, Drawing, Dropped
from migrate_agent.tools.harness.common.xla_flags import EMITTERS, SPLITS, set_flag
from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions
from migrate_agent.tools.harness.jax_side.errors import describe_error
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.harness.jax_side.precision import Draws, configure, lift_to_float64, untraced_origins
from migrate_agent.tools.harness.jax_side.program import Program, Programs
from migrate_agent.tools.verify.candidate.many_seeds import first

NATIVE_DTYPES = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}

Made = TypeVar("Made")


@dataclass
class Session:
    """What all parts of a job share."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Path]
    output: Path
    exact: bool

    def __post_init__(self) -> None:
        configure("jax_enable_compilation_cache", False)
        untraced_origins()
        set_flag(SPLITS, "1")
        quick_convolutions()
        if self.exact:
            set_flag(EMITTERS, "false")
            lift_to_float64()
            configure("jax_disable_most_optimizations", True)  # halves the compile time; float64 results do not need speed
        self.root = Path(sys.path[0])
        self.given = self.inputs["given"]
        made = self._first()
        self.draws: Draws = Draws() if made is self else made.draws
        self.programs: Programs = Programs(self.arguments["renamed"], self.draws) if made is self else made.programs
        self.candidates: dict[int, Candidate] = {} if made is self else made.candidates
        self._made: dict[Any, Any] = {} if made is self else made._made
        compiling = partial(ThreadPoolExecutor, tolerances.COMPILING_THREADS, thread_name_prefix="compile")
        self.pool: ThreadPoolExecutor = compiling() if made is self else made.pool

    def _first(self) -> Session:
        """The session whose modules and programs this one uses: itself but within `sharing`."""
        if self.arguments.get("port") is not None:
            return self
        constructed = [self.exact, *(self.arguments[key] for key in ("module", "name", "examples", "renamed"))]
        return first(json.dumps(constructed, sort_keys=True), self)

    def once(self, what: Any, make: Callable[[], Made]) -> Made:
        """What `make` gave the first time, in this session or in one that this goes on with: for what no value of an input decides."""
        if what not in self._made:
            self._made[what] = make()
        return cast(Made, self._made[what])

    def candidate(self, example: int) -> Candidate:
        """The candidate of an example, constructed at the first call."""
        if example not in self.candidates:
            texts, tensors = self.arguments["examples"][example], self.inputs.get(f"tensors{example}")
            module, name = self.arguments["module"], self.arguments["name"]
            port = self._port(module, name, tensors, example)
            made = self.candidates[example] = port or Candidate(module, name, texts, tensors, exact=self.exact)
            made.customs = Customs.of(self.arguments["described"][example]["customs"])
        return self.candidates[example]

    def _port(self, module: str, name: str, tensors: Path | None, example: int) -> Candidate | None:
        """The candidate as a port, where one is described or it is no NNX class; None for a mirror."""
        port = self.arguments.get("port")
        if port is None:
            return None
        from migrate_agent.tools.harness.jax_side.ports import PortCandidate, is_mirror

        if is_mirror(module, name, port):
            return None
        if any(not change.startswith(CALL) for change in self.arguments["examples"][example].get("changes", ())):
            raise TypeError("a port that is no mirror has a constructor of its own")

        def sample() -> Any:
            scenario = next(item for item in self.arguments["scenarios"] if item["example"] == example)
            return trees.decode(self.tree(scenario), self.leaves(scenario)[0], self.arguments["renamed"])

        texts = {"setup": port.get("setup", ""), "init": port.get("init", self.arguments["plain"][example])}
        return PortCandidate(module, name, texts, tensors, port, self.arguments["described"][example], sample, exact=self.exact)

    def state(self, name: str, example: int) -> dict[str, Array]:
        """A given state; natively in torch's own dtypes."""
        state = tensor_files.load(self.given / f"states/{name}.safetensors")
        if self.exact:
            return state
        dtypes = self.arguments["described"][example]["state_dtypes"]
        return {key: value.astype(_native(dtypes[key])) for key, value in state.items()}

    def leaves(self, scenario: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Inputs and targets of a scenario as jax arrays, by `device_put`: `jnp.asarray` compiles a program for each shape."""
        given = tensor_files.load(self.given / f"inputs/{scenario['name']}.safetensors")
        dtypes = scenario["leaf_dtypes"]
        inputs = [given[f"in/{index}"] for index in range(len(dtypes))]
        if not self.exact:
            inputs = [value.astype(_native(dtype)) for value, dtype in zip(inputs, dtypes, strict=True)]
        targets = {key[7:]: jax.device_put(value) for key, value in given.items() if key.startswith("target/")}
        return [jax.device_put(value) for value in inputs], targets

    def form(self, scenario: Mapping[str, Any]) -> tuple[Any, ...]:
        """Names, shapes and types of what is given for a scenario: those of one form, example and mode run the same program."""
        given = tensor_files.load(self.given / f"inputs/{scenario['name']}.safetensors")
        return tuple(sorted((key, value.shape, str(value.dtype)) for key, value in given.items() if not key.startswith("before/")))

    def before(self, scenario: Mapping[str, Any]) -> list[Any] | None:
        """The inputs of a call that comes first, in float64; None where none does."""
        given = tensor_files.load(self.given / f"inputs/{scenario['name']}.safetensors")
        found = [jax.device_put(given[key]) for index in range(len(given)) if (key := f"before/{index}") in given]
        return found or None

    def tree(self, scenario: Mapping[str, Any]) -> Any:
        """The argument tree of a scenario's example."""
        return self.arguments["described"][scenario["example"]]["tree"]

    def program(self, candidate: Candidate, scenario: Mapping[str, Any]) -> Program:
        """The program that a scenario runs, with paired draws: one for all masks that are dropped, which it is told (`kept`)."""
        gradient, drawing = scenario["gradient"], self.drawing(scenario)
        usual = drawing._replace(dropped=None if drawing.dropped is None else Dropped())
        return self.programs.get(candidate, scenario["mode"], self.tree(scenario), gradient=gradient, drawing=usual)

    def drawing(self, scenario: Mapping[str, Any]) -> Drawing:
        """How a scenario draws its random numbers."""
        return Drawing.of(scenario["drawing"])

    def kept(self, scenario: Mapping[str, Any], draws: Sequence[Sequence[Any]]) -> Any:
        """What of each mask is of ones, where some are not; `draws` are those of the candidate, as far as they are known."""
        dropped = self.drawing(scenario).dropped
        if dropped is None:
            return None
        shapes = [(shape, rate) for kind, shape, rate in draws if kind == "bernoulli"]
        rows = [dropped.kept(number, shape, rate) for number, (shape, rate) in enumerate(shapes[: tolerances.MASKS])]
        return jax.device_put(np.stack([*rows, *[np.zeros(1 + AXES, bool)] * (tolerances.MASKS - len(rows))]))

    def seed(self, number: int) -> int:
        """The seed of this number, another in each verification with another seed."""
        return tolerances.SEED_STRIDE * int(self.arguments.get("seed", 0)) + number

    def fail(self, error: BaseException) -> dict[str, str]:
        """The error as data."""
        return describe_error(error, self.root)


def _native(dtype: str) -> Any:
    name = NATIVE_DTYPES.get(dtype, dtype)
    return np.dtype(jnp.bfloat16) if name == "bfloat16" else np.dtype(name)


def stored(value: Any) -> Array:
    """A result as numpy; bfloat16 and float16 as float32."""
    array = np.asarray(value)
    return array.astype(np.float32) if str(array.dtype) in ("bfloat16", "float16") else array
