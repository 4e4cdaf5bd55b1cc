"""The job inside the sandbox: searches an example of one unit."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.example_text import import_module, load_unit
from migrate_agent.tools.harness.common.memory_bound import bound_memory
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.guessing.earlier_calls import Step, steps
from migrate_agent.tools.record.guessing.objects.own_files import refuse_descriptors
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Found, Search
from migrate_agent.tools.record.guessing.trials.trial import Stage, Trial, parameters, required
from migrate_agent.tools.record.session import import_roots

MEMORY_BYTES = 3 << 30
"""What trials may take beside what the process has when they begin."""
MOST_EARLIER = 2
"""Methods that are called before another one."""
MOST_METHODS = 4
"""Of one module that are tried in place of its call."""
NOT_CALLED = "it was constructed, and the time was over before a call was tried"


def guess_example(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Try guesses for the unit `name` of `module` until one runs or `seconds` are over.

    Returns `{"init", "call", "setup", "train", "method", "full", "error"}` of the guess that came furthest; `error` is "" where it ran. `full` are the
    constructor's arguments before its numbers were made smaller, "" where they were not. Of a module without `forward`, a method is called. Where the
    unit's file cannot be imported, `{"error", "imported": False}`. `output` is not written to.
    """
    import torch

    from migrate_agent.tools.harness.torch_side.removed_functions import restore_functions
    from migrate_agent.tools.harness.torch_side.scripts_as_written import run_scripts_as_written

    # `torch.compile` and `torch.jit.script` leave functions as they are, as they do where examples are recorded and verified: what
    # they compile has no signature.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    run_scripts_as_written()
    restore_functions()
    # Guesses are small: threads cost more than they gain, most of all where the machine is busy.
    torch.set_num_threads(1)
    bound_memory(MEMORY_BYTES)
    refuse_descriptors()
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = import_roots(root, arguments)
    use_parts(arguments["parts"], root)
    try:
        module = import_module(arguments["module"])
        cls = load_unit(arguments["module"], arguments["name"])
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return {"error": f"{message[:500]}{_position(error, root)}", "imported": False}
    names = methods_in_place(cls)
    rows: list[dict[str, Any]] = []
    reached: list[tuple[Stage, int]] = []
    for name in names or ("",):
        paths = [(root / path, module_name) for path, module_name, _ in arguments["files"]]
        seconds = arguments["seconds"] / max(len(names), 1)
        trial, best = _searched(partial(Trial, cls, module, [str(root)], name), paths, root, seconds)
        rows.append(_row(trial, best))
        if not rows[-1]["error"]:
            return rows[-1]
        reached.append(
            (best.outcome.stage, best.outcome.progress) if best is not None and not best.outcome.hopeless else (Stage.CONSTRUCT, -1)
        )
    return rows[reached.index(max(reached))]


def _searched(
    make: Callable[..., Trial],
    files: Sequence[tuple[Path, str]],
    root: Path,
    seconds: float,
    earlier: Sequence[Step] = (),
    instance: Any = None,
) -> tuple[Trial, Found | None]:
    """The search for a call after these of other methods, `instance` having them; and where it reads what other methods set, after more of them."""
    trial = make(earlier, instance)
    best = Search(trial, Options(trial, files, root), seconds, to_missing=True).run()
    if best is None or best.outcome.missing is None:
        return trial, best
    built = trial.instance
    for step in steps(built, best.outcome.missing, trial.method) if len(earlier) < MOST_EARLIER else ():
        if step in earlier:
            continue
        with_step, found = _searched(make, files, root, seconds / 2, (*earlier, step), built)
        if found is not None and found.outcome.stage in (Stage.DONE, Stage.EVALUATION_ONLY):
            return with_step, found
    if earlier:
        return trial, best
    trial = make()
    return trial, Search(trial, Options(trial, files, root), seconds).run()


def methods_in_place(cls: Any) -> list[str]:
    """The methods of a module that cannot be called itself, or only says so, one of which is called in its place: those that take something first. None of one that
    can be called."""
    import torch

    forward = getattr(cls, "forward", None)
    if (forward is not torch.nn.Module.forward and not _only_raises(forward)) or cls.__call__ is not torch.nn.Module.__call__:
        return []
    names = [name for name in methods.public_methods(cls, torch.nn.Module) if not methods.is_property(cls, name)]
    called = [name for name in names if not isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod))]
    return sorted(called, key=lambda name: not required(parameters(methods.unbound(cls, name))[1:]))[:MOST_METHODS]


def _only_raises(function: Any) -> bool:
    """Whether all that a method does is to say that it is not implemented, or nothing."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    body = definition.body if isinstance(definition, ast.FunctionDef) else []
    statements = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    raises = len(statements) == 1 and isinstance(statements[0], ast.Raise) and "NotImplementedError" in ast.unparse(statements[0])
    return raises or (bool(body) and all(isinstance(one, ast.Pass) for one in statements))


def _row(trial: Trial, best: Found | None) -> dict[str, Any]:
    """What a search gave."""
    if best is None:
        return {"error": "nothing could be tried"}
    example = trial.example(best.attempt)
    ran = best.outcome.stage in (Stage.DONE, Stage.EVALUATION_ONLY)
    train = False if best.outcome.stage is Stage.EVALUATION_ONLY else None
    row = {
        "init": example.init,
        "call": example.call,
        "setup": example.setup,
        "train": train,
        "trials": best.trials,
        "full": trial.example(best.whole).init if best.whole is not None and trial.has_shapes(best.whole) else "",
        "method": trial.whole_method if best.attempt.call is not None else trial.method,
    }
    return {**row, "hopeless": best.outcome.hopeless, "error": "" if ran else best.outcome.error or NOT_CALLED}


def _position(error: Exception, root: Path) -> str:
    """The last line below `root` that an error came through, as ` (file:line)`."""
    lines = [(Path(frame.filename).resolve(), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(path.relative_to(root), line) for path, line in lines if path.is_relative_to(root)]
    return f" ({own[-1][0].as_posix()}:{own[-1][1]})" if own else ""
