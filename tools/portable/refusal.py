"""Classifies the compiler's refusals: kind, line of the rewrite, and advice; one row for each kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

LineSource = Literal["largest", "kernel", "float16 kernel", "traceback"]
"""Where the line comes from: the largest value's, the kernel's that the text speaks of, the one that takes float16, or the error's own."""


@dataclass(frozen=True)
class Refusal:
    """`kind` is short (`hbm`, `vmem`, `block shape`, `float16`, …), `line` is `file.py:12` in the rewrite, "" where nothing points at one."""

    kind: str
    line: str
    text: str
    advice: str


@dataclass(frozen=True)
class Rule:
    """A kind of refusal: `pattern` finds it in the compiler's text, `place` says where its line is known from."""

    kind: str
    pattern: str
    place: LineSource
    advice: str


HBM, VMEM, BLOCK, FLOAT16 = "hbm", "vmem", "block shape", "float16"
RULES = (
    Rule(
        HBM,
        r"Ran out of memory (?:on HBM|in memory space hbm)",
        "largest",
        "take a smaller batch, --dtype bf16, jax.checkpoint, or shard it with --mesh; --fit tries them and tells what fits",
    ),
    Rule(
        VMEM,
        r"space=vmem|memory space vmem|scoped vmem",
        "kernel",
        "take smaller blocks: all windows of one step, twice each, must lie in VMEM",
    ),
    Rule(
        BLOCK,
        r"(?i)block shape",
        "kernel",
        "make the last two sizes of the block multiples of 8 and 128, or equal to those of the whole array",
    ),
    Rule(
        FLOAT16,
        r"Mosaic failed|f16|float16",
        "float16 kernel",
        "TPU kernels load no float16: cast to bfloat16 or float32 before the kernel",
    ),
    Rule(
        "mosaic",
        r"Mosaic failed|Pallas|tpu_custom_call",
        "kernel",
        "the kernel uses what Mosaic cannot lower: rewrite it, or take the plain version",
    ),
    Rule("memory space", r"RESOURCE_EXHAUSTED", "largest", "take smaller shapes, or shard them with --mesh"),
    Rule("host", r"(?i)callback", "traceback", "a TPU program calls nothing on the host: leave out jax.debug.print and callbacks"),
)
OTHER = Rule("error", "", "traceback", "the text is the compiler's own")

_AT = re.compile(r" at (?:\S*/)?([^\s/][^\s]*\.py):(\d+)")
_WINDOW = re.compile(r"The window shape is \w+\[([\d,]+)\]")


def classify(text: str, facts: Mapping[str, Any], line: str = "") -> Refusal:
    """The refusal of this text. `facts` are `largest` and `kernels` of the program; `line` is the error's own, where it has one."""
    kernels: Sequence[Mapping[str, Any]] = facts.get("kernels") or ()
    # The first rule that matches wins: specific texts precede general ones.
    for rule in RULES:
        if not re.search(rule.pattern, text):
            continue
        if rule.place == "float16 kernel" and not any("float16" in kernel["dtypes"] for kernel in kernels):
            continue
        return Refusal(rule.kind, _line(rule.place, text, facts, kernels) or line, summary(text, rule.pattern), rule.advice)
    return Refusal(OTHER.kind, line, summary(text, ""), OTHER.advice)


def _line(line_source: LineSource, text: str, facts: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> str:
    if line_source == "largest":
        return next((str(row["line"]) for row in facts.get("largest") or () if row["line"]), "")
    if line_source == "float16 kernel":
        return next((str(kernel["line"]) for kernel in kernels if "float16" in kernel["dtypes"]), "")
    if line_source == "kernel":
        return _kernel_line(text, kernels)
    return ""


def _kernel_line(text: str, kernels: Sequence[Mapping[str, Any]]) -> str:
    """The line of the kernel that has a block of the text's window shape, else of the one that it names, else of the first."""
    if window := _WINDOW.search(text):
        shape = [int(size) for size in window[1].split(",")]
        kernels = [kernel for kernel in kernels if shape in kernel["blocks"]] or kernels
    named = [kernel for kernel in kernels if kernel["name"] and re.search(rf"\b{re.escape(kernel['name'])}\b", text)]
    return str((named or [*kernels, {"line": ""}])[0]["line"])


def summary(text: str, pattern: str) -> str:
    """The sentence that says what was wrong, in one line of at most 400 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = next((line for line in lines if pattern and re.search(pattern, line)), lines[0] if lines else "")
    return telling.removeprefix("JaxRuntimeError: ")[:400]
