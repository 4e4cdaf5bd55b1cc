"""Every call of a run, on disk as it happens: what was asked, what came, what it cost. The trajectory that a run can be replayed from."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.secrets import redacted
from migrate_agent.agent.model.prices import Price, cost
from migrate_agent.agent.model.wire import Ask, Message, Reply, request_tokens


@dataclass(frozen=True)
class Entry:
    """One answer: for which unit and what for, the whole request, the reply, and US dollars. `fresh` says that this run paid for it."""

    key: str
    unit: str
    purpose: str
    ask: Ask
    reply: Reply
    cost: float
    fresh: bool = True


@dataclass(frozen=True)
class Spent:
    """Calls, tokens, US dollars and seconds."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Allowance:
    """What may be spent; `None` is without bound."""

    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def exceeded(self, spent: Spent) -> str:
        """Which bound is reached, in words; "" where none is."""
        rows = (("cost", self.cost, spent.cost), ("tokens", self.tokens, spent.tokens), ("seconds", self.seconds, spent.seconds))
        return next((f"{name}: {value:.6g} of {bound:.6g}" for name, bound, value in rows if bound is not None and value >= bound), "")


class Ledger:
    """The calls of one run, in `file` (one JSON object a line, written durably before the answer is used).

    A call that this run made before it was killed is found again by its key, and is counted once.
    """

    def __init__(self, file: Path, run: Allowance = Allowance(), unit: Allowance = Allowance()) -> None:
        self._file, self._run, self._unit = file, run, unit
        self._lock = threading.Condition()
        self._entries: dict[tuple[str, str], Entry] = {(entry.key, entry.unit): entry for entry in read(file)}
        self._reserved: list[float] = []

    def find(self, key: str, unit: str) -> Entry | None:
        """What this run got for this request of this unit before."""
        return self._entries.get((key, unit))

    def add(self, entry: Entry) -> None:
        """Note a call; a second time does nothing."""
        with self._lock:
            if (entry.key, entry.unit) in self._entries:
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            torn = self._file.exists() and not self._file.read_bytes().endswith(b"\n") and self._file.stat().st_size
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(("\n" if torn else "") + redacted(json.dumps(asdict(entry), ensure_ascii=False)) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            self._entries[entry.key, entry.unit] = entry

    def spent(self, unit: str = "") -> Spent:
        """What this run paid, for one unit or for all."""
        rows = [entry for entry in self._entries.values() if entry.fresh and unit in ("", entry.unit)]
        return Spent(
            sum(row.reply.calls for row in rows),
            sum(row.reply.input_tokens for row in rows),
            sum(row.reply.output_tokens for row in rows),
            sum(row.cost for row in rows),
            sum(row.reply.seconds for row in rows),
        )

    def entries(self) -> list[Entry]:
        """All calls, in the order in which they ended."""
        return list(self._entries.values())

    def exceeded(self, unit: str) -> str:
        """Why no further call may be made for this unit, "" where one may."""
        for owner, bound, spent in (("the unit's", self._unit, self.spent(unit)), ("the run's", self._run, self.spent())):
            if reason := bound.exceeded(spent):
                return f"{owner} budget is spent ({reason})"
        return ""

    @contextmanager
    def call(self, unit: str, most: float) -> Iterator[str]:
        """Room for one call that costs `most` at most; gives why there is none, or "".

        Calls side by side may not together pass the bound that each alone would keep: all but the last one started fit into it.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self._reserved or bool(self.exceeded(unit)) or self._fits())
            reason = self.exceeded(unit)
            if not reason:
                self._reserved.append(most)
        try:
            yield reason
        finally:
            with self._lock:
                if not reason:
                    self._reserved.remove(most)
                self._lock.notify_all()

    def _fits(self) -> bool:
        bound, off = self._run.cost, self._off()
        return bound is None or (off is not None and self.spent().cost + off * sum(self._reserved) < bound)

    def _off(self) -> float | None:
        """How many times more tokens than estimated a call took at worst, at least 1; `None` before the first: until then calls go one by one."""
        rows = [entry for entry in self._entries.values() if entry.fresh]
        return max((1.0, *(_overrun(row) for row in rows))) if rows else None


def _overrun(row: Entry) -> float:
    return max(row.reply.input_tokens / max(request_tokens(row.ask), 1), row.reply.output_tokens / max(row.ask.output_tokens, 1))


def most(ask: Ask, price: Price | None, tokens: int) -> float:
    """US dollars that a call costs at most, going by an estimate of its input tokens."""
    return cost(price, tokens, ask.output_tokens)


def read(file: Path) -> list[Entry]:
    """The calls in a trajectory; a last line that was cut off by a kill is left out."""
    if not file.exists():
        return []
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entries.append(entry(json.loads(line)))
        except (ValueError, TypeError, KeyError):
            continue
    return entries


def entry(row: dict[str, Any]) -> Entry:
    """A line of a trajectory. Raises `KeyError` or `TypeError` where it is none."""
    ask = {**row["ask"], "messages": tuple(Message(*message) for message in row["ask"]["messages"])}
    return Entry(row["key"], row["unit"], row["purpose"], Ask(**ask), Reply(**row["reply"]), row["cost"], row["fresh"])
