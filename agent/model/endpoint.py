"""Any endpoint that speaks OpenAI's chat completions, through OpenAI's own client: streaming, retries, and answers in a given form."""

from __future__ import annotations

import email.utils
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.model.wire import Ask, EndpointError, Reply, estimate, request_tokens

FORMS: tuple[Literal["schema", "tool", "text"], ...] = ("schema", "tool", "text")
LONGEST_WAIT = 120.0
"""Seconds that `Retry-After` may ask for; a server that wants more is given up for this call."""


class BrokenStream(Exception):
    """The stream ended before the answer did. `reply` is what came."""

    def __init__(self, reply: Reply) -> None:
        super().__init__("the stream broke off before the answer's end")
        self.reply = reply


@dataclass
class Endpoint:
    """A server and how patient we are with it. `seconds` bounds one request, `tries` the requests for one answer."""

    base_url: str = ""
    api_key: str = ""
    seconds: float = 120.0
    tries: int = 5
    sleep: Callable[[float], None] = time.sleep
    told: Callable[[str], None] = lambda text: None
    """Is told what goes on: parts of answers (by their length), and waits."""
    _form: dict[str, int] = field(default_factory=dict)
    """Model → the first of `FORMS` that the server is not known to refuse."""
    _renamed: set[str] = field(default_factory=set)
    """Models that want `max_completion_tokens`."""

    def complete(self, ask: Ask) -> Reply:
        """Answer a request.

        Raises `EndpointError` where all tries failed, `MissingError` where there is no such endpoint, model or right to use it.
        """
        import tenacity

        spent = Reply("", calls=0)
        started = time.monotonic()

        def attempt() -> Reply:
            nonlocal spent
            try:
                return self._once(ask)
            except BrokenStream as error:
                spent = _sum(spent, error.reply)
                raise

        retrying = tenacity.Retrying(
            stop=lambda state: state.attempt_number >= self.tries or _asks_too_much(state),
            wait=_wait,
            retry=tenacity.retry_if_exception(_is_temporary),
            sleep=self.sleep,
            before_sleep=lambda state: self.told(f"waiting for the model: {_line(state.outcome.exception() if state.outcome else None)}"),
            reraise=True,
        )
        try:
            reply = retrying(attempt)
        except Exception as error:
            raise self._final(error, ask, replace(spent, seconds=time.monotonic() - started)) from error
        return replace(_sum(spent, reply), text=reply.text, seconds=round(time.monotonic() - started, 3))

    def _final(self, error: Exception, ask: Ask, spent: Reply) -> Exception:
        import openai

        url = self.base_url or "the endpoint"
        if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
            return MissingError(
                f"{url} refuses the key in OPENAI_API_KEY: {_line(error)}; set it and `migrate-agent resume`, or use --no-llm"
            )
        if isinstance(error, openai.NotFoundError):
            return MissingError(f"{url} has no model {ask.model}: {_line(error)}; name one with --model")
        if isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError):
            return MissingError(
                f"{url} cannot be reached: {_line(error)}; nothing is lost: `migrate-agent resume` goes on, or use --no-llm"
            )
        if isinstance(error, (openai.OpenAIError, BrokenStream)):
            return EndpointError(f"no answer from {url}: {_line(error)}", spent)
        return error

    def _once(self, ask: Ask) -> Reply:
        """One answer, by the best form that the server takes."""
        import openai

        index = (
            (FORMS.index(ask.structured) if ask.structured != "auto" else self._form.get(ask.model, 0)) if ask.schema else len(FORMS) - 1
        )
        while True:
            try:
                reply = self._stream(ask, FORMS[index])
            except (openai.BadRequestError, openai.UnprocessableEntityError, openai.InternalServerError) as error:
                if "max_completion_tokens" in error.message and ask.model not in self._renamed:
                    self._renamed.add(ask.model)
                    continue
                # Servers that know no schemas say so with 400 or 422, some old ones with 500 or 501.
                if FORMS[index] == "text" or ask.structured != "auto" or error.status_code not in (400, 422, 500, 501):
                    raise
                index += 1
            else:
                if ask.schema:
                    self._form[ask.model] = index
                return reply

    def _stream(self, ask: Ask, form: Literal["schema", "tool", "text"]) -> Reply:
        import openai

        logging.getLogger("httpx").setLevel(logging.WARNING)
        client = openai.OpenAI(
            base_url=self.base_url or None,
            api_key=self.api_key or "none",
            max_retries=0,  # `complete` tries again itself: it counts the tokens of answers that broke off
            timeout=openai.Timeout(self.seconds, connect=10.0),
        )
        with client:
            stream = client.chat.completions.create(**_arguments(ask, form, ask.model in self._renamed))
            with stream:
                return self._collect(stream, ask, form)

    def _collect(self, stream: Any, ask: Ask, form: str) -> Reply:
        """Put the parts of a stream together. Raises `BrokenStream` where it ends too early."""
        import httpx
        import openai

        parts: dict[str, str] = {"content": "", "refusal": "", "tool": ""}
        finish, usage, started = "", None, time.monotonic()
        try:
            for chunk in stream:
                usage = getattr(chunk, "usage", None) or usage
                for choice in chunk.choices[:1]:
                    finish = choice.finish_reason or finish
                    _gather(parts, choice.delta)
                self.told(f"{sum(map(len, parts.values()))} characters so far")
                if time.monotonic() - started > self.seconds:
                    break
        except (httpx.TransportError, openai.APIConnectionError):
            finish = ""
        except openai.APIError as error:
            if isinstance(error, openai.APIStatusError):
                raise
            finish = ""  # the server put an error into the stream
        except ValueError:  # a chunk that is no JSON
            finish = ""
        text = parts["tool"] if form == "tool" and parts["tool"] else parts["content"]
        counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (request_tokens(ask), estimate("".join(parts.values())))
        refusal = parts["refusal"] or ("content filter" if finish == "content_filter" else "")
        reply = Reply(text, "text" if form == "text" else "json", refusal, finish == "length", 1, *counted)
        if not finish:
            raise BrokenStream(reply)
        return reply


def _gather(parts: dict[str, str], delta: Any) -> None:
    parts["content"] += getattr(delta, "content", None) or ""
    parts["refusal"] += getattr(delta, "refusal", None) or ""
    for call in getattr(delta, "tool_calls", None) or ():
        parts["tool"] += getattr(call.function, "arguments", None) or ""


def _arguments(ask: Ask, form: str, renamed: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": ask.model,
        "messages": [{"role": message.role, "content": message.content} for message in ask.messages],
        ("max_completion_tokens" if renamed else "max_tokens"): ask.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        # A request that was cut off and is sent again is the same request: servers that know the header charge it once.
        "extra_headers": {"Idempotency-Key": ask.key},
    }
    if ask.temperature is not None:
        arguments["temperature"] = ask.temperature
    if form == "schema":
        arguments["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": ask.schema}}
    if form == "tool":
        arguments["tools"] = [{"type": "function", "function": {"name": "answer", "parameters": ask.schema}}]
        arguments["tool_choice"] = {"type": "function", "function": {"name": "answer"}}
    return arguments


def _is_temporary(error: BaseException) -> bool:
    """Whether the fault may pass: too many requests, the server's own, a timeout, a line that broke."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    return isinstance(error, (openai.APIConnectionError, BrokenStream))


def _wait(state: Any) -> float:
    """What the server asks for, else 0.5 s doubled each time, at most 20 s."""
    seconds = retry_after(getattr(getattr(state.outcome.exception(), "response", None), "headers", {}))
    return min(20.0, 0.5 * 2.0 ** (state.attempt_number - 1)) if seconds is None else seconds


def _asks_too_much(state: Any) -> bool:
    error = state.outcome.exception() if state.outcome else None
    seconds = retry_after(getattr(getattr(error, "response", None), "headers", {}))
    return seconds is not None and seconds > LONGEST_WAIT


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the server asks us to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date; `None` where it does not say."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"])) if "retry-after" in headers else None
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError):
        return None
    return max(0.0, date - (time.time() if now is None else now))


def _sum(spent: Reply, reply: Reply) -> Reply:
    return replace(
        reply,
        calls=spent.calls + reply.calls,
        input_tokens=spent.input_tokens + reply.input_tokens,
        output_tokens=spent.output_tokens + reply.output_tokens,
    )


def _line(error: BaseException | None) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split())
    cause = f" ({error.__cause__})" if error is not None and error.__cause__ and str(error.__cause__) not in text else ""
    return f"{text}{cause}"[:300] or type(error).__name__
