"""Shardings by layer type, and a sharded training step on simulated devices beside one device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tests.sampling import first_quick
from migrate_agent.tests.tools.portable.units import ahead, needs_compiler
from migrate_agent.tools.portable import sharding
from migrate_agent.tools.portable.ahead import Target, Variant
from migrate_agent.tools.portable.chips import topology
from migrate_agent.tools.portable.mesh_check import check
from migrate_agent.tools.portable.sharding import MeshError, parse_mesh, propose

LAYERS = {
    "": ["Block", "Module"],
    "attn": ["Attention", "Module"],
    "attn/qkv": ["Linear", "Module"],
    "attn/proj": ["Linear", "Module"],
    "mlp/up": ["Linear", "Module"],
    "mlp/down": ["Linear", "Module"],
    "conv": ["Conv2d", "Conv", "Module"],
    "norm": ["LayerNorm", "Module"],
    "wte": ["Embedding", "Embed", "Module"],
}
SHAPES = {
    "attn/proj/kernel": (64, 64),
    "attn/qkv/bias": (64,),
    "attn/qkv/kernel": (64, 64),
    "conv/kernel": (3, 3, 6, 8),
    "mlp/down/bias": (64,),
    "mlp/down/kernel": (256, 64),
    "mlp/up/kernel": (64, 256),
    "norm/scale": (64,),
    "wte/embedding": (101, 64),
}
ROWS: list[dict[str, Any]] = [
    {"role": "parameter", "path": path, "shape": list(shape), "dtype": "float32"} for path, shape in SHAPES.items()
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


@pytest.mark.parametrize("text", ["", "data", "data=0", "rows=2", "data=2,data=2", "data=4;model=2"])
def test_meshes_are_read_strictly(text: str) -> None:
    with pytest.raises(MeshError, match="such as data=4,model=2"):
        parse_mesh(text)


@pytest.mark.parametrize(
    ("axes", "specs"),
    [
        (
            "data=4,model=2",
            {
                "attn/qkv/kernel": (None, "model"),
                "attn/qkv/bias": ("model",),
                "attn/proj/kernel": ("model", None),
                "mlp/up/kernel": (None, "model"),
                "mlp/down/kernel": ("model", None),
                "mlp/down/bias": (),
                "conv/kernel": (None, None, None, "model"),
                "norm/scale": (),
                "wte/embedding": (None, "model"),  # 101 rows do not divide
            },
        ),
        ("fsdp=8", {"mlp/up/kernel": (None, "fsdp"), "conv/kernel": (None, None, None, "fsdp"), "norm/scale": ()}),
        ("fsdp=2,model=2", {"mlp/up/kernel": ("fsdp", "model"), "wte/embedding": (None, "model")}),
        ("data=8", {"mlp/up/kernel": (), "wte/embedding": ()}),
    ],
)
def test_parameters_are_placed_by_their_layer(axes: str, specs: dict[str, tuple[Any, ...]]) -> None:
    proposal = propose(ROWS, LAYERS, parse_mesh(axes))
    assert {each.path: each.spec for each in proposal.placed if each.path in specs} == specs


def test_optimisers_lie_where_their_parameters_do_and_inputs_share_the_batch() -> None:
    rows = [*ROWS, {"role": "optimiser", "path": "0/mu/mlp/up/kernel", "shape": [64, 256], "dtype": "float32"}]
    rows += [
        {"role": "optimiser", "path": "0/count", "shape": [], "dtype": "int32"},
        {"role": "input", "path": "0", "shape": [8, 5], "dtype": "int32"},
    ]
    proposal = propose(rows, LAYERS, parse_mesh("data=2,fsdp=2,model=2"))
    assert proposal.specs(rows, 8)[-3:] == [["fsdp", "model"], None, [["data", "fsdp"]]]
    with pytest.raises(MeshError, match="a multiple of 4"):
        proposal.specs(rows, 6)


@pytest.mark.parametrize("axes", first_quick(1, ["data=4,model=2", "fsdp=8"]))
def test_a_sharded_step_is_that_of_one_device(tmp_path: Path, sandbox: Sandbox, axes: str) -> None:
    with ahead(tmp_path, sandbox, "plain", shape="3, 16", width=16) as unit:
        (facts,) = unit.facts([Variant()], ["forward"])
        found = check(unit, propose(facts["forward"]["arguments"], facts["layers"], parse_mesh(axes)))
    assert found.equal, found
    assert (found.devices, found.compared) == (8, 1 + 1 + 4 + 4)
    assert found.split >= 3


def test_a_sharded_step_compiles_with_its_collectives(tmp_path: Path, sandbox: Sandbox) -> None:
    needs_compiler()
    axes = parse_mesh("data=8,model=2")
    with ahead(tmp_path, sandbox, "plain") as unit:
        (facts,) = unit.facts([Variant(batch=64)], ["train"])
        proposal = propose(facts["train"]["arguments"], facts["layers"], axes)
        target = Target(topology("v5e:4x4"), axes)
        (found,) = unit.costs(Variant(batch=64), [target], ["train"], lambda rows, batch, place: proposal.specs(rows, batch))
    assert found.refused is None, found
    assert sum(each.count for each in found.collectives) >= 2, "one reduction over model, one of the gradients over data"
    assert sharding.AXES == ("data", "fsdp", "model")
