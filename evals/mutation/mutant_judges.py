"""Judges mutants by all units of the file that need the mutated code. A mutant survives where none of them refuses it."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.evals.mutation import mutants
from migrate_agent.evals.mutation.corpus import refusal_of
from migrate_agent.evals.mutation.mutants import FAR_OFF, NOT_RUN, SAME, Target
from migrate_agent.evals.mutation.mutate import Mutation
from migrate_agent.evals.mutation.parity_first import ParityFirst
from migrate_agent.evals.mutation.same_program import SameProgram, changed_lines, same_for_all
from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence
from migrate_agent.tools.verify import Options as VerifyOptions

PLAIN = VerifyOptions(localise=False)
REFUSED = "^not compared as .*: the rewrite raises "
"""Pattern of notes on other arguments that the rewrite refuses."""


class Judge:
    """A target whose own rewrite is verified, with cheap first judgements of its mutants and the verifier's notes."""

    def __init__(self, target: Target, plain: Evidence) -> None:
        self.target = target
        self.parity = ParityFirst(target)
        self.same = SameProgram(self.parity)
        self.notes = plain.notes
        self.idle_methods = methods_not_run(plain)

    def never_calls(self, path: str) -> bool:
        """Whether a note says that the unit's examples do not call this method of its own class."""
        return path.partition(".")[0] == self.target.unit.name.partition(".")[0] and not self.idle_methods.isdisjoint(path.split("."))

    def noted(self, path: str) -> bool:
        """Whether a note says that lines of this function did not run, or that the rewrite refuses arguments with which they may."""
        name = re.sub(r"__call__$", "forward", path)
        own = path.partition(".")[0] == self.target.unit.name.partition(".")[0]
        pattern = (
            rf"^no example runs .*the (lines|methods)|of {re.escape(name)}[ ,:]" if own else rf"of {re.escape(name)}[ ,:]|parts of \d+ more"
        )
        return any(re.search(pattern, note) or re.search(REFUSED, note) for note in self.notes)


def judge_mutants(subject: str, sandbox: Sandbox, folder: Path, options: Options) -> Iterator[Outcome]:
    """The outcomes of a subject's mutants, for the files whose own rewrite is verified."""
    judges: list[Judge] = []
    listed: dict[str, list[tuple[str, Mutation]]] = {}
    for target in mutants.targets(subject, sandbox, folder):
        plain = target.verify(sandbox, folder / "work", replace(PLAIN, unrun=True))
        mutations = target.mutations()
        facts = {"kind": "subject", "listed": len(mutations)}
        if plain.status != "verified":
            yield Outcome(target.title, "excluded", f"its own rewrite is {plain.status}: {refusal_of(plain)['detail']}", facts)
            continue
        yield Outcome(target.title, "excluded", "verified; its mutants follow", facts)
        judges.append(Judge(target, plain))
        listed[target.title] = mutations
    for judge in judges:
        for identifier, mutation in mutants.sample(listed[judge.target.title], options.limit):
            # A mutant in shared code is refused if any unit that uses it refuses it, as all of them
            # are verified in a run.
            others = [other for other in judges if other is not judge and other.target.uses(judge.target, mutation.place)]
            responsible = [other for other in (judge, *others) if not other.never_calls(mutation.place)]
            if responsible:
                noted = any(other.noted(mutation.place) for other in (judge, *others))
                yield _outcome(responsible, noted, identifier, mutation, sandbox, folder)
            else:
                yield _not_run(identifier, mutation, "no example calls the method, and a note of the verifier says so")


def methods_not_run(evidence: Evidence) -> set[str]:
    """The methods that the verifier's note lists as not run."""
    matches = (re.search(r"^no example runs [^;]*the methods ([\w, ]+)[:;]", note) for note in evidence.notes)
    return {name for match in matches if match for name in match[1].split(", ")}


def _outcome(judges: Sequence[Judge], noted: bool, identifier: str, mutation: Mutation, sandbox: Sandbox, folder: Path) -> Outcome:
    """The outcome of one mutant: argued to be equivalent, far off in plain float32, the same program, or judged by the verifier.

    `noted` is whether a note lists lines of the mutated function that no example runs.
    """
    details = _details(mutation)
    if argument := mutants.equivalence_reason(mutants.equivalent_mutants(), identifier, mutation):
        return Outcome(identifier, "excluded", f"equivalent: {argument}", details)
    started = time.monotonic()
    target = judges[0].target
    before = target.file.read_text(encoding="utf-8")
    with target.holding(mutation.source):
        if far := next(filter(None, (judge.parity.far() for judge in judges)), ""):
            return Outcome(identifier, "right", "", {**details, "check": FAR_OFF, "detail": far})
        if same_for_all([judge.same for judge in judges]):
            return Outcome(identifier, "excluded", "the same program as the rewrite", {**details, "check": SAME})
        for judge in judges:
            evidence = judge.target.verify(sandbox, folder / "work", PLAIN)
            if evidence.status != "verified":
                break
    details |= {**refusal_of(evidence), "seconds": round(time.monotonic() - started, 1)}
    if evidence.status != "verified":
        return Outcome(identifier, "right", "", details)
    changed = changed_lines(mutation.source, before)
    if noted and not any(statements_ran(before, changed, judge.same.ran) for judge in judges):
        return _not_run(identifier, mutation, "no example runs the lines, and a note of the verifier says so")
    return Outcome(identifier, "wrong", f"survives: {mutation.change}", details)


def _not_run(identifier: str, mutation: Mutation, reason: str) -> Outcome:
    return Outcome(identifier, "excluded", reason, {**_details(mutation), "check": NOT_RUN})


def _details(mutation: Mutation) -> dict[str, Any]:
    return {"kind": "mutants", "operator": mutation.operator, "change": mutation.change}


def statements_ran(text: str, changed: set[int], lines: set[int]) -> bool:
    """Whether a statement at one of the `changed` lines is among the `lines` that ran; of a compound statement its head counts."""
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            spans.append(range(node.lineno, max(last, node.lineno) + 1))
    statement_spans = [min((span for span in spans if line in span), key=len, default=range(line, line + 1)) for line in changed]
    return any(line in lines for span in statement_spans for line in span)
