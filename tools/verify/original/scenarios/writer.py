"""Chooses the scenarios of one example of the original, runs them, and writes them down. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import input_sampling, tensor_files, tolerances
from migrate_agent.tools.harness.common.argument_changes import CONFIGURED_DROPPED
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import TRAINED, USUAL, Customs, Drawing
from migrate_agent.tools.harness.common.training_steps import first_rate, torch_curve
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Layout, Original, Result, State
from migrate_agent.tools.harness.torch_side.precision import Undefined, Undetermined
from migrate_agent.tools.verify.original.outputs import (
    attempt,
    described,
    finite_share,
    initial_values,
    large_inputs,
    make_targets,
    noise_of,
    one_line,
    own_modes,
    same,
    tipped,
)
from migrate_agent.tools.verify.original.scenarios import fill_values as reach
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.random import drawn_otherwise, further_gradients
from migrate_agent.tools.verify.original.scenarios.sizes import another_rank, other_sizes

STRENGTHS = (1.0, 0.1, 0.0)
COUNTED = -1
"""In the place of a seed: the state with other counters and flags."""
LATER = {"int64": 100_000, "int32": 100_000}
"""How far on a counter is then."""
REMEMBERED = 8
"""Results of forward passes that are kept while scenarios are chosen."""
STRONG, STRONGEST = 2, 16.0
"""The seed whose parameters are drawn further out, past what clamps and saturations leave alone, and how far."""


@dataclass
class Author:
    """Writes the scenarios of one example."""

    original: Original
    index: int
    texts: Mapping[str, Any]
    folder: Path
    base: int
    lines: Lines
    scenarios: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    compared: tuple[float, ...] = ()
    """Numbers that uniform draws are compared with."""
    _ran: dict[str, Result] = field(default_factory=dict, repr=False)

    def once(self, state: State, values: Sequence[Array], mode: str) -> Result:
        """What a forward pass gives, run once for the same state and inputs. Raises what the original raises."""
        digest = hashlib.blake2b(mode.encode())
        for key, value in (*state.items(), *enumerate(values)):
            digest.update(f"{key} {value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        place = digest.hexdigest()
        if place not in self._ran:
            self._ran[place] = self.original.run(state, values, mode)
            while len(self._ran) > REMEMBERED:
                del self._ran[next(iter(self._ran))]
        return self._ran[place]

    def write(self, *, first: bool, otherwise: bool = False, new: bool = True) -> dict[str, Any]:
        """All scenarios of the example, fewer unless it is the `first`. Raises what the original raises on the example itself.

        `otherwise`: it is constructed otherwise than those before it, and so may start with other values; nothing else unless it is `new`.
        """
        unit = self.original
        if not new:
            return {**self.describe(), "inits": self.initial()}
        with self.lines:
            self.once(unit.state(), self.values(0), "eval")
            if self.texts.get("train") is not False:
                attempt(lambda: unit.run(unit.state(), self.values(0), "train"))
        seeds = range(tolerances.SEEDS if first else 1)
        self.states = {seed: self.sample_state(seed) for seed in seeds}
        for seed in seeds:
            tensor_files.save(self.folder / f"given/states/{self.state_name(seed)}.safetensors", self.states[seed])
        inputs = {seed: self.sample_inputs(seed) for seed in seeds}
        for seed in seeds:
            self.add(f"eval-s{seed}", "seed", "eval", seed, inputs[seed], native=seed < 2)
        gradients = [name for seed in seeds if (name := self.gradient(seed, inputs[seed]))]
        with self.lines:
            drawn_otherwise(self, self.scenarios[-1], inputs[0])
        self.labels()
        if first:
            other_sizes(self)
            self.counted()
            self.edges()
            self.reach(inputs)
            self.gradient_edges(gradients)
            self.again(inputs, gradients)
            self.layouts()
            another_rank(self)
        description = self.describe()
        if first:
            description["curves"] = self.curves([name for name in gradients if not name.endswith(f"-s{STRONG}")], inputs)
        if first or otherwise:
            description["inits"] = self.initial()
        return description

    def describe(self) -> dict[str, Any]:
        """What the spec stage compares."""
        return {"skipped": self.skipped, "remarks": self.remarks, "customs": self.customs(), **described(self.original)}

    def customs(self) -> Customs:
        """What the original makes of its draws. A mask of a rate at which it drops itself is always taken for such a one."""
        draws = [draw for scenario in self.scenarios for draw in scenario["draws"]]
        kinds, rates = {draw[0] for draw in draws}, {draw[2] for draw in draws if draw[2] is not None}
        apart = [
            number
            for number in self.compared
            if all(min(abs(rate - number), abs(rate - 1 + number)) > 2 * tolerances.COMPARED for rate in rates)
        ]
        return Customs(tuple(apart), "exponential" in kinds and "uniform" not in kinds)

    @property
    def modes(self) -> tuple[str, ...]:
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
        usual = finite_share(self.once(state, self.values(0), "eval"))
        for strength in STRENGTHS if seed != STRONG else (STRONGEST, *STRENGTHS):
            drawn = input_sampling.sample_state(state, frozenset(unit.parameters), tied, (self.base + seed,), strength)
            result = attempt(partial(self.once, drawn, self.values(0), "eval"))
            if result is not None and finite_share(result) >= usual:
                return drawn
        return dict(state)

    def sample_inputs(self, seed: int) -> list[Array]:
        """New inputs, or those recorded where the original cannot run on new ones or gives NaN for them."""
        recorded = self.values(0)
        usual = self.once(self.states[seed], recorded, "eval")
        result = attempt(lambda: self.once(self.states[seed], self.values(seed), "eval"))
        if result is None or finite_share(result) < finite_share(usual):
            self.skipped.append(f"new inputs for seed {seed}")
            return recorded
        return self.values(seed)

    def gradient(self, seed: int, values: Sequence[Array]) -> str:
        """A forward and backward pass in training mode where wanted and possible, else in evaluation mode. Returns the scenario's name."""
        for mode in self.modes:
            name = f"gradient-{mode}-s{seed}"
            if self.add(name, "gradient", mode, seed, values, gradient=True, native=seed == 0):
                return f"e{self.index}-{name}"
        return ""

    def counted(self) -> None:
        """Counters and flags among the buffers as they may be later: single integers far on, or one further; the other truth value."""
        unit, state = self.original, dict(self.states[0])
        usual = finite_share(self.once(state, self.values(0), "eval"))
        for name, value in self.states[0].items():
            if name not in unit.parameters and value.size == 1 and value.dtype.kind in "biu":
                for later in (~value,) if value.dtype.kind == "b" else (np.full_like(value, LATER.get(value.dtype.name, 100)), value + 1):
                    result = attempt(partial(self.once, {**state, name: later}, self.values(0), "eval"))
                    if result is not None and finite_share(result) >= usual:
                        state[name] = later
                        break
        if any(value is not self.states[0][name] for name, value in state.items()):
            self.states[COUNTED] = state
            tensor_files.save(self.folder / f"given/states/{self.state_name(COUNTED)}.safetensors", state)
            self.add("eval-counted", "seed", "eval", COUNTED, self.values(0), runs=1)
            if self.trains():
                self.add("train-counted", "gradient", "train", COUNTED, self.values(0), runs=1)

    def trains(self) -> bool:
        """Whether a call in training mode gives or leaves behind something else than one in evaluation mode."""
        state, values = self.states[0], self.values(0)
        first = attempt(lambda: self.once(state, values, self.modes[0]))
        return first is not None and not same(first, self.once(state, values, "eval"))

    def edges(self) -> None:
        """Zeros, large, tiny and negative values, NaN and infinities; integers and booleans all alike; rows that are all alike."""
        for label, values in input_sampling.edges(self.original.leaves, tolerances.LARGE).items():
            finite = all(np.isfinite(value).all() for value in values if value.dtype.kind in "fc")
            self.add(f"edge-{label}", "edge" if finite else "nonfinite", "eval", 0, values, native=not finite, runs=1)
        alike = input_sampling.equal_rows(self.original.leaves, self.values(0))
        if alike is not None:
            (
                self.add("edge-equal-rows", "edge", "eval", 0, alike, runs=1, layout="expanded")
                or self.add("edge-equal-rows", "edge", "eval", 0, alike, runs=1)
            )
        numbers = source_literals.at(self.original.leaves, source_literals.numbers(self.original.native))
        if numbers is not None:
            self.add("edge-numbers", "edge", "eval", 0, numbers, held=True)

    def labels(self) -> None:
        """Integers of the original's code (a label that is ignored, the id of padding) where it takes them, each input on its own."""
        model, recorded = self.original.native, self.values(0)
        numbers = source_literals.whole(source_literals.numbers(model), source_literals.speaks_of_ignored(model))
        for index, value in enumerate(recorded):
            if value.dtype.kind != "i" or not value.size:
                continue

            def taken(number: int, index: int = index, value: Array = value) -> bool:
                values = [*recorded[:index], source_literals.among(value, [number]), *recorded[index + 1 :]]
                result = attempt(lambda: self.original.run(self.states[0], values, "eval"))
                return result is not None and finite_share(result) == 1

            tried = [number for number in numbers if (value != number).all()][: tolerances.LABELS]
            last = [number - 1 for number in numbers[::-1] if number - 1 > value.max()][
                : tolerances.LAST_LABELS
            ]  # of tables with so many rows
            if fitting := [*islice(filter(taken, last), 1), *filter(taken, tried)]:
                values = [*recorded[:index], source_literals.among(value, fitting), *recorded[index + 1 :]]
                self.add(f"edge-labels-input{index}", "edge", "eval", 0, values, held=True)
                self.add(f"gradient-eval-labels-input{index}", "gradient-edge", "eval", 0, values, gradient=True, runs=1)

    def reach(self, drawn: Mapping[int, Sequence[Array]]) -> None:
        """Inputs so large that numbers decide which otherwise decide nothing, as what masked scores are filled with."""
        unit = self.original
        size = sum(value.size for value in (*self.states[0].values(), *drawn[0]))
        if size > tolerances.REACH_ELEMENTS or not any(leaf.value.size and input_sampling.is_signal(leaf.value) for leaf in unit.leaves):
            return

        def run(seed: int, values: Sequence[Array], watch: reach.Numbers | None) -> Result:
            return unit.run(self.states[seed], values, "eval", watch=watch)

        for number, (name, value) in enumerate(reach.hidden(run, drawn[0])[: tolerances.REACH_NUMBERS]):
            seed, found = reach.reaching(run, unit.leaves, drawn, (name, value)) or (0, [])
            for side, values in zip(("past", "below"), found, strict=False):
                self.add(f"edge-{side}-number{number}", "edge", "eval", seed, values, held=True)

    def gradient_edges(self, names: Sequence[str]) -> None:
        """Gradients in evaluation mode where formulas divide by what is zero, saturate or tie, as far as the outputs are finite."""
        for label, values in input_sampling.gradient_edges(self.original.leaves, tolerances.LARGE).items() if names else ():
            values = (label == "large" and large_inputs(self.original, self.states[0])) or values
            self.add(f"gradient-eval-edge-{label}", "gradient-edge", "eval", 0, values, gradient=True, runs=1)
        further_gradients(self, len(names))

    def again(self, inputs: Mapping[int, Sequence[Array]], names: Sequence[str]) -> None:
        """A second call of the same module, on other inputs: what the first one left behind counts."""
        first, second = inputs[0], inputs[1]
        self.add("again-eval", "again", "eval", 0, second, before=first, runs=1)
        if names and "-train-" in names[0]:
            self.add("again-train", "again", "train", 0, second, before=first, runs=1, gradient=True)
            if self.trains() and not own_modes(self.original.native):
                self.add("again-trained", TRAINED, "eval", 0, second, before=first, runs=1)

    def layouts(self) -> None:
        """Say so where the original's result depends on how its inputs lie in memory: an array of jax has no strides to follow it by."""
        if all(leaf.value.ndim < 1 or leaf.value.size < 2 for leaf in self.original.leaves):
            return
        usual = self.once(self.states[0], self.values(0), "eval")
        strided = attempt(lambda: self.original.run(self.states[0], self.values(0), "eval", layout="strided"))
        if strided is None:
            self.skipped.append("inputs that are not contiguous")
        elif any(not np.allclose(value, strided.arrays[key], rtol=1e-6, equal_nan=True) for key, value in usual.arrays.items()):
            self.remarks.append("the original's result depends on the strides of its inputs; the rewrite was compared on contiguous ones")
        if usual.mutated:
            self.remarks.append(
                "the original changes its arguments in place, which no function of jax can: callers must use what it returns"
            )

    def add(
        self,
        label: str,
        role: str,
        mode: str,
        seed: int,
        values: Sequence[Array],
        *,
        gradient: bool = False,
        native: bool = False,
        runs: int = tolerances.NOISE_RUNS,
        held: bool = False,
        layout: Layout = "",
        before: Sequence[Array] | None = None,
        drawing: Drawing = USUAL,
    ) -> bool:
        """Run the original (after a call on `before`, where given), and write the scenario down unless it raises.

        `held`: rounding noise must not tip it over, where state and inputs are as they are; else there is nothing to compare. Of others
        the noise of so many `runs` is told where somebody asks (`torch_noise`).
        """
        unit, state, name, undefined = self.original, self.states[seed], f"e{self.index}-{label}", Undefined()
        run = partial(unit.run, state, values, mode, before=before, drawing=drawing, trained=role == TRAINED)
        noise: dict[str, Any] = {}
        try:
            if gradient:
                result = run(targets=partial(make_targets, seed=self.base + seed))
            else:
                result = run(layout=layout) if layout or drawing != USUAL or before is not None else self.once(state, values, mode)
            if result.tied and role in ("edge", "gradient-edge", "nonfinite"):
                raise Undetermined("which of equal numbers are the largest is up to torch's algorithm")
            targets = result.targets if gradient else None
            if role in ("gradient-edge", "dropped", CONFIGURED_DROPPED) and finite_share(result) < 1:
                return False
            if held:
                noisy = [run(noise=1 + self.base + count, exact_inputs=True) for count in range(runs)]
                if tipped(result, noisy):
                    return False
                noise = {"noise": noise_of(result, noisy), "undecided": []}
            plain = run(native=True) if native and not gradient else None
            if role == "nonfinite" and label.endswith("inf"):
                run(native=True, watch=undefined)
            plain = attempt(partial(run, targets=targets, native=True)) if native and gradient else plain
        except Exception as error:
            self.skipped.append(f"{label} ({one_line(error)})")
            return False
        given = {f"in/{index}": value for index, value in enumerate(values)}
        given |= {f"target/{index}": value for index, value in (targets or {}).items()}
        given |= {f"before/{index}": value for index, value in enumerate(before or ())}
        how = {
            "label": label,
            "role": role,
            "mode": mode,
            "gradient": gradient,
            "state": self.state_name(seed),
            "runs": runs,
            "drawing": drawing,
        }
        self.keep(name, given, result, plain, {**how, **noise, "before": before is not None, "undefined": undefined.seen})
        return True

    def keep(self, name: str, given: Mapping[str, Array], result: Result, plain: Result | None, facts: Mapping[str, Any]) -> None:
        """Write a scenario down: what the candidate is given, what it must give (also natively, where `plain` is there), and the facts of it."""
        tensor_files.save(self.folder / f"given/inputs/{name}.safetensors", dict(given))
        native = {f"native/{key}": value for key, value in plain.arrays.items()} if plain is not None else {}
        tensor_files.save(self.folder / f"expected/{name}.safetensors", {**result.arrays, **native})
        self.scenarios.append(
            {
                "name": name,
                "example": self.index,
                **facts,
                "native": plain.dtypes if plain is not None else None,
                "narrow": plain.narrow if plain is not None else "",
                "leaf_dtypes": [leaf.dtype for leaf in self.original.leaves],
                "tree": result.tree,
                "dtypes": result.dtypes,
                "draws": result.draws,
                "rearranged": result.rearranged,
            }
        )

    def curves(self, names: Sequence[str], inputs: Mapping[int, Sequence[Array]]) -> dict[str, Any] | None:
        """Training curves by optimiser and precision; None where there is nothing to train."""
        unit = self.original
        trained = any(value.requires_grad for value in unit.parameters.values())
        if self.texts.get("train") is False or not trained or not names or not all("train" in name for name in names):
            return None
        batches = [int(name.rpartition("-s")[2]) for name in names]
        targets = [tensor_files.load(self.folder / f"given/inputs/{name}.safetensors") for name in names]
        goals = [{int(key[7:]): value for key, value in target.items() if key.startswith("target/")} for target in targets]
        if not any(goals):
            return None
        gradients = tensor_files.load(self.folder / f"expected/{names[0]}.safetensors")
        rates = {"sgd": first_rate(gradients, [self.states[0][key] for key in unit.parameters]), "adamw": tolerances.LEARNING_RATE_ADAMW}
        values = [inputs[batch] for batch in batches]
        buffers: dict[str, Array] = {}
        kinds: dict[str, dict[str, Any]] = {
            "exact": {"native": False, "buffers": buffers},
            "native": {"native": True},
        }
        untrained: set[str] = set()
        narrow = next((scenario["narrow"] for scenario in self.scenarios if scenario["narrow"]), "")
        found: dict[str, Any] = {"batches": list(names), "state": self.state_name(0), "rates": rates, "narrow": narrow}
        try:
            for optimiser in ("adamw", "sgd"):  # whose buffers are kept, both sides' of the last
                run = partial(torch_curve, unit, self.states[0], values, goals, optimiser, rates[optimiser], untrained=untrained)
                found[optimiser] = {kind: run(**how) for kind, how in kinds.items()}
        except Exception as error:
            self.skipped.append(f"training curves ({one_line(error)})")
            return None
        tensor_files.save(self.folder / "expected/trained.safetensors", buffers)
        return {**found, "untrained": sorted(untrained)}

    def initial(self) -> dict[str, Any]:
        """Fresh initial values, several constructions, sampled, of what the constructor sets. Returns how many."""
        count, rows = initial_values(self.original, self.base)
        tensor_files.save(self.folder / f"expected/initial-{self.index}.safetensors", rows)
        return count
