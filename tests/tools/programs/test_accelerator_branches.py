"""Branches that an accelerator of torch's alone takes."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.accelerator_branches import AcceleratorBranches
from migrate_agent.tools.programs.rewrite.spans import positions_of
from migrate_agent.tools.types import Observed, Span

HEAD = "import torch\nargs = parse()\n"
CASES = {
    "a branch": ("if device == 'cuda':\n    net = wrap(net)  # no\nfit(net)\n", "fit(net)\n"),
    "an else of it": ("# Why.\nif torch.cuda.is_available():\n    net = wrap(net)  # no\nelse:\n    fit(net)\n", "# Why.\nfit(net)\n"),
    "the other side": ("if not args.cuda or not x.is_cuda:\n    fit(net)\nelse:\n    wrap(net)  # no\n", "fit(net)\n"),
    "an elif after it": ("if x.is_cuda:\n    wrap(net)  # no\nelif args.a:\n    fit(net)\n", "if args.a:\n    fit(net)\n"),
    "an elif": ("if args.a:\n    fit(net)\nelif x.is_cuda:\n    wrap(net)  # no\n", "if args.a:\n    fit(net)\n"),
    "an elif with an else": (
        "if args.a:\n    fit(net)\nelif x.is_cuda:\n    wrap(net)  # no\nelse:\n    fit(x)\n",
        "if args.a:\n    fit(net)\nelse:\n    fit(x)\n",
    ),
    "in a block of its own": ("for x in y:\n    if x.is_cuda:\n        wrap(net)  # no\n    fit(x)\n", "for x in y:\n    fit(x)\n"),
}
KEPT = {
    "a branch that ran": "if args.device == 'cuda':\n    net = wrap(net)\n",
    "a branch of others": "if args.fast:\n    net = wrap(net)  # no\n",
    "one that an option takes too": "if x.is_cuda or args.fast:\n    net = wrap(net)  # no\n",
    "a condition that does something": "if setup() and torch.cuda.is_available():\n    net = wrap(net)  # no\n",
    "what nobody came to": "if x.is_cuda:  # no\n    net = wrap(net)  # no\n",
    "values alone, of which no run shows that they were not given": "if x.is_cuda:\n    size = 3\n",
}


def plain(text: str) -> tuple[str, list[str]]:
    """The script after a run of every line but those with `# no`, and the notes."""
    text = HEAD + textwrap.dedent(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# no" not in line]
    module = cst.parse_module(text)
    branches = AcceleratorBranches(module, positions_of(module), {Span(line, 0, line, 1): Observed(("tensor",)) for line in lines})
    return module.visit(branches).code.removeprefix(HEAD), branches.notes


@pytest.mark.parametrize("name", CASES)
def test_the_side_of_other_devices_stays(name: str) -> None:
    text, expected = CASES[name]
    result, notes = plain(text)
    assert result == expected
    assert len(notes) == 1


@pytest.mark.parametrize("name", KEPT)
def test_what_stays(name: str) -> None:
    assert plain(KEPT[name]) == (KEPT[name], [])
