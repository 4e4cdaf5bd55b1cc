"""Runs scenarios of one example of the original, and writes them down. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import budgets, input_sampling, reach, tensor_files
from migrate_agent.tools.harness.common.conditions import AS_MADE, Conditions
from migrate_agent.tools.harness.common.input_sampling import Array, Extreme
from migrate_agent.tools.harness.common.random_streams import USUAL, Drawing
from migrate_agent.tools.harness.common.seeded_arrays import SeededArray
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Layout, Original, Result, State
from migrate_agent.tools.harness.torch_side.precision import Undefined, Undetermined
from migrate_agent.tools.verify.contract.scenario import Mode, NoiseOfScenario, Role, Scenario
from migrate_agent.tools.verify.contract.schedule import FULL, LARGE_ELEMENTS, LATE, Deadline
from migrate_agent.tools.verify.original.outputs import (
    attempt,
    divides_by_vanishing,
    elements,
    finite_share,
    make_targets,
    noise_of,
    overflows_soon,
    same,
    tipped,
)
from migrate_agent.tools.verify.original.scenarios.sequence_lengths import note_lengths, unfilled

STRENGTHS = (1.0, 0.1, 0.0)
COUNTED, NARROWED, SCALED, BEGUN, ZEROED, SPECIAL = -1, -2, -3, -4, -5, -100
"""In the place of a seed: the state with other counters and flags, as narrow dtypes hold it, with small parameters, with float flags as they begin, and
(these and the numbers below them) with zeros in the place of some, and with which the original is less finite."""
LATER = {"int64": 100_000, "int32": 100_000}
"""How far on a counter is then."""
LARGE_BYTES = 1 << 16
"""From this size on an array stands for itself by a digest."""
REMEMBERED = 8
"""Results of forward passes that are kept while scenarios are chosen."""
STRONG, STRONGEST = 2, 16.0
"""The seed whose parameters are drawn further out, past what clamps and saturations leave alone, and how far."""
UNFILLED = (
    "batches in which no sequence is as long as the padding were not compared: shapes of jax do not follow the lengths of packed sequences"
)


def undetermined_reason(error: Exception | None) -> str:
    """What torch leaves undetermined, in one line; empty for any other error, which the original raises itself."""
    return " ".join(str(error).split())[:400] if isinstance(error, Undetermined) else ""


@dataclass(frozen=True)
class Trial:
    """A call of the original that may become a scenario: with `values`, and the state of `seed`."""

    role: Role
    mode: Mode
    seed: int
    values: Sequence[Array]
    gradient: bool = False
    native: bool = False
    """Whether it runs in the dtypes of a user's run too."""
    runs: int = budgets.NOISE_RUNS
    """How often it runs with noise, where a verdict depends on that."""
    exact_inputs: bool = False
    """Whether it is dropped where rounding noise tips a comparison over, with state and inputs as they are."""
    layout: Layout = ""
    before: Sequence[Array] | None = None
    """Inputs of a call before it."""
    prior: ScenarioWriter | None = None
    """The writer of the example whose call comes before it."""
    drawing: Drawing = USUAL
    conditions: Conditions = AS_MADE
    dtypes: Sequence[str] = ()
    sampled: bool = False
    extreme: Extreme = Extreme.NONE

    @property
    def required(self) -> bool:
        """Whether it runs even where the budget is spent: the example's own call."""
        return self.seed == 0 and self.role in (Role.SEED, Role.GRADIENT) and self.drawing == USUAL

    @property
    def plain(self) -> bool:
        """Whether it is a forward pass and nothing else, whose result may be known."""
        alone = self.before is None and self.prior is None
        return alone and not self.layout and self.drawing == USUAL and self.conditions == AS_MADE

    @property
    def earlier(self) -> tuple[Original, list[Array]] | None:
        """The unit and the inputs of the example whose call comes before it."""
        return (self.prior.original, self.prior.values(0)) if self.prior is not None else None

    def candidate_inputs(self, targets: Mapping[int, Array] | None) -> dict[str, Array]:
        """The arrays that the candidate is given, by name; `targets` are those of a loss."""
        parts = {"in": self.values, "before": self.before or (), "prior": self.earlier[1] if self.earlier else ()}
        arrays = {f"{kind}/{index}": value for kind, values in parts.items() for index, value in enumerate(values)}
        return arrays | {f"target/{index}": value for index, value in (targets or {}).items()}


@dataclass
class Observed:
    """What the original gave in a trial: in float64, and natively where that was asked (`plain`)."""

    result: Result
    targets: Mapping[int, Array] | None
    plain: Result | None = None
    noise: NoiseOfScenario | None = None
    undefined: Undefined = field(default_factory=Undefined)


@dataclass
class ScenarioWriter:
    """Writes the scenarios of one example."""

    original: Original
    index: int
    texts: Mapping[str, Any]
    folder: Path
    base: int
    lines: Lines
    sizes: tuple[int, ...] = ()
    """Numbers that the candidate compares sizes with."""
    deadline: Deadline = field(default_factory=Deadline)
    """When a large unit's optional scenarios end."""
    scenarios: list[Scenario] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    """Scenarios that are not compared: `name`, and `reason` (empty where the original raises)."""
    remarks: list[str] = field(default_factory=list)
    states: dict[int, dict[str, Array]] = field(default_factory=dict)
    """Seed (or `COUNTED`) → parameters and buffers."""
    compared: tuple[float, ...] = ()
    """Numbers that uniform draws are compared with."""
    reached: dict[str, frozenset[int]] = field(default_factory=dict, repr=False)
    """Name of a scenario → places of the user's code that it ran, the constructor's too."""
    steepness: dict[str, float] = field(default_factory=dict, repr=False)
    """Name of a scenario with gradients → the norm of those of all parameters."""
    _ran: dict[str, Result] = field(default_factory=dict, repr=False)
    _digests: dict[int, tuple[weakref.ref[Array], bytes]] = field(default_factory=dict, repr=False)
    """By the id of a large array: itself, and a digest of its values."""

    def once(self, state: State, values: Sequence[Array], mode: str) -> Result:
        """The result of a forward pass, cached by state and inputs. Raises the errors of the original."""
        digest = hashlib.blake2b(mode.encode())
        for key, value in (*state.items(), *enumerate(values)):
            digest.update(f"{key} {value.dtype} {value.shape}".encode() + self._digest(value))
        digest_text = digest.hexdigest()
        if digest_text not in self._ran:
            self._ran[digest_text] = self.original.run(state, values, mode)
            # A result holds all outputs and states; scenarios ask again only for the last few.
            while len(self._ran) > REMEMBERED:
                del self._ran[next(iter(self._ran))]
        return self._ran[digest_text]

    def _digest(self, value: Array) -> bytes:
        """A digest of an array's values. That of a large one is kept while the array is: nobody writes into states and inputs."""
        if value.nbytes < LARGE_BYTES:
            return value.tobytes()
        if isinstance(value, SeededArray) and value.recipe is not None:
            return value.recipe.to_bytes().tobytes()
        entry = self._digests.get(id(value))
        if entry is None or entry[0]() is not value:
            digest = hashlib.blake2b(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data).digest()
            entry = self._digests[id(value)] = weakref.ref(value), digest
        return entry[1]

    def note_lengths(self) -> None:
        """Learn which inputs decide lengths of packed sequences, from the example's own call. Raises the errors of the original."""
        note_lengths(self.original, self.once(self.original.state(), self.values(0), "eval"))
        if self.original.filled:
            self.remarks.append(UNFILLED)

    def path(self) -> str:
        """Which places of the user's code the example's own call runs, as a text: the same for examples that take the same branches."""
        return repr(reach.by_file(self.once(self.states[0], self.values(0), "eval").reached))

    @property
    def is_large(self) -> bool:
        """Whether the unit has a schedule."""
        return bool(self.deadline.seconds) and not self.deadline.small

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Training mode first, where wanted."""
        return ("eval",) if self.texts.get("train") is False else ("train", "eval")

    def values(self, seed: int) -> list[Array]:
        """Inputs for a seed; 0 gives those recorded."""
        if seed == 0:
            return input_sampling.recorded_inputs(self.original.leaves)
        return input_sampling.sample_inputs(self.original.leaves, (self.base + seed,), self.texts.get("domain"))

    def state_name(self, seed: int) -> str:
        """Name of the file with the state of this seed."""
        return f"e{self.index}-s{seed}"

    def sample_state(self, seed: int) -> dict[str, Array]:
        """The strongest perturbation with which the recorded call still runs and stays as finite as it was."""
        unit = self.original
        state, tied = unit.state(), unit.tied()
        as_made = self.once(state, self.values(0), "eval")
        usual = finite_share(as_made)
        for strength in STRENGTHS if seed != STRONG else (STRONGEST, *STRENGTHS):
            drawn = input_sampling.sample_state(state, frozenset(unit.parameters), tied, (self.base + seed,), strength)
            result = attempt(partial(self.once, drawn, self.values(0), "eval"))
            # Where a product of outputs overflows, which elements of a gradient are NaN is up to the order of its sums.
            if result is None or finite_share(result) < usual or (overflows_soon(result) and not overflows_soon(as_made)):
                continue
            # Which gradients of a division by nearly nothing overflow is up to the formula that they are written by.
            if seed != STRONG or not divides_by_vanishing(unit, drawn, self.values(0)) or divides_by_vanishing(unit, state, self.values(0)):
                return drawn
        return dict(state)

    @contextmanager
    def released(self, seed: int) -> Iterator[Callable[[], State]]:
        """What gives the state of this seed. Of a large unit it is read from its file anew, and not kept meanwhile: training steps need the memory."""
        if elements(self.original) < LARGE_ELEMENTS:
            yield partial(self.states.__getitem__, seed)
            return
        draw_state = partial(tensor_files.load, self.folder / f"given/states/{self.state_name(seed)}.safetensors")
        del self.states[seed]
        try:
            yield draw_state
        finally:
            self.states[seed] = draw_state()

    def sample_inputs(self, seed: int) -> list[Array]:
        """New inputs, or those recorded where the original cannot run on new ones or gives NaN for them."""
        recorded = self.values(0)
        usual = self.once(self.states[seed], recorded, "eval")
        result = attempt(lambda: self.once(self.states[seed], self.values(seed), "eval"))
        if result is None or finite_share(result) < finite_share(usual):
            self.skip(f"new inputs for seed {seed}")
            return recorded
        return self.values(seed)

    def trains(self) -> bool:
        """Whether a call in training mode gives or leaves behind something else than one in evaluation mode."""
        state, values = self.states[0], self.values(0)
        first = attempt(lambda: self.once(state, values, self.modes[0]))
        return first is not None and not same(first, self.once(state, values, "eval"))

    def add(self, label: str, role: Role, mode: Mode, seed: int, values: Sequence[Array], **how: Any) -> bool:
        """Run the original, and write the scenario down unless it raises. `how` are further fields of `Trial`.

        Returns whether it was written.
        """
        trial = Trial(role, mode, seed, values, **how)
        if trial.gradient and self.original.on_host:
            return False  # NumPy's arrays have none
        if (self.deadline.passed or self.deadline.full) and not trial.required:
            self.late(label)
            return False
        began = time.monotonic()
        try:
            observed = self._observe(trial)
        except Exception as error:
            self.skip(label, error)
            return False
        finally:
            self.deadline.note(began)
        if observed is None:
            return False
        scenario = self._scenario(f"e{self.index}-{self._called}{label}", trial, observed)
        self.keep(scenario, trial.candidate_inputs(observed.targets), observed.result, observed.plain)
        return True

    def _observe(self, trial: Trial) -> Observed | None:
        """What the original gives; None where that says nothing. Raises its errors, and `Undetermined`."""
        run = partial(self.original.run, self.states[trial.seed], trial.values, trial.mode, before=trial.before, prior=trial.earlier)
        run = partial(run, drawing=trial.drawing, trained=trial.role == Role.AGAIN_TRAINED)
        run = partial(run, conditions=trial.conditions, dtypes=trial.dtypes, second=trial.role == Role.SECOND)
        if trial.gradient:
            result = run(targets=partial(make_targets, seed=self.base + abs(trial.seed)))
        else:
            result = self.once(self.states[trial.seed], trial.values, trial.mode) if trial.plain else run(layout=trial.layout)
        if result.tied and trial.role in (Role.EDGE, Role.GRADIENT_EDGE, Role.NONFINITE):
            raise Undetermined("which of equal numbers are the largest is up to torch's algorithm")
        if unfilled(self.original, result):
            raise Undetermined(UNFILLED)
        # An output that is not finite has no gradient, and says nothing about what was dropped.
        if trial.role in (Role.GRADIENT_EDGE, Role.DROPPED, Role.CONFIGURATION_DROPPED) and finite_share(result) < 1:
            return None
        observed = Observed(result, result.targets if trial.gradient else None)
        if trial.exact_inputs:
            noisy = [run(noise=1 + self.base + count, exact_inputs=True) for count in range(trial.runs)]
            if tipped(result, noisy):
                return None
            observed.noise = NoiseOfScenario(noise_of(result, noisy))
        # A forward pass must run natively, or the scenario is skipped; native gradients are optional.
        wanted = trial.native and not trial.gradient and trial.role != Role.EDGE
        observed.plain = run(native=True) if wanted else None
        if trial.role == Role.NONFINITE and trial.extreme in (Extreme.INFINITE, Extreme.HIDDEN):
            run(native=True, watch=observed.undefined)
        if trial.native and not wanted:
            observed.plain = attempt(partial(run, targets=observed.targets, native=True))
        return observed

    def _scenario(self, name: str, trial: Trial, observed: Observed) -> Scenario:
        """A scenario as it is written down."""
        result, plain = observed.result, observed.plain
        return Scenario(
            name=name,
            role=trial.role,
            example=self.index,
            extreme=trial.extreme,
            mode=trial.mode,
            seed=trial.seed,
            sampled=trial.sampled,
            gradient=trial.gradient,
            state=self.state_name(trial.seed),
            runs=trial.runs,
            drawing=trial.drawing,
            conditions=trial.conditions,
            before=trial.before is not None,
            prior=trial.prior.index if trial.prior is not None else -1,
            input_elements=sum(value.size for value in trial.values),
            undefined=observed.undefined.seen,
            native=plain.dtypes if plain is not None else None,
            narrow=plain.narrow if plain is not None else "",
            wide=plain.wide if plain is not None and trial.role == Role.NARROW else (),
            leaf_dtypes=[*trial.dtypes] or [leaf.dtype for leaf in self.original.leaves],
            tree=result.tree,
            dtypes=result.dtypes,
            draws=result.draws,
            rearranged=result.rearranged,
            noise=observed.noise,
        )

    def attempt(
        self, label: str, role: Role, seed: int, values: Sequence[Array], *, mode: Mode = "eval", gradient: bool = False, **how: Any
    ) -> bool:
        """As `add`, for what the original need not take: where it raises, nothing is noted."""
        if self.add(label, role, mode, seed, values, gradient=gradient, **how):
            return True
        self.skipped = [row for row in self.skipped if row["name"] != f"{self._called}{label}" or row["reason"] in (LATE, FULL)]
        return False

    @property
    def _called(self) -> str:
        """The name of the method that the example calls, for names of scenarios."""
        return f"{self.original.method}-" if self.original.method else ""

    def skip(self, name: str, error: Exception | None = None) -> None:
        """Note that a scenario is not compared; of what torch leaves undetermined the reason is given."""
        self.skipped.append({"name": f"{self._called}{name}", "reason": undetermined_reason(error)})

    def late(self, name: str) -> None:
        """Note that something is not compared, since it would not fit into the budget of time, or on the disk."""
        self.skipped.append({"name": f"{self._called}{name}", "reason": FULL if self.deadline.full else LATE})

    def keep(self, scenario: Scenario, candidate_inputs: Mapping[str, Array], result: Result, plain: Result | None) -> None:
        """Write a scenario: the candidate's inputs, and the expected results (native ones too, where `plain` is given)."""
        inputs, expected = (self.folder / f"{kind}/{scenario.name}.safetensors" for kind in ("given/inputs", "expected"))
        tensor_files.save(inputs, dict(candidate_inputs))
        native = {f"native/{key}": value for key, value in plain.arrays.items()} if plain is not None else {}
        tensor_files.save(expected, sketched({**result.arrays, **native}))
        self.deadline.wrote(inputs.stat().st_size + expected.stat().st_size)
        if scenario.gradient:
            gradients = (value for key, value in result.arrays.items() if key.startswith("grad/"))
            self.steepness[scenario.name] = sum(float(np.sum(np.abs(value) ** 2)) for value in gradients) ** 0.5
        self.scenarios.append(scenario)
        self.reached[scenario.name] = self.original.constructed | result.reached | (plain.reached if plain is not None else frozenset())
