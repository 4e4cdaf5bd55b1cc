"""Right candidates are verified, wrong ones are refused by the check that should, with the place named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.portable.units import needs_compiler
from migrate_agent.tests.tools.verify import pairs_calls, pairs_layers, pairs_lengths, pairs_models, pairs_numeric, pairs_users
from migrate_agent.tests.tools.verify.harness import Pair, Wrong, check_pair, told
from migrate_agent.tools.verify.checks.base import load_checks
from migrate_agent.tools.verify.checks.portable import compiles_for_tpu
from migrate_agent.tools.verify.report.notes import EVALUATES

PAIRS = (*pairs_calls.PAIRS, *pairs_layers.PAIRS, *pairs_lengths.PAIRS, *pairs_models.PAIRS, *pairs_numeric.PAIRS, *pairs_users.PAIRS)
# Checks that look again, elsewhere, at what another check judges: they may refuse a candidate beside the check that owns the defect.
AGAIN = frozenset({"configurations_fp64", "gradients_edges", "gradients_native", "second_call", "second_derivatives"})


def _owned() -> dict[str, tuple[Pair, Wrong]]:
    """For each check one wrong candidate that it alone refuses, of as few pairs as that takes: an original runs once for all of its pair."""
    chosen: dict[str, tuple[Pair, Wrong]] = {}
    for pair in sorted(PAIRS, key=lambda pair: -len({wrong.check for wrong in pair.wrongs if wrong.alone})):
        for wrong in pair.wrongs:
            if wrong.alone:
                chosen.setdefault(wrong.check, (pair, wrong))
    return chosen


OWNED = _owned()
OWNED_WRONGS = [(pair.name, wrong.label) for pair, wrong in OWNED.values()]
QUICK_PAIR = Counter(pair.name for pair, _ in OWNED.values()).most_common(1)[0][0]


def _lane(pair: Pair, wrong: Wrong | None = None) -> list[pytest.MarkDecorator]:
    """The pair that serves most checks is quick, what the other checks need is CI's, and the rest is for `make test-all`."""
    if wrong is None:
        return [] if pair.name == QUICK_PAIR else [pytest.mark.ci if pair.name in {name for name, _ in OWNED_WRONGS} else pytest.mark.slow]
    if (pair.name, wrong.label) not in OWNED_WRONGS:
        return [pytest.mark.slow]
    return [] if pair.name == QUICK_PAIR else [pytest.mark.ci]


WRONGS = [pytest.param(pair, wrong, id=f"{pair.name}: {wrong.label}", marks=_lane(pair, wrong)) for pair in PAIRS for wrong in pair.wrongs]
RIGHTS = [pytest.param(pair, id=pair.name, marks=_lane(pair)) for pair in PAIRS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder a pair, so that the original runs once for all candidates."""
    return tmp_path_factory.mktemp("pairs")


@pytest.mark.parametrize("pair", RIGHTS)
def test_right_candidate_is_verified(pair: Pair, sandbox: ProcessSandbox, folder: Path) -> None:
    if pair.topology:
        needs_compiler()
    evidence = check_pair(pair, pair.candidate(), sandbox, folder / pair.name, stop=False)
    assert evidence.status == "verified", told(evidence)
    assert not pair.topology or {f"tpu/{pair.topology}/{program}/peak_bytes" for program in ("forward", "train")} <= evidence.figures.keys()


@pytest.mark.parametrize(("pair", "wrong"), WRONGS)
def test_wrong_candidate_is_refused(pair: Pair, wrong: Wrong, sandbox: ProcessSandbox, folder: Path) -> None:
    if pair.topology:
        needs_compiler()
    evidence = check_pair(pair, pair.candidate(wrong), sandbox, folder / pair.name)
    refused = {verdict.check: verdict for verdict in evidence.verdicts if verdict.status != "pass"}
    assert wrong.check in refused, told(evidence)
    assert refused[wrong.check].status == wrong.status
    beside = refused.keys() - {wrong.check} - (AGAIN if wrong.check not in AGAIN else set())
    assert not wrong.alone or not beside, told(evidence)
    assert wrong.place in next(iter(refused.values())).detail


NOTED = [
    (pairs_layers.DROPOUT, "nnx.Dropout(p, rngs=rngs)", "nnx.Dropout(p, rngs=rngs)", []),
    (pairs_layers.DROPOUT, "nnx.Dropout(p, rngs=rngs)", "nnx.Dropout(p, deterministic=True, rngs=rngs)", [EVALUATES]),
    (pairs_calls.TRAINED, "", "", ["no example gives the call its shift, and so what it does with that was not compared"]),
]


@pytest.mark.parametrize(("pair", "old", "new", "notes"), NOTED, ids=("nothing", "evaluates", "never given"))
def test_what_verdicts_do_not_say_is_noted(pair: Pair, old: str, new: str, notes: list[str], sandbox: ProcessSandbox, folder: Path) -> None:
    evidence = check_pair(pair, pair.candidate(Wrong("", "", old, new) if old else None), sandbox, folder / pair.name)
    assert evidence.status == "verified", told(evidence)
    assert [note for note in evidence.notes if "not compared, since" not in note] == notes


@pytest.mark.parametrize(
    "asks", ["isinstance(x, jax.core.Tracer)", "type(x).__name__ != 'ArrayImpl'", "not hasattr(x, 'unsafe_buffer_pointer')"]
)
def test_what_hides_nan_only_while_it_is_traced_is_not_verified(asks: str, sandbox: ProcessSandbox, folder: Path) -> None:
    """NaN may be missing where the compiler alone is at fault: a run operator by operator tells, which a rewrite must not tell apart."""
    pair, right = pairs_numeric.SELECTED, "distances * chosen.astype(jnp.float32)"
    hides = f"(jnp.where(chosen, distances.astype(jnp.float32), 0.0) if {asks} else {right})"
    evidence = check_pair(pair, pair.candidate(Wrong("", "", right, hides)), sandbox, folder / pair.name)
    assert evidence.status != "verified", told(evidence)


def test_without_the_compiler_it_is_said_what_to_install(sandbox: ProcessSandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pair,) = (pair for pair in PAIRS if pair.topology)
    monkeypatch.setattr(compiles_for_tpu, "has_compiler", lambda: False)
    evidence = check_pair(pair, pair.candidate(), sandbox, folder / pair.name)
    assert evidence.status == "unverified"
    told = {verdict.check: verdict.detail for verdict in evidence.verdicts if verdict.status != "pass"}
    assert told == {"compiles_for_tpu": "install migrate-agent[tpu]"}


def test_every_check_has_a_wrong_candidate_that_it_alone_refuses() -> None:
    """None beside it but those of `AGAIN`; each of these has one that no other check refuses."""
    alone = {wrong.check for pair in PAIRS for wrong in pair.wrongs if wrong.alone}
    assert {check.name for check in load_checks()} <= alone
