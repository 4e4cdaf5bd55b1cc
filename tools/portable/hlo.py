"""Reads a compiled program's text: collectives by kind and bytes, and how much of its arrays is padding of tiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all")
BITS = {"pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "bf16": 16, "f16": 16, "s32": 32, "u32": 32, "f32": 32}
BITS |= {"s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128, "f8e4m3fn": 8, "f8e5m2": 8}

_ARRAY = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\](?:\{([\d,]*)(?::T\((\d+(?:,\d+)?)\))?[^}]*\})?")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([a-z][a-z0-9-]*)\(")
_FRAME = re.compile(r"stack_frame_id=(\d+)")


@dataclass(frozen=True)
class Array:
    """One array of the program: its bytes, and its bytes padded to tiles."""

    text: str
    bytes: float
    padded: float
    line: str = ""

    @property
    def waste(self) -> float:
        """Bytes of padding."""
        return self.padded - self.bytes


@dataclass(frozen=True)
class Collective:
    """All collectives of one kind: their count in the program, and the bytes of their results on one device."""

    kind: str
    count: int
    bytes: float


def arrays(text: str) -> Iterator[Array]:
    """The arrays that a type names; a tuple has several."""
    for dtype, sizes, layout, tile in _ARRAY.findall(text):
        if dtype in BITS:
            shape = tuple(int(size) for size in sizes.split(",") if size)
            width = BITS[dtype] / 8
            yield Array(f"{dtype}[{sizes}]", math.prod(shape) * width, math.prod(_tiled_shape(shape, layout, tile)) * width)


def _tiled_shape(shape: tuple[int, ...], layout: str, tile: str) -> tuple[int, ...]:
    """The shape with its minor axes rounded up to the tile: `{1,0:T(8,128)}` has axis 1 in lanes and axis 0 in sublanes."""
    order = [int(axis) for axis in layout.split(",") if axis]
    sizes = [int(size) for size in tile.split(",") if size]
    grown = list(shape)
    for axis, size in zip(order, reversed(sizes), strict=False):
        grown[axis] = -(-grown[axis] // size) * size
    return tuple(grown)


def instructions(text: str, entry_only: bool = False) -> Iterator[tuple[str, str, str, str]]:
    """(name, type, operation, whole line) of each instruction."""
    inside = not entry_only
    for line in text.splitlines():
        if entry_only and line.startswith("ENTRY"):
            inside = True
        if inside and (match := _INSTRUCTION.match(line)):
            yield match[1], match[2], match[3], line


def collectives(text: str) -> tuple[Collective, ...]:
    """The collectives by kind. One that is started and awaited counts once, and so does one inside a loop."""
    sizes: dict[str, list[float]] = {}
    for _, kind, operation, _ in instructions(text):
        name = operation.removesuffix("-start")
        if name in KINDS:
            parts = [array.bytes for array in arrays(kind)]
            # The type of a started collective is a pair (operands, results); `all-reduce-start` has
            # results alone.
            results = parts[len(parts) // 2 :] if operation.endswith("-start") and name != "all-reduce" and len(parts) > 1 else parts
            sizes.setdefault(name, []).append(sum(results))
    return tuple(Collective(kind, len(sizes[kind]), sum(sizes[kind])) for kind in KINDS if kind in sizes)


NO_MEMORY = ("tuple", "get-tuple-element", "bitcast", "copy-start", "copy-done", "async-start", "async-done", "constant", "after-all")


def buffers(text: str) -> list[Array]:
    """The arrays in HBM that the entry computation reads and makes, with the source lines of their instructions."""
    lines = frames(text)
    entry_arrays = []
    for name, kind, operation, line in instructions(text, entry_only=True):
        # `S(1)` is VMEM: its arrays take none of the HBM.
        if operation in NO_MEMORY or "S(1)" in kind:
            continue
        frame = _FRAME.search(line)
        for array in arrays(kind):
            entry_arrays.append(Array(f"{name}: {array.text}", array.bytes, array.padded, lines.get(frame[1], "") if frame else ""))
    return entry_arrays


def frames(text: str) -> dict[str, str]:
    """`path:line` by the number of a stack frame, from the tables at the head of the text."""
    names = dict(re.findall(r'^(\d+) "([^"]+)"$', _section(text, "FileNames"), flags=re.MULTILINE))
    rows = re.findall(r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)", _section(text, "FileLocations"), flags=re.MULTILINE)
    locations = {number: f"{names.get(file, '?')}:{line}" for number, file, line in rows}
    stacks = re.findall(r"^(\d+) \{file_location_id=(\d+)", _section(text, "StackFrames"), flags=re.MULTILINE)
    return {number: locations.get(location, "") for number, location in stacks}


def _section(text: str, name: str) -> str:
    match = re.search(rf"^{name}\n(.*?)\n\n", text, flags=re.MULTILINE | re.DOTALL)
    return match[1] if match else ""
