"""Draws with bounds, or with a mean and a deviation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst
import pytest
import torch

from migrate_agent.tools.programs.judge.draws import NativeDraws
from migrate_agent.tools.programs.judge.paired import PairedDraws
from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.passes.standard_draws import StandardDraws
from migrate_agent.tools.vendored.torch_random import TorchGenerator

HEAD = "import torch\nfrom torch import FloatTensor\n"
CHANGE = {
    "x = torch.empty(20, 2).uniform_()": "x = torch.rand(20, 2)",
    "x = torch.empty(n, 2).uniform_(-1, 1)": "x = 2 * torch.rand(n, 2) - 1",
    "x = torch.empty(n).uniform_(-0.1, 0.2)": "x = 0.3 * torch.rand(n) - 0.1",
    "x = torch.zeros(n, device=device).uniform_(0, r)": "x = r * torch.rand(n, device=device)",
    "x = torch.zeros(n).uniform_(-b, b) + 1": "x = ((-b) + (b - (-b)) * torch.rand(n)) + 1",
    "x = torch.Tensor(n, 3).normal_()": "x = torch.randn(n, 3)",
    "x = FloatTensor(y.size()).normal_(0, 0.1)": "x = 0.1 * torch.randn(y.size())",
    "x = f(torch.ones(3).normal_(mean=m, std=s))": "x = f(m + s * torch.randn(3))",
    "x = torch.normal(0.5, 0.1, (20, 2))": "x = 0.5 + 0.1 * torch.randn((20, 2))",
    "x = torch.normal(mean=0, std=1, size=(n,))": "x = torch.randn((n,))",
}
KEEP = (
    "x = torch.Tensor([1, 2]).normal_()",
    "x = torch.empty(3, dtype=torch.half).normal_()",
    "x = torch.empty(3).normal_(generator=g)",
    "x = torch.empty(3).uniform_(f(), 1)",
    "x.uniform_(0, 1)",
    "x = torch.normal(mean, 0.1)",
    "x = torch.empty(3).fill_(1)",
)


def _kinds(node: cst.CSTNode) -> Sequence[str]:
    return ("int",) if isinstance(node, cst.Name) else ("size",) if isinstance(node, cst.Call) else ("list",)


def _rewritten(text: str) -> str:
    module = cst.parse_module(HEAD + text)
    return module.visit(StandardDraws(Imports(HEAD), _kinds, lambda node: True)).code.removeprefix(HEAD)


@pytest.mark.parametrize("text", CHANGE)
def test_draws_are_those_of_standard_numbers(text: str) -> None:
    assert _rewritten(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_draws_stay(text: str) -> None:
    """Of data, of another dtype or generator, of bounds that would be computed twice, and of tensors that have a name."""
    assert _rewritten(text) == text


@pytest.mark.parametrize("text", [text for text in CHANGE if "f(" not in text and "device" not in text])
def test_the_numbers_are_the_same(text: str) -> None:
    """Up to the rounding of float32."""
    results = []
    for script in (text, CHANGE[text]):
        torch.manual_seed(3)
        scope = {"torch": torch, "FloatTensor": torch.FloatTensor, "n": 17, "b": 0.3, "r": 2.5, "y": torch.ones(4, 5)}
        exec(script, scope)
        results.append(scope["x"])
    torch.testing.assert_close(results[0], results[1])


MEANS = torch.linspace(-1, 1, 20)


@pytest.mark.parametrize("arguments", [(MEANS,), (MEANS, 0.3), (0.5, MEANS.abs()), (MEANS, MEANS.abs()), (0.5, 0.1, (20,))])
def test_normal_numbers_in_float64_are_those_of_float32(arguments: tuple[Any, ...]) -> None:
    """Made of the same standard numbers, also by the generator of the rewrite."""
    normal: Any = torch.normal
    torch.manual_seed(3)
    narrow = normal(*arguments)
    wide = [one.double() if isinstance(one, torch.Tensor) else one for one in arguments]
    torch.manual_seed(3)
    with NativeDraws(PairedDraws()):
        exact = normal(*wide, **({} if isinstance(wide[0], torch.Tensor) or len(wide) == 2 else {"dtype": torch.float64}))
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), narrow)
    generator = TorchGenerator().manual_seed(3)
    ours = generator.normal(*(one.numpy() if isinstance(one, torch.Tensor) else one for one in arguments))
    torch.testing.assert_close(torch.from_numpy(ours.__array__().copy()), narrow)


class Policy(torch.nn.Module):
    """Draws an action around a mean."""

    def forward(self, mean: torch.Tensor) -> torch.Tensor:
        """The action."""
        return torch.normal(mean, 0.1)


def test_what_modules_draw_is_paired() -> None:
    first, second = PairedDraws(), PairedDraws()
    first.active = True
    with NativeDraws(first):
        action = Policy()(MEANS.double())
    torch.testing.assert_close(action, MEANS.double() + 0.1 * torch.from_numpy(second.draw("normal", (20,))))
