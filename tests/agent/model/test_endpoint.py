"""The client against a scripted endpoint (plumbing: a real server that speaks the protocol, and no model)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.model.endpoint import Endpoint, retry_after
from migrate_agent.agent.model.wire import Ask, EndpointError, Message, Structured
from migrate_agent.evals.model_loop.scripted_endpoint import INPUT, OUTPUT, Cut, Hang, Long, Move, Refusal, Script, Status, endpoint

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


def ask(script: Script, **changes: object) -> Ask:
    plain = Ask(script.url, "small", (Message("system", "be brief"), Message("user", "go")), 64)
    return replace(plain, **changes)  # type: ignore[arg-type]


def client(script: Script, waits: list[float], seconds: float = 20.0, tries: int = 4) -> Endpoint:
    return Endpoint(script.url, "key", seconds, tries, sleep=waits.append)


def test_streamed_answer_and_its_usage() -> None:
    text = "a long answer, " * 100
    told: list[str] = []
    with endpoint([text]) as script:
        server = client(script, [])
        server.told = told.append
        reply = server.complete(ask(script))
    assert (reply.text, reply.form, reply.calls, reply.input_tokens, reply.output_tokens) == (text, "text", 1, INPUT, OUTPUT)
    assert len(told) > 2, "the answer came in parts"
    request = script.asked[0]
    assert request["stream"] is True and request["max_tokens"] == 64 and [m["role"] for m in request["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("bad", "waits"),
    [
        (Status(429, {"Retry-After": "7"}), [7.0]),
        (Status(429, {"retry-after-ms": "250"}), [0.25]),
        (Status(503), [0.5]),
        (Status(500), [0.5]),
        (Cut("half an ans"), [0.5]),
    ],
)
def test_what_passes_is_tried_again(bad: Move, waits: list[float]) -> None:
    waited: list[float] = []
    with endpoint([bad, "whole"]) as script:
        reply = client(script, waited).complete(ask(script))
    assert reply.text == "whole"
    assert waited == waits
    assert reply.calls == (2 if isinstance(bad, Cut) else 1), "an answer that broke off was paid for, an error was not"


def test_gives_up_after_its_tries_and_waits_longer_each_time() -> None:
    waited: list[float] = []
    with endpoint([Status(503)] * 9) as script, pytest.raises(EndpointError, match="no answer from http"):
        client(script, waited).complete(ask(script))
    assert len(script.asked) == 4
    assert waited == [0.5, 1.0, 2.0]


def test_a_server_that_asks_for_an_hour_is_given_up() -> None:
    waited: list[float] = []
    with endpoint([Status(429, {"Retry-After": "3600"})] * 2) as script, pytest.raises(EndpointError):
        client(script, waited).complete(ask(script))
    assert waited == [] and len(script.asked) == 1


def test_a_silent_server_times_out() -> None:
    with endpoint([Hang(), Hang()]) as script, pytest.raises(EndpointError, match="timed out"):
        client(script, [], seconds=0.2, tries=2).complete(ask(script))
    assert len(script.asked) == 2


@pytest.mark.parametrize(("code", "words"), [(401, "refuses the key"), (403, "refuses the key"), (404, "has no model small")])
def test_what_the_user_must_mend_stops_the_run(code: int, words: str) -> None:
    with endpoint([Status(code)]) as script, pytest.raises(MissingError, match=words) as error:
        client(script, []).complete(ask(script))
    assert error.value.exit_status == 3
    assert len(script.asked) == 1


def test_no_server_at_all() -> None:
    with endpoint([]) as script:
        pass
    with pytest.raises(MissingError, match="cannot be reached"):
        client(script, [], tries=2).complete(ask(script))


@pytest.mark.parametrize(
    ("refused", "used", "form"),
    [((), "response_format", "json"), (("response_format",), "tools", "json"), (("response_format", "tools"), "", "text")],
)
def test_best_form_that_the_server_takes(refused: tuple[str, ...], used: str, form: str) -> None:
    def answer(request: dict[str, object], number: int) -> Move:
        return Status(400, message="unknown field") if any(name in request for name in refused) else json.dumps({"x": 1})

    with endpoint(answer) as script:
        server = client(script, [])
        first, second = (server.complete(ask(script, schema=SCHEMA, temperature=float(number))) for number in range(2))
    assert (first.text, first.form) == ('{"x": 1}', form)
    assert second.form == form
    last = script.asked[-1]
    assert [name for name in ("response_format", "tools") if name in last] == ([used] if used else [])
    assert len(script.asked) == len(refused) + 2, "what a server refused is not tried again"


@pytest.mark.parametrize(("structured", "field"), [("schema", "response_format"), ("tool", "tools"), ("text", "")])
def test_form_by_configuration(structured: Structured, field: str) -> None:
    with endpoint(["{}"]) as script:
        client(script, []).complete(ask(script, schema=SCHEMA, structured=structured))
    assert [name for name in ("response_format", "tools") if name in script.asked[0]] == ([field] if field else [])


def test_models_that_want_another_name_for_the_limit() -> None:
    def answer(request: dict[str, object], number: int) -> Move:
        return Status(400, message="use 'max_completion_tokens' instead") if "max_tokens" in request else "{}"

    with endpoint(answer) as script:
        server = client(script, [])
        for number in range(2):
            server.complete(ask(script, schema=SCHEMA, temperature=float(number)))
    assert [request.get("max_completion_tokens") for request in script.asked] == [None, 64, 64]
    assert all("response_format" in request for request in script.asked)


def test_a_request_that_no_form_mends_leaves_the_next_one_its_form() -> None:
    with endpoint([Status(400, message="too long")] * 3 + ["{}"]) as script:
        server = client(script, [])
        with pytest.raises(EndpointError, match="too long"):
            server.complete(ask(script, schema=SCHEMA))
        server.complete(ask(script, schema=SCHEMA, temperature=1.0))
    assert "response_format" in script.asked[-1]


def test_refusal_and_running_out_of_tokens_are_told() -> None:
    with endpoint([Refusal("I cannot"), Long("so far")]) as script:
        refused, cut = (client(script, []).complete(ask(script, temperature=float(number))) for number in range(2))
    assert (refused.refusal, refused.text) == ("I cannot", "")
    assert (cut.cut, cut.text) == (True, "so far")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT"}, 10.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1445412480.0) == seconds


def test_key_is_of_the_whole_request() -> None:
    plain = Ask("http://a", "m", (Message("user", "x"),), 10)
    others = [
        replace(plain, endpoint="http://b"),
        replace(plain, model="n"),
        replace(plain, messages=(Message("system", "x"),)),
        replace(plain, output_tokens=11),
        replace(plain, temperature=0.0),
        replace(plain, structured="text"),
        replace(plain, schema=SCHEMA),
    ]
    assert len({each.key for each in [plain, *others]}) == len(others) + 1
    assert replace(plain).key == plain.key
