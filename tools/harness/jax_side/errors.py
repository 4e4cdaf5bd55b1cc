"""Describes an error of the candidate in one line, and decides whether the candidate raised it on purpose. Used inside the sandbox.

A job that runs out of memory or disk, or in which XLA itself fails, ends there: such an error says nothing about the candidate, so it is never described
as one.
"""

from __future__ import annotations

import ast
import errno
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import jax

CONCRETISATION = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
NO_MEMORY = "RESOURCE_EXHAUSTED"
"""The status code (https://grpc.io/docs/guides/status-codes) with which a message of XLA begins where it got no memory."""
OWN_FAULT = "INTERNAL"
"""The status code with which XLA tells of an error of its own."""
IN_CALLBACK = "INTERNAL: CpuCallback error"
"""How a message begins where a function on the host raised, which the candidate's program calls back. No error but its text tells the two apart."""
USED_UP = (errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Arguments = ParamSpec("Arguments")


class CompilerFailed(Exception):
    """Raised where XLA failed by its own fault, as it compiled or ran a program of the candidate."""


def telling_of_compiler(job: Callable[Arguments, dict[str, Any]]) -> Callable[Arguments, dict[str, Any]]:
    """A job whose result is XLA's own error, as `compiler`, where one ended it."""

    @wraps(job)
    def told(*args: Arguments.args, **kwargs: Arguments.kwargs) -> dict[str, Any]:
        try:
            return job(*args, **kwargs)
        except CompilerFailed as error:
            return {"compiler": str(error)}

    return told


def describe_error(error: BaseException, root: Path) -> dict[str, Any]:
    """One line on the error and its place, the same as data (`raised`), and its `kind`: a `concretisation` under `jit`, a `refusal` by the
    candidate's own code, another `error`. Raises `MemoryError` or `OSError` where memory or disk ran out, `CompilerFailed` where XLA failed."""
    _raise_others_faults(error)
    # jax's messages have many lines of advice; the first one says what is wrong.
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    file, line, code = _where(error, root)
    location = f"{file}:{line}: {code}" if file else ""
    text = f"{type(error).__name__}: {first}"[:300] + (f" at {location}" if location else "")
    kind = "concretisation" if isinstance(error, CONCRETISATION) else "refusal" if _on_purpose(error, root) else "error"
    raised = {"type": type(error).__name__, "message": first, "file": file, "line": line, "code": code}
    return {"error": text, "kind": kind, "raised": raised}


def _raise_others_faults(error: BaseException) -> None:
    if isinstance(error, (MemoryError, CompilerFailed)) or (isinstance(error, OSError) and error.errno in USED_UP):
        raise error
    if isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith(NO_MEMORY):
        raise MemoryError(str(error).splitlines()[0]) from error
    if isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith(OWN_FAULT) and not str(error).startswith(IN_CALLBACK):
        raise CompilerFailed(str(error).splitlines()[0]) from error


def _where(error: BaseException, root: Path) -> tuple[str, int, str]:
    """File, line and code of the deepest frame in the candidate's own files; an empty file where there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    if not frames:
        return "", 0, ""
    frame = frames[-1]
    return str(Path(frame.filename).relative_to(root)), frame.lineno or 0, frame.line or ""


def _on_purpose(error: BaseException, root: Path) -> bool:
    """Whether a `raise` or `assert` in the candidate's own files raised the error, and not a function that they call."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not Path(frames[-1].filename).is_relative_to(root):
        return False
    line = frames[-1].lineno or 0
    try:
        tree = ast.parse(Path(frames[-1].filename).read_text(encoding="utf-8-sig"))
    except (OSError, SyntaxError, ValueError):
        return False
    return any(isinstance(node, (ast.Raise, ast.Assert)) and node.lineno <= line <= (node.end_lineno or 0) for node in ast.walk(tree))
