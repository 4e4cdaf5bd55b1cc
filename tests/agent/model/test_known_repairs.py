"""Deterministic repairs: each known cause, by its signature in the verdict."""

from __future__ import annotations

import pytest

from migrate_agent.agent.model.known_repairs import ROWS, UNEXERCISED, repairs
from migrate_agent.tools.types import Evidence, Raised, Verdict

NUMERIC = Verdict("numeric", "forward_fp64", "fail", error="values")
LATE = Verdict("numeric", "narrow_inputs", "fail", error="values")
SHAPE = Verdict(
    "spec", "output_tree", "fail", raised=Raised("TypeError", "dot_general requires contracting dimensions to have the same shape")
)

CASES = [
    (
        "epsilon",
        NUMERIC,
        "y = nnx.LayerNorm(4, epsilon=1e-6, rngs=rngs)",
        "y = LayerNorm(4, eps=1e-5)",
        "y = nnx.LayerNorm(4, epsilon=1e-05, rngs=rngs)",
    ),
    ("epsilon", NUMERIC, "y = nnx.LayerNorm(4, rngs=rngs)", "y = nn.LayerNorm(4)", "y = nnx.LayerNorm(4, rngs=rngs, epsilon=1e-05)"),
    ("epsilon", NUMERIC, "y = x / (n + 1e-6)", "y = x / (n + 1e-8)", "y = x / (n + 1e-08)"),
    ("approximate function", NUMERIC, "y = jax.nn.gelu(x)", "y = F.gelu(x)", "y = jax.nn.gelu(x, approximate=False)"),
    (
        "approximate function",
        NUMERIC,
        "y = jax.nn.gelu(x, approximate=False)",
        "y = F.gelu(x, approximate='tanh')",
        "y = jax.nn.gelu(x, approximate=True)",
    ),
    ("transposed weight", SHAPE, "y = x @ w", "y = x @ w.t()", "y = x @ w.T"),
    ("transposed weight", SHAPE, "y = jnp.matmul(x, w.T)", "y = x @ w", "y = jnp.matmul(x, w)"),
    ("axis", NUMERIC, "y = jnp.sum(x, axis=0)", "y = x.sum(dim=1)", "y = jnp.sum(x, axis=1)"),
    (
        "smaller index",
        SHAPE,
        "y = jnp.take_along_axis(x, jnp.expand_dims(t, -1), axis=-1)",
        "y = x.gather(-1, t.unsqueeze(-1))",
        "y = jnp.take_along_axis(x[tuple(map(slice, t.shape))], jnp.expand_dims(t, -1), axis=-1)",
    ),
    (
        "smaller index",
        SHAPE,
        "y = jnp.take_along_axis(x, i, axis=-1)",
        "y = x.gather(-1, i)",
        "y = jnp.take_along_axis(x[tuple(map(slice, i.shape[:-1]))], i, axis=-1)",
    ),
    ("mask sense", NUMERIC, "y = jnp.where(m, x, -1e9)", "y = x.masked_fill(m, -1e9)", "y = jnp.where(m, -1e9, x)"),
    ("mask sense", NUMERIC, "y = f(x, ~m)", "y = f(x, m)", "y = f(x, m)"),
    ("dtype", NUMERIC, "y = x.astype(jnp.float32) * 2", "y = x * 2", "y = x * 2"),
]


@pytest.mark.parametrize(("name", "verdict", "draft", "source", "right"), CASES)
def test_known_cause_is_mended(name: str, verdict: Verdict, draft: str, source: str, right: str) -> None:
    assert (name, right) in list(repairs(draft, source, Evidence("m.py:A", (verdict,))))


def test_every_known_cause_has_a_case() -> None:
    assert {row.name for row in ROWS} == {case[0] for case in CASES}


CRASHING = """\
class Net(nnx.Module):
    def __init__(self, wide, *, rngs):
        self.fill = None
        if wide:
            setup(self.fill)

    def reset(self):
        \"\"\"All of it.\"\"\"
        for layer in self.layers:
            setup(layer)
            setup(self.fill)
"""
STUB = """raise NotImplementedError("not migrated, since no example runs it: TypeError: setup() missing 'like'")"""


def test_a_crash_in_another_configuration_makes_stubs_of_the_blocks_around_it() -> None:
    def found(code: str, changes: tuple[str, ...] = ("constructed with wide=True",)) -> list[str]:
        raised = Raised("TypeError", "setup() missing 'like'", "net_jax.py", 40, code)
        verdict = Verdict("numeric", "configurations_fp64", "fail", error="raised", raised=raised, changes=changes)
        return [text for name, text in repairs(CRASHING, "", Evidence("m.py:A", (verdict,))) if name == UNEXERCISED]

    in_method = [
        CRASHING.replace("setup(layer)\n            setup(self.fill)", STUB),
        CRASHING[: CRASHING.index("for layer")] + STUB + "\n",
    ]
    assert found("setup(layer)") == in_method
    assert found("setup(self.fill)") == [CRASHING.replace("setup(self.fill)", STUB, 1), *in_method]
    assert found("setup(other)") == []
    assert found("setup(layer)", ()) == []


def test_sizes_are_no_axes() -> None:
    source = "layer = nn.Linear(4, 3)\ny = x.view(2, 8)\nz = x.sum(1)"
    found = [text for name, text in repairs("y = jnp.sum(x, axis=0)", source, Evidence("m.py:A", (NUMERIC,))) if name == "axis"]
    assert found == ["y = jnp.sum(x, axis=-1)", "y = jnp.sum(x, axis=1)"]


@pytest.mark.parametrize(
    ("draft", "source"),
    [
        ("y = jax.nn.gelu(x, approximate=False)", "y = F.gelu(x)"),
        ("y = nnx.LayerNorm(4, epsilon=1e-5, rngs=rngs)", "y = nn.LayerNorm(4)"),
        ("y = x.astype(jnp.float32)", "y = x.to(torch.float32)"),
        ("y = jnp.tanh(x)", "y = torch.tanh(x)"),
    ],
)
def test_what_agrees_with_the_original_is_left(draft: str, source: str) -> None:
    assert list(repairs(draft, source, Evidence("m.py:A", (NUMERIC,)))) == []


def test_the_signature_decides() -> None:
    passed = Evidence("m.py:A", (Verdict("numeric", "forward_fp64", "pass"), Verdict("static", "imports", "fail", detail="imports torch")))
    assert list(repairs("y = jax.nn.gelu(x @ w)", "y = F.gelu(x)", passed)) == []


def test_positions_count_characters() -> None:
    draft = "y = f('ä→é', jax.nn.gelu(x))"
    assert ("approximate function", "y = f('ä→é', jax.nn.gelu(x, approximate=False))") in list(
        repairs(draft, "y = F.gelu(x)", Evidence("m.py:A", (NUMERIC,)))
    )


def test_axes_and_masks_stay_where_the_first_passes_agree() -> None:
    draft, source = "y = jnp.where(m, jnp.sum(x, axis=0), 0)", "y = x.sum(dim=1)"
    assert {name for name, _ in repairs(draft, source, Evidence("m.py:A", (NUMERIC,)))} == {"axis", "mask sense"}
    assert not list(repairs(draft, source, Evidence("m.py:A", (LATE,))))
