"""Which kernels are taken in the place of plain JAX: where their calls are, what is written, and when they are held to help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.tools.portable.units import ahead
from migrate_agent.tools.harness.jax_side.interpreted import interpreted
from migrate_agent.tools.kernels.scaled_dot_product import fused_scaled_dot_product_attention
from migrate_agent.tools.portable import adopt, kernel_check
from migrate_agent.tools.portable.ahead import Target, Variant
from migrate_agent.tools.portable.chips import topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.kernel_calls import kernel_calls, with_kernels
from migrate_agent.tools.portable.refusal import Refusal
from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.vendored.attention import scaled_dot_product_attention

TEXT = """
import nnx_layers_jax as nnx_layers
from nnx_layers_jax import Linear, fused_rms_norm, scaled_dot_product_attention as attend
from nnx_layers_jax import scaled_dot_product_attention


def f(q, k, w):
    q = fused_rms_norm(q, w, implementation="xla")
    k = nnx_layers.fused_rms_norm(k, w,)  # ü
    return scaled_dot_product_attention(q, k, k, is_causal=(True
    )), attend(q, k, k), fused_rms_norm(*[q, k])


class Other:
    def fused_softmax(self, x):
        return self.fused_softmax(x)
"""
HELPERS = helpers.render(["Linear", "fused_rms_norm", "scaled_dot_product_attention"])
FILES = {"m_jax.py": TEXT, "nnx_layers_jax.py": HELPERS}
V5E = Target(topology("v5e:1x1"), {"data": 1})
PLAIN = Cost(
    "v5e:1x1", "train", devices=1, memory={"argument": 100, "temp": 100, "output": 0, "alias": 0}, flops=1.0, bytes=8192e6, bound=0.01
)
ABOUT = {"live": 2, "kernels": [{"shapes": [[1000], [1000]], "dtypes": ["float32", "bfloat16"]}]}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def test_calls_that_do_not_say_what_they_want_are_found() -> None:
    assert [(call.line, call.kernel) for call in kernel_calls(FILES)] == [
        (9, "fused_rms_norm"),
        (10, "fused_scaled_dot_product_attention"),
        (11, "fused_rms_norm"),
    ]


def test_taken_kernels_are_written_with_what_they_need() -> None:
    done = with_kernels(FILES, [call for call in kernel_calls(FILES) if call.line < 11])
    assert done.keys() == FILES.keys()
    assert 'k = nnx_layers.fused_rms_norm(k, w, implementation="auto")  # ü' in done["m_jax.py"]
    assert 'fused_scaled_dot_product_attention(q, k, k, is_causal=(True), implementation="auto")' in done["m_jax.py"]
    assert "from nnx_layers_jax import Linear, fused_rms_norm" in done["m_jax.py"]
    names: dict[str, object] = {}
    exec(done["nnx_layers_jax.py"], names)
    assert {"Linear", "fused_rms_norm", "fused_scaled_dot_product_attention", "flash_attention"} <= names.keys()
    only = with_kernels(FILES, [call for call in kernel_calls(FILES) if call.line == 9])
    assert only.keys() == {"m_jax.py"}, "the helpers have that kernel already"


@pytest.mark.parametrize(
    ("fused", "about", "helps", "why"),
    [
        (replace(PLAIN, bytes=4096e6, kernels=2), ABOUT, True, "0.50 of the plain bound, 1.00 of the plain memory"),
        (replace(PLAIN, bytes=8190e6, kernels=2), ABOUT, False, "1.00 of the plain bound, 1.00 of the plain memory"),
        (replace(PLAIN, bytes=4096e6, kernels=2, memory={**PLAIN.memory, "temp": 200}), ABOUT, False, "1.50 of the plain memory"),
        (replace(PLAIN, bytes=4096e6, kernels=0), ABOUT, False, "no kernel is live in the compiled program: it is dead code"),
        (replace(PLAIN, bytes=4096e6, kernels=2), {**ABOUT, "live": 0}, False, "it is dead code"),
        (replace(PLAIN, bytes=4096e6), {"live": 0, "kernels": []}, False, "plain JAX runs in its place"),
        (replace(PLAIN, refused=Refusal("vmem", "m.py:1", "too large", "")), {}, False, "refused (vmem): too large"),
    ],
)
def test_a_kernel_is_adopted_where_it_compiles_is_live_and_helps(fused: Cost, about: dict[str, object], helps: bool, why: str) -> None:
    found = adopt.judge_kernel("k", kernel_calls(FILES)[:1], V5E, PLAIN, fused, about)
    assert (found.helps, found.places) == (helps, ("m_jax.py:9",))
    assert why in found.why


def test_operands_and_results_of_kernels_count() -> None:
    bound = adopt.predicted_bound(PLAIN, replace(PLAIN, bytes=1e6), V5E.topology, ABOUT["kernels"])  # type: ignore[arg-type]
    assert bound == pytest.approx((1e6 + 4000 + 2000) / 819e9)


def test_kernels_are_judged_by_the_rule_for_float32() -> None:
    exact = {"0": np.ones(4), "1": np.arange(4)}
    own = {"0": np.ones(4, np.float32) + 1e-6, "1": np.arange(4)}
    near, far = {**own, "0": np.ones(4, np.float32) + 3e-6}, {**own, "0": np.ones(4, np.float32) + 6e-6}
    assert kernel_check.judge_steps(exact, own, near, ["output", "state"]).equal
    found = kernel_check.judge_steps(exact, own, far, ["output", "state"])
    assert (found.equal, found.worst) == (False, "output 0")
    assert not kernel_check.judge_steps(exact, own, {**near, "1": np.arange(1, 5)}, ["output", "state"]).equal


@pytest.mark.parametrize(("body", "live"), [("live kernel", 1), ("dead kernel", 0)])
def test_a_kernel_that_nothing_depends_on_is_not_live(tmp_path: Path, sandbox: Sandbox, body: str, live: int) -> None:
    with ahead(tmp_path, sandbox, body) as unit:
        (facts,) = unit.facts([Variant()], ["forward"])
    assert (len(facts["forward"]["kernels"]), facts["forward"]["live"]) == (1, live)


def test_attention_by_the_kernel_is_torch_s() -> None:
    """With a mask that is added, and forbids everything to one query."""
    generator = np.random.default_rng(0)
    q, k, v = (jnp.asarray(generator.standard_normal((1, 2, n, 16)), jnp.float32) for n in (8, 12, 12))
    seen = jnp.asarray(generator.random((8, 12)) < 0.6).at[2].set(False)
    mask = jnp.where(seen, generator.standard_normal((8, 12)), -jnp.inf).astype(jnp.float32)
    with interpreted():
        found = fused_scaled_dot_product_attention(q, k, v, mask, implementation="tpu")
    np.testing.assert_allclose(found, scaled_dot_product_attention(q, k, v, mask), rtol=2e-5, atol=2e-6)


def test_the_kernel_drops_what_plain_jax_drops() -> None:
    q, k, v = (jnp.asarray(np.random.default_rng(seed).standard_normal((1, 2, 5, 8)), jnp.float32) for seed in range(3))
    with interpreted():
        found = fused_scaled_dot_product_attention(q, k, v, None, 0.4, True, rngs=nnx.Rngs(dropout=3), implementation="tpu")
    np.testing.assert_allclose(
        found, scaled_dot_product_attention(q, k, v, None, 0.4, True, rngs=nnx.Rngs(dropout=3)), rtol=2e-5, atol=2e-6
    )
