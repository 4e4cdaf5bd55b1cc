"""In float32, as users run it, the candidate errs at most twice as much as torch does, both against torch's float64 answer; dtypes agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import codec, limits
from migrate_agent.tools.verify.check import NEW_PROCESS, Check
from migrate_agent.tools.verify.compare import Difference, pattern_problem, rms, verdict
from migrate_agent.tools.verify.pairing import UNPAIRED, Pair, output_pairs, paired
from migrate_agent.tools.verify.results import NATIVE, Answer, Results, Scenario


def judge(results: Results) -> Verdict | None:
    """Within twice torch's error and the floors of `limits`."""
    return verdict("numeric", "forward_fp32", _differences(results), UNPAIRED)


def _differences(results: Results) -> Iterator[Difference]:
    for scenario, answer in results.answers("seed", kind="native"):
        if answer.error:
            yield Difference(scenario.name, float("inf"), 0.0, answer.error)
        elif paired(scenario, answer):
            yield from dtype_problems(scenario, answer)
            for exact, native in zip(output_pairs(scenario, answer), output_pairs(scenario, answer, "native/"), strict=True):
                yield compare_native(exact, native, scenario.noise(exact.key)[0])


def dtype_problems(scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    """Outputs of another dtype than torch's, jax's narrower defaults granted."""
    theirs, ours = codec.items(scenario.facts["tree"]), codec.items(answer.facts["tree"])
    for number, (their, our) in enumerate(zip(theirs, ours, strict=False)):
        if not isinstance(their, codec.Leaf) or not isinstance(our, codec.Leaf):
            continue
        wanted, got = scenario.facts["native"][their.number], answer.facts["dtypes"][our.number]
        if NATIVE.get(wanted, wanted) != NATIVE.get(got, got):
            yield Difference(f"{scenario.name} output {number}", float("inf"), 0.0, f"dtype {got} instead of {wanted}")


def compare_native(exact: Pair, native: Pair, noise: float) -> Difference:
    """Errors of both sides against the float64 answer, relative to its RMS. Where torch overflows, so may the candidate."""
    label = f"{exact.label} (float32)"
    if native.got is None:
        return Difference(label, float("inf"), 0.0, "the candidate gave none")
    problem = pattern_problem(native.expected, native.got)
    if problem:
        return Difference(label, float("inf"), 0.0, problem)
    if exact.expected.dtype.kind not in "fc":
        wrong = float(np.mean(native.expected != native.got)) if native.expected.size else 0.0
        return Difference(label, wrong, 0.0, f"{wrong:.2%} of the elements differ" if wrong else "")
    finite = np.isfinite(exact.expected) & np.isfinite(native.expected)
    truth, torchs, ours = (np.where(finite, value, 0).astype(np.complex128) for value in (exact.expected, native.expected, native.got))
    size = rms(np.abs(truth)) or 1.0
    own = rms(np.abs(torchs - truth)) / size
    conditioning = limits.NOISE_FACTOR_FP32 * noise * (limits.EPS32 / limits.EPS64) / size
    return Difference(label, rms(np.abs(ours - truth)) / size, limits.FP32_FACTOR * own + max(limits.FLOOR_FP32, conditioning))


CHECK = Check("numeric", "forward_fp32", judge, cost=NEW_PROCESS)
