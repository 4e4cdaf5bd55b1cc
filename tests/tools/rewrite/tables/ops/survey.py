"""Judges every entry of `op_db` against its row: fully right, refused with a reason, without a row, out of scope, or wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from migrate_agent.tests.tools.rewrite.tables.ops import exclusions
from migrate_agent.tests.tools.rewrite.tables.ops.differential import RTOL, check, dtypes, samples, write_call
from migrate_agent.tools.rewrite.tables.registry import Refuse, methods, ops


@dataclass(frozen=True)
class Judgement:
    """What became of an entry. `outcome` is `right`, `refused`, `missing`, `excluded` or `wrong`; `checked` counts calls."""

    entry: str
    outcome: str
    checked: int = 0
    detail: str = ""


def full_name(entry: Any) -> str:
    """`name.variant`."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def spellings(name: str) -> list[bool]:
    """As function (False) and as tensor method (True), where the tables have a row and torch has the name."""
    function = f"torch.{name}" in ops()
    method = name in methods() and hasattr(torch.Tensor, name)
    return [False] * function + [True] * method


def skipped(name: str, key: str) -> bool:
    """Whether a listed reason leaves this sample out."""
    return any(re.fullmatch(entries, name) and re.search(sample, key) for entries, sample, _ in exclusions.SKIPPED)


def judge(entry: Any, limit: int) -> Judgement:
    """Run at most `limit` samples of each dtype in each spelling."""
    name, full = str(entry.name), full_name(entry)
    for excluded in (name, full):
        if excluded in exclusions.EXCLUDED:
            return Judgement(full, "excluded", detail=exclusions.EXCLUDED[excluded])
    if not spellings(name):
        return Judgement(full, "missing")
    checked, refused = 0, ""
    for dtype in dtypes(entry):
        for args, keywords in samples(entry, dtype, limit):
            for method in spellings(name):
                if method and not isinstance(args[0], torch.Tensor):
                    continue
                ordered = args if method or name not in exclusions.ARGUMENTS else exclusions.ARGUMENTS[name](args)
                case = write_call(name, ordered, keywords, entry.supports_autograd and full not in exclusions.NO_GRADIENT, method)
                if skipped(name, f"{dtype} {case.source} {[tuple(t.shape) for t in case.tensors]}"):
                    continue
                try:
                    tolerance = exclusions.TOLERANCES.get(name, RTOL)
                    check(case, tolerance, name not in exclusions.RANDOM, name in exclusions.TIES, full in exclusions.HERMITIAN)
                except Refuse as error:
                    refused = f"{error.code}: {error}"
                except Exception as error:
                    return Judgement(full, "wrong", checked, f"{case.source} ({dtype}): {type(error).__name__}: {error}")
                checked += 1
    return Judgement(full, "refused" if refused else "right", checked, refused)
