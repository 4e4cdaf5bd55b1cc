"""Functions that were copied from torch are known by what they do."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import init

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tools.rewrite.tables.torch_copies import ROWS, TorchFunction, torch_copies

COPY = textwrap.dedent(
    """
    def fill(tensor, mean=0., std=1., a=-2., b=2.):
        # type: (Tensor, float, float, float, float) -> Tensor
        return _fill(tensor, mean, std, a, b)

    def _fill(tensor, mean, std, a, b):
        def norm_cdf(x):
            return (1. + math.erf(x / math.sqrt(2.))) / 2.
        if (mean < a - 2 * std) or (mean > b + 2 * std):
            warnings.warn("more than 2 std from [a, b]", stacklevel=2)
        with torch.no_grad():
            l = norm_cdf((a - mean) / std)
            u = norm_cdf((b - mean) / std)
            tensor.uniform_(2 * l - 1, 2 * u - 1)
            tensor.erfinv_()
            tensor.mul_(std * math.sqrt(2.))
            tensor.add_(mean)
            tensor.clamp_(min=a, max=b)
            return tensor
    """
)
CHANGED = [
    ("tensor.add_(mean)", "tensor.add_(mean + 1)"),
    ("tensor.add_(mean)", "pass"),
    ("std=1.", "std=0.02"),
    ("tensor.mul_(std", "tensor.mul_(2 * std"),
    ("return _fill(tensor, mean, std", "return _fill(tensor, 0, std"),
    ("(a - mean) / std", "(a - mean)"),
]


def functions_of(source: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The top-level functions of a source."""
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def test_a_copy_is_known_under_any_name() -> None:
    assert torch_copies(functions_of(COPY)) == {"fill": "torch.nn.init.trunc_normal_"}


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_what_does_something_else_is_no_copy(before: str, after: str) -> None:
    assert before in COPY
    assert torch_copies(functions_of(COPY.replace(before, after))) == {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_parameters_are_those_of_torch(row: TorchFunction) -> None:
    parameters = inspect.signature(getattr(init, row.name.rpartition(".")[2])).parameters.values()
    assert (
        tuple((one.name, None if one.default is one.empty else one.default) for one in parameters if one.name != "generator")
        == row.parameters
    )


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0.0, 1.0, -2.0, 2.0), (0.5, 0.3, 0.2, 0.6), (-1.0, 2.0, 1.0, 4.0)])
def test_a_copy_draws_from_the_distribution_of_torch(mean: float, std: float, a: float, b: float) -> None:
    """By the largest distance of the two empirical distributions (Kolmogorov and Smirnov), at a level of 1e-4."""
    namespace: dict[str, Any] = {"math": math, "torch": torch, "warnings": warnings}
    exec(COPY, namespace)
    torch.manual_seed(0)
    count = 20_000
    with warnings.catch_warnings(action="ignore"):
        copied, own = namespace["fill"](torch.empty(count), mean, std, a, b), init.trunc_normal_(torch.empty(count), mean, std, a, b)
    both = torch.cat([copied, own]).sort().values
    distances = [(torch.searchsorted(one.sort().values, both, right=True) / count) for one in (copied, own)]
    assert (distances[0] - distances[1]).abs().max() < 2.23 * math.sqrt(2 / count)


def test_calls_of_a_copy_are_calls_of_torch(tmp_path: Path) -> None:
    net = "class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.fc = nn.Linear(d, d)\n        fill(self.fc.weight, std=0.02)\n"
    text, holes = rewrite_snippet(tmp_path, f"import math\nimport warnings\nimport torch\nfrom torch import nn\n{COPY}\n\n{net}", "plain")
    assert "self.fc = nnx.Linear(" in text
    assert "fill(self.fc" not in text
    assert not holes
