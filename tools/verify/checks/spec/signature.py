"""Constructor and call keep the original's parameters: names, order, kinds and defaults; the constructor gains keyword-only `rngs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

Signature = Sequence[Mapping[str, str]] | None


def judge(results: Results) -> Verdict | None:
    """Fail with the first difference. A port that is described by a file keeps the signatures that it likes."""
    if results.port:
        return None
    theirs = results.described()["signatures"]
    ours = results.exact["spec"]["signatures"]
    problem = constructor_problem(theirs["constructor"], ours["constructor"]) or parameters_problem(
        "__call__", theirs["call"], ours["call"]
    )
    return Verdict("spec", "signature", "fail" if problem else "pass", detail=problem)


def constructor_problem(theirs: Signature, ours: Signature) -> str:
    """What is wrong with the constructor, or nothing."""
    if theirs is None or ours is None:
        return ""
    rngs = [item for item in ours if item["name"] == "rngs"]
    own = any(item["name"] == "rngs" for item in theirs)
    if not own and rngs and rngs[0]["kind"] != "KEYWORD_ONLY":
        return "__init__: rngs is not keyword-only"
    if not own and not rngs and not any(item["kind"] == "VAR_KEYWORD" for item in ours):
        return "__init__: there is no keyword-only parameter rngs"
    return parameters_problem("__init__", theirs, ours if own else [item for item in ours if item["name"] != "rngs"])


def parameters_problem(where: str, theirs: Signature, ours: Signature) -> str:
    """The first difference between two parameter lists, or nothing."""
    if theirs is None or ours is None:
        return ""
    names, own_names = [item["name"] for item in theirs], [item["name"] for item in ours]
    if names != own_names:
        return f"{where}: parameters ({', '.join(own_names)}) instead of ({', '.join(names)})"
    for their, our in zip(theirs, ours, strict=True):
        if their["kind"] != our["kind"]:
            return f"{where}: {their['name']} is {our['kind'].lower()} instead of {their['kind'].lower()}"
        if not _same_default(their["default"], our["default"]):
            return f"{where}: {their['name']} has the default {our['default'] or 'none'} instead of {their['default'] or 'none'}"
    return ""


def _same_default(theirs: str, ours: str) -> bool:
    """Defaults that are no plain values (a class, a dtype) become other objects on the other side, so only their presence is compared."""
    return theirs == ours or (theirs == "object" and ours != "")


CHECK = Check("spec", "signature", judge)
