"""Constructor, call and public methods keep the original's parameters: names, order, kinds and defaults; the constructor gains keyword-only `rngs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

Signature = Sequence[Mapping[str, str]] | None


def judge(results: Results) -> Verdict | None:
    """Fail with the first difference. Does not apply to a port with a port file, which may have any signature."""
    if results.port:
        return None
    theirs = results.described()["signatures"]
    ours = results.exact["spec"]["signatures"]
    problem = constructor_problem(theirs["constructor"], ours["constructor"]) or parameters_problem(
        "__call__", theirs["call"], ours["call"]
    )
    for name, parameters in theirs.get("methods", {}).items():
        problem = problem or method_problem(name, parameters, ours.get("methods", {}).get(name))
    return Verdict("spec", "signature", "fail" if problem else "pass", detail=problem)


def constructor_problem(theirs: Signature, ours: Signature) -> str:
    """The first problem of the constructor's parameters; "" where there is none."""
    if theirs is None or ours is None:
        return ""
    rngs = [item for item in ours if item["name"] == "rngs"]
    own = any(item["name"] == "rngs" for item in theirs)
    # Positional `rngs` would shift the original's own parameters in a positional call.
    if not own and rngs and rngs[0]["kind"] != "KEYWORD_ONLY":
        return "__init__: rngs is not keyword-only"
    if not own and not rngs and not any(item["kind"] == "VAR_KEYWORD" for item in ours):
        return "__init__: there is no keyword-only parameter rngs"
    return parameters_problem("__init__", theirs, ours if own else [item for item in ours if item["name"] != "rngs"])


def method_problem(name: str, theirs: Signature, ours: Signature) -> str:
    """As `parameters_problem`; a method may gain keyword-only `rngs`. One that is missing is told of where it is called."""
    own = any(item["name"] == "rngs" for item in theirs or ())
    gained = [item for item in ours or () if own or item["name"] != "rngs" or item["kind"] != "KEYWORD_ONLY"]
    return parameters_problem(name, theirs, gained) if ours is not None else ""


def parameters_problem(method: str, theirs: Signature, ours: Signature) -> str:
    """The first difference between two parameter lists; "" where there is none."""
    if theirs is None or ours is None:
        return ""
    names, own_names = [item["name"] for item in theirs], [item["name"] for item in ours]
    if names != own_names:
        return f"{method}: parameters ({', '.join(own_names)}) instead of ({', '.join(names)})"
    for their, our in zip(theirs, ours, strict=True):
        if their["kind"] != our["kind"]:
            return f"{method}: {their['name']} is {our['kind'].lower()} instead of {their['kind'].lower()}"
        if not _same_default(their["default"], our["default"]):
            return f"{method}: {their['name']} has the default {our['default'] or 'none'} instead of {their['default'] or 'none'}"
    return ""


def _same_default(theirs: str, ours: str) -> bool:
    """Whether two defaults agree. Of defaults that are no plain values (a class, a dtype), only the presence is compared."""
    return theirs == ours or (theirs == "object" and ours != "")


CHECK = Check("spec", "signature", judge)
