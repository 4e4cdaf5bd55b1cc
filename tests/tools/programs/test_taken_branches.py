"""Branches of a step that a configuration chooses, and loops over phases of which one trains."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports, name_of
from migrate_agent.tools.programs.rewrite.phases import Phases
from migrate_agent.tools.programs.rewrite.spans import positions_of
from migrate_agent.tools.programs.rewrite.taken_branches import TakenBranches
from migrate_agent.tools.types import Observed, Span

HEAD = "import torch\nargs = parse()\n"


def _taken(text: str) -> str:
    """The script after a run of every line but those with `# no`."""
    text = HEAD + textwrap.dedent(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# no" not in line]
    observed = {Span(line, 0, line, 1): Observed(("tensor",)) for line in lines}
    module = cst.parse_module(text)
    return module.visit(TakenBranches(module, positions_of(module), observed)).code.removeprefix(HEAD)


CHOICE = """\
for x in data:
    loss = model(x)
    {test}
        scaler.scale(loss).backward()  # no
        scaler.step(optimizer)  # no
    else:
        loss.backward()
        optimizer.step()
"""
PLAIN = """\
if args.fused:
    raise NotImplementedError('not migrated, since no run came here: args.fused')
for x in data:
    loss = model(x)
    loss.backward()
    optimizer.step()
"""


def test_the_branch_that_ran_stays() -> None:
    """And an error before the loop stands for the other."""
    assert _taken(CHOICE.format(test="if args.fused:")) == PLAIN


@pytest.mark.parametrize(
    "test",
    [
        # Another answer is possible in the next step.
        "if len(x) > 3:",
        "if x.any():",
        "if step % 2:",
    ],
)
def test_choices_that_may_change_stay(test: str) -> None:
    """When unsure, nothing is rewritten."""
    assert (
        _taken("step = 0\n" + CHOICE.format(test=test) + "    step += 1\n") == "step = 0\n" + CHOICE.format(test=test) + "    step += 1\n"
    )


@pytest.mark.parametrize(
    "text", [CHOICE.format(test="if args.fused:").replace("  # no", ""), "if args.fused:\n    print(1)  # no\nelse:\n    print(2)\n"]
)
def test_other_choices_stay(text: str) -> None:
    """Both branches ran, or neither is part of a step."""
    assert _taken(text) == text


PHASES = """\
for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        x = x.to(device)
        optimizer.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            # forward
            out = model(x)
            loss = criterion(out, y)
            if phase == "train":
                loss.backward()
                optimizer.step()
        total += loss.item()
"""
BOTH = """\
for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        x = x.to(device)
        # forward
        if phase == "train":
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
        else:
            out = model(x)
            loss = criterion(out, y)
        total += loss.item()
"""


def _phases(text: str) -> str:
    text = HEAD + text
    return cst.parse_module(text).visit(Phases(Imports(text), lambda node: name_of(node) == "model")).code.removeprefix(HEAD)


def test_the_step_holds_what_it_is_computed_by() -> None:
    """And so does the branch that only evaluates."""
    assert _phases(PHASES) == BOTH


@pytest.mark.parametrize(
    "text", [BOTH, PHASES.replace("model(x)", "table[x]").replace('with torch.set_grad_enabled(phase == "train"):', "if True:")]
)
def test_other_loops_stay(text: str) -> None:
    """The branches are whole, or no module is called before them."""
    assert _phases(text) == text
