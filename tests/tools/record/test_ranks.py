"""How many dimensions an argument has, by what code does with it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from migrate_agent.tools.record.guessing.ranks import Ranks, lengths_within, ranked, ranks_of
from migrate_agent.tools.record.guessing.values import Tensor


class Inner(nn.Module):
    """Asks for the rank of its second argument."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)

    def forward(self, first: Any, second: Any) -> Any:
        return self.conv(first), second.t()


class Net(nn.Module):
    """Arguments of many ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)
        self.sound = nn.Sequential(nn.Conv1d(1, 1, 1))
        self.project = nn.Linear(1, 1)
        self.inner = Inner()
        self.cell = nn.LSTMCell(1, 1)
        self.layers = nn.ModuleList([nn.Conv3d(1, 1, 1)])

    def forward(
        self,
        image: Any,
        mask: Any,
        graph: Any,
        nodes: Any,
        tokens: Any,
        styles: Any,
        other: Any,
        free: Any,
        both: Any,
        step: Any,
        wave: Any,
        part: Any,
        column: Any,
        level: Any,
        row: Any,
        spread: Any,
        repeated: Any,
        hidden: Any,
        cell: Any,
    ) -> Any:
        hidden, cell = self.cell(row, (hidden, cell))
        spread = spread.unsqueeze(-1).expand(-1, -1, 4) + repeated.unsqueeze(1).repeat(1, 4, 1)
        added = torch.relu(self.project(step)).unsqueeze(-1)
        sound = self.sound(wave.unsqueeze(1) + added)
        sound = self.sound(sound + self.encode(level)[:, :, None])
        for _index, layer in enumerate(self.layers):
            row = layer(row)
        sound = self.inner(part, sound)
        sound = self.sound(F.relu(column[:, 0])), sound
        _b, _c, *_rest = mask.shape
        _n, _length = tokens.size()
        image = self.conv(image)
        image = image.t()
        other = other[None, :, 0, ..., None]
        return self.gather(nodes, graph), styles[:, None, :, 0], styles.size(-1), other, free + 1, both.permute(0, 1), both.permute(0, 1, 2)

    def encode(self, values: Any) -> Any:
        """One axis more."""
        steps = torch.exp(values).unsqueeze(1) * torch.arange(3)
        return torch.cat([steps, steps], 1)

    def gather(self, values: Any, edges: Any) -> Any:
        """Follow the arguments."""
        return torch.matmul(edges.t(), values.transpose(1, 2)), values.shape[-4]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("image", Ranks(4, samples=True)),  # what is assigned anew is another value
        ("mask", Ranks(0, 2)),
        ("tokens", Ranks(2)),
        ("graph", Ranks(2)),
        ("nodes", Ranks(0, 4)),
        ("styles", Ranks(0, 3)),
        ("other", Ranks()),
        ("free", Ranks()),
        ("step", Ranks(2, samples=True)),
        ("wave", Ranks(2, samples=True)),
        ("part", Ranks(4, samples=True)),
        ("column", Ranks(4, 2, samples=True)),
        ("level", Ranks(1, samples=True)),
        ("row", Ranks(5, samples=True)),
        ("hidden", Ranks(2, samples=True)),
        ("cell", Ranks(2, samples=True)),
        ("spread", Ranks(2)),
        ("repeated", Ranks(2)),
        ("both", Ranks()),  # two answers are none
    ],
)
def test_ranks(name: str, expected: Ranks) -> None:
    assert ranks_of(Net.forward, Net(), name) == expected


@pytest.mark.parametrize(
    ("ranks", "shape", "expected"),
    [
        (Ranks(2), (2, 16, 64), [(16, 16), (2, 64), (16, 64)]),
        (Ranks(2, samples=True), (2, 16, 64), [(2, 64), (16, 64)]),
        (Ranks(1), (2, 16), [(2,), (16,)]),
        (Ranks(0, 4), (2, 64), [(2, 64, 16, 16), (2, 16, 16, 64)]),
        (Ranks(3), (2, 3, 4), [(2, 3, 4)]),
    ],
)
def test_tensors_of_a_rank(ranks: Ranks, shape: tuple[int, ...], expected: list[tuple[int, ...]]) -> None:
    assert [tensor.shape for tensor in ranked(ranks, Tensor(shape))] == expected
    assert all(ranks.fit(tensor.shape) for tensor in ranked(ranks, Tensor(shape)))


class Packed(nn.Module):
    """Packs what is made of its first argument, by the lengths that its second one has."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.lstm = nn.LSTM(3, 2, batch_first=True)

    def forward(self, words: Any, lengths: Any, signal: Any) -> Any:
        embedded = self.embed(words)
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths.data.cpu().tolist(), batch_first=True)
        return self.lstm(packed), self.lstm(signal)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("words", Ranks(exact=2, samples=True)), ("lengths", Ranks(lengths=True)), ("signal", Ranks(exact=3, samples=True))],
)
def test_what_is_packed_and_its_lengths(name: str, ranks: Ranks) -> None:
    assert ranks_of(Packed.forward, Packed(), name) == ranks


class SortedHere(Packed):
    """Packs columns, sorted by lengths that it sorts itself."""

    def forward(self, words: Any, lengths: Any, signal: Any) -> Any:
        lengths, order = torch.sort(lengths, descending=True)
        return self.lstm(nn.utils.rnn.pack_padded_sequence(self.embed(words)[order], lengths))


class SortedByOrder(Packed):
    """Sorts lengths by an order that it has of them."""

    def forward(self, words: Any, lengths: Any, signal: Any) -> Any:
        _, order = lengths.sort(descending=True)
        return self.lstm(nn.utils.rnn.pack_padded_sequence(self.embed(words).index_select(0, order), lengths[order], batch_first=True))


@pytest.mark.parametrize(
    ("model", "words", "lengths"),
    [
        (SortedHere, Ranks(exact=2, samples=True), Ranks(lengths=True, columns=True)),
        (SortedByOrder, Ranks(exact=2, samples=True), Ranks(lengths=True)),
    ],
)
def test_what_is_sorted_before_it_is_packed(model: type[Packed], words: Ranks, lengths: Ranks) -> None:
    assert [ranks_of(model.forward, model(), name) for name in ("words", "lengths")] == [words, lengths]


@pytest.mark.parametrize(
    ("shape", "columns", "texts"),
    [
        ((2, 16, 64), False, ("torch.tensor([16, 15])", "torch.tensor([2, 1])")),
        ((2, 3, 64), True, ("torch.tensor([2, 1, 1])", "torch.tensor([3, 2])", "torch.tensor([2, 1])")),
        ((3, 3, 32, 8), False, ("torch.tensor([8, 7, 6])", "torch.tensor([2, 1, 1])")),
    ],
)
def test_lengths_are_those_of_sequences(shape: tuple[int, ...], columns: bool, texts: tuple[str, ...]) -> None:
    assert lengths_within(Tensor(shape), columns) == texts


class Products(nn.Module):
    """Multiplies by what has its first two axes swapped."""

    def forward(self, anchor: Any, positive: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
        return torch.matmul(anchor, torch.transpose(positive, 0, 1)), first @ second.transpose(1, 0), third @ fourth.transpose(1, 2)


@pytest.mark.parametrize(("name", "rank"), [("anchor", 2), ("positive", 2), ("first", 2), ("second", 2), ("third", 0), ("fourth", 0)])
def test_swapped_first_axes_of_a_factor_are_its_last(name: str, rank: int) -> None:
    assert ranks_of(Products.forward, Products(), name).exact == rank
