"""TensorBoard's event files: TFRecord around protocol buffers, of which scalars are read. TensorBoard itself is not needed.

Format: https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto and summary.proto beside it;
records: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from migrate_agent.tools.compare.log import LogError, Point

_HEADER = struct.Struct("<QI")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE, _FLOAT = 2, 1
"""Values of `DataType` (tensorboard/compat/proto/types.proto)."""


def points(path: Path) -> Iterator[Point]:
    """The scalars of an event file, with the time of each. Raises `LogError` for a file that is none."""
    for record in _records(path):
        event = dict(_fields(record))
        # An event without a step is one at step 0: protocol buffers leave zeros out.
        step = float(event.get(2, 0))
        summary = event.get(5)
        values = [value for value in _scalars(summary) if value] if isinstance(summary, bytes) else []
        if values and isinstance(event.get(1), bytes):
            yield Point("step", step, "seconds", struct.unpack("<d", event[1])[0])  # type: ignore[arg-type]
        yield from (Point("step", step, name, value) for name, value in values)


def _records(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    start = 0
    while start + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, start)
        if _masked_crc(data[start : start + 8]) != checksum:
            raise LogError(f"{path}: is no TensorBoard event file (the record at byte {start} has a wrong checksum)")
        end = start + _HEADER.size + length
        if end + 4 > len(data):
            return  # a run that was killed leaves its last record half written
        yield data[start + _HEADER.size : end]
        start = end + 4


def _scalars(summary: bytes) -> Iterator[tuple[str, float] | None]:
    for number, value in _fields(summary):
        if number == 1 and isinstance(value, bytes):
            yield _scalar(dict(_fields(value)))


def _scalar(value: dict[int, int | bytes]) -> tuple[str, float] | None:
    """Tag and number of a `Summary.Value`: `simple_value`, or a tensor of one element, as newer writers have it."""
    name = value.get(1)
    if not isinstance(name, bytes):
        return None
    if isinstance(simple := value.get(2), bytes) and len(simple) == 4:
        return name.decode(), struct.unpack("<f", simple)[0]
    number = _one_element(dict(_fields(tensor))) if isinstance(tensor := value.get(8), bytes) else None
    return None if number is None else (name.decode(), number)


def _one_element(tensor: dict[int, int | bytes]) -> float | None:
    for dtype, field, form in ((_FLOAT, 5, "<f"), (_DOUBLE, 6, "<d")):
        for content in (tensor.get(4), tensor.get(field)):
            if tensor.get(1) == dtype and isinstance(content, bytes) and len(content) == struct.calcsize(form):
                return float(struct.unpack(form, content)[0])
    return None


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message; fixed-width numbers as their bytes (https://protobuf.dev/programming-guides/encoding/)."""
    index = 0
    while index < len(message):
        key, index = _varint(message, index)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, index = _varint(message, index)
            yield number, value
            continue
        if wire == _BYTES:
            size, index = _varint(message, index)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            return
        yield number, message[index : index + size]
        index += size


def _varint(message: bytes, index: int) -> tuple[int, int]:
    value = shift = 0
    while index < len(message):
        byte = message[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, index


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
