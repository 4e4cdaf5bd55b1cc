"""Samples that are rows of arrays, which a loader makes batches of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.programs.scripts import rewritten

SCRIPT = """import torch
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, x, y):
        self.x, self.y, self.names = x, y, ["a"] * len(x)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
data = Pairs(torch.randn(12, 3), torch.randn(12, 1))
loader = DataLoader(data, batch_size=4, shuffle=True)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
ROWS = "        return np.asarray(self.x)[i], np.asarray(self.y)[i]\n"
RETURN = "        return self.x[i], self.y[i]\n"
WITH_NAMES = SCRIPT.replace(RETURN, "        return self.x[i], self.y[i], self.names[i]\n").replace("for x, y in", "for x, y, _ in")
OTHERS = {
    "a sample that the script computes with": SCRIPT + "print((data[0][1] / 3).item())\n",
    "a loop over samples": SCRIPT + "print(sum((y / 3).item() for x, y in Pairs(torch.randn(2, 3), torch.randn(2, 1))))\n",
    "a sample that changes": SCRIPT.replace(RETURN, "        x = self.x[i]\n        x = x + 1\n        return x, self.y[i] * 2\n"),
    "a name for something else": SCRIPT.replace("import torch\n", "import math as np\nimport torch\n", 1).replace(
        "lr=0.1", "lr=np.sqrt(0.01)"
    ),
}


def test_rows_come_from_the_host(tmp_path: Path) -> None:
    """A row of a device's array would be a program of its own."""
    draft = rewritten(SCRIPT, tmp_path)
    assert draft.holes == () and ROWS in draft.files["train_jax.py"] and "import numpy as np\n" in draft.files["train_jax.py"]


def test_lists_stay(tmp_path: Path) -> None:
    """Only arrays are read so."""
    assert "np.asarray(self.y)[i], self.names[i]\n" in rewritten(WITH_NAMES, tmp_path).files["train_jax.py"]


@pytest.mark.parametrize("name", OTHERS)
def test_what_computes_with_samples_keeps_arrays_of_the_device(name: str, tmp_path: Path) -> None:
    """NumPy's types of results are others."""
    draft = rewritten(OTHERS[name], tmp_path)
    assert "np.asarray" not in draft.files.get("train_jax.py", "")
