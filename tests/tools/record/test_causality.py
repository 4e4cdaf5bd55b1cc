"""What counts as causal: modules whose results do not change with what follows, and those that only seem so."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.causality import Probe

SEQUENCE = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 0, 3, 1]])


class Model(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.table = nn.Embedding(7, 4)
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.rnn = nn.GRU(4, 4, batch_first=True, bidirectional=kind == "both ways")
        self.norm = nn.BatchNorm1d(4) if kind == "batch norm" else nn.Identity()
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(()))
        self.cache: Any = None

    def forward(self, tokens: torch.Tensor) -> Any:
        x, length = self.table(tokens), tokens.shape[1]
        match self.kind:
            case "attention":
                return self.encoder(x, torch.full((length, length), float("-inf"), dtype=x.dtype).triu(1)), tokens
            case "open attention":
                return self.encoder(x), tokens
            case "a window that looks one ahead":
                return self.encoder(x, torch.full((length, length), float("-inf"), dtype=x.dtype).triu(2)), tokens
            case "recurrent" | "both ways":
                return self.rnn(x)
            case "length":
                return x.cumsum(1) / length, tokens
            case "last alone":
                return x.cumsum(1)[:, -1:], tokens
            case "counts":
                self.seen = self.seen + 1
            case "cache":
                self.cache = x
            case "batch norm":
                return self.norm(x.cumsum(1).transpose(1, 2)).transpose(1, 2), tokens
        return x.cumsum(1), tokens


@pytest.mark.parametrize(
    ("kind", "causal"),
    [
        ("attention", True),
        ("recurrent", True),
        ("plain", True),
        ("open attention", False),
        ("a window that looks one ahead", False),
        ("both ways", False),
        ("length", False),
        ("last alone", False),
        ("counts", False),
        ("cache", False),
        ("batch norm", False),
    ],
)
def test_causal(kind: str, causal: bool) -> None:
    torch.manual_seed(0)
    model, probe = Model(kind), Probe(argument=0, axis=1, part=0, read_axis=1)
    plain = Model(kind)
    plain.load_state_dict(model.state_dict())
    given = probe.watch(model, nullcontext)(SEQUENCE)
    torch.manual_seed(1)
    model.eval(), plain.eval()
    assert probe.causal is causal
    assert given[0].shape == plain(SEQUENCE)[0].shape
    # Asking changes nothing: not the module, and not what is drawn next.
    assert {name: int(value) for name, value in model.state_dict().items() if name == "seen"} == {"seen": int(kind == "counts")}


def test_random_numbers_are_left_alone() -> None:
    model, probe = Model("attention").train(), Probe(argument="tokens", axis=-1, part=0, read_axis=1)
    torch.manual_seed(3)
    model(SEQUENCE)
    after = torch.rand(3)
    torch.manual_seed(3)
    probe.watch(model, nullcontext)(tokens=SEQUENCE)
    assert torch.equal(torch.rand(3), after)
    assert probe.causal is True


@pytest.mark.parametrize("callee", [lambda x: (x, x), torch.cumsum], ids=["function", "of torch"])
def test_of_a_function_nothing_is_known(callee: Any) -> None:
    probe = Probe(argument=0, axis=1, part=0, read_axis=1)
    probe.watch(callee, nullcontext)(SEQUENCE, *([1] if callee is torch.cumsum else []))
    assert probe.causal is None


def test_one_element_says_nothing() -> None:
    probe = Probe(argument=0, axis=1, part=0, read_axis=1)
    probe.watch(Model("open attention"), nullcontext)(SEQUENCE[:, :1])
    assert probe.causal is None
