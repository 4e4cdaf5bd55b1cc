"""Calls and their books: cache, trajectory, replay, prices and budgets."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.model.caller import Cache, Caller, OverBudget, load_replies
from migrate_agent.agent.model.ledger import Allowance, Ledger, Spent, read
from migrate_agent.agent.model.prices import LIST, Price, cost, price_of
from migrate_agent.agent.model.wire import Ask, EndpointError, Message, Reply

PRICES = (Price("m", 1000.0, 10000.0),)
"""A tenth of a dollar for each hundred tokens in, and for each ten out."""
FREE = Allowance()


class Counting:
    """Answers with the number of the call."""

    def __init__(self, failing: bool = False) -> None:
        self.calls, self.failing = 0, failing

    def complete(self, ask: Ask) -> Reply:
        self.calls += 1
        if self.failing:
            raise EndpointError("down", Reply("", calls=2, input_tokens=5))
        return Reply(f"answer {self.calls}", input_tokens=100, output_tokens=10, seconds=1.5)


def ask(text: str) -> Ask:
    return Ask("", "m", (Message("user", text),), 10)


def caller(folder: Path, server: Counting, name: str = "run", run: Allowance = FREE, unit: Allowance = FREE) -> Caller:
    return Caller(server, Ledger(folder / name / "trajectory.jsonl", run, unit), Cache(folder / "cache"), name, PRICES)


def test_the_same_request_is_paid_once(tmp_path: Path) -> None:
    server = Counting()
    first = caller(tmp_path, server)
    replies = [first.call(ask("x"), "a.py:A", "fill") for _ in range(2)]
    again = caller(tmp_path, server)  # the process was killed, and another one took up the run
    replies.append(again.call(ask("x"), "a.py:A", "fill"))
    assert [reply.text for reply in replies] == ["answer 1"] * 3
    assert server.calls == 1
    assert again.ledger.spent() == Spent(1, 100, 10, cost(PRICES[0], 100, 10), 1.5)


def test_killed_between_the_cache_and_the_books(tmp_path: Path) -> None:
    server = Counting()
    caller(tmp_path, server).call(ask("x"), "a.py:A", "fill")
    (tmp_path / "run" / "trajectory.jsonl").unlink()
    again = caller(tmp_path, server)
    again.call(ask("x"), "a.py:A", "fill")
    assert server.calls == 1
    assert again.ledger.spent("a.py:A").calls == 1, "this run paid for it"


def test_another_run_finds_the_answer_and_pays_nothing(tmp_path: Path) -> None:
    server = Counting()
    caller(tmp_path, server, "one").call(ask("x"), "a.py:A", "fill")
    other = caller(tmp_path, server, "two")
    assert other.call(ask("x"), "a.py:A", "fill").text == "answer 1"
    assert server.calls == 1 and other.ledger.spent() == Spent()
    assert [entry.fresh for entry in other.ledger.entries()] == [False]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    server = Counting()
    caller(tmp_path, server).call(ask("x"), "a.py:A", "fill")
    file = tmp_path / "run" / "trajectory.jsonl"
    with file.open("a") as stream:
        stream.write('{"key": "torn')
    again = caller(tmp_path, server)
    again.call(ask("y"), "a.py:A", "fill")
    assert [entry.reply.text for entry in read(file)] == ["answer 1", "answer 2"]


def test_failure_is_counted_and_remembered(tmp_path: Path) -> None:
    server = Counting(failing=True)
    for _ in range(2):
        with pytest.raises(EndpointError, match="down"):
            caller(tmp_path, server).call(ask("x"), "a.py:A", "fill")
    assert server.calls == 1
    assert caller(tmp_path, server).ledger.spent().calls == 2


def test_replay_gives_the_same_answers_and_asks_nobody(tmp_path: Path) -> None:
    caller(tmp_path, Counting()).call(ask("x"), "a.py:A", "fill")
    saved = load_replies(tmp_path / "run" / "trajectory.jsonl")
    server = Counting()
    again = replace(caller(tmp_path, server, "again"), cache=None, replayed=saved)
    assert again.call(ask("x"), "a.py:A", "fill").text == "answer 1"
    assert again.ledger.spent().cost == pytest.approx(0.2)
    with pytest.raises(MissingError, match=r"holds no answer for a\.py:A"):
        again.call(ask("y"), "a.py:A", "fill")
    assert server.calls == 0
    with pytest.raises(MissingError, match="holds no trajectory"):
        load_replies(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("bounds", "calls", "words"),
    [
        ({"run": Allowance(cost=0.5)}, 3, "the run's budget is spent \\(cost"),
        ({"run": Allowance(tokens=200)}, 2, "the run's budget is spent \\(tokens: 220 of 200\\)"),
        ({"unit": Allowance(cost=0.1)}, 1, "the unit's budget is spent"),
        ({"unit": Allowance(seconds=3.0)}, 2, "seconds"),
        ({"run": Allowance(cost=0.0)}, 0, "cost: 0 of 0"),
    ],
)
def test_no_budget_is_passed_by_more_than_one_call(tmp_path: Path, bounds: dict[str, Allowance], calls: int, words: str) -> None:
    server = Counting()
    made = caller(tmp_path, server, run=bounds.get("run", FREE), unit=bounds.get("unit", FREE))
    with pytest.raises(OverBudget, match=words):
        for number in range(9):
            made.call(ask(str(number)), "a.py:A", "fill")
    assert server.calls == calls
    if "unit" in bounds:
        made.call(ask("other"), "b.py:B", "fill")


def test_calls_side_by_side_keep_the_bound_of_the_run_too(tmp_path: Path) -> None:
    server = Counting()
    made = Caller(server, Ledger(tmp_path / "t.jsonl", Allowance(cost=1.0)), None, "run", PRICES)

    def work(number: int) -> None:
        with pytest.raises(OverBudget):
            for step in range(9):
                made.call(ask(f"{number} {step}"), f"{number}.py:A", "fill")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1.0 <= made.ledger.spent().cost < 1.0 + 0.2 + 1e-9


def test_users_prices_come_before_the_list() -> None:
    assert price_of("gpt-4o", (Price("gpt-4o", 1.0, 2.0),)) == Price("gpt-4o", 1.0, 2.0)
    assert price_of("gpt-4o", ()) == next(price for price in LIST if price.model == "gpt-4o")
    assert price_of("gpt-4o-of-mine", ()) is None
    assert cost(Price("x", 2.0, 8.0), 1_000_000, 500_000) == 6.0
    assert cost(None, 5, 5) == 0.0
