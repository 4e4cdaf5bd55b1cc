"""Every kernel of the catalogue beside its reference, in the checking interpreter, lowered, and compiled where the TPU compiler is installed.

What is here is quick: `python -m migrate_agent.evals.bench.kernels --strict --compile v5e,v6e,tpu7x` does all kernels, shapes and dtypes.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from migrate_agent.evals.bench.kernels import LIMITS, errors, lowered, strict_errors
from migrate_agent.tools.kernels.catalogue import Case, Kernel, kernels
from migrate_agent.tools.kernels.common import KernelFallback
from migrate_agent.tools.kernels.rms_norm import fused_rms_norm
from migrate_agent.tools.kernels.ssd import ssd_scan

NAMES = sorted(kernels())
LONG = ("attention", "grouped_matmul", "linear_cross_entropy", "paged_attention", "selective_scan", "ssd", "top_k_routing")
"""Their interpreted programs take long to compile on a CPU: of these only the tiny shape, and of jax's own kernels not even that (ours has dropout)."""
THEIRS = ("attention", "grouped_matmul")
COMPILED = {"v5e": "ssd", "v6e": "rotary", "tpu7x": "causal_conv1d"}
CASES = [
    pytest.param(kernel, [case for case in kernel.shapes if not case.tiny][1], kernel.dtypes[i % len(kernel.dtypes)], id=name)
    for i, (name, kernel) in enumerate(sorted(kernels().items()))
    if name not in LONG
]
TINY = [
    pytest.param(kernel, case, id=name)
    for name, kernel in sorted(kernels().items())
    for case in kernel.shapes
    if case.tiny and (name not in THEIRS or "dropout" in case.options)
]


def test_catalogue_holds_the_library() -> None:
    wanted = (
        "attention causal_conv1d gated_activation grouped_matmul layer_norm linear_cross_entropy paged_attention quantised_matmul rms_norm rotary "
        "selective_scan softmax ssd top_k_routing"
    )
    assert wanted.split() == NAMES


@pytest.mark.parametrize(("kernel", "case", "dtype"), CASES)
def test_kernel_is_its_reference(kernel: Kernel, case: Case, dtype: type) -> None:
    found = errors(kernel, case, dtype)
    assert [error for error in found if not error <= LIMITS[dtype.__name__]] == []
    assert len(found) > len(kernel.differentiable(case))


@pytest.mark.slow  # the lane for TPUs runs it
@pytest.mark.parametrize(("kernel", "case"), TINY)
def test_kernel_neither_races_nor_reads_what_is_not_there(kernel: Kernel, case: Case) -> None:
    assert [error for error in strict_errors(kernel, case, jnp.float32) if not error <= LIMITS["float32"]] == []


@pytest.mark.parametrize("name", NAMES)
def test_program_holds_the_kernel_for_a_tpu_only(name: str) -> None:
    kernel = kernels()[name]
    assert "tpu_custom_call" in lowered(kernel, kernel.shapes[0], jnp.bfloat16, "tpu")
    if name == NAMES[-1]:
        assert "tpu_custom_call" not in lowered(kernel, kernel.shapes[0], jnp.bfloat16, "cuda")


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu: install migrate-agent[tpu]")
@pytest.mark.slow  # the lane for TPUs runs it
@pytest.mark.parametrize(("generation", "name"), COMPILED.items())
def test_first_shape_compiles(generation: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    command = [sys.executable, "-m", "migrate_agent.evals.bench.kernels", "--only", name, "--no-check", "--shapes", "1"]
    environment = {"JAX_PLATFORMS": "cpu", "PATH": ""}
    done = subprocess.run(
        [*command, "--compile", generation, "--output", str(file)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [row[generation]["kernels"] > 0 for row in json.loads(file.read_text())["rows"]] == [True, True]


def test_fallback_says_so() -> None:
    x = jnp.ones((2, 4), jnp.float16)
    with pytest.warns(KernelFallback, match="fused_rms_norm runs as plain JAX: the TPU kernel takes float32 and bfloat16, not float16"):
        y = fused_rms_norm(x, implementation="auto")
    np.testing.assert_array_equal(y, fused_rms_norm(x))
    with pytest.raises(NotImplementedError, match="not float16"):
        fused_rms_norm(x, implementation="tpu")
    with pytest.raises(NotImplementedError, match="an operand is empty"):
        fused_rms_norm(jnp.ones((0, 4)), implementation="tpu")
    with pytest.raises(ValueError, match="none of xla, auto, tpu"):
        fused_rms_norm(x, implementation="triton")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fused_rms_norm(x.astype(jnp.bfloat16), implementation="auto").dtype == jnp.bfloat16


def test_chunks_are_the_recurrence() -> None:
    """The reference of the state space dual is itself one by chunks: here beside the plain recurrence."""
    case = kernels()["ssd"].shapes[2]
    x, dt, A, B, C, D = (np.asarray(operand, np.float64) for operand in case.draw(jnp.float32) if operand is not None)
    h, expected = np.zeros((*x.shape[2:], B.shape[-1])), np.zeros_like(x[0])
    for t in range(x.shape[1]):
        h = np.exp(dt[0, t] * A)[:, None, None] * h + dt[0, t][:, None, None] * x[0, t][:, :, None] * B[0, t][:, None, :]
        expected[t] = (h * C[0, t][:, None, :]).sum(-1) + D[:, None] * x[0, t]
    found = jax.jit(ssd_scan)(*(jnp.asarray(operand, jnp.float32) for operand in (x, dt, A, B, C, D)))
    np.testing.assert_allclose(np.asarray(found)[0], expected, rtol=2e-4, atol=2e-5)
    assert jax.tree.leaves(found)[0].shape == x.shape
