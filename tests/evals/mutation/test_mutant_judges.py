"""Who judges a mutant: every unit of the file that needs its place; and what counts as not run."""

from __future__ import annotations

import pytest

from migrate_agent.evals.mutation import mutants
from migrate_agent.evals.mutation.mutant_judges import judge_mutants, statements_ran
from migrate_agent.evals.mutation.mutants import NOT_RUN, Target
from migrate_agent.evals.mutation.mutate import Mutation
from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.sandbox.process import ProcessSandbox

pytestmark = pytest.mark.slow

MODEL = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, double):
        super().__init__()
        self.double = double

    def forward(self, x, mask=None):
        if self.double == "yes":
            x = x * 3
        if mask is not None:
            x = x - 5
        return x + 7


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part("no")

    def forward(self, x):
        return self.part(x)

    def shifted(self, x):
        return self.part(x) - 9

    def unused(self, x):
        return self.part(x) - 11


class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part("yes")
        self.small = Small()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.part(self.fc(x)) + self.small.shifted(x)
"""
EXAMPLES = "".join(f'[[example]]\nmodule = "two_units.py:{name}"\ncall = "torch.randn(2, 4)"\n' for name in ("Small", "Large"))


def chosen(target: Target, place: str, old: str, new: str) -> tuple[str, Mutation]:
    """A mutation that replaces one text."""
    text = target.file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    return f"{target.name}/{old}", Mutation(place, "constant", 1, f"{old} → {new}", text.replace(old, new))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """How mutants end of a part that two units have, one of which runs more of it."""
    folder = tmp_path_factory.mktemp("judges")
    (folder / "repository").mkdir()
    (folder / "repository/two_units.py").write_text(MODEL)
    (folder / "repository/migrate.toml").write_text(EXAMPLES)
    with ProcessSandbox() as sandbox, pytest.MonkeyPatch.context() as patch:
        found = mutants._repository("example-two", folder / "repository", sandbox, folder)
        assert {target.unit.name for target in found} == {"Small", "Large"}
        owner = next(target for target in found if target.unit.name == "Small")
        assert owner.places is not None and "Part" in owner.places, "it needs less than the other"
        rows = [
            chosen(owner, "Part.__call__", "x * 3", "x * 4"),
            chosen(owner, "Part.__call__", "x - 5", "x - 6"),
            chosen(owner, "Part.__call__", "x + 7", "x + 8"),
            chosen(owner, "Part.__call__", "x + 7\n", "7 + x\n"),
            chosen(owner, "Small.shifted", "self.part(x) - 9", "self.part(x) - 10"),
            chosen(owner, "Small.unused", "self.part(x) - 11", "self.part(x) - 12"),
        ]
        patch.setattr(mutants, "targets", lambda *_: found)
        patch.setattr(Target, "mutations", lambda self: rows if self is owner else [])
        return {outcome.case.partition("/")[2].partition("/")[2]: outcome for outcome in judge_mutants("two", sandbox, folder, Options())}


def test_a_mutant_is_refused_where_any_unit_that_needs_its_place_is(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["x * 3"].status == "right" and outcomes["x + 7"].status == "right"


def test_what_no_unit_runs_and_a_note_tells_of_is_left_out(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["x - 5"].status == "excluded" and outcomes["x - 5"].details["check"] == NOT_RUN


def test_a_method_is_judged_by_whoever_calls_it(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["self.part(x) - 9"].status == "right"
    assert outcomes["self.part(x) - 11"].details["check"] == NOT_RUN


def test_what_runs_and_is_refused_by_none_survives(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["x + 7\n"].status == "wrong" and outcomes["x + 7\n"].reason.startswith("survives")


@pytest.mark.parametrize(
    ("changed", "lines", "found"),
    [
        ({3}, {3}, True),
        ({3}, {1, 2}, False),
        ({5}, {4}, True),  # of a statement of several lines
        ({2}, {3}, False),  # the head of a condition is not its body
        ({1}, {1}, True),
    ],
)
def test_a_changed_line_counts_as_run_with_its_statement(changed: set[int], lines: set[int], found: bool) -> None:
    assert statements_ran("def f(x):\n    if x:\n        x = 1\n    return g(\n        x)\n", changed, lines) is found
