"""Everything that checks judge by. Jobs run when a check first asks for what they give, so that nothing runs after a failed stage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files as arrays
from migrate_agent.tools.harness.common.argument_changes import CONFIGURATIONS, LONG, REFUSABLE, words
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run, SourceFile, Unit, Weight
from migrate_agent.tools.verify.checks.shared.outputs import doubtful, hopeless
from migrate_agent.tools.verify.evidence import performance, search
from migrate_agent.tools.verify.evidence.original import (
    MALFORMED,
    SIDE,
    Expectations,
    Lost,
    Scenario,
    discard,
    source_file,
    tensor_inputs,
    texts,
)
from migrate_agent.tools.verify.evidence.parsed_source import Source, closure, uses
from migrate_agent.tools.verify.evidence.performance import NOT_TIMED, Performance
from migrate_agent.tools.verify.evidence.search import Worst
from migrate_agent.tools.verify.evidence.tpu import NOT_COMPILED, Portable, measure
from migrate_agent.tools.verify.report.notes import constructed, elsewhere, left_out, trained

ENTRIES = {
    kind: f"{SIDE}.candidate.{module}:{kind}"
    for kind, module in (("exact", "job"), ("native", "native"), ("capture", "capture"), ("timing", "timing"))
}
NATIVE = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
"""What jax makes of 64-bit dtypes unless told otherwise."""


class CandidateFailed(Exception):
    """Raised where the candidate's process gave no result, or the candidate could not be constructed; its text says why."""


@dataclass(frozen=True)
class Answer:
    """What the candidate did in a scenario, or the `error` that it raised."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def error(self) -> str:
        """One line, or nothing."""
        return str(self.facts.get("error", ""))


@dataclass
class Results:
    """One candidate's results, against the original's `expectations`."""

    unit: Unit
    examples: Sequence[Example]
    translated: Sequence[Example]
    candidate_root: Path
    original_root: Path
    inventory: Inventory
    sandbox: Sandbox
    job_limits: Limits
    expect: Callable[[], Expectations]
    folder: Path
    seed: int = 0
    performance: Performance = NOT_TIMED
    portable: Portable = NOT_COMPILED
    port: Mapping[str, Any] | None = None
    """What a file says about a port that need not be a mirror (empty where there is none); None for a mirror."""
    look: Callable[[], bool] = lambda: False
    """Whether a candidate that is wrong at the first call is to be asked no more. Asked once the original has run."""
    beside: bool = False
    """Whether the native job runs beside the exact one, without knowing whether that shows a failure."""
    peak_memory_bytes: int = 0
    looked_only: bool = False
    """Whether there is no more than that first call."""
    _states: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False)
    _natively: Future[Mapping[str, Any]] | None = field(default=None, repr=False)
    _expected: Expectations | None = field(default=None, repr=False)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2), repr=False)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._expected is not None and self._expected.noise is not None:
            self._expected.noise.likely = tuple

    @property
    def file(self) -> SourceFile:
        """The unit's file in the inventory."""
        return source_file(self.inventory, self.unit)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The candidate's file and all files of its tree that it imports."""
        return closure(self.candidate_root, self.unit.target, self.file.import_root)

    @cached_property
    def own_gradients(self) -> bool:
        """Whether the candidate defines gradients of its own, which may be right for some shapes alone."""
        return any(part.startswith("custom_") for source in self.sources for use in uses(source) for part in use.name.split("."))

    @property
    def expected(self) -> Expectations:
        """The original's results. Raises `OriginalFailed`."""
        if self._expected is None:
            self._expected = self.expect()
            if self._expected.noise is not None:
                self._expected.noise.sandbox = self.sandbox  # what was kept may come of one that is closed
                self._expected.noise.likely = partial(doubtful, self)
        return self._expected

    @cached_property
    def exact(self) -> Mapping[str, Any]:
        """The candidate's float64 job; the search starts after it. Raises `CandidateFailed`, `OriginalFailed`.

        Where a first look at one call is to come before it, and refuses the candidate, that is all there is.
        """
        first = self.expected.scenarios[:1]
        if self.look() and self._refused(looked := self._job("exact", first)):
            return looked
        if self.beside:
            self._natively = self._pool.submit(self._job, "native")
        vars(self)["exact"] = found = self._job("exact")
        if self.beside:
            assert self._search is not None
        return found

    @cached_property
    def native(self) -> Mapping[str, Any]:
        """The candidate's native job; the search runs beside it. Raises `CandidateFailed`, `OriginalFailed`."""
        assert self.exact is not None
        assert self._search is not None
        return self._natively.result() if self._natively is not None else self._job("native")

    def _refused(self, looked: Mapping[str, Any]) -> bool:
        """Whether what one call showed is wrong however far rounding noise may move the original's results."""
        scenario = self.expected.scenarios[0]
        found = looked["scenarios"].get(scenario.name)
        try:
            self.looked_only = found is None or hopeless(
                scenario, Answer(found, self._with_state(scenario, self.outputs["exact"].get(scenario.name, {})))
            )
        except MALFORMED:  # the checks say so
            return False
        return self.looked_only

    @property
    def worst(self) -> Worst | str:
        """What the search for the worst input found, or why there was none. Raises what `exact` raises."""
        return self._search.result()

    @cached_property
    def _search(self) -> Future[Worst | str]:
        return self._pool.submit(self._searched)

    def _searched(self) -> Worst | str:
        scenario, layout = search.searched(self), self.exact.get("search")
        if scenario is None or not layout:
            return "the candidate's step was not exported"
        if "error" in layout:
            return f"the candidate's step cannot be exported: {layout['error']}"
        with tempfile.TemporaryDirectory(prefix="migrate-agent-search-") as folder:
            for name, content in self.files.items():
                (Path(folder) / name).write_bytes(content)
            run = self.sandbox.run(search.search_job(self, scenario, layout, Path(folder)))
        try:
            return (
                search.collect(self, scenario, run.result, run.output)
                if run.status == "ok"
                else f"the search ended with {run.status}: {run.error}"
            )
        finally:
            discard(self.sandbox, run)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What the candidate exported, by file name."""
        return {}

    @property
    def omitted(self) -> Sequence[str]:
        """State names (of buffers) that a port does not keep. A mirror keeps all."""
        found = self.exact["spec"].get("omitted", []) if self.port is not None else []
        return [name for name in found if name not in self.described()["parameters"]]

    def scenarios(self) -> list[Scenario]:
        """The original's scenarios, and those that the search found."""
        worst = self._search.result() if "_search" in vars(self) and self._search.done() and not self._search.exception() else ""
        return [*self.expected.scenarios, *(scenario for scenario, _ in (() if isinstance(worst, str) else worst.found))]

    def notes(self, *, unrun: bool = False) -> tuple[str, ...]:
        """What a reader should know beside the verdicts; with `unrun`, also of which lines they say nothing."""
        if self._expected is None:
            return ()
        found = [f"an example did not run, and took no part: {error}" for error in self._expected.errors]
        for example in self._expected.examples:
            found += example.get("remarks", [])
            found += left_out(example.get("skipped", ()))
        found += [self._expected.unrun] if unrun and self._expected.unrun else []
        return (*found, *([*constructed(self), *trained(self), *elsewhere(self)] if "exact" in vars(self) else ()))

    def configured(self, scenario: Scenario) -> str:
        """With which other arguments than the example's the unit is constructed in a scenario, in words."""
        return words(self.expected.examples[scenario.facts["example"]]["changes"])

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Median seconds of a step, by what ran it; jobs that fail leave theirs out. One after the other, so that none disturbs another."""
        if not self.performance.against:
            return {}
        scenario = performance.timed(self)
        return performance.measure(self, scenario) if scenario is not None else {}

    @cached_property
    def tpu_costs(self) -> list[Cost]:
        """What the programs are for each configured TPU topology. Raises `ExtraMissing`, `PortableError`."""
        return measure(self)

    def figures(self) -> dict[str, float]:
        """What was measured but is not judged."""
        theirs = self._expected.peak_memory_bytes if self._expected is not None else 0
        found = {"candidate_peak_memory_bytes": float(self.peak_memory_bytes), "original_peak_memory_bytes": float(theirs)}
        found |= {f"{key}_seconds": value for key, value in vars(self).get("seconds", {}).items()}
        for cost in vars(self).get("tpu_costs", ()):
            quantities = {"peak_bytes": cost.peak, "hbm_bytes": cost.hbm, "flops": cost.flops, "moved_bytes": cost.bytes}
            found |= {f"tpu/{cost.topology}/{cost.program}/{name}": float(value) for name, value in quantities.items()}
        return {key: value for key, value in found.items() if value}

    def weights(self) -> tuple[Weight, ...]:
        """The weight map, in the original's order and with its names and shapes alone: what the candidate's process tells may be anything."""
        if "exact" not in vars(self):
            return ()
        found = {row.name: row for row in map(_weight, self.exact.get("spec", {}).get("weights") or ())}
        state = self.described()["state"]
        return tuple(found[name] for name in state if name in found and list(found[name].shape) == state[name])

    @cached_property
    def outputs(self) -> dict[str, dict[str, dict[str, Array]]]:
        """Arrays by job, file and key."""
        return {}

    def _job(self, kind: str, scenarios: Sequence[Scenario] | None = None) -> Mapping[str, Any]:
        run = self.sandbox.run(self.candidate_job(kind, None if scenarios is None else [scenario.facts for scenario in scenarios]))
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes)
        try:
            self.outputs[kind] = _read(run, kind)
            self.files.update((name, (run.output / name).read_bytes()) for name in search.EXPORTED if (run.output / name).is_file())
            _checked(run, kind)
        finally:
            discard(self.sandbox, run)
        if "construction" in run.result:
            raise CandidateFailed(f"constructing it raised {run.result['construction']['error']}")
        return dict(run.result)

    def candidate_job(
        self, kind: str, scenarios: Sequence[Mapping[str, Any]] | None = None, further: Mapping[str, Any] = MappingProxyType({})
    ) -> Job:
        """A job of the candidate's side. It gets what `given` holds, and of the original's results only what says how to call it."""
        kept = ("name", "example", "role", "mode", "gradient", "state", "drawing", "leaf_dtypes")
        asked = [scenario.facts for scenario in self.expected.scenarios] if scenarios is None else scenarios
        facts = [item for item in asked if item["role"] != "gradient-shape" or self.own_gradients or scenarios is not None]
        told = [
            {**{key: item[key] for key in kept}, "native": [] if item["native"] else None, "draws": [0] if item["draws"] else []}
            for item in facts
        ]
        describing = ("tree", "state", "state_dtypes", "frozen", "inits", "customs", *(("parameters",) if self.port is not None else ()))
        described = [{key: item[key] for key in describing if key in item} for item in self.expected.examples]
        wanted = self.expected.examples[0].get("curves")
        if wanted and scenarios is None:
            described[0]["curves"] = {key: wanted[key] for key in ("batches", "state", "rates", "untrained")}
        translated = [self.translated[item["index"]] for item in self.expected.examples]
        arguments = {
            "module": self.file.target_module,
            "name": self.unit.name,
            "examples": [texts(example, item["changes"]) for example, item in zip(translated, self.expected.examples, strict=True)],
            "renamed": {file.module: file.target_module for file in self.inventory.files},
            "scenarios": told,
            "seed": self.seed,
            "search": searched.name if kind == "exact" and scenarios is None and (searched := search.searched(self)) else "",
            "described": described,
            "port": self.port,
            "plain": [self.examples[item["index"]].init for item in self.expected.examples] if self.port is not None else [],
            **further,
        }
        inputs = {"given": self.expected.given, **tensor_inputs(translated)}
        return Job("candidate", ENTRIES[kind], self.candidate_root / self.file.import_root, arguments, inputs, self.job_limits)

    def answers(self, *roles: str, kind: str = "exact") -> Iterator[tuple[Scenario, Answer]]:
        """Scenarios of these roles (of all, where none is named) with the candidate's answers, as far as it got."""
        job = self.exact if kind == "exact" else self.native
        for scenario in self.expected.scenarios:
            if (not roles or scenario.facts["role"] in roles) and scenario.name in job["scenarios"]:
                found = self._with_state(scenario, self.outputs[kind].get(scenario.name, {}))
                yield scenario, Answer(job["scenarios"][scenario.name], found)

    def _with_state(self, scenario: Scenario, found: Mapping[str, Array]) -> Mapping[str, Array]:
        """A candidate's arrays with the state that its call left as it was given, which its run does not write."""
        left = [key for key in scenario.arrays if key.startswith("state/") and key not in found] if found else []
        if not left:
            return found
        name = scenario.facts["state"]
        if name not in self._states:
            self._states[name] = arrays.load(self.expected.given / f"states/{name}.safetensors")
        given = self._states[name]
        return {**found, **{key: given[key[6:]] for key in left if key[6:] in given}}

    def forgives(self, scenario: Scenario, answer: Answer) -> bool:
        """Whether the candidate's error leaves out what it may leave out, of which a note tells. In another configuration, or on longer inputs, a
        mirror may do so on purpose alone."""
        role = scenario.facts["role"]
        crashes = role in (*CONFIGURATIONS, LONG) and self.port is None and answer.facts.get("kind") == "error"
        return bool(answer.error) and role in REFUSABLE and not crashes

    def described(self) -> Mapping[str, Any]:
        """What the first example that ran says about the original."""
        return self.expected.examples[0]


def _weight(row: Mapping[str, Any]) -> Weight:
    axes = None if row["axes"] is None else tuple(map(int, row["axes"]))
    return Weight(str(row["name"]), str(row["path"]), tuple(map(int, row["shape"])), axes)


def _read(run: Run, kind: str) -> dict[str, dict[str, Array]]:
    if run.status == "lost":
        raise Lost(f"its {kind} run was lost: {run.error}")
    if run.status != "ok":
        raise CandidateFailed(f"its {kind} run ended with {run.status}: {run.error}")
    try:
        return {path.stem: arrays.load(path) for path in sorted(run.output.glob("*.safetensors"))}
    except (OSError, ValueError) as error:
        raise CandidateFailed(f"its {kind} run left files that cannot be read: {error}") from error


def _checked(run: Run, kind: str) -> None:
    """The candidate's process wrote the result, so its form is not to be trusted."""
    result = run.result
    if not isinstance(result, dict) or not ("construction" in result or isinstance(result.get("scenarios"), dict) or "spec" in result):
        raise CandidateFailed(f"its {kind} run returned something else than a result")
    result.setdefault("scenarios", {})
