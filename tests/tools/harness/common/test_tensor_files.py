"""Arrays in safetensors files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from migrate_agent.tools.harness.common import tensor_files


def test_arrays_come_back_from_files(tmp_path: Path) -> None:
    values = {"a": np.array(1.5), "b/c": np.ones((2, 3)).T, "c": np.array([1 + 2j, 0]), "d": np.array([True]), "e": np.zeros((0, 3))}
    complex_numbers = np.arange(6.0).reshape(2, 3) * (1 - 1j)
    values |= {"f": complex_numbers.T, "g": np.broadcast_to(complex_numbers[:1], (4, 3)), "h": np.array(2 - 3j)}
    tensor_files.save(tmp_path / "x/y.safetensors", values)
    back = tensor_files.load(tmp_path / "x/y.safetensors")
    assert back.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(back[name], value)
        assert back[name].shape == value.shape
