"""What a search for examples takes of the code before its first attempt, and how it builds large models."""

from __future__ import annotations

import torch
from torch import nn

from migrate_agent.tools.harness.common.methods import main_method, unbound
from migrate_agent.tools.record.guessing.roles import roles
from migrate_agent.tools.record.guessing.rows import parameter_texts
from migrate_agent.tools.record.guessing.trials.other_kinds import other_kinds
from migrate_agent.tools.record.guessing.trials.place import Place
from migrate_agent.tools.record.guessing.trials.quick_initialisers import BOUND, LARGE, quick_initialisers
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage
from migrate_agent.tools.record.guessing.values import Tensor, text


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.f = nn.Linear(d, d)


class Stack(nn.Module):
    def __init__(self, d: int, N: int, M: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(d) for _ in range(N)])
        for at in range(1, M):
            self.blocks.append(Block(d * at))


class Called(nn.Module):
    def __call__(self, x: torch.Tensor, real: bool) -> torch.Tensor:
        return x if real else -x


class Usual(Called):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_numbers_of_turns_are_depths() -> None:
    assert roles(Stack, "N") == roles(Stack, "M") == ("depth",)
    assert "depth" not in roles(Stack, "d")
    assert parameter_texts("RDNkSize", "")[0] == parameter_texts("kernel", "")[0] == "3"


def test_what_a_call_of_a_module_runs() -> None:
    assert main_method(Called) == "__call__" and main_method(Usual) == main_method(Block) == main_method(nn.Linear) == "forward"
    assert unbound(Called, "") is Called.__call__ and unbound(Usual, "") is Usual.forward


def test_large_tensors_get_small_numbers_quickly() -> None:
    torch.manual_seed(0)
    usual = torch.nn.init.normal_
    with quick_initialisers():
        large, small = nn.init.normal_(torch.empty(LARGE + 5)), nn.init.normal_(torch.empty(100))
        whole = nn.init.normal_(torch.empty(LARGE + 5, dtype=torch.int64).double())
    assert 0 < large.abs().max() <= BOUND and large[-5:].ne(0).all() and whole.abs().max() <= BOUND
    assert small.abs().max() > BOUND
    assert torch.nn.init.normal_ is usual


def test_elements_that_are_asked_for_keys_are_dictionaries() -> None:
    attempt = Attempt((), (("w", Tensor((4, 4))),))
    place = Place(call=("w",), statement="for key in first.keys(): pass")
    outcome = Outcome(Stage.CALL, 0, "AttributeError: 'Tensor' object has no attribute 'keys'", place)
    found = [text(dict(one.call or ())["w"]) for one in other_kinds(attempt, outcome, lambda name: (), ())]
    table = "{'a': torch.randn(4, 4), 'b': torch.randn(4, 4)}"
    assert f"[{', '.join([table] * 3)}]" in found and table in found
