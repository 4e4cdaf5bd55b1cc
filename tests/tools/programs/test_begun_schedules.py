"""Schedules whose first count the run alone knows."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.normalise import Normalise

HEAD = "import torch\nfrom torch.optim.lr_scheduler import LambdaLR, StepLR\n"
LATER = '    raise NotImplementedError("{0} goes on from the middle of its schedule: restore the count with the optimizer\'s state")\n'
CHANGE = {
    "s = StepLR(o, 30, last_epoch=args.start - 1)\n": f"if args.start - 1 != -1:\n{LATER.format('StepLR')}s = StepLR(o, 30)\n",
    "s = StepLR(o, 30, 0.5, start)\n": f"if start != -1:\n{LATER.format('StepLR')}s = StepLR(o, 30, 0.5)\n",
    "s = LambdaLR(o, f, first if resumed else -1)\n": f"if (first if resumed else -1) != -1:\n{LATER.format('LambdaLR')}s = LambdaLR(o, f)\n",
}
KEEP = (
    # Known before the run, or not a scheduler's.
    "s = StepLR(o, 30, last_epoch=-1)\n",
    "s = StepLR(o, 30, last_epoch=7)\n",
    "s = StepLR(o, 30)\n",
    "s = Own(o, last_epoch=start)\n",
    "s = StepLR(o, *rest)\n",
)


def _normalised(text: str) -> str:
    module = cst.parse_module(HEAD + text)
    return module.visit(Normalise(module, Imports(HEAD + text))).code.removeprefix(HEAD)


@pytest.mark.parametrize("text", CHANGE)
def test_a_run_from_the_beginning_is_told_apart(text: str) -> None:
    """-1 is where a schedule begins; of any other count torch asks for what a checkpoint holds."""
    assert _normalised(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_calls_stay(text: str) -> None:
    """What is known is for the tables to judge."""
    assert _normalised(text) == text
