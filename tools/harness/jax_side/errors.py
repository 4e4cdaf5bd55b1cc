"""Describes an error of the candidate in one line, and decides whether the candidate raised it on purpose. Used inside the sandbox."""

from __future__ import annotations

import ast
import traceback
from pathlib import Path

import jax

CONCRETISATION = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def describe_error(error: BaseException, root: Path) -> dict[str, str]:
    """One line on the error and its place, and its `kind`: a `concretisation` under `jit`, a `refusal` by the candidate's own code, another `error`."""
    # jax's messages have many lines of advice; the first one says what is wrong.
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    location = _where(error, root)
    text = f"{type(error).__name__}: {first}"[:300] + (f" at {location}" if location else "")
    kind = "concretisation" if isinstance(error, CONCRETISATION) else "refusal" if _on_purpose(error, root) else "error"
    return {"error": text, "kind": kind}


def _where(error: BaseException, root: Path) -> str:
    """`file:line: code` of the deepest frame in the candidate's own files, or nothing."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    return f"{Path(frames[-1].filename).relative_to(root)}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _on_purpose(error: BaseException, root: Path) -> bool:
    """Whether a `raise` or `assert` in the candidate's own files raised the error, and not a function that they call."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not Path(frames[-1].filename).is_relative_to(root):
        return False
    line = frames[-1].lineno or 0
    try:
        tree = ast.parse(Path(frames[-1].filename).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return False
    return any(isinstance(node, (ast.Raise, ast.Assert)) and node.lineno <= line <= (node.end_lineno or 0) for node in ast.walk(tree))
