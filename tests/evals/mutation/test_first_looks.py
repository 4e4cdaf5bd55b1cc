"""The first looks at mutants: what is far off in float32, what is the same program, and what is left to the verifier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrate_agent.evals.mutation import mutants
from migrate_agent.evals.mutation.mutants import Target
from migrate_agent.evals.mutation.parity_first import ParityFirst
from migrate_agent.evals.mutation.same_program import SameProgram, changed_lines, same_for_all
from migrate_agent.sandbox.process import ProcessSandbox

pytestmark = pytest.mark.slow

Looks = tuple[Target, ParityFirst, SameProgram]


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    """The port of a module with a gradient of its own."""
    with ProcessSandbox() as sandbox:
        (target,) = mutants.targets("port-detach", sandbox, tmp_path_factory.mktemp("port"))
        yield target, (parity := ParityFirst(target)), SameProgram(parity)


@pytest.mark.parametrize(
    ("old", "new", "far", "same"),
    [
        ("(q * gate)", "(gate * q)", False, False),
        ("(q * gate)", "((q * gate))", False, True),
        ("sum(-1)", "sum(1)", False, True),
        ("sum(-1)", "sum(0)", True, False),
        ("-0.5 * grad", "-0.501 * grad", False, False),
        ("-0.5 * grad", "-0.6 * grad", True, False),
        ("jax.lax.stop_gradient(h)", "h", True, False),
        ("return x\\n", "return x if x is not None else 0\\n", False, False),
        ("def __call__(self, x)", "def __call__(self, x, y=None)", False, False),
    ],
)
def test_looks(old: str, new: str, far: bool, same: bool, looks: Looks) -> None:
    target, parity, programs = looks
    text = target.file.read_text(encoding="utf-8")
    changed = text.replace(old.replace("\\n", "\n"), new.replace("\\n", "\n"))
    assert changed != text
    with target.holding(changed):
        assert (bool(parity.far()), same_for_all([programs])) == (far, same)


def test_changed_lines_are_those_of_the_new_text() -> None:
    assert changed_lines("a\nb\nc\n", "a\nx\ny\nc\n") == {2, 3}
    assert changed_lines("a\nb\n", "a\n") == set()
