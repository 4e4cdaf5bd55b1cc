"""The language model as a proposer: prompts from what is known of a unit, calls, and texts from its answers."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from migrate_agent.agent.model import answer, knowledge
from migrate_agent.agent.model.caller import Caller, OverBudget
from migrate_agent.agent.model.fit import TooLong, fit_prompt
from migrate_agent.agent.model.interface import Attempt, Proposal, Request
from migrate_agent.agent.model.numbered_holes import Slots, number_holes, number_mentions, statement_text
from migrate_agent.agent.model.splice import Refused, check_class, splice
from migrate_agent.agent.model.wire import Ask, EndpointError, Message, Reply, Structured
from migrate_agent.agent.runs.class_text import class_node
from migrate_agent.prompts import Part, render
from migrate_agent.tools.types import Draft, Usage

Strategy = Literal["holes", "submodule", "class"]
DIFF_LINES = 120
"""A longer difference between two attempts says nothing."""


class Settings(NamedTuple):
    """Which models are asked, and how. `context` and `output` are in tokens."""

    models: tuple[str, ...]
    endpoint: str = ""
    structured: Structured = "auto"
    temperature: float | None = None
    context: int = 32_000
    output: int = 4_096
    ensemble: bool = False


class Task(NamedTuple):
    """What is asked for: the strategy, the places to write, and the texts shown (those of `slots` without marks where there are no places)."""

    strategy: Strategy
    slots: Slots


@dataclass(frozen=True)
class LanguageModel:
    """Implements `model.interface.Model` over calls that the ledger keeps."""

    caller: Caller
    settings: Settings

    def fill(self, request: Request) -> Proposal:
        """Ask for the holes, after several useless answers for the class."""
        return self._propose("fill", request, next_task_for(request))

    def repair(self, request: Request) -> Proposal:
        """Ask for the holes again, then for the guilty submodule's statements, then for the class."""
        return self._propose("repair", request, next_task_for(request))

    def ask(self, request: Request, question: str) -> tuple[str, Usage]:
        """Answer a question in prose; what went wrong is told in the answer's place."""
        name = self.settings.models[0]
        texts = _owner_text(request, request.draft)
        values = {"unit": request.unit.id, "original": _original(request), "drafts": list(texts.values()), "question": question}
        parts = render("ask", **values, verdicts=knowledge.verdicts(request.evidence))
        try:
            reply = self.caller.call(self._request(name, parts, {}), request.unit.id, "question")
        except (OverBudget, TooLong) as error:
            return f"no answer: {error}", Usage()
        except EndpointError as error:
            return f"no answer: {error}", self._usage(name, error.spent)
        return reply.text.strip() or reply.refusal or "no answer", self._usage(name, reply)

    def _propose(self, purpose: str, request: Request, next_task: Task) -> Proposal:
        """One proposal, or with an ensemble one of each model: those that change least in front, so that the first verified is the best verified."""
        calls = sum(attempt.by == "llm" for attempt in request.history)
        names = self.settings.models if self.settings.ensemble else (self.settings.models[calls % len(self.settings.models)],)
        proposals = [self._one(name, purpose, request, next_task) for name in names]
        usage = _total([proposal.usage for proposal in proposals])
        usable = sorted(
            (proposal for proposal in proposals if proposal.overrides), key=lambda proposal: _changed(proposal.overrides, request)
        )
        if not usable:
            reasons = "; ".join(dict.fromkeys(proposal.refused or proposal.gave_up for proposal in proposals))
            refused = any(proposal.refused for proposal in proposals)
            return Proposal(usage=usage, refused=reasons if refused else "", gave_up="" if refused else reasons, name=",".join(names))
        return Proposal(usable[0].overrides, usage, name=usable[0].name, others=tuple(proposal.overrides for proposal in usable[1:]))

    def _one(self, name: str, purpose: str, request: Request, next_task: Task) -> Proposal:
        try:
            ask = self._request(name, self._parts(purpose, request, next_task), answer.SCHEMA)
        except TooLong as error:
            return Proposal(gave_up=str(error), name=name)
        try:
            reply = self.caller.call(ask, request.unit.id, f"{purpose} {next_task.strategy}")
        except OverBudget as error:
            return Proposal(gave_up=str(error), name=name)
        except EndpointError as error:
            return Proposal(usage=self._usage(name, error.spent), refused=str(error), name=name)
        usage = self._usage(name, reply)
        try:
            return Proposal(texts_of_answer(answer.parse_reply(reply), request, next_task), usage, name=name)
        except Refused as error:
            return Proposal(usage=usage, refused=str(error), name=name)

    def _parts(self, purpose: str, request: Request, next_task: Task) -> tuple[Part, ...]:
        source, span = request.sources[request.unit.source], _span(request)
        values = {
            "unit": request.unit.id,
            "strategy": next_task.strategy,
            "original": _original(request),
            "drafts": [next_task.slots.marked(owner) for owner in next_task.slots.texts],
            "slots": next_task.slots.slots,
            "attempts": attempt_rows(request.history, _owner(request)),
            "hint": request.hint,
            "rows": knowledge.rows(source, span),
            "observed": knowledge.observed(source, span, request.observed),
            "examples": [knowledge.example(example, request.unit.name) for example in request.examples[:2]],
        }
        if next_task.strategy == "class" or (purpose == "repair" and request.evidence is not None):
            return render("repair", **values, verdicts=knowledge.verdicts(request.evidence) or ["none came so far"])
        return render("fill", **values)

    def _request(self, name: str, parts: Sequence[Part], schema: Mapping[str, object]) -> Ask:
        system = "\n\n".join(part.text for part in render("system", text_form=self.settings.structured == "text"))
        room = self.settings.context - self.settings.output - 400 - len(system) // 3
        messages = (Message("system", system), Message("user", fit_prompt(parts, room)))
        return Ask(
            self.settings.endpoint, name, messages, self.settings.output, self.settings.temperature, self.settings.structured, schema
        )

    def _usage(self, name: str, reply: Reply) -> Usage:
        return Usage(reply.calls, reply.input_tokens, reply.output_tokens, self.caller.cost(name, reply), reply.seconds)


def next_task_for(request: Request) -> Task:
    """What to ask for next: with each refusal by the verifier one strategy further, and with every second useless answer."""
    assert request.inventory is not None and request.rules is not None
    ladder: list[Task] = []
    open_ = number_holes(request.rules, request.inventory, request.sources, request.unit.id)
    if open_.slots:
        ladder += [Task("holes", open_)] * 2
    now = _owner_text(request, request.draft)
    submodule = knowledge.guilty(request.evidence)
    for owner, text in now.items():
        if submodule and (slots := number_mentions(text, owner, submodule)).slots:
            ladder.append(Task("submodule", slots))
    ladder.append(Task("class", Slots(now, ())))
    own = [attempt for attempt in request.history if attempt.by == "llm"]
    failed = sum(attempt.evidence is not None for attempt in own)
    return ladder[min(failed + (len(own) - failed) // 2, len(ladder) - 1)]


def texts_of_answer(reply: answer.Answer, request: Request, asked_task: Task) -> dict[str, str]:
    """The texts that an answer means. Raises `Refused` with the reason where it is not one that was asked for."""
    earlier = {} if asked_task.strategy == "holes" else _earlier(request)
    owner = _owner(request)
    name = owner.rpartition(":")[2]
    if reply.whole_class:
        single = asked_task.slots.slots
        if len(single) == 1 and not reply.reason and not _defines(reply.whole_class, name):
            return {**earlier, **splice(asked_task.slots, {single[0].number: reply.whole_class})}
        if asked_task.strategy != "class" and not reply.reason:
            raise Refused("the whole class was answered without the reason why the holes alone cannot do it")
        return {**earlier, owner: check_class(reply.whole_class, name)}
    if asked_task.strategy == "class":
        if list(reply.holes) == [1] and _defines(reply.holes[1], name):
            return {**earlier, owner: check_class(reply.holes[1], name)}
        raise Refused("the whole class was asked for, and holes were answered")
    return {**earlier, **splice(asked_task.slots, reply.holes)}


def attempt_rows(history: Sequence[Attempt], owner: str) -> list[dict[str, object]]:
    """The attempts for a prompt: what became of each, and what it changed of the one before."""
    rows: list[dict[str, object]] = []
    before = ""
    for attempt in history:
        text = attempt.texts.get(owner, "")
        outcome = attempt.refused or "; ".join(knowledge.verdicts(attempt.evidence)[:3])
        if outcome:
            rows.append({"number": attempt.number, "by": attempt.by, "outcome": outcome, "change": _change(before, text)})
        before = text or before
    return rows


def _change(before: str, after: str) -> str:
    if not after or not before:
        return ""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=1))
    return "\n".join(lines) if len(lines) <= DIFF_LINES else ""


def _changed(texts: Mapping[str, str], request: Request) -> int:
    """Lines that these texts change of the draft's."""
    before = _owner_text(request, request.draft)
    pairs = [(before.get(owner, "").splitlines(), text.splitlines()) for owner, text in texts.items()]
    return sum(line[0] in "+-" for old, new in pairs for line in difflib.ndiff(old, new))


def _earlier(request: Request) -> dict[str, str]:
    """The texts of the attempt that the present draft was made from."""
    return next(
        (dict(attempt.texts) for attempt in reversed(request.history) if attempt.texts and (attempt.evidence or not attempt.refused)), {}
    )


def _owner(request: Request) -> str:
    return f"{request.unit.source}:{request.unit.name.partition('.')[0]}"


def _owner_text(request: Request, draft: Draft) -> dict[str, str]:
    assert request.inventory is not None
    owner = _owner(request)
    return {owner: statement_text(draft, request.inventory, owner)}


def _original(request: Request) -> str:
    lines = request.sources[request.unit.source].splitlines()
    first, last = _span(request)
    return "\n".join(lines[first - 1 : last])


def _span(request: Request) -> tuple[int, int]:
    """First and last line of the unit's outermost class in its file."""
    node = class_node(ast.parse(request.sources[request.unit.source]), request.unit.name.partition(".")[0])
    if node is None:
        return 1, 10**9
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]), node.end_lineno or node.lineno


def _defines(text: str, name: str) -> bool:
    return f"class {name}" in text


def _total(usages: Sequence[Usage]) -> Usage:
    return Usage(
        *(sum(values) for values in zip(*((u.calls, u.input_tokens, u.output_tokens, u.cost, u.seconds) for u in usages), strict=True))
    )
