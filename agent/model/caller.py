"""One call of a model: from the run's own trajectory, a replayed one, the cache, or the endpoint, in this order; and the books on it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.model.ledger import Entry, Ledger, most, read
from migrate_agent.agent.model.prices import Price, cost, price_of
from migrate_agent.agent.model.wire import Ask, EndpointError, Reply, request_tokens
from migrate_agent.agent.runs.trace import span


class Complete(Protocol):
    """`Endpoint.complete`."""

    def complete(self, ask: Ask) -> Reply:
        """Answer a request."""
        ...


class OverBudget(Exception):
    """No further call may be made; the text says which budget is spent."""


@dataclass
class Cache:
    """Answers on disk by the key of the whole request, and who paid: a run that is taken up again finds what it paid for."""

    folder: Path

    def get(self, key: str) -> tuple[Reply, str] | None:
        """The reply, and the id of the run that paid for it."""
        try:
            row = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            return Reply(**row["reply"]), str(row["run"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def put(self, ask: Ask, reply: Reply, run: str) -> None:
        """Keep a reply."""
        row = {"run": run, "ask": asdict(ask), "reply": asdict(reply)}
        write_text(self.folder / f"{ask.key}.json", json.dumps(row, ensure_ascii=False) + "\n")


@dataclass
class Caller:
    """Makes calls for a run. `replayed` holds the answers of a saved trajectory by key; where it is given, no endpoint is asked."""

    endpoint: Complete
    ledger: Ledger
    cache: Cache | None
    run: str
    prices: tuple[Price, ...] = ()
    replayed: Mapping[str, Reply] | None = None
    told: Callable[[str], None] = field(default=lambda text: None)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _flying: dict[tuple[str, str], threading.Lock] = field(default_factory=dict, repr=False)

    def call(self, ask: Ask, unit: str, purpose: str) -> Reply:
        """The answer. Raises `OverBudget` before a call for which there is no budget, `EndpointError` after one that failed (and is counted).

        The same request for the same unit, made in two threads, is one call.
        """
        with self._guard:
            alone = self._flying.setdefault((ask.key, unit), threading.Lock())
        with alone:
            return self._call(ask, unit, purpose)

    def _call(self, ask: Ask, unit: str, purpose: str) -> Reply:
        # The ledger comes first: a node that is done again after a kill makes the same call, which is paid and counted once.
        entry = self.ledger.find(ask.key, unit)
        if entry:
            return _usable(entry.reply, entry.fresh)
        if self.replayed is not None:
            return self._replay(ask, unit, purpose)
        cached = self.cache.get(ask.key) if self.cache else None
        if cached:
            reply, payer = cached
            self._note(ask, unit, purpose, reply, fresh=payer == self.run)
            return _usable(reply, payer == self.run)
        return self._ask(ask, unit, purpose)

    def _ask(self, ask: Ask, unit: str, purpose: str) -> Reply:
        price = price_of(ask.model, self.prices)
        with self.ledger.call(unit, most(ask, price, request_tokens(ask))) as reason:
            if reason:
                raise OverBudget(reason)
            try:
                reply = self._complete(ask, unit, purpose)
            except EndpointError as error:
                self._note(ask, unit, purpose, replace(error.spent, text="", refusal=f"{_FAILED}{error}"), fresh=True)
                raise
            if self.cache:
                self.cache.put(ask, reply, self.run)
            self._note(ask, unit, purpose, reply, fresh=True)
        return reply

    def _complete(self, ask: Ask, unit: str, purpose: str) -> Reply:
        with span(f"chat {ask.model}", unit=unit, purpose=purpose, **{"gen_ai.request.model": ask.model}) as attributes:
            reply = self.endpoint.complete(ask)
            attributes |= {"gen_ai.usage.input_tokens": reply.input_tokens, "gen_ai.usage.output_tokens": reply.output_tokens}
            return reply

    def _replay(self, ask: Ask, unit: str, purpose: str) -> Reply:
        assert self.replayed is not None
        reply = self.replayed.get(ask.key)
        if reply is None:
            raise MissingError(
                f"the trajectory holds no answer for {unit} ({purpose}): code, prompts or configuration are not those it was saved with"
            )
        self._note(ask, unit, purpose, reply, fresh=True)
        return _usable(reply)

    def _note(self, ask: Ask, unit: str, purpose: str, reply: Reply, fresh: bool) -> None:
        self.ledger.add(Entry(ask.key, unit, purpose, ask, reply, self.cost(ask.model, reply), fresh))

    def cost(self, model: str, reply: Reply) -> float:
        """US dollars of a reply."""
        return cost(price_of(model, self.prices), reply.input_tokens, reply.output_tokens)


_FAILED = "no answer: "


def _usable(reply: Reply, fresh: bool = True) -> Reply:
    """The reply, which cost nothing where another run paid for it; or the failure that was noted in its place."""
    if not fresh:
        reply = replace(reply, calls=0, input_tokens=0, output_tokens=0, seconds=0.0)
    if reply.refusal.startswith(_FAILED):
        raise EndpointError(reply.refusal.removeprefix(_FAILED), reply)
    return reply


def load_replies(file: Path) -> dict[str, Reply]:
    """The answers of a saved trajectory. Raises `MissingError` where there are none."""
    replies = {entry.key: entry.reply for entry in read(file)}
    if not replies:
        raise MissingError(f"{file} holds no trajectory: give the trajectory.jsonl of an earlier run")
    return replies
