"""What goes wrong on either side is told in one line, and never counts as a pass."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental import io_callback

from migrate_agent.evals.mutation import corpus
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.sampling import first_quick
from migrate_agent.tests.tools.verify.harness import Pair, check_pair, told
from migrate_agent.tests.tools.verify.pairs_layers import MLP
from migrate_agent.tools.harness.jax_side.errors import CompilerFailed, describe_error
from migrate_agent.tools.types import Evidence, Example, Inventory, Job, Run, SourceFile, Unit
from migrate_agent.tools.verify import Options, verify

SMALL = Pair(
    "small",
    """
    class M(nn.Module):
        def forward(self, x):
            return 2 * x
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return 2 * x
""",
    call="torch.randn(3, 4)",
)

ORIGINALS = {
    "raises": (replace(SMALL, call="torch.zeros(2), 7"), "takes 2 positional arguments"),
    "does not import": (
        replace(SMALL, torch="import not_there\n" + SMALL.torch.replace("\n    ", "\n").replace("2 * x", "not_there.f(x)")),
        "not_there",
    ),
    "never ends": (replace(SMALL, torch=SMALL.torch.replace("return 2 * x", "\n            while True: pass")), "timeout"),
    "ends its process": (
        replace(SMALL, torch=SMALL.torch.replace("return 2 * x", "\n            import os; os._exit(3)")),
        "exit status 3",
    ),
    "takes what cannot be passed": (replace(SMALL, call="object()"), "object"),
}
CANDIDATES = {
    "exits": ("pass", "raise SystemExit(0)", "SystemExit"),
    "recurses": ("return 2 * x", "return self(x)", "RecursionError"),
    "is a function": ("class M(nnx.Module):", "def M(*, rngs): pass\nclass N(nnx.Module):", "no flax.nnx.Module"),
}


def test_a_file_that_does_not_parse_is_no_obstacle(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    """The example constructs an object, whose class is looked for in all files."""
    original, mirror = tmp_path / "original", tmp_path / "candidate"
    head = "from argparse import Namespace\n"
    body = "\n    def {}(self, x):\n        return self.times * x\n"
    port = "from flax import nnx\n\nclass M(nnx.Module):\n    def __init__(self, args, *, rngs):\n        self.times = args.times\n"
    net = "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, args):\n        super().__init__()\n        self.times = args.times\n"
    texts = {original / "m.py": head + net + body.format("forward"), original / "old.py": "print 'x'\n"}
    for path, text in {**texts, mirror / "m_jax.py": head + port + body.format("__call__")}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    unit, example = Unit("m.py", "M", "m_jax.py", "rewrite"), Example("m.py:M", "Namespace(times=2)", "torch.randn(3, 4)")
    old = SourceFile("old.py", "old", "old_jax.py", "old_jax", False, error="line 1: Missing parentheses in call to 'print'")
    inventory = Inventory(original, (SourceFile("m.py", "m", "m_jax.py", "m_jax", True), old), (unit,))
    port_example = replace(example, init=f"{example.init}, rngs=rngs")
    evidence = verify(unit, [example], [port_example], original, mirror, inventory, sandbox, tmp_path / "work", Options())
    assert evidence.status == "verified", told(evidence)


def only(evidence: Evidence, status: str) -> str:
    """The detail of the verdicts of this status, of which there must be one at least."""
    found = [verdict.detail for verdict in evidence.verdicts if verdict.status == status]
    assert found, told(evidence)
    assert all("\n" not in detail for detail in found)
    return " | ".join(found)


@pytest.mark.parametrize("name", ORIGINALS)
def test_original_that_does_not_run_leaves_the_unit_unverified(name: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    pair, words = ORIGINALS[name]
    evidence = check_pair(pair, SMALL.candidate(), sandbox, tmp_path, seconds=4.0)
    assert evidence.status == "unverified", told(evidence)
    assert words in only(evidence, "unverified")


@pytest.mark.parametrize("name", first_quick(3, CANDIDATES))
def test_candidate_that_does_not_run_fails(name: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    old, new, words = CANDIDATES[name]
    evidence = check_pair(SMALL, SMALL.candidate().replace(old, new), sandbox, tmp_path, seconds=8.0)
    assert evidence.status == "failed", told(evidence)
    assert words in only(evidence, "fail")


EXHAUSTING = {
    "never ends": ("return 2 * x", "\n        while True: pass", "timeout"),
    "takes all memory at first": ("pass", "self.big = jnp.ones((1 << 31, 4))", "memory: MemoryError: RESOURCE_EXHAUSTED"),
    "asks the machine for too much": ("return 2 * x", "raise MemoryError('np')", "memory: MemoryError: np"),
    "writes all over the disk": ("return 2 * x", "raise OSError(28, 'No space left on device')", "disk: OSError"),
}


@pytest.mark.parametrize("name", EXHAUSTING)
def test_candidate_out_of_time_memory_or_disk_is_unverified(name: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    """It may be right: on another machine it would have ended."""
    old, new, words = EXHAUSTING[name]
    evidence = check_pair(SMALL, SMALL.candidate().replace(old, new), sandbox, tmp_path, seconds=8.0)
    assert evidence.status == "unverified", told(evidence)
    assert words in only(evidence, "unverified")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."), MemoryError),
        (OSError(errno.ENOSPC, "No space left on device"), OSError),
        (jax.errors.JaxRuntimeError("INTERNAL: YNNPACK operation failed: error"), CompilerFailed),
    ],
)
def test_an_error_that_is_not_the_candidate_s_ends_its_job(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        describe_error(error, Path("/"))
    assert describe_error(jax.errors.JaxRuntimeError("INVALID_ARGUMENT: no"), Path("/"))["kind"] == "error"
    assert describe_error(FileNotFoundError(errno.ENOENT, "no"), Path("/"))["kind"] == "error"


@pytest.mark.parametrize("function", [jax.pure_callback, io_callback])
def test_an_error_in_a_callback_is_the_candidate_s(function: Callable[..., Any]) -> None:
    def refuse(x: Any) -> Any:
        raise ValueError("no")

    shape_of: Any = jax.ShapeDtypeStruct
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: function(refuse, shape_of((), "float32"), x))(1.0).block_until_ready()
    assert describe_error(caught.value, Path("/"))["kind"] == "error"


FAULTS = {
    "XLA's own": ('raise jax.errors.JaxRuntimeError("INTERNAL: YNNPACK operation failed: error")', "unverified", "YNNPACK"),
    "a callback's": ("return jax.pure_callback(lambda v: 1 // 0, jax.ShapeDtypeStruct(x.shape, x.dtype), x)", "fail", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_of_the_compiler_fails_nothing(name: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    text, status, words = FAULTS[name]
    evidence = check_pair(SMALL, SMALL.candidate().replace("return 2 * x", text), sandbox, tmp_path)
    assert evidence.status == {"fail": "failed"}.get(status, status), told(evidence)
    assert words in only(evidence, status)


class Exhauster:
    """A sandbox in which one kind of job ends by its limits."""

    name = "exhauster"

    def __init__(self, inner: ProcessSandbox, entry: str, status: Any) -> None:
        self.inner, self.entry, self.status = inner, entry, status

    def run(self, job: Job) -> Run:
        """Run a job, and say that it did not get through where it is of that kind."""
        run = self.inner.run(job)
        return replace(run, status=self.status, result=None, error="its limit") if job.entry.endswith(self.entry) else run

    def close(self) -> None:
        """Nothing of its own."""


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ("original.job:run", "memory"),
        ("candidate.job:exact", "timeout"),
        ("candidate.job:exact", "lost"),
        ("native:native", "disk"),
        ("adversarial_search:run", "timeout"),
    ],
)
def test_a_job_that_ends_by_its_limits_fails_nothing(entry: str, status: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    exhauster: Any = Exhauster(sandbox, entry, status)
    evidence = check_pair(SMALL, SMALL.candidate(), exhauster, tmp_path)
    assert evidence.status == "unverified", told(evidence)
    assert status in only(evidence, "unverified")


class Forger:
    """A sandbox whose candidate jobs claim something else than they did."""

    name = "forger"

    def __init__(self, inner: ProcessSandbox, claim: object) -> None:
        self.inner, self.claim = inner, claim

    def run(self, job: Job) -> Run:
        """Forge the result of the candidate's side."""
        run = self.inner.run(job)
        return replace(run, result=self.claim) if job.side == "candidate" else run

    def close(self) -> None:
        """Nothing of its own."""


@pytest.mark.parametrize(
    "claim", [None, [], {}, {"scenarios": {}}, {"spec": {}, "scenarios": {}}, {"spec": "verified", "scenarios": {"e0-eval-s0": {}}}]
)
def test_forged_results_never_pass(claim: object, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    evidence = check_pair(SMALL, SMALL.candidate(), Forger(sandbox, claim), tmp_path)  # type: ignore[arg-type]
    assert evidence.status != "verified", told(evidence)


def _everywhere(value: Any, leaf: object) -> Any:
    """The result with this in place of every number."""
    if isinstance(value, dict):
        return {key: _everywhere(item, leaf) for key, item in value.items()}
    if isinstance(value, list):
        return [_everywhere(item, leaf) for item in value]
    return leaf if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _nested(value: Any) -> Any:
    """The result with every tree nested deeper than Python's stack is likely to be."""
    for answer in value.get("scenarios", {}).values():
        tree = answer.get("tree", {})
        for _ in range(950):
            tree = {"list": [tree]}
        answer["tree"] = tree
    return value


class Garbler:
    """A sandbox whose candidate jobs do what they should, and say or leave something of another form."""

    name = "garbler"

    def __init__(self, inner: ProcessSandbox, said: Callable[[Any], Any], left: Callable[[bytes], bytes]) -> None:
        self.inner, self.said, self.left = inner, said, left

    def run(self, job: Job) -> Run:
        """Garble what comes from the candidate's side."""
        run = self.inner.run(job)
        if job.side != "candidate":
            return run
        for path in run.output.rglob("*.safetensors"):
            path.write_bytes(self.left(path.read_bytes()))
        return replace(run, result=self.said(run.result))

    def close(self) -> None:
        """Nothing of its own."""


GARBLED: dict[str, tuple[Callable[[Any], Any], Callable[[bytes], bytes]]] = {
    "numbers too large for any float": (lambda value: _everywhere(value, 10**400), bytes),
    "texts for numbers": (lambda value: _everywhere(value, "1"), bytes),
    "trees as deep as the stack": (_nested, bytes),
    "files that end early": (lambda value: value, lambda data: data[:-1]),
    "files whose header lies": (lambda value: value, lambda data: (2**62).to_bytes(8, "little") + data[8:]),
    "files of other arrays": (lambda value: value, lambda data: b"\x02\0\0\0\0\0\0\0{}"),
}


@pytest.mark.parametrize("name", first_quick(3, GARBLED))
def test_garbled_results_never_pass_and_stop_nothing(name: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    evidence = check_pair(SMALL, SMALL.candidate(), Garbler(sandbox, *GARBLED[name]), tmp_path)  # type: ignore[arg-type]
    assert evidence.status != "verified", told(evidence)
    assert all(len(verdict.detail) < 1000 for verdict in evidence.verdicts)


class Watcher:
    """A sandbox that looks at what candidates' jobs are given."""

    name = "watcher"

    def __init__(self, inner: ProcessSandbox) -> None:
        self.inner = inner
        self.jobs: list[Job] = []
        self.files: list[str] = []

    def run(self, job: Job) -> Run:
        """Take note and run."""
        self.jobs.append(job)
        self.files += [path.name for root in job.inputs.values() for path in root.rglob("*") if job.side == "candidate"]
        return self.inner.run(job)

    def release(self, run: Run) -> None:
        """As the real one."""
        self.inner.release(run)

    def close(self) -> None:
        """Nothing of its own."""


def test_original_runs_once_for_several_attempts_and_its_answers_are_not_given_away(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    watcher = Watcher(sandbox)
    for _ in range(2):
        evidence = check_pair(MLP, MLP.candidate(), watcher, tmp_path)
        assert evidence.status == "verified", told(evidence)
    entries = [job.entry.rpartition(".")[2] for job in watcher.jobs]
    assert sorted(entries[:2]) == ["job:configured", "job:run"]
    whole = ["adversarial_search:run", "job:exact", "native:native"]
    assert sorted(entries[2:5]) == whole
    assert entries[5] == "job:exact" and sorted(entries[6:]) == whole, "a further attempt is looked at for one call first"
    assert not list((tmp_path / "work").rglob("*.safetensors"))
    candidates = [job for job in watcher.jobs if job.side == "candidate"]
    told_keys = {key for job in candidates for scenario in job.arguments["scenarios"] for key in scenario}
    how_to_call = {"name", "example", "role", "mode", "gradient", "state", "drawing", "leaf_dtypes", "native", "draws", "conditions"}
    assert told_keys == how_to_call | {"before", "prior", "empty"}
    assert watcher.files and all(name.endswith(".safetensors") or name in ("inputs", "states") for name in watcher.files)


@pytest.mark.ci
def test_rounding_noise_is_asked_for_where_a_verdict_hangs_on_it_and_once(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    watcher = Watcher(sandbox)
    ill = corpus.load_originals()["conditioning"]
    rewrites = [case for case in corpus.load_cases() if case.original == ill.name and case.kind == "right"]
    for case in rewrites:
        evidence = corpus.verify_case(ill, case.source, watcher, tmp_path, Options(localise=False))
        assert evidence.status == "verified", told(evidence)
    asked = [job for job in watcher.jobs if job.entry.endswith("noise:run")]
    names = [scenario["name"] for job in asked for scenario in job.arguments["scenarios"]]
    curves = [job for job in asked if job.arguments["curves"] is not None]
    assert len(rewrites) > 1 and names and len(names) == len(set(names)) and len(asked) - len(curves) <= 2 and len(curves) <= 1
    assert {job.side for job in asked} == {"original"}


@pytest.mark.ci
@pytest.mark.parametrize("label", ["transposed square weight", "ReLU for GELU where positive"])
def test_a_further_attempt_that_is_wrong_at_the_first_call_is_asked_no_more(label: str, sandbox: ProcessSandbox, tmp_path: Path) -> None:
    assert check_pair(MLP, MLP.candidate(), sandbox, tmp_path).status == "verified"
    watcher = Watcher(sandbox)
    wrong = next(each for each in MLP.wrongs if each.label == label)
    evidence = check_pair(MLP, MLP.candidate(wrong), watcher, tmp_path)
    assert evidence.status == "failed"
    asked = [job.entry.rpartition(".")[2] for job in watcher.jobs]
    assert asked.count("job:exact") == 1 and "native:native" not in asked
    # A value beyond its limit is wrong only where torch's own array is not noise by as much: one run of the original says so.
    noise = [job for job in watcher.jobs if job.entry.endswith("noise:run")]
    assert len(noise) <= 1 and all(job.side == "original" for job in noise)
    assert [verdict.check for verdict in evidence.verdicts if verdict.status != "pass"] == [wrong.check]
