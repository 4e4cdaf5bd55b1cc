"""Training programs: which there are, what the suite's own comparison tells apart, and what is counted. No program runs here."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from migrate_agent.evals import records, scoreboard
from migrate_agent.evals.programs.both_run import Parts, _stop_the_calendar, median_interval, median_step
from migrate_agent.evals.programs.confirm import different_lines, different_weights
from migrate_agent.evals.programs.listed import OWN, load_programs
from migrate_agent.evals.programs.stand_ins import stand_in
from migrate_agent.evals.programs.torch_run import KeepsAll
from migrate_agent.evals.suite import Options, Outcome, load_suite
from migrate_agent.evals.suites.programs import groups, passed, report, summary


def test_each_program_of_the_folder_is_listed() -> None:
    listed = {row.name: row for row in load_programs().values() if not row.address}
    assert {row.own for row in listed.values()} == {file.parent for file in [*OWN.glob("*/train.py"), *OWN.glob("programs/*/train.py")]}
    assert all((row.own / row.script).is_file() and row.covers for row in listed.values())
    assert len(listed) >= 20


def test_public_programs_need_their_clones() -> None:
    public = {row.name for row in load_programs().values() if row.address}
    assert not public & {group[0] for group in groups(Options())}


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        (["loss 0.1234"], ["loss 0.1234"], False),
        (["loss 0.1234"], ["loss 0.1235"], False),
        (["loss 0.1234"], ["loss 0.1236"], True),
        (["loss 1.25e-03"], ["loss 1.26e-03"], False),
        (["loss 1.25e-03"], ["loss 1.28e-03"], True),
        (["12 of 20"], ["13 of 20"], True),
        (["loss 0.5"], ["loss: 0.5"], True),
        (["loss 0.5"], [], True),
    ],
)
def test_printed_lines(ours: list[str], theirs: list[str], differs: bool) -> None:
    """Numbers agree to their last digit, text agrees wholly."""
    assert bool(list(different_lines(ours, theirs))) == differs


@pytest.mark.parametrize(("moved", "differs"), [(0.0, False), (1e-6, False), (1e-3, True), (float("nan"), True)])
def test_weights_moved_alike(tmp_path: Path, moved: float, differs: bool) -> None:
    """The distance counts as a share of how far training moved the weights, here by one."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "jax").mkdir()
    np.savez(tmp_path / "torch" / "start-0.npz", w=np.zeros(3))
    np.savez(tmp_path / "torch" / "end-0.npz", w=np.ones(3))
    np.savez(tmp_path / "jax" / "end-0.npz", w=np.ones(3) + moved)
    assert bool(list(different_weights(tmp_path / "torch", tmp_path / "jax"))) == differs


def test_weights_of_another_optimizer_are_missed(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    for name in ("start-0", "end-0"):
        np.savez(tmp_path / "torch" / f"{name}.npz", w=np.zeros(3))
    assert list(different_weights(tmp_path / "torch", tmp_path / "jax")) == ["the rewrite has no optimizer 0.npz"]


def _verdicts(*rows: tuple[str, str]) -> list[dict[str, str]]:
    return [{"stage": stage, "status": status} for stage, status in rows]


def test_stages_count_from_the_first_on() -> None:
    assert passed([]) == 0
    assert passed(_verdicts(("spec", "fail"), ("numeric", "pass"))) == 0
    assert passed(_verdicts(("spec", "pass"), ("numeric", "unverified"))) == 1
    assert passed(_verdicts(("spec", "pass"), ("numeric", "pass"), ("behavioural", "pass"), ("compile", "fail"))) == 2
    assert passed(_verdicts(("spec", "pass"), ("numeric", "pass"), ("behavioural", "pass"), ("compile", "pass"))) == 3


def test_both_denominators_and_claims_are_told() -> None:
    done = {"passed": 3, "comparable": True}
    outcomes = [
        Outcome("a", "right", "", {**done, "confirmed": True, "step_ratio": 0.5, "seconds": 90.0, "original_seconds": 3.0}),
        Outcome("b", "wrong", "differs", {**done, "confirmed": False, "step_ratio": 2.0, "seconds": 91.0, "original_seconds": 3.0}),
        Outcome("c", "refused", "a hole", {"passed": 0}),
        Outcome("d", "excluded", "SparseAdam", {"passed": 0, "by_name": True}),
    ]
    counts = summary(outcomes)
    assert (counts["in_scope"], counts["programs"], counts["overall"], counts["unconfirmed"]) == (3, 4, 1, 1)
    assert counts["passed"] == [2, 2, 2] and counts["step_ratio"] == 1.0
    lines = list(report(outcomes))
    assert "overall: 1 of 3 in scope, 1 of 4 in all" in lines
    assert "refused by name: 1 of 1 out of scope" in lines
    assert "in at most 10 T + 60 s, for a run of T seconds: 1 of 2" in lines


def test_the_page_of_results_counts_public_programs_too() -> None:
    """Beside ours, with both denominators."""
    done = {"passed": 3, "comparable": True, "confirmed": True}
    outcomes = [
        Outcome("vae", "right", "", done),
        Outcome("gae", "right", "", done),
        Outcome("cnn_text", "refused", "reach", {"passed": 2}),
    ]
    outcomes.append(Outcome("sparse_embedding", "excluded", "SparseAdam", {"passed": 0, "by_name": True}))
    text = scoreboard.sentence({"suite": "programs", "commit": "a1, b2", "summary": summary(outcomes), "cases": []})
    assert "2 of 3 in scope, 2 of 4 in all (ours 1 of 1 in scope, public 1 of 2)" in text
    assert "the suite does not confirm: 0 of 2" in text


def test_stored_public_programs_are_part_of_the_suite(tmp_path: Path) -> None:
    """Though a run without their clones leaves them out."""
    suite = load_suite("programs")
    records.store_group(suite, ("gae",), [Outcome("gae", "right", "", {"passed": 3})], 1.0, tmp_path)
    whole = records.assembled(suite, tmp_path)
    assert [case["case"] for case in whole["cases"]] == ["gae"] and "minimal_dqn" in whole["missing"]


def test_the_first_steps_are_no_part_of_the_time_of_a_step() -> None:
    assert median_interval([0.0, 10.0, 20.0, 21.0, 22.0, 23.0]) == 1.0
    assert np.isnan(median_interval([1.0]))


def test_what_was_compiled_on_the_way_to_a_step_is_no_part_of_it() -> None:
    """Unless something was on the way to each."""
    stamps = [0.0, 9.0, 18.0, 19.0, 25.0, 26.0, 32.0, 38.0]
    assert median_interval(stamps, [1, 1, 1, 1, 2, 2, 3, 4]) == 1.0
    assert median_interval(stamps, [1, 2, 3, 4, 5, 6, 7, 8]) == 6.0


def test_dropout_inside_a_recurrent_layer_keeps_all() -> None:
    """JAX draws its masks from keys of its own, so that ones stand for them on both sides, and torch's generator does not advance."""
    x = torch.randn(5, 2, 3)
    layer = torch.nn.LSTM(3, 3, 2, dropout=0.5)
    first, second = torch.nn.LSTM(3, 3), torch.nn.LSTM(3, 3)
    for number, one in enumerate((first, second)):
        one.load_state_dict(
            {f"{name}_l0": getattr(layer, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        )
    state = torch.get_rng_state()
    with KeepsAll():  # type: ignore[no-untyped-call]
        result = layer(x)[0]
        torch.testing.assert_close(torch.nn.functional.dropout(x, 0.2), x / 0.8)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(result, second(first(x)[0] / 0.5)[0])


def test_digits_that_stand_in_are_some_of_each_class(tmp_path: Path) -> None:
    """Of data in which a class has one image, programs that look for pairs never end."""
    stand_in(tmp_path, "digits:data")
    for name in ("train", "t10k"):
        labels = np.frombuffer((tmp_path / "data" / "MNIST" / "raw" / f"{name}-labels-idx1-ubyte").read_bytes()[8:], np.uint8)
        assert np.bincount(labels, minlength=10).min() >= 3


def test_a_step_alone_is_the_sum_of_its_outermost_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([0.0, 5.0, 10.0, 11.0, 20.0, 100.0])
    monkeypatch.setattr("migrate_agent.evals.programs.both_run.clock", lambda: next(looks))
    parts = Parts()
    parts.open()
    parts.open()
    parts.close()
    parts.close()
    parts.open()
    parts.close()
    parts.end()
    parts.open()
    parts.close(counts=False)
    parts.end()
    assert parts.steps == [6.0, 0.0]


def test_the_median_of_steps_leaves_out_the_first_and_what_was_compiled() -> None:
    assert median_step([90.0, 80.0, 70.0, 60.0, 1.0, 2.0, 3.0]) == 2.0
    assert median_step([0.0] * 4 + [1.0, 50.0, 3.0], [1, 1, 1, 1, 1, 2, 2]) == 2.0
    assert np.isnan(median_step([1.0]))


def test_dates_stand_still_for_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it names after the date has one name on both sides; others read the date as it is."""
    monkeypatch.setattr("builtins.__import__", __import__)
    _stop_the_calendar(str(tmp_path))
    values: dict[str, Any] = {"__file__": str(tmp_path / "train.py")}
    exec(compile("import datetime\nnow = datetime.datetime.now()\n", str(tmp_path / "train.py"), "exec"), values)
    assert values["now"].strftime("%Y-%m-%d") == "2020-01-02"
    assert datetime.datetime.now().year > 2020


def test_a_public_program_has_what_it_downloads(tmp_path: Path) -> None:
    """In the places where its code looks."""
    stand_in(tmp_path, "reviews:rt-polaritydata")
    assert len((tmp_path / "rt-polaritydata" / "rt-polarity.neg").read_text().splitlines()) == 32
