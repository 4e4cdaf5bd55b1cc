"""What the code that was recorded may have written, read as data that may be anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from migrate_agent.tools.record.store import LARGEST, NAME, load_recording, read_json, save_recording, shapes
from migrate_agent.tools.types import Example, Recording

RECORDING = {"version": 1, "examples": [], "observations": {}, "errors": {}}
EXAMPLE: dict[str, Any] = {"unit": "a.py:A", "init": "", "call": "", "setup": "", "tensors": "t"}


def test_there_and_back(tmp_path: Path) -> None:
    example = Example("a.py:A", "4", "x", domain=(0.0, 1.0), origin="recording")
    save_recording(Recording((example,), {}, {"b.py:B": "why"}), tmp_path)
    assert load_recording(tmp_path) == Recording((example,), {}, {"b.py:B": "why"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        json.dumps({**RECORDING, "version": 2}),
        json.dumps({**RECORDING, "examples": [{**EXAMPLE, "tensors": "../outside"}]}),
        json.dumps({**RECORDING, "examples": [{**EXAMPLE, "tensors": "link"}]}),
        json.dumps({**RECORDING, "examples": [{**EXAMPLE, "tensors": None, "domain": [10**400, 1]}]}),
        json.dumps({**RECORDING, "observations": {"a.py": [[1]]}}),
        json.dumps({**RECORDING, "errors": 1}),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / NAME).write_text(text)
    with pytest.raises(ValueError, match="is no recording"):
        read_json(tmp_path / NAME)


def test_a_recording_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("")
    with (tmp_path / NAME).open("r+b") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(ValueError, match=f"more than {LARGEST} bytes"):
        read_json(tmp_path / NAME)


def test_shapes_come_from_the_header(tmp_path: Path) -> None:
    save_file({"x": np.zeros((2, 3), np.float32)}, tmp_path / "t")
    assert (shapes(tmp_path / "t"), shapes(None)) == (("x F32 [2, 3]",), ())


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"[]", (3).to_bytes(8, "little") + b'{"a', b"\x09" + b"\0" * 7 + b'{"a": {}}']
)
def test_a_file_of_tensors_that_is_none_goes_by_its_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t").write_bytes(data)
    assert shapes(tmp_path / "t") == ("t",)
