"""Vendored layers against torch's on `module_db`: forward, gradients, buffers, state dictionaries; in float64 and under `jax.jit`.

A few inputs of each entry, spread over its list; `ALL_MODULE_INPUTS=1` runs every one (about 1,200).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import jax
import pytest
from torch.testing._internal.common_modules import ModuleInfo

from migrate_agent.tests.sampling import one_in
from migrate_agent.tests.tools.vendored.exclusions import CONSTANT_ARGUMENTS, EXCLUDED
from migrate_agent.tests.tools.vendored.extra import extra_infos
from migrate_agent.tests.tools.vendored.modules import cases, compare, infos, layer_classes, spread

pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),  # that path of torch's is for inference without gradients
    pytest.mark.filterwarnings("ignore:linear_cross_entropy"),  # torch says when it does not compute in chunks
    pytest.mark.filterwarnings("ignore:size_average and reduce args"),
    pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths"),
]

INPUTS = 10_000 if os.environ.get("ALL_MODULE_INPUTS") else 3
"""How many inputs of each entry run."""


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Double precision; programs that run once are not worth optimising."""
    before = jax.config.read("jax_disable_most_optimizations")  # type: ignore[no-untyped-call]
    jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", before)  # type: ignore[no-untyped-call]


def name(info: ModuleInfo) -> str:
    return str(info.module_cls.__name__)


def test_each_entry_has_a_layer_or_a_reason() -> None:
    names = {name(info) for info in infos()}
    assert names - layer_classes().keys() == EXCLUDED.keys()
    assert len(names - EXCLUDED.keys()) >= 100
    assert CONSTANT_ARGUMENTS.keys() <= names


@pytest.mark.parametrize("info", one_in(6, ((name(info), info) for info in infos() if name(info) not in EXCLUDED)))
def test_as_torch(info: ModuleInfo) -> None:
    chosen = spread(list(cases(info)), INPUTS)
    assert chosen
    for case in chosen:
        compare(case, compile=True)


@pytest.mark.parametrize("info", one_in(6, ((f"{i}-{name(info)}", info) for i, info in enumerate(extra_infos()))))
def test_further_cases(info: ModuleInfo) -> None:
    for case in cases(info):
        compare(case, compile=True)
