"""What is read from topologies' names and from the compiler's texts. The texts are the compiler's own (libtpu 0.0.42.1), shortened."""

from __future__ import annotations

from typing import Any

import pytest

from migrate_agent.tools.portable import cost, hlo, shapes
from migrate_agent.tools.portable.chips import CHIPS, TopologyError, topology
from migrate_agent.tools.portable.refusal import classify

PROGRAM = """HloModule jit_called, is_scheduled=true

FileNames
1 "/place/model_jax.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=27 end_line=27 column=2 end_column=37}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%fused_computation (param_0: f32[100,30]) -> f32[100,30] {
  ROOT %tanh.2 = f32[100,30]{1,0:T(8,128)} tanh(%param_0), metadata={op_name="jit(f)/tanh" stack_frame_id=1}
}

ENTRY %main.2 (args_0_.1: f32[100,30]) -> f32[100,30] {
  %args_0_.1 = f32[100,30]{1,0:T(8,128)} parameter(0), sharding={replicated}
  %all-reduce.1 = (f32[64]{0:T(256)}, bf16[8,128]{1,0:T(8,128)(2,1)}) all-reduce(%a, %b), channel_id=1
  %all-gather-start = (f32[4,128]{1,0:T(8,128)}, f32[16,128]{1,0:T(8,128)}) all-gather-start(%c), channel_id=2
  %all-gather-done = f32[16,128]{1,0:T(8,128)} all-gather-done(%all-gather-start)
  ROOT %fusion = f32[100,30]{0,1:T(8,128)} fusion(%args_0_.1), kind=kLoop, metadata={op_name="jit(f)/tanh" stack_frame_id=1}
}
"""
KERNEL = {"name": "scale", "line": "model_jax.py:9", "blocks": [[8192, 4096]], "dtypes": ["float32"], "shapes": [[16384, 8192]]}
HALF = {**KERNEL, "name": "half", "line": "model_jax.py:30", "blocks": [[16, 128]], "dtypes": ["float16", "float16"]}
LARGE = {"bytes": 2**35, "value": "f32[64,16,8192,8192]", "line": "model_jax.py:41"}


@pytest.mark.parametrize(
    ("text", "name", "chips", "host"),
    [
        ("v5e:4x4", "v5e:4x4", 16, None),
        ("V6E:1x1", "v6e:1x1", 1, (1, 1, 1)),
        ("tpu7x:4x4", "tpu7x:4x4x1", 16, None),
        ("v5p:2x2x4", "v5p:2x2x4", 16, None),
        ("v4:1", "v4:1x1x1", 1, (1, 1, 1)),
    ],
)
def test_topologies_are_read(text: str, name: str, chips: int, host: tuple[int, ...] | None) -> None:
    place = topology(text)
    assert (place.name, place.chips, place.host) == (name, chips, host)


@pytest.mark.parametrize("text", ["v5e", "v9:2x2", "v5e:2x2x2", "v5e:0x4", "v5e:4*4", ""])
def test_no_topology_is_refused_with_what_is_possible(text: str) -> None:
    with pytest.raises(TopologyError, match="such as"):
        topology(text)


def test_chips_are_named_once_and_have_sources() -> None:
    assert len({chip.name for chip in CHIPS}) == len(CHIPS)
    assert all(chip.source.startswith("https://docs.cloud.google.com/tpu/") and chip.hbm >= 2**34 for chip in CHIPS)


def test_a_bound_is_that_of_the_scarcer_peak_and_of_a_device_s_share() -> None:
    place = topology("tpu7x:2x2")  # four chips that show themselves as eight devices
    assert cost.roofline(2307e12, 1.0, place, 8) == (2.0, "compute")
    assert cost.roofline(1.0, 7380e9, place, 8) == (2.0, "memory")
    assert cost.hbm_of(place, 8) == 96 * 2**30


def test_collectives_count_once_with_their_bytes() -> None:
    found = {each.kind: (each.count, each.bytes) for each in hlo.collectives(PROGRAM)}
    assert found == {"all-reduce": (1, 64 * 4 + 8 * 128 * 2), "all-gather": (1, 16 * 128 * 4)}


def test_padding_is_that_of_tiles_with_the_line_that_made_the_array() -> None:
    argument, *_, last = hlo.buffers(PROGRAM)
    assert (argument.bytes, argument.padded) == (100 * 30 * 4, 104 * 128 * 4)
    assert (last.padded, last.line) == (32 * 128 * 4, "/place/model_jax.py:27")


@pytest.mark.parametrize(
    ("text", "facts", "kind", "line"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (35.42G) exceeds available HBM (15.75G).",
            {"largest": [{**LARGE, "line": ""}, LARGE]},
            "hbm",
            "model_jax.py:41",
        ),
        (
            "RESOURCE_EXHAUSTED: Allocation (size=268435456) would exceed memory (size=134217728) :: #allocation2 [shape = 'u8[268435456]{0}', "
            "space=vmem, tag = 'input window allocation for operator input 0. The window shape is f32[8192,4096], while the full shape is …",
            {"kernels": [HALF, KERNEL]},
            "vmem",
            "model_jax.py:9",
        ),
        (
            "ValueError: The Pallas TPU lowering currently requires that the last two dimensions of your block shape are divisible by 8 and 128 "
            "respectively. Block spec for args[0] in pallas_call scale at /a/b.py:24 has block shape (4, 100)",
            {"kernels": [HALF, KERNEL]},
            "block shape",
            "model_jax.py:9",
        ),
        (
            "INTERNAL: Mosaic failed to compile TPU kernel: Invalid vector type for load",
            {"kernels": [KERNEL, HALF]},
            "float16",
            "model_jax.py:30",
        ),
        ("INTERNAL: Mosaic failed to compile TPU kernel: Unsupported", {"kernels": [KERNEL]}, "mosaic", "model_jax.py:9"),
        ("Something else", {}, "error", "model_jax.py:1"),
    ],
)
def test_refusals_are_told_apart(text: str, facts: dict[str, Any], kind: str, line: str) -> None:
    found = classify(text, facts, "model_jax.py:1")
    assert (found.kind, found.line) == (kind, line)
    assert found.text and found.advice


@pytest.mark.parametrize(
    ("leaves", "batch", "length", "sizes"),
    [
        ([((2, 32), "int32")], 64, 0, [(64, 32)]),
        ([((2, 32), "int32"), ((2, 32), "int32")], 8, 128, [(8, 128), (8, 128)]),
        ([((2, 32, 48), "float32"), ((32, 32), "bool")], 0, 64, [(2, 64, 48), (32, 64)]),
        ([((3, 3, 16, 16), "float32")], 9, 99, [(9, 3, 16, 16)]),
        ([((), "float32"), ((4,), "float32")], 8, 0, [(), (8,)]),
    ],
)
def test_shapes_grow_by_batch_and_length(leaves: list[shapes.Leaf], batch: int, length: int, sizes: list[tuple[int, ...]]) -> None:
    assert [shape for shape, _ in shapes.resize(leaves, batch, length)] == sizes
