"""Who judges a mutant: all units of its file that its place belongs to, as they would all be verified. It survives where none of them refuses it."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.evals.mutation import mutants
from migrate_agent.evals.mutation.corpus import told
from migrate_agent.evals.mutation.mutants import FAR_OFF, NOT_RUN, SAME, Target
from migrate_agent.evals.mutation.mutate import Mutation
from migrate_agent.evals.mutation.parity_first import ParityFirst
from migrate_agent.evals.mutation.same_program import SameProgram, changed_lines, same_for_all
from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence
from migrate_agent.tools.verify import Options as HowToVerify

PLAIN = HowToVerify(localise=False)
REFUSED = "^not compared as .*: the rewrite raises "
"""How a note begins that tells of other arguments which the rewrite refuses."""


class Judge:
    """A target whose own rewrite is verified: the first looks at what becomes of it, and what the verifier noted that it says nothing of."""

    def __init__(self, target: Target, plain: Evidence) -> None:
        self.target = target
        self.parity = ParityFirst(target)
        self.same = SameProgram(self.parity)
        self.notes = plain.notes
        self.idle_methods = methods_not_run(plain)

    def never_calls(self, place: str) -> bool:
        """Whether this is a method of the unit's own class that its examples do not call, as a note says."""
        return place.partition(".")[0] == self.target.unit.name.partition(".")[0] and not self.idle_methods.isdisjoint(place.split("."))

    def noted(self, place: str) -> bool:
        """Whether a note says that lines of this function did not run, or that the rewrite refuses arguments with which they may."""
        name = re.sub(r"__call__$", "forward", place)
        own = place.partition(".")[0] == self.target.unit.name.partition(".")[0]
        wanted = (
            rf"^no example runs .*the (lines|methods)|of {re.escape(name)}[ ,:]" if own else rf"of {re.escape(name)}[ ,:]|parts of \d+ more"
        )
        return any(re.search(wanted, note) or re.search(REFUSED, note) for note in self.notes)


def judged(subject: str, sandbox: Sandbox, folder: Path, options: Options) -> Iterator[Outcome]:
    """The mutants of a subject's files, as far as the files themselves are verified."""
    judges: list[Judge] = []
    listed: dict[str, list[tuple[str, Mutation]]] = {}
    for target in mutants.targets(subject, sandbox, folder):
        plain = target.verify(sandbox, folder / "work", replace(PLAIN, unrun=True))
        mutations = target.mutations()
        facts = {"kind": "subject", "listed": len(mutations)}
        if plain.status != "verified":
            yield Outcome(target.title, "excluded", f"its own rewrite is {plain.status}: {told(plain)['detail']}", facts)
            continue
        yield Outcome(target.title, "excluded", "verified; its mutants follow", facts)
        judges.append(Judge(target, plain))
        listed[target.title] = mutations
    for judge in judges:
        for identifier, mutation in mutants.sample(listed[judge.target.title], options.limit):
            others = [each for each in judges if each is not judge and each.target.uses(judge.target, mutation.place)]
            asked = [each for each in (judge, *others) if not each.never_calls(mutation.place)]
            if asked:
                noted = any(each.noted(mutation.place) for each in (judge, *others))
                yield _outcome(asked, noted, identifier, mutation, sandbox, folder)
            else:
                yield _not_run(identifier, mutation, "no example calls the method, and a note of the verifier says so")


def methods_not_run(evidence: Evidence) -> set[str]:
    """The methods that the verifier's note says it knows nothing of."""
    found = (re.search(r"^no example runs [^;]*the methods ([\w, ]+)[:;]", note) for note in evidence.notes)
    return {name for match in found if match for name in match[1].split(", ")}


def _outcome(judges: Sequence[Judge], noted: bool, identifier: str, mutation: Mutation, sandbox: Sandbox, folder: Path) -> Outcome:
    """One mutant: argued to be equivalent, far off in plain float32, the same program, or judged by the verifier.

    `noted` is whether a note tells of lines at its place that no example runs.
    """
    details = _details(mutation)
    if why := mutants.reason(mutants.argued(), identifier, mutation):
        return Outcome(identifier, "excluded", f"equivalent: {why}", details)
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
    details |= {**told(evidence), "seconds": round(time.monotonic() - started, 1)}
    if evidence.status != "verified":
        return Outcome(identifier, "right", "", details)
    changed = changed_lines(mutation.source, before)
    if noted and not any(ran(before, changed, judge.same.ran) for judge in judges):
        return _not_run(identifier, mutation, "no example runs the lines, and a note of the verifier says so")
    return Outcome(identifier, "wrong", f"survives: {mutation.change}", details)


def _not_run(identifier: str, mutation: Mutation, why: str) -> Outcome:
    return Outcome(identifier, "excluded", why, {**_details(mutation), "check": NOT_RUN})


def _details(mutation: Mutation) -> dict[str, Any]:
    return {"kind": "mutants", "operator": mutation.operator, "change": mutation.change}


def ran(text: str, changed: set[int], lines: set[int]) -> bool:
    """Whether one of the statements ran that hold these lines of a text; of a statement that holds others, its head."""
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            spans.append(range(node.lineno, max(last, node.lineno) + 1))
    held = [min((span for span in spans if line in span), key=len, default=range(line, line + 1)) for line in changed]
    return any(line in lines for span in held for line in span)
