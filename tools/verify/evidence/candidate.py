"""What a candidate's jobs gave, against the original's results. Jobs run when a check first asks for what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.argument_changes import words
from migrate_agent.tools.harness.common.input_sampling import Array, Extreme
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.types import APPLIED, Example, Inventory, Job, Limits, Reach, Run, Side, SourceFile, Unit
from migrate_agent.tools.verify.compare.pairs import doubtful
from migrate_agent.tools.verify.contract import jobs
from migrate_agent.tools.verify.contract.jobs import discard, source_file, tensor_inputs, texts
from migrate_agent.tools.verify.contract.scenario import (
    CONFIGURATIONS,
    EXHAUSTED,
    MALFORMED,
    REFUSABLE,
    Answer,
    CandidateFailed,
    Exhausted,
    Expectations,
    Lost,
    NotCompiled,
    Role,
    Scenario,
    raised_in,
    refuses_surplus,
)
from migrate_agent.tools.verify.contract.schedule import EXACT_SHARE, MAX_ERRORS, NATIVE_SHARE, SEARCH, longer, required
from migrate_agent.tools.verify.contract.settings import NOT_COMPILED, NOT_TIMED, Performance, Portable, Unreached
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.own_code import looks_at_dtypes, shapes_gradients
from migrate_agent.tools.verify.evidence.parsed_source import Source, closure, uses
from migrate_agent.tools.verify.evidence.refused_guesses import methods_of, refused_guesses
from migrate_agent.tools.verify.evidence.torchax import NO_WRAPPERS, Wrapped, original_files

if TYPE_CHECKING:
    from migrate_agent.tools.portable.cost import Cost

FUNCTIONS = {
    "exact": "job:exact",
    "native": "native:native",
    "uncompiled": "native:uncompiled",
    "optimised": "native:optimised",
    "capture": "capture:capture",
    "timing": "timing:timing",
    "full": "full_size:run",
}
"""Kind of a candidate's job → its `file:function`."""
NATIVE = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
"""What jax makes of 64-bit dtypes unless told otherwise."""
SHARES = {"exact": EXACT_SHARE, "native": NATIVE_SHARE}
EXPORTED = ("search.bin", "search.safetensors")
"""Files of the candidate's step, which the search runs beside the original."""


REFUSED_ELSEWHERE = "another guessed call of the method is refused"
"""The error of an answer that is not compared."""


@dataclass(frozen=True)
class CandidateRun:
    """What one job gave: its result, its arrays by scenario and key, and the files that it exported."""

    result: Mapping[str, Any]
    arrays: Mapping[str, Mapping[str, Array]]
    files: Mapping[str, bytes]
    seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass
class Results:
    """One candidate's results, against the original's `expectations`.

    `obtain` sees to it that `runs` holds a kind of job; the verifier's schedule runs others beside it.
    """

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
    wrapped: Wrapped = NO_WRAPPERS
    """The units of the candidate that run their original through torchax."""
    budget: float = 0.0
    """Seconds for what is optional of a large unit; 0 leaves nothing out."""
    obtain: Callable[[Results, str], None] = lambda results, kind: results.run(kind)
    peak_memory_bytes: int = 0
    looked_only: bool = False
    """Whether the exact run stopped at the first call, which was wrong."""
    runs: dict[str, CandidateRun] = field(default_factory=dict)
    """`exact` (float64) and `native`, as far as they ran."""
    search: Future[Any] | None = None
    """The search for the worst input, once it was started (`evidence.search`)."""
    native_ahead: Future[CandidateRun] | None = None
    """The native job, where it was started beside the exact one."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of a step, by what ran it, where they were measured (`evidence.performance`)."""
    full_size: dict[str, float] = field(default_factory=dict)
    """Seconds and peak memory in bytes of the jobs at full size, by side, where they ran."""
    tpu_costs: Sequence[Cost] = ()
    """What the programs are for each configured TPU topology, where they were compiled (`evidence.tpu`)."""
    unreached: Unreached = ""
    reached_before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reach: Reach | None = None
    """How much of the port ran, once it was asked for (`evidence.reach.judged`)."""
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2), repr=False)
    original: Expectations | None = field(default=None, repr=False)
    """The original's results, as far as they were asked for."""
    _states: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False)
    _again: dict[tuple[str, str], Answer | None] = field(default_factory=dict, repr=False)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        if self.original is not None and self.original.noise is not None:
            self.original.noise.likely = tuple

    @property
    def file(self) -> SourceFile:
        """The unit's file in the inventory."""
        return source_file(self.inventory, self.unit)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The candidate's file and all files of its tree that it imports, but for the originals that it runs through torchax."""
        originals = original_files(self.inventory) if self.wrapped.units else ()
        return closure(self.candidate_root, self.unit.target, self.import_roots, originals)

    @property
    def side(self) -> Side:
        """The side of the sandbox that the candidate runs on."""
        return "torchax" if self.wrapped.needed else "candidate"

    @cached_property
    def importing(self) -> Mapping[str, Any]:
        """What jobs are told of importing the unit."""
        return jobs.importing(self.file, self.inventory, self.unit, self.examples)

    @property
    def import_roots(self) -> tuple[str, ...]:
        """The folders of the candidate's tree that its files are imported from, the unit's own first."""
        return (self.file.import_root, *(("", *self.importing["roots"]) if self.importing["roots"] else ()))

    @cached_property
    def own_gradients(self) -> bool:
        """Whether the candidate defines gradients of its own, which may be right for some shapes alone."""
        return any(part.startswith("custom_") for source in self.sources for use in uses(source) for part in use.name.split("."))

    def asks(self, scenario: Scenario) -> bool:
        """Whether this candidate can differ in a scenario at all: each costs it a compilation."""
        match scenario.role:
            case Role.GRADIENT_SHAPE:
                return self.own_gradients
            case Role.SECOND:
                return self._shapes_gradients
            case Role.NARROW:
                return bool(self.described().get("casts")) or self._looks_at_dtypes
        return True

    @cached_property
    def _shapes_gradients(self) -> bool:
        return shapes_gradients(self.sources)

    @cached_property
    def _looks_at_dtypes(self) -> bool:
        return looks_at_dtypes(self.sources)

    @property
    def expected(self) -> Expectations:
        """The original's results. Raises `OriginalFailed`."""
        if self.original is None:
            self.original = self.expect()
            if self.original.noise is not None:
                self.original.noise.sandbox = self.sandbox  # the one that it was made with may be closed
                self.original.noise.likely = lambda: doubtful(self.answers())
        return self.original

    @property
    def exact(self) -> Mapping[str, Any]:
        """The result of the candidate's float64 job. Raises `CandidateFailed`, `OriginalFailed`."""
        return self.of("exact").result

    @property
    def native(self) -> Mapping[str, Any]:
        """The result of the candidate's native job. Raises `CandidateFailed`, `OriginalFailed`."""
        return self.of("native").result

    def of(self, kind: str) -> CandidateRun:
        """What a kind of job gave; it runs where it has not yet. Raises `CandidateFailed`, `OriginalFailed`."""
        if kind not in self.runs:
            self.obtain(self, kind)
        return self.runs[kind]

    def run(self, kind: str) -> None:
        """Run a kind of job on all scenarios. Raises `CandidateFailed`, `OriginalFailed`."""
        self.runs[kind] = self.run_job(kind)

    @cached_property
    def refused_guesses(self) -> frozenset[str]:
        """The methods that only guesses call and that the candidate refuses in one of these calls: stubs take the place of their lines, which are compared
        in no call. Raises `CandidateFailed`, `OriginalFailed`."""
        if self.unreached != "stub" or not any(example.method for example in self.examples):
            return frozenset()
        calls = {scenario.name: self.methods_of(scenario) for scenario in self.expected.scenarios}
        files = {source.path: counted_file(source.text) for source in self.sources if not source.error}
        return refused_guesses(self.examples, calls, self.exact, files, self.reached_before)

    def refuses_guess(self, scenario: Scenario) -> bool:
        """Whether a scenario calls one of these methods."""
        return not self.methods_of(scenario).isdisjoint(self.refused_guesses)

    def methods_of(self, scenario: Scenario) -> frozenset[str]:
        """The names of the methods that a scenario calls."""
        return methods_of(scenario, self.expected.examples, self.examples)

    @property
    def large(self) -> bool:
        """Whether the unit has a schedule. Raises `OriginalFailed`."""
        return self.budget > 0 and self.expected.large

    def left_out(self, kind: str = "exact") -> frozenset[str]:
        """Names of what a job left out since the budget was spent.

        The candidate's process says so: it is believed of what is optional alone, and where the job did run for as long.
        """
        if not self.large or self.looked_only:
            return frozenset()
        run, optional = self.of(kind), {scenario.name for scenario in self.expected.scenarios if not self._required(scenario)}
        if run.seconds < SHARES[kind] * self.budget / 2:
            return frozenset()
        return frozenset(map(str, run.result.get("left", ()))) & {*optional, SEARCH}

    def _required(self, scenario: Scenario) -> bool:
        return required(scenario, (self.described().get("curves") or {}).get("batches", ()))

    def unanswered(self) -> list[str]:
        """Names of the scenarios of a large unit that a mirror's exact job neither answered nor may have left out."""
        if not self.large or self.port is not None or self.looked_only:
            return []
        answered, excused = self.exact["scenarios"], self.left_out()
        raised = [
            item
            for item in self.expected.scenarios
            if (facts := answered.get(item.name, {})).get("error") and item.role not in REFUSABLE and not refuses_surplus(item.name, facts)
        ]
        if (
            len([item for item in raised if not (item.extreme == Extreme.EMPTY or self.called(item).method) and item.prior < 0])
            >= MAX_ERRORS
        ):
            return []  # safe: the process ended there, and a check fails for each
        return [item.name for item in self.expected.scenarios if self.asks(item) and item.name not in answered and item.name not in excused]

    @property
    def limits(self) -> Limits:
        """What a job may use; of a large unit it may take longer, since what must run is not bounded by the budget."""
        return longer(self.job_limits, self.budget) if self.large else self.job_limits

    @property
    def omitted(self) -> Sequence[str]:
        """State names (of buffers) that a port does not keep. A mirror keeps all."""
        names = self.exact["spec"].get("omitted", []) if self.port is not None else []
        return [name for name in names if name not in self.described()["parameters"]]

    def configured(self, scenario: Scenario) -> str:
        """With which other arguments than the example's the unit is constructed in a scenario, in words."""
        described = self.expected.examples[scenario.example]
        method = self.examples[described["index"]].method
        return f"{method} {words(described['changes'])}" if method else words(described["changes"])

    def note_full_size(self, side: str, seconds: float, peak_memory_bytes: int) -> None:
        """Take in what a side's job at full size took."""
        self.full_size |= {f"full_size/{side}_seconds": seconds, f"full_size/{side}_peak_memory_bytes": float(peak_memory_bytes)}

    def run_job(
        self, kind: str, scenarios: Sequence[Scenario] | None = None, more_arguments: Mapping[str, Any] = MappingProxyType({})
    ) -> CandidateRun:
        """What a job gives, on these scenarios or on all. Raises `CandidateFailed`, `Lost`, `Exhausted`, `NotCompiled`,
        `OriginalFailed`."""
        run = self.sandbox.run(self.candidate_job(kind, scenarios, more_arguments))
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes)
        try:
            arrays = read_arrays(run, kind)
            files = {name: (run.output / name).read_bytes() for name in EXPORTED if (run.output / name).is_file()}
            _check_form(run, kind)
        finally:
            discard(self.sandbox, run)
        if "compiler" in run.result:
            raise NotCompiled(f"its {kind} run ended with an error of XLA's own: {run.result['compiler']}"[:500])
        if "construction" in run.result:
            construction = run.result["construction"]
            raise CandidateFailed(f"constructing it raised {construction['error']}", raised_in(construction))
        return CandidateRun(dict(run.result), arrays, files, run.seconds, run.peak_memory_bytes)

    def candidate_job(
        self,
        kind: str,
        scenarios: Sequence[Scenario] | None = None,
        more_arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> Job:
        """A job of the candidate's side. It gets what `given` holds, and of the original's results only what says how to call it."""
        # Gradients at another batch size can only differ where a gradient is written by hand, and cost a compilation.
        rows = [
            scenario.request().to_json()
            for scenario in (self.expected.scenarios if scenarios is None else scenarios)
            if scenarios is not None or self.asks(scenario)
        ]
        describing = (
            "tree",
            "state",
            "state_dtypes",
            "frozen",
            "inits",
            "customs",
            "changes_objects",
            "on_host",
            "held",
            *(("parameters", "tied") if self.port is not None else ()),
        )
        described = [{key: item[key] for key in describing if key in item} for item in self.expected.examples]
        curves = self.expected.examples[0].get("curves")
        # The losses stay here: the candidate is told batches and rates, and never what torch's curve is.
        if curves and scenarios is None:
            described[0]["curves"] = {key: curves[key] for key in ("batches", "state", "rates", "untrained")}
        translated = [self.translated[item["index"]] for item in self.expected.examples]
        arguments = {
            "examples": [texts(example, item["changes"]) for example, item in zip(translated, self.expected.examples, strict=True)],
            "roots": self.importing["roots"],
            "folder": self.importing["folder"],
            "renamed": {file.module: file.target_module for file in self.inventory.files},
            "scenarios": rows,
            "seed": self.seed,
            "budget": self.budget if self.large else 0.0,
            # What the rules wrote chooses where the original does; of what a person wrote nobody knows.
            "listening": kind == "exact" and not self.unreached,
            "search": start.name if kind == "exact" and scenarios is None and (start := self.expected.search_start) else "",
            "described": described,
            "refusals": [*self.expected.refusals] if kind == "exact" and scenarios is None else [],
            "port": self.port,
            "plain": [self.examples[item["index"]].init for item in self.expected.examples] if self.port is not None else [],
            **more_arguments,
        }
        inputs = {"given": self.expected.given, **tensor_inputs(translated)}
        job = jobs.candidate_job(FUNCTIONS[kind], self.unit, self.file, self.candidate_root, self.limits, arguments, inputs)
        return replace(job, side=self.side)

    def original_job(
        self, function: str, scenario: Scenario, arguments: Mapping[str, Any], inputs: Mapping[str, Path] = MappingProxyType({})
    ) -> Job:
        """A job of the original's side on the example of one scenario, with what candidates are given."""
        described = self.expected.examples[scenario.example]
        example = self.examples[described["index"]]
        tensors = {"tensors": example.tensors} if example.tensors else {}
        whole = {"given": self.expected.given, **inputs, **tensors}
        named = {"example": texts(example, described["changes"]), **self.importing, **arguments}
        return jobs.original_job(function, self.unit, self.file, self.original_root, self.limits, named, whole)

    def answers(self, *roles: str, kind: str = "exact") -> Iterator[tuple[Scenario, Answer]]:
        """Scenarios of these roles (of all, where none is named) with the candidate's answers, as far as it got."""
        run = self.of(kind)
        for scenario in self.expected.scenarios:
            if (not roles or scenario.role in roles) and scenario.name in run.result["scenarios"]:
                yield scenario, self.answer(run, scenario)

    def answer(self, run: CandidateRun, scenario: Scenario) -> Answer:
        """What a run gave in a scenario; an error where it calls a method that is refused elsewhere and only guesses call."""
        if not run.result["scenarios"][scenario.name].get("error") and self.refuses_guess(scenario):
            return Answer({"error": REFUSED_ELSEWHERE}, {})
        return self.own_answer(run, scenario)

    def own_answer(self, run: CandidateRun, scenario: Scenario) -> Answer:
        """What a run gave in a scenario, with the state that the call left as it was given, which the run does not write, and the given one of what the
        call alone changed."""
        arrays = run.arrays.get(scenario.name, {})
        facts = run.result["scenarios"][scenario.name]
        raised = bool(facts.get("error"))
        expected, written = ({key for key in side if key.startswith("state/")} for side in (scenario.arrays, arrays))
        unwritten, unexpected = (set(), set()) if raised else (expected - written, written - expected)
        if not unwritten and not unexpected:
            return Answer(facts, arrays)
        name = scenario.state
        if name not in self._states:
            self._states[name] = sketched(tensor_files.load(self.expected.given / f"states/{name}.safetensors"))
        state = self._states[name]
        as_given = {key: state[key[6:]] for key in unwritten if key[6:] in state}
        return Answer(facts, {**arrays, **as_given}, {key: state[key[6:]] for key in unexpected if key[6:] in state})

    def uncompiled(self, scenario: Scenario) -> Answer | None:
        """What the candidate gives natively in a scenario operator by operator, where XLA joins none; None where it gives nothing so."""
        return self._run_again("uncompiled", scenario)

    def optimised(self, scenario: Scenario) -> Answer | None:
        """What the candidate gives natively in a scenario, compiled with all optimisations, gradients too; None where it gives nothing so."""
        return self._run_again("optimised", scenario)

    def _run_again(self, kind: str, scenario: Scenario) -> Answer | None:
        if (kind, scenario.name) not in self._again:
            self._again[kind, scenario.name] = None
            with suppress(CandidateFailed, Exhausted, NotCompiled, *MALFORMED):
                run = self.run_job(kind, [scenario])
                answer = self.own_answer(run, scenario)
                self._again[kind, scenario.name] = None if answer.error else answer
        return self._again[kind, scenario.name]

    def forgives(self, scenario: Scenario, answer: Answer) -> bool:
        """Whether the candidate's error leaves out what it may leave out, of which a note tells. In another configuration, or on longer inputs, a
        mirror may do so on purpose alone."""
        role = scenario.role
        # A crash is no refusal: code that breaks by accident with other arguments must not pass as one that says no.
        crashes = role in (*CONFIGURATIONS, Role.ATTRIBUTES, Role.LONG) and self.port is None and answer.facts.get("kind") == "error"
        # `x.reshape(len(x), -1)` of no rows raises in JAX, and gives none in torch; so does a layer without inputs. With a single row what torch
        # gives is often a chance of broadcasting, such as a table of sines and cosines of width one.
        empty = scenario.extreme == Extreme.EMPTY or (role in CONFIGURATIONS and self._lacks_rows(scenario))
        optional = (role in REFUSABLE and not crashes) or empty or refuses_surplus(scenario.name, answer.facts)
        # So may the method be that comes first.
        stub = self.may_be_stub(scenario) or (scenario.prior >= 0 and self.may_be_stub_of(self.expected.examples[scenario.prior]["index"]))
        return bool(answer.error) and (optional or stub)

    def _lacks_rows(self, scenario: Scenario) -> bool:
        """Whether the original's state has an array without elements there, or one of a single row that has several otherwise."""
        usual, shapes = self.described()["state"], self.expected.examples[scenario.example]["state"]
        pairs = ((size, then) for name, shape in shapes.items() for size, then in zip(shape, usual.get(name, ()), strict=False))
        return any(0 in shape for shape in shapes.values()) or any(size < 2 <= then for size, then in pairs)

    def may_be_stub(self, scenario: Scenario) -> bool:
        """Whether the scenario calls a method that only a guess calls, of a rewrite in which what no compared call ran becomes a stub."""
        return self.may_be_stub_of(self.expected.examples[scenario.example]["index"])

    def may_be_stub_of(self, index: int) -> bool:
        """The same of an example by its number."""
        example = self.examples[index]
        # A port by hand may have its gradients in another form than torch's functions.
        optional = self.unreached == "stub" or example.method.startswith(APPLIED)
        if not optional or not example.method or example.origin != "inference":
            return False
        # One call that it answers keeps its lines, so that it must answer all others as well.
        return all(answer.error for other, answer in self.answers() if self.called(other).method == example.method)

    def called(self, scenario: Scenario) -> Example:
        """The example that a scenario runs."""
        index: int = self.expected.examples[scenario.example]["index"]
        return self.examples[index]

    def described(self) -> Mapping[str, Any]:
        """What the first example that ran says about the original."""
        return self.expected.examples[0]


def read_arrays(run: Run, kind: str) -> dict[str, dict[str, Array]]:
    """The arrays that a run wrote, by scenario. Raises `Lost`, `Exhausted`, `CandidateFailed`."""
    if run.status == "lost":
        raise Lost(f"its {kind} run was lost: {run.error}")
    if run.status in EXHAUSTED:
        raise Exhausted(f"its {kind} run ended with {run.status}: {run.error}")
    if run.status != "ok":
        raise CandidateFailed(f"its {kind} run ended with {run.status}: {run.error}")
    try:
        return {path.stem: tensor_files.load(path) for path in sorted(run.output.glob("*.safetensors"))}
    except (OSError, ValueError) as error:
        raise CandidateFailed(f"its {kind} run left files that cannot be read: {error}") from error


def _check_form(run: Run, kind: str) -> None:
    """The candidate's process wrote the result, so its form is not to be trusted. Raises `CandidateFailed`."""
    result = run.result
    if not isinstance(result, dict) or not (
        result.keys() & {"construction", "compiler"} or isinstance(result.get("scenarios"), dict) or "spec" in result
    ):
        raise CandidateFailed(f"its {kind} run returned something else than a result")
    result.setdefault("scenarios", {})
