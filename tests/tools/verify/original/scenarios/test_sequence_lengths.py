"""Which inputs decide the lengths of packed sequences."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from migrate_agent.tools.harness.common import input_sampling
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.sequence_lengths import note_lengths, unfilled

X, IDS, LENGTHS, ANY = "torch.randn(3, 6, 4)", "torch.randint(1, 9, (3, 6))", "torch.tensor([6, 4, 1])", "torch.tensor([2, 6, 3])"
PACKED = "out = self.rnn(pack_padded_sequence({}))[0]\n"
PADDED = PACKED + "return pad_packed_sequence(out, batch_first=True)[0]"
FULL, FULL_FALLING = (True, False, None), (True, True, None)
"""Of lengths: full, falling, and the axis of samples of what they are counted from."""

CASES: dict[str, tuple[str, str, dict[int, tuple[bool, bool, int | None]]]] = {
    "falling": (PADDED.format("x, y, batch_first=True"), f"{X}, {LENGTHS}", {1: FULL_FALLING}),
    "all full": (PADDED.format("x, y, batch_first=True"), f"{X}, torch.tensor([6, 6, 6])", {1: FULL_FALLING}),
    "any order": (PADDED.format("x, y, True, False"), f"{X}, {ANY}", {1: FULL}),
    "steps first": (
        PACKED.format("x, y, enforce_sorted=False") + "return pad_packed_sequence(out)[0]",
        f"torch.randn(6, 3, 4), {ANY}",
        {1: FULL},
    ),
    "as a list": (PADDED.format("x, y.cpu().tolist(), batch_first=True"), f"{X}, {LENGTHS}", {1: FULL_FALLING}),
    "by NumPy": (PADDED.format("x, y.numpy().astype('int64'), batch_first=True"), f"{X}, torch.tensor([6.0, 4.0, 1.0])", {1: FULL_FALLING}),
    "sorted here": ("y, order = y.sort(descending=True)\n" + PADDED.format("x[order], y, batch_first=True"), f"{X}, {ANY}", {1: FULL}),
    "of half as many steps": (PADDED.format("x[:, ::2], y // 2, True, False"), f"{X}, {ANY}", {1: FULL}),
    "a column": (PADDED.format("x, y[:, 0], batch_first=True"), f"{X}, {LENGTHS}[:, None]", {1: FULL_FALLING}),
    "the sum of a mask": (PADDED.format("x, y.sum(1), True, False"), f"{X}, torch.arange(6) < {ANY}[:, None]", {1: (True, False, 0)}),
    "the sum of a falling mask": (
        PADDED.format("x, y.sum(1), True") + " * y[:, :, None]",
        f"{X}, torch.arange(6) < {LENGTHS}[:, None]",
        {1: (True, True, 0)},
    ),
    "tokens that are no padding": (
        PADDED.format("self.embed(y), (y != 0).sum(1), True, False"),
        f"None, {IDS} * (torch.arange(6) < {ANY}[:, None])",
        {0: (True, False, 0)},
    ),
    "a mask beside": (
        PADDED.format("x, y, True, False") + " * (torch.arange(x.shape[1]) < y[:, None])[:, :, None]",
        f"{X}, {ANY}",
        {1: FULL},
    ),
    "none is full": (PADDED.format("x, y, True, False"), f"{X}, torch.tensor([2, 5, 3])", {1: (False, False, None)}),
    "the last state": ("return self.rnn(pack_padded_sequence(x, y, batch_first=True))[1]", f"{X}, {LENGTHS}", {1: (False, True, None)}),
    "a length of all": (
        PACKED.format("x, y, True, False") + "return pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0]",
        f"{X}, {ANY}",
        {1: (False, False, None)},
    ),
    "numbers of Python": (PADDED.format("x, y, batch_first=True"), f"{X}, [6, 4, 1]", {}),
    "labels beside": (PADDED.format("x, [6, 4, 1], batch_first=True") + " + y.max()", f"{X}, {LENGTHS}", {}),
    "masks alone": ("return self.rnn(x)[0] * (torch.arange(x.shape[1]) < y[:, None])[:, :, None]", f"{X}, {LENGTHS}", {}),
}


def unit_of(body: str, call: str, name: str, folder: Path) -> Original:
    """A module with this body of its `forward(self, x, y)`."""
    head = "import torch\nfrom torch import nn\nfrom torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\n\nclass M(nn.Module):\n"
    init = "    def __init__(self):\n        super().__init__()\n        self.rnn = nn.GRU(4, 2, batch_first=BATCH)\n        self.embed = nn.Embedding(9, 4)\n"
    init = init.replace("BATCH", str("torch.randn(6, 3, 4)" not in call))
    (folder / f"{name}.py").write_text(head + init + "    def forward(self, x, y):\n" + textwrap.indent(body, " " * 8))
    return Original(name, "M", {"init": "", "call": call, "setup": "import torch"}, None)


def noted(unit: Original) -> Original:
    """The unit, after its lengths were learnt from a call."""
    note_lengths(unit, unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "eval"))
    return unit


@pytest.mark.parametrize("case", CASES)
def test_what_calls_tell(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    body, call, expected = CASES[case]
    unit = noted(unit_of(body, call, f"lengths_{list(CASES).index(case)}", tmp_path))
    lengths = {number: leaf.lengths for number, leaf in enumerate(unit.leaves) if leaf.lengths is not None}
    assert {number: (one.full, one.falling, one.batch) for number, one in lengths.items()} == expected
    assert bool(unit.filled) == any(full for full, _, _ in expected.values())
    for values in (input_sampling.sample_inputs(unit.leaves, (seed,), None) for seed in range(5)):
        assert not unfilled(unit, unit.run(unit.state(), values, "eval"))


def test_a_run_that_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    unit = noted(unit_of(*CASES["any order"][:2], "lengths_short", tmp_path))
    values = input_sampling.recorded_inputs(unit.leaves)
    assert [unfilled(unit, unit.run(unit.state(), [values[0], values[1] - shift], "eval")) for shift in (0, 1)] == [False, True]
