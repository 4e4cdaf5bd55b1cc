"""Properties of the rewriter over generated snippets: it never falls over, leaves alone what is no torch, and is done after one go."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate_agent.evals.suites.sources import rewritten

NAMES = st.sampled_from(["x", "y", "mask", "n", "self.w", "self.net", "other"])
UNARY = [
    "torch.relu({})",
    "F.gelu({})",
    "{}.view(-1)",
    "{}.transpose(0, 1)",
    "-{}",
    "{}.shape[0]",
    "{}.mean(dim=-1, keepdim=True)",
    "{}[:, 0]",
]
UNARY += ["torch.cat([{}, {}], dim=1)", "{}.add_(1)", "{}.float()", "sorted({})", "len({})", "{}.unknown()", "torch.unheard_of({})", "({})"]
BINARY = [
    "{} + {}",
    "{} @ {}",
    "torch.where({} > 0, {}, 0)",
    "torch.einsum('ij,jk->ik', {}, {})",
    "{}.masked_fill({} == 0, -1e9)",
    "{} // {}",
]
PLAIN = ["{}.mean(-1)", "{}", "sorted({})", "len({})", "[{}, 1]", "{}.shape", "print({})", "({})", "{}.transpose(0, 1)", "f'{{{}}}'"]


def _expressions(unary: list[str], binary: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        NAMES,
        lambda inner: st.one_of(
            st.builds(lambda form, a: form.replace("{}", a), st.sampled_from(unary), inner),
            st.builds(lambda form, a, b: form.replace("{}", a, 1).replace("{}", b), st.sampled_from(binary), inner, inner),
        ),
        max_leaves=6,
    )


def _statements(expression: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    line = st.one_of(
        st.builds("{} = {}".format, st.sampled_from(["x", "y", "mask", "x[0]", "self.w", "x, y", "mask[:, 1:]"]), expression),
        st.builds("x {}= {}".format, st.sampled_from(["+", "*", "//", "@"]), expression),
        st.builds("if {}: x = {}".format, expression, expression),
        st.builds("for n in range({}): y = {}".format, expression, expression),
        st.builds("with torch.no_grad(): y = {}".format, expression),
        st.builds("assert {}  # why".format, expression),
        st.builds("return {}".format, expression),
        st.builds("del {}".format, st.sampled_from(["x", "y"])),
    )
    return st.lists(line, min_size=1, max_size=6)


MODULE = """{header}

class M(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Linear(d, d)
        self.w = d

    def forward(self, x: torch.Tensor, y, mask=None):
{body}
"""


def _module(lines: list[str], header: str) -> str:
    return MODULE.format(header=header, body="\n".join(f"        {line}" for line in lines))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(_statements(_expressions(UNARY, BINARY)))
def test_torch_code(lines: list[str]) -> None:
    source = _module(lines, "import torch\nfrom torch import nn\nimport torch.nn.functional as F")
    ast.parse(source)
    with tempfile.TemporaryDirectory() as folder:
        text, holes, _ = rewritten(Path(folder), source)
        ast.parse(text)
        if not holes:
            assert "torch" not in text.replace("nnx_layers", "")
            assert rewritten(Path(folder), text)[0] == text


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(_statements(_expressions(PLAIN, ["({} + {})", "({} if {} else 3)", "({}, {})"])))
def test_code_without_torch_is_left_alone(lines: list[str]) -> None:
    source = "class M:\n    def f(self, x, y, mask=None, torch=None):\n" + "\n".join(f"        {line}" for line in lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        assert rewritten(Path(folder), source)[0] == source
