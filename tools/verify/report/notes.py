"""What a reader should know beside the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from migrate_agent.tools.verify.compare.pairs import UNPAIRED, paired
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.contract.schedule import LATE
from migrate_agent.tools.verify.evidence.candidate import Results

EVALUATES = (
    "newly constructed, the rewrite is in evaluation mode, and torch's module in training mode: call `train()` where torch's was not called"
)
CONSTANTS = "NumPy's arrays among its arguments stay NumPy's, as in the original: where it is compiled they are constants, and it was not compared on traced ones"
NOT_TAKEN = "the original does not take it"


def notes(results: Results, *, unrun: bool = False) -> tuple[str, ...]:
    """All notes; with `unrun`, also of which lines of the original the verdicts say nothing."""
    original = results.original
    if original is None:
        return ()
    texts = [f"an example did not run, and took no part: {error}" for error in original.errors]
    for example in original.examples:
        texts += example.get("remarks", [])
        texts += left_out(example.get("skipped", ()))
    texts += [original.unrun] if unrun and original.unrun else []
    texts += through_torchax(results)
    texts += spent(results)
    texts += on_accelerators(results)
    texts += on_host(results)
    texts += of_constants(results)
    # Without an exact run there is no candidate to speak of.
    return (
        *texts,
        *(
            [*constructed(results), *trained(results), *elsewhere(results), *guessed(results), *absent(results), *unordered(results)]
            if "exact" in results.runs
            else ()
        ),
    )


def left_out(skipped: Iterable[Mapping[str, Any]]) -> list[str]:
    """What was not compared, by reason. Each row has the `name` of a scenario and a `reason`, empty where the original raises there."""
    names: dict[str, list[str]] = {}
    for row in skipped:
        names.setdefault(row["reason"] or NOT_TAKEN, []).append(row["name"])
    return [f"not compared, since {reason}: {', '.join(scenarios)}" for reason, scenarios in names.items()]


def through_torchax(results: Results) -> list[str]:
    """What of the port is no rewrite, and what it needs where it runs."""
    names = ", ".join(unit.id for unit in results.wrapped.needed)
    return [f"{names} is not rewritten, and runs through torchax: it needs the original, torch and torchax at run time"] if names else []


def spent(results: Results) -> list[str]:
    """What the candidate's jobs left out, since the budget was spent."""
    kinds = {"exact": "in float64", "native": "natively"}
    omitted = {word: sorted(results.left_out(kind)) for kind, word in kinds.items() if kind in results.runs}
    return [f"not compared {word}, since {LATE}: {', '.join(names)}" for word, names in omitted.items() if names]


def on_accelerators(results: Results) -> list[str]:
    """What the original computes on an accelerator of torch's alone, and the port does as the original does on the CPU."""
    rows = results.reach.excused if results.reach is not None else ()
    return [
        f"compared with nothing, since torch runs it on an accelerator alone (the port does what torch does on the CPU): {row}"
        for row in rows
    ]


def on_host(results: Results) -> list[str]:
    """That calls which give NumPy's arrays were run in Python."""
    answers = [_on_host(example) for example in results.expected.examples]
    subject = "its calls give" if all(answers) else "some of its calls give"
    return [f"{subject} NumPy's arrays, as the original's do: they run in Python, and were not compiled"] if any(answers) else []


def of_constants(results: Results) -> list[str]:
    """That arrays of NumPy among the arguments were no traced ones. What the candidate's process tells may have any form."""
    rows = results.exact["scenarios"].values() if "exact" in results.runs and isinstance(results.exact.get("scenarios"), dict) else ()
    told = any(isinstance(facts, dict) and facts.get("constants") for facts in rows) and not any(map(_on_host, results.expected.examples))
    return [CONSTANTS] if told else []


def _on_host(example: Mapping[str, Any]) -> bool:
    return bool(example.get("on_host"))


def constructed(results: Results) -> list[str]:
    """Whether a rewrite evaluates where torch, newly constructed, trains. What the candidate's process tells may have any form."""
    spec = results.exact.get("spec")
    ours = spec.get("trains") if isinstance(spec, dict) else None
    return [EVALUATES] if results.described().get("trains") is True and ours is False else []


def elsewhere(results: Results) -> list[str]:
    """Of other configurations and ranks that could not be compared: why. What the candidate's process tells of them may have any form."""
    lines = []
    for scenario, answer in results.answers(Role.CONFIGURATION, Role.RANK, Role.LONG, Role.SHAPE):
        if (scenario.role == Role.SHAPE and not results.forgives(scenario, answer)) or results.refuses_guess(scenario):
            continue
        try:
            state = answer.facts.get("state")
            reason = f"the rewrite raises {answer.error[:300]}" if answer.error else "" if state or paired(scenario, answer) else UNPAIRED
        except (KeyError, IndexError, TypeError, AttributeError):  # safe: the checks judge what is malformed, this only tells of it
            reason = "the rewrite's process told nothing of it"
        if reason:
            ranks = "on inputs with one more axis in front"
            circumstances = {
                Role.RANK: ranks,
                Role.LONG: f"on longer inputs ({scenario.name})",
                Role.SHAPE: f"on other sizes ({scenario.name})",
            }.get(scenario.role) or f"as {results.configured(scenario)}"
            lines.append(f"not compared {circumstances}, which the original takes: {reason}")
    # Several scenarios of one configuration fail for the same reason, which is told once.
    return list(dict.fromkeys(lines))


def guessed(results: Results) -> list[str]:
    """Methods that the rewrite refuses in a call that was guessed, and that are stubs in it therefore."""
    errors: dict[str, str] = {}
    for scenario in results.expected.scenarios if results.refused_guesses else ():
        error = str(results.exact["scenarios"].get(scenario.name, {}).get("error", ""))
        for method in results.methods_of(scenario) & results.refused_guesses if error else ():
            errors.setdefault(method, error)
    return [
        f"{method} raises in the rewrite, since a call of it that was guessed fails there: {error[:300]}"
        for method, error in errors.items()
    ]


def absent(results: Results) -> list[str]:
    """What the rewrite has no part or attribute for, so that setting it could not be compared."""
    names = dict.fromkeys(
        str(answer.facts["absent"]) for _, answer in results.answers(Role.PART_MODES, Role.ATTRIBUTES) if answer.facts.get("absent")
    )
    tables = dict.fromkeys(map(str, results.native.get("lacking", ())) if "native" in results.runs else ())
    set_later = f"what setting {', '.join(names)} after construction does" if names else ""
    narrow = f"what {', '.join(tables)} in bfloat16 or float16 does" if tables else ""
    return [f"not compared, since the rewrite keeps none of its own: {text}" for text in (set_later, narrow) if text]


def unordered(results: Results) -> list[str]:
    """Methods whose effect on later calls could not be asked of a port in another form."""
    answered = results.exact["scenarios"]
    unasked = (
        [item for item in results.expected.scenarios if item.prior >= 0 and item.name not in answered] if results.port is not None else []
    )
    examples = results.expected.examples
    names = dict.fromkeys(results.examples[examples[item.prior]["index"]].method or "a call" for item in unasked)
    return [f"not compared, since such a port is one function: what {', '.join(names)} leaves for later calls"] if names else []


def trained(results: Results) -> list[str]:
    """What a port keeps as a parameter and torch does not train."""
    described, kinds = results.described(), results.exact["spec"].get("kinds") if isinstance(results.exact.get("spec"), dict) else None
    if results.port is None or not isinstance(kinds, dict):
        return []
    names = [name for name in described.get("frozen", ()) if kinds.get(name) == "parameter"]
    return [f"torch does not train {', '.join(names[:4])}: leave it out of the optimiser"] if names else []
