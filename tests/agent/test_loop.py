"""The loop with a model, over a scripted endpoint and scripted services. Plumbing: nothing here says how well a model does.

A module whose docstring says `script: fail` is refused by the scripted verifier until its text says `repaired`; see `scripted.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.run import Options, Result, start
from migrate_agent.agent.model.connect import TRAJECTORY, connect
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState
from migrate_agent.evals.model_loop.scripted_endpoint import INPUT, OUTPUT, Cut, Hang, Long, Move, Refusal, Script, Status, endpoint
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.types import Evidence, UnitReport

CONFIG = '[model]\ntimeout = 0.5\ntries = 2\n[[price]]\nmodel = "small"\ninput = 1000\noutput = 10000\n'
"""Each answered call of the endpoint costs a fifth of a dollar."""
PRICE = (1000 * INPUT + 10000 * OUTPUT) / 1e6


def never(context: Context, state: RunState) -> str:
    raise AssertionError("no question may be asked")


def whole(text: str, reason: str = "since I must") -> str:
    """A whole class as an answer."""
    return json.dumps({"holes": [], "whole_class": text, "reason": reason})


def hole(text: str, number: int = 1) -> str:
    """A hole as an answer."""
    return json.dumps({"holes": [{"number": number, "code": text}], "whole_class": "", "reason": ""})


RIGHT, WRONG = whole("class A:\n    repaired = True"), whole("class A:\n    wrong = True")


@dataclass
class Verifier:
    """The scripted verifier, and the texts it was given."""

    texts: list[str]

    def __call__(self, *arguments: Any) -> Evidence:
        self.texts.append((arguments[4] / arguments[0].target).read_text())
        return scripted.verify(*arguments)


def run(root: Path, script: Script, options: Options | None = None, **services: Any) -> Result:
    """A run with the scripted endpoint as its model."""
    given = options or Options(model="small", base_url=script.url)
    return start(root, given, scripted.services(connect=connect, **services), Progress(Console(quiet=True)), never)


def row(result: Result, name: str) -> UnitReport:
    return next(unit for unit in result.units if unit.name == name)


@pytest.mark.parametrize(
    ("moves", "status", "attempts", "calls", "told"),
    [
        pytest.param([WRONG, RIGHT], "verified", 3, 2, "numeric/forward_fp64: fail", id="wrong, then right"),
        pytest.param(['{"holes": [', RIGHT], "verified", 3, 2, "the answer is no JSON", id="malformed JSON"),
        pytest.param(["I would use JAX.", RIGHT], "verified", 3, 2, "the answer is no JSON", id="prose"),
        pytest.param([Cut(RIGHT[:20]), RIGHT], "verified", 2, 2, "", id="truncated stream"),
        pytest.param([Refusal("I must not"), RIGHT], "verified", 3, 2, "the model declined: I must not", id="refusal"),
        pytest.param([Long(RIGHT[:20]), RIGHT], "verified", 3, 2, "its tokens ran out", id="out of tokens"),
        pytest.param([Status(429, {"Retry-After": "0"}), RIGHT], "verified", 2, 1, "", id="429 with Retry-After"),
        pytest.param([Hang(), Status(503, {"Retry-After": "0"}), RIGHT], "verified", 3, 1, "no answer from http", id="timeout"),
        pytest.param([whole("import os\nclass A:\n    x = 1"), RIGHT], "verified", 3, 2, "it touches more than A", id="edits outside"),
        pytest.param([whole("class B:\n    x = 1"), RIGHT], "verified", 3, 2, "it does not define A", id="another class"),
        pytest.param([hole("x = 1"), RIGHT], "verified", 3, 2, "holes were answered", id="holes for a class"),
        pytest.param([WRONG] * 9, "failed", 4, 3, "the same as attempt 2", id="the same again and again"),
        pytest.param(
            [whole(f"class A:\n    x = {n}") for n in range(9)], "failed", 4, 3, "numeric/forward_fp64: fail", id="endless variants"
        ),
    ],
)
def test_a_bad_day_ends_as_it_should(tmp_path: Path, moves: list[Move], status: str, attempts: int, calls: int, told: str) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail"), "b.py": module("B"), "migrate.toml": CONFIG})
    with endpoint(moves) as script:
        result = run(root, script)
    unit = row(result, "A")
    assert (unit.status, unit.attempts, unit.llm.calls) == (status, attempts, calls)
    paid = PRICE * sum(isinstance(move, (str, Refusal, Long)) for move in moves[: len(script.asked)])
    broke_off = any(isinstance(move, Cut) for move in moves)  # then what it took is estimated
    assert unit.llm.cost > paid if broke_off else unit.llm.cost == pytest.approx(paid)
    assert row(result, "B").status == "verified", "the other units go on"
    assert result.exit_status == (0 if status == "verified" else 1)
    if told:
        assert told in script.asked[-1]["messages"][-1]["content"], "the next attempt is told"
    if status == "verified":
        assert (unit.proposer, git(root, "show", f"{result.branch}:a_jax.py")) == ("llm", "class A:\n    repaired = True")
    else:
        assert unit.verdicts and "all 4 attempts are spent" in unit.reason


def test_near_duplicates_are_not_verified_again(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail"), "migrate.toml": CONFIG + "[budget]\nattempts = 8\n"})
    verifier = Verifier([])
    with endpoint(lambda request, number: whole(f"class A:\n\n    # attempt {number}\n    wrong   = True")) as script:
        result = run(root, script, verify=verifier)
    assert (row(result, "A").status, row(result, "A").attempts, len(script.asked)) == ("failed", 8, 7)
    assert len(verifier.texts) == 2, "the rules' draft, and the model's once"


def test_holes_are_filled_and_only_they(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: hole"), "migrate.toml": CONFIG})
    with endpoint([hole("import os", 1), hole("class A:\n    filled = True", 2), hole("class A:\n    filled = True")]) as script:
        result = run(root, script)
    assert (row(result, "A").status, row(result, "A").attempts) == ("verified", 4)
    first = script.asked[0]["messages"]
    assert ">>> hole 1: asked for" in first[1]["content"] and "class A(nn.Module)" in first[1]["content"]
    assert "takes nothing but a definition of that name" in script.asked[1]["messages"][1]["content"]
    assert "there is no hole 2" in script.asked[2]["messages"][1]["content"]


def test_units_that_need_a_failed_one_cost_nothing_and_say_so(tmp_path: Path) -> None:
    files = {
        "a.py": module("A", "script: fail"),
        "b.py": f"from a import A\n{module('B', 'script: fail', needs='A')}",
        "migrate.toml": CONFIG,
    }
    root = repository(tmp_path / "repo", files)
    with endpoint(lambda request, number: whole(f"class A:\n    x = {number}")) as script:
        result = run(root, script)
    assert row(result, "B").status == "unverified" and row(result, "B").llm.calls == 0
    assert "needs a.py:A, which is failed" in row(result, "B").reason
    assert len(script.asked) == 3


def test_cost_is_bounded_to_one_call_more(tmp_path: Path) -> None:
    files = {f"{name}.py": module(name.upper(), "script: fail") for name in "abcd"} | {"e.py": module("E"), "migrate.toml": CONFIG}
    root = repository(tmp_path / "repo", files)
    bound = 2.5 * PRICE
    with endpoint(lambda request, number: whole(f"class {'ABCD'[number // 3]}:\n    x = {number}")) as script:
        result = run(root, script, Options(model="small", base_url=script.url, max_cost=bound))
    total = sum(unit.llm.cost for unit in result.units)
    assert bound <= total < bound + PRICE + 1e-9
    assert len(script.asked) == 3
    assert [unit.status for unit in result.units] == ["failed"] * 4 + ["verified"]
    assert all("the run's budget is spent" in row(result, name).reason for name in "BCD")


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("unit_tokens = 150", "the unit's budget is spent (tokens: 220 of 150)"),
        ("unit_seconds = 0.0", "the unit's budget of 0 s is spent"),
        ("seconds = 0.0", "the run's budget of 0 s is spent"),
        ("attempts = 2", "all 2 attempts are spent"),
    ],
)
def test_other_budgets_end_the_unit_too(tmp_path: Path, budget: str, reason: str) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail"), "migrate.toml": f"{CONFIG}[budget]\n{budget}\n"})
    with endpoint(lambda request, number: whole(f"class A:\n    x = {number}")) as script:
        result = run(root, script)
    assert row(result, "A").status == "failed" and reason in row(result, "A").reason
    assert row(result, "A").verdicts, "the best evidence is told"


def test_models_in_turn_and_as_an_ensemble(tmp_path: Path) -> None:
    def answer(request: dict[str, Any], number: int) -> Move:
        return RIGHT if request["model"] == "b" else WRONG

    asked: dict[bool, list[str]] = {}
    for ensemble in (False, True):
        root = repository(tmp_path / str(ensemble), {"a.py": module("A", "script: fail")})
        with endpoint(answer) as script:
            result = run(root, script, Options(model="a, b", base_url=script.url, ensemble=ensemble))
        assert row(result, "A").status == "verified"
        assert row(result, "A").llm.calls == len(script.asked) == 2
        asked[ensemble] = [request["messages"][1]["content"] for request in script.asked]
    assert asked[True][0] == asked[True][1], "an ensemble is asked the same"
    assert asked[False][0] != asked[False][1], "the next one is told what the first came to"


def test_of_an_ensembles_right_answers_that_which_changes_least_wins(tmp_path: Path) -> None:
    long = whole("class A:\n    repaired = True\n    more = 1\n    and_more = 2\n    and_still_more = 3")
    root = repository(tmp_path, {"a.py": module("A", "script: fail")})
    with endpoint(lambda request, number: RIGHT if request["model"] == "b" else long) as script:
        result = run(root, script, Options(model="a, b", base_url=script.url, ensemble=True))
    assert row(result, "A").status == "verified" and row(result, "A").attempts == 2
    assert "and_more" not in git(root, "show", f"{result.branch}:a_jax.py")


def test_replay_of_a_trajectory_comes_to_the_same_commits(tmp_path: Path) -> None:
    files = {"a.py": module("A", "script: fail"), "migrate.toml": CONFIG}
    first, second = (repository(tmp_path / name, files) for name in ("first", "second"))
    with endpoint([WRONG, RIGHT]) as script:
        done = run(first, script)
    (saved,) = first.glob(f".git/migrate-agent/runs/*/{TRAJECTORY}")
    assert len(saved.read_text().splitlines()) == 2
    again = run(second, script, Options(replay=saved))
    assert [git(root, "rev-parse", done.branch) for root in (first, second)] == [git(first, "rev-parse", again.branch)] * 2
    assert row(again, "A").llm.calls == 2 and row(again, "A").llm.cost == row(done, "A").llm.cost


def test_known_repairs_come_before_tokens(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail"), "migrate.toml": CONFIG})

    def compose(*arguments: Any) -> Any:
        draft = scripted.compose(*arguments)
        return type(draft)({name: text.replace("pass\n", "x = jax.nn.gelu(y)\n") for name, text in draft.files.items()}, draft.holes)

    def verify(*arguments: Any) -> Evidence:
        text = (arguments[4] / arguments[0].target).read_text()
        (arguments[4] / arguments[0].target).write_text(text.replace("approximate=False", "repaired"))
        return scripted.verify(*arguments)

    with endpoint([]) as script:
        result = run(root, script, compose=compose, verify=verify)
    assert script.asked == []
    assert (row(result, "A").status, row(result, "A").proposer, row(result, "A").attempts) == ("verified", "rules", 2)
    assert "approximate=False" in git(root, "show", f"{result.branch}:a_jax.py")


def test_a_bound_on_money_needs_prices(tmp_path: Path) -> None:
    from migrate_agent.agent.config.errors import MissingError, UsageError

    root = repository(tmp_path / "repo", {"a.py": module("A")})
    with endpoint([]) as script, pytest.raises(UsageError, match="no price is known for unheard-of"):
        run(root, script, Options(model="unheard-of", base_url=script.url, max_cost=1.0))
    with pytest.raises(MissingError, match="no endpoint"):
        run(root, script, Options(model="unheard-of"))


def test_an_endpoint_that_is_gone_stops_the_run_and_can_be_resumed(tmp_path: Path) -> None:
    from migrate_agent.agent.config.errors import MissingError
    from migrate_agent.agent.loop.run import resume

    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail"), "migrate.toml": CONFIG})
    back: list[bool] = []
    answer: Callable[[dict[str, Any], int], Move] = lambda request, number: RIGHT if back else Status(401)  # noqa: E731
    with endpoint(answer) as script:
        with pytest.raises(MissingError, match="refuses the key"):
            run(root, script)
        back.append(True)
        result = resume(root, scripted.services(connect=connect), Progress(Console(quiet=True)), never)
    assert result.exit_status == 0


def test_model_alone_writes_every_class(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A"), "migrate.toml": CONFIG})
    with endpoint([hole("class A:\n    repaired = True")]) as script:
        result = run(root, script, Options(model="small", base_url=script.url, rules=False))
    assert (row(result, "A").status, row(result, "A").proposer, row(result, "A").attempts) == ("verified", "llm", 2)
    assert "the whole class is to be written" in script.asked[0]["messages"][1]["content"]
    assert "class A(nnx.Module):\n    pass" in script.asked[0]["messages"][1]["content"], "what the rules would write is not shown"
