"""From what should be and what is to what has to be done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate_agent.agent.forge.base import Check, LineNote, Request
from migrate_agent.agent.pr.plan import (
    BEGIN,
    END,
    HELD,
    Action,
    Draft,
    Edit,
    Held,
    Label,
    Open,
    Push,
    Remark,
    Review,
    Seen,
    SetCheck,
    Wanted,
    framed,
    held_block,
    noted_requests,
    numbered,
    plan,
)

PASSED = Check("success", "4 of 4 checks passed")
NOTE = LineNote("model_jax.py", 7, "run by no example")
LOW = Wanted("pr/low", "main", "c1", "Migrate low", "low text", PASSED)
HIGH = Wanted("pr/high", "pr/low", "c2", "Migrate high", "stands on {{request:pr/low}}", PASSED)


def opened(wanted: Wanted, number: int, **changes: Any) -> Request:
    """The request as it is once all was done."""
    body = numbered(framed("", wanted.body), {"pr/low": "#1"})
    return replace(
        Request(number, wanted.branch, wanted.base, wanted.commit, "open", wanted.draft, wanted.title, body, "url", "robot"), **changes
    )


def seen(*requests: Request, **facts: Any) -> Seen:
    """A forge where these requests are as they should be."""
    plain: dict[str, Any] = {"heads": {each.branch: each.head for each in requests}, "checks": {each.head: PASSED for each in requests}}
    return Seen(**{**plain, "requests": {each.branch: each for each in requests}, **facts})


DONE = seen(opened(LOW, 1), opened(HIGH, 2))


def todo(wanted: list[Wanted], state: Seen, held: tuple[Held, ...] = ()) -> list[Action]:
    """The actions."""
    return list(plan(wanted, held, state).actions)


def test_nothing_there_yet() -> None:
    full = replace(LOW, labels=("jax",), reviewers=("ann",), notes=(NOTE,), draft=True)
    actions = todo([full, HIGH], Seen())
    kinds = [type(action).__name__ for action in actions]
    assert kinds == ["Push", "Open", "Label", "Review", "Remark", "SetCheck", "Edit", "Push", "Open", "SetCheck"]
    assert actions[0] == Push("pr/low", "c1", "")
    assert actions[1] == Open("pr/low", "main", "Migrate low", framed("", "low text"), True)
    edit = actions[6]
    assert isinstance(edit, Edit) and edit.body is not None and noted_requests(edit.body) == ("label:jax", "reviewer:ann")


def test_all_is_as_it_should_be() -> None:
    assert plan([LOW, HIGH], (), DONE).actions == ()


@pytest.mark.parametrize(
    ("wanted", "request_changes", "facts", "expected"),
    [
        (replace(LOW, commit="c9"), {}, {}, [Push("pr/low", "c9", "c1"), SetCheck("pr/low", "c9", PASSED)]),
        (replace(LOW, body="new text"), {}, {}, [Edit("pr/low", body=framed("", "new text"))]),
        (LOW, {"base": "pr/gone"}, {}, [Edit("pr/low", base="main")]),
        (LOW, {}, {"checks": {}}, [SetCheck("pr/low", "c1", PASSED)]),
        (LOW, {}, {"checks": {"c1": Check("failure", "was bad")}}, [SetCheck("pr/low", "c1", PASSED)]),
        (replace(LOW, notes=(NOTE,)), {}, {}, [Remark("pr/low", "c1", NOTE)]),
        (replace(LOW, notes=(NOTE,)), {}, {"notes": {1: [replace(NOTE, line=3)]}}, []),  # the line moved with the code above it
        (replace(LOW, draft=True), {}, {}, []),  # a person made it ready
        (LOW, {"draft": True}, {}, []),  # a person made it a draft
        (LOW, {"title": "My own title"}, {}, []),
        (LOW, {"body": f"Mine above.\n{framed('', 'low text')}\nMine below."}, {}, []),
        (LOW, {"body": framed("", "low text").replace("\n", "\r\n")}, {}, [Edit("pr/low", body=framed("", "low text"))]),
    ],
)
def test_one_difference(wanted: Wanted, request_changes: dict[str, object], facts: dict[str, object], expected: list[Action]) -> None:
    assert todo([wanted], seen(opened(LOW, 1, **request_changes), **facts)) == expected


def test_asking_is_finished_and_not_repeated() -> None:
    full = replace(LOW, labels=("jax", "port"), reviewers=("ann",))
    before = opened(LOW, 1)
    first = todo([full], seen(before))
    assert first[:2] == [Label("pr/low", ("jax", "port")), Review("pr/low", ("ann",))]
    assert isinstance(first[2], Edit) and first[2].body is not None
    after = replace(before, body=first[2].body)
    assert todo([full], seen(after)) == []  # though ann may have been taken off by a person since
    more = replace(full, labels=("jax", "port", "late"))
    assert todo([more], seen(after))[0] == Label("pr/low", ("late",))


def test_a_closed_request_is_left_alone_with_all_that_stands_on_it() -> None:
    found = plan([LOW, HIGH], (), seen(opened(LOW, 1, state="closed"), opened(HIGH, 2)))
    assert found.actions == ()
    assert ["closed without merging" in found.told[0], "stands on pr/low" in found.told[1]] == [True, True]


def test_a_merged_request_of_other_code_is_followed_by_a_new_one() -> None:
    kinds = [type(action).__name__ for action in todo([replace(LOW, commit="c9")], seen(opened(LOW, 1, state="merged")))]
    assert kinds == ["Push", "Open", "SetCheck"]


def test_a_unit_that_failed_meanwhile_turns_into_a_draft_and_back() -> None:
    hold = (Held("pr/low", "failed: numeric/forward_fp64: 0.3 off"),)
    first = todo([], seen(opened(LOW, 1)), hold)
    bad = Check("failure", hold[0].reason)
    assert first[:2] == [Draft("pr/low", True), SetCheck("pr/low", "c1", bad)]
    assert isinstance(first[2], Edit) and first[2].body is not None
    assert "0.3 off" in first[2].body and "low text" in first[2].body
    held = opened(LOW, 1, draft=True, body=first[2].body)
    assert todo([], seen(held, checks={"c1": bad}), hold) == []
    back = todo([LOW], seen(held))
    assert back == [Draft("pr/low", False), Edit("pr/low", body=framed("", "low text"))]


def test_a_draft_of_a_person_stays_one() -> None:
    hold = (Held("pr/low", "failed"),)
    first = todo([], seen(opened(LOW, 1, draft=True)), hold)
    assert not any(isinstance(action, Draft) for action in first)
    body = next(action.body for action in first if isinstance(action, Edit) and action.body)
    assert HELD not in body and body.count("Not verified any more") == 1
    back = todo([LOW], seen(opened(LOW, 1, draft=True, body=body)))
    assert back == [Edit("pr/low", body=framed("", "low text"))]


def test_held_block_replaces_the_reason() -> None:
    once = framed("", held_block(framed("", "text"), "first", ours=True))
    twice = framed(once, held_block(once, "second", ours=True))
    assert "first" not in twice and twice.count("second") == 1 and twice.count("text") == 1 + BEGIN.count("text")


def test_framed_keeps_what_people_wrote() -> None:
    assert framed("", "a") == f"{BEGIN}\na\n{END}"
    assert framed("Theirs alone.", "a") == f"{BEGIN}\na\n{END}\n\nTheirs alone."
    assert framed(f"x\n{BEGIN}\nold\n{END}\ny", "a") == f"x\n{BEGIN}\na\n{END}\ny"
