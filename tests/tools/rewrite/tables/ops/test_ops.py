"""Every operator row against PyTorch, on PyTorch's own samples (`op_db`) and the rows' own."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from migrate_agent.tests.sampling import one_in
from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tests.tools.rewrite.tables.ops import exclusions
from migrate_agent.tests.tools.rewrite.tables.ops.differential import RTOL, Case, compare, evaluate, leaves, namespace, to_jax, torch_result
from migrate_agent.tests.tools.rewrite.tables.ops.expansion import expand
from migrate_agent.tests.tools.rewrite.tables.ops.survey import full_name, judge, spellings
from migrate_agent.tools.harness.torch_side.removed_functions import REMOVED
from migrate_agent.tools.rewrite.tables.registry import Op, methods, ops
from migrate_agent.tools.rewrite.tables.signatures import parse_signature

SAMPLES = 1
"""Samples of each dtype; `survey.judge` takes any number."""

# `op_db` feeds overflow, division by zero and casts that drop parts on purpose.
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = list(dict.fromkeys([*ops().values(), *methods().values()]))
NAME = re.compile(r"\b((?:jnp|jax|lax|np|math|vendored)(?:\.\w+)+)")


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """float64 on both sides."""
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(torch.float32)


def in_scope() -> list[Any]:
    left_out = exclusions.EXCLUDED.keys() | exclusions.MISSING.keys() | exclusions.WRONG.keys()
    return one_in(24, ((full_name(entry), entry) for entry in op_db if not {entry.name, full_name(entry)} & left_out), ci=6)


@pytest.mark.parametrize("entry", in_scope())
def test_row_does_what_torch_does(entry: Any) -> None:
    judgement = judge(entry, SAMPLES)
    expected = {"right", "refused"} if entry.name in exclusions.REFUSED else {"right"}
    assert judgement.outcome in expected, judgement.detail
    assert judgement.checked or judgement.outcome == "right"
    if judgement.outcome == "refused":
        assert judgement.detail.startswith(exclusions.REFUSED[entry.name])


def test_entries_without_a_row_are_listed() -> None:
    missing = {str(entry.name) for entry in op_db if not spellings(entry.name)} - exclusions.EXCLUDED.keys()
    assert missing == exclusions.MISSING.keys()


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS if row.samples])
def test_own_samples_through_the_engine(row: Op, tmp_path: Path) -> None:
    for sample in row.samples:
        text, holes = rewrite_snippet(tmp_path, f"import torch\n\n{sample}\n")
        assert not holes, sample
        ours, theirs = leaves(evaluate(text.strip())), leaves(torch_result(Case(sample, (), False)))
        assert len(ours) == len(theirs), text
        for a, b in zip(ours, theirs, strict=True):
            compare(text, a, b, RTOL, dtypes=False)


FILLS = (
    "normal_(1, 2)",
    "uniform_(0, 3)",
    "uniform_(0.0, 1.0)",
    "uniform_(-2)",
    "exponential_(2)",
    "log_normal_()",
    "cauchy_()",
    "geometric_(0.35)",
    "bernoulli_(0.3)",
    "bernoulli_(1)",
    "normal_()",
)


@pytest.mark.parametrize("fill", FILLS)
def test_random_fills(fill: str) -> None:
    tensor = torch.zeros(200, 300)
    ours = evaluate(expand(f"t0.{fill}", {"t0": tensor}), t0=to_jax(tensor))
    theirs = to_jax(eval(f"tensor.{fill}", {"tensor": tensor}))
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    for quantile in (0.1, 0.5, 0.9):
        assert jnp.allclose(jnp.quantile(ours, quantile), jnp.quantile(theirs, quantile), rtol=0.08, atol=0.05)


@pytest.mark.parametrize(("shape", "options"), [((3, 3), "0.5"), ((2, 5), "2"), ((5, 2), "2"), ((2, 2, 2), "0")])
def test_diagonal_fills(shape: tuple[int, ...], options: str) -> None:
    tensor = torch.ones(shape)
    ours = evaluate(expand(f"t0.fill_diagonal_({options})", {"t0": tensor}), t0=to_jax(tensor))
    assert (ours == to_jax(eval(f"tensor.fill_diagonal_({options})", {"tensor": tensor}))).all()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_is_well_formed(row: Op) -> None:
    signature = parse_signature(row.signature)
    known = {*signature.names, *signature.keyword_only, signature.variadic, "rng", "rngs"}
    template = row.to if isinstance(row.to, str) else ""
    assert set(re.findall(r"\{\*?(\w+)", template)) <= known
    for name in NAME.findall(template):
        resolve(name)


def resolve(name: str) -> Any:
    """The object a dotted name of a template stands for. Raises `AttributeError`."""
    root, *rest = name.split(".")
    value = namespace()[root]
    for part in rest:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("row", [row for row in ROWS if row.name.startswith("torch.")], ids=lambda row: row.name)
def test_row_names_exist_in_torch(row: Op) -> None:
    for name in (row.name, *row.aliases):
        parts = name.split(".")
        try:
            value: Any = importlib.import_module(".".join(parts[:-1]))
        except ModuleNotFoundError:
            value = importlib.import_module(".".join(parts[:-2])).__dict__[parts[-2]]
        names = (parts[-1], f"{parts[-1]}_")
        assert any(hasattr(value, candidate) for candidate in names) or parts[-1] in REMOVED, name
