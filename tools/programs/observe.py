"""Runs a program in the sandbox with its expressions watched: what they evaluate to."""

from __future__ import annotations

import functools
import json
import os
import sys
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.programs.contained import Contained, watch_contained
from migrate_agent.tools.programs.problem import problem
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.rewrite.configured import Construction
from migrate_agent.tools.programs.rewrite.method_optimizers import RecordedOptimizer
from migrate_agent.tools.record.session import Session, plan
from migrate_agent.tools.record.store import NAME, read_json, save_recording, write_json
from migrate_agent.tools.removed_names import restore
from migrate_agent.tools.types import Inventory, Job, Limits, Recording

MAX_BYTES = 64 * 2**20
OPTIMIZERS, CONSTRUCTIONS, CONTAINED = "optimizers.json", "constructions.json", "contained.json"


class ObservationError(Exception):
    """A program that does not run. One line that says why; `too_long` where it took more than its time."""

    def __init__(self, reason: str, too_long: bool = False) -> None:
        super().__init__(reason)
        self.too_long = too_long


@dataclass(frozen=True)
class Watched:
    """What a run of a program showed: its expressions, its optimizers in the order of their construction, the calls that made them and their
    schedulers, and modules that are parts of others."""

    recording: Recording
    optimizers: tuple[RecordedOptimizer, ...]
    constructions: tuple[Construction, ...] = ()
    contained: tuple[Contained, ...] = ()


def observe(program: Program, inventory: Inventory, sandbox: Sandbox, folder: Path, limits: Limits) -> Watched:
    """What a run of the program shows, kept under `folder`. Raises `ObservationError`."""
    arguments = {**plan(inventory), **program.arguments(), "steps": program.steps, "max_bytes": MAX_BYTES}
    run = sandbox.run(Job("original", "migrate_agent.tools.programs.observe:observe_program", inventory.root, arguments, {}, limits))
    if run.status != "ok":
        raise ObservationError(f"{program.source} does not run: {problem(run)}", run.status == "timeout")
    try:
        rows = json.loads((run.output / OPTIMIZERS).read_text(encoding="utf-8-sig"))
        optimizers = tuple(RecordedOptimizer(tuple(map(frozenset, row["groups"])), row["axes"]) for row in rows)
        calls = tuple(
            Construction(line, name, tuple(keywords))
            for line, name, keywords in json.loads((run.output / CONSTRUCTIONS).read_text(encoding="utf-8-sig"))
        )
        parts = tuple(
            Contained(row["whole"], row["part"], tuple(row["path"]), row["alone"])
            for row in json.loads((run.output / CONTAINED).read_text(encoding="utf-8-sig"))
        )
        return Watched(save_recording(read_json(run.output / NAME), folder), optimizers, calls, parts)
    finally:
        sandbox.release(run)


def observe_program(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """The job: run the script under a recording session and write `recording.json` to `output`."""
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    import torch

    from migrate_agent.tools.harness.torch_side.removed_functions import restore_functions
    from migrate_agent.tools.harness.torch_side.scripts_as_written import run_scripts_as_written
    from migrate_agent.tools.programs.judge.contract import StopProgramError
    from migrate_agent.tools.programs.judge.devices import everything_on_cpu
    from migrate_agent.tools.programs.judge.running import WORK, program_folder

    run_scripts_as_written()
    restore_functions()
    torch.manual_seed(0)
    with program_folder(output, arguments) as script:
        root = output / WORK
        session = Session(root, arguments["files"], arguments["units"], arguments["max_bytes"], launching=arguments["launching"])
        session.install()
        everything_on_cpu()
        restore()
        parts = watch_contained(root)
        end_after(arguments["steps"])
        optimizers, constructions = watch_groups(), _watch_constructions(script)
        try:
            _run_watched(script, session, arguments["command"][0])
        except StopProgramError:
            pass
        except SystemExit as error:
            if error.code not in (None, 0):
                raise RuntimeError(f"the program left with status {error.code}") from error
        session.capture.active = False
    write_json(Recording((), session.recorder.table()), output / NAME)
    (output / OPTIMIZERS).write_text(json.dumps(optimizers))
    (output / CONSTRUCTIONS).write_text(json.dumps(constructions))
    (output / CONTAINED).write_text(json.dumps([asdict(row) for row in parts]))
    return {}


def end_after(steps: int) -> None:
    """End the program after so many optimizer steps; 0: never."""
    import importlib

    from migrate_agent.tools.programs.judge.contract import StopProgramError

    made = [0]

    def count(optimizer: Any, args: Any, kwargs: Any) -> None:
        made[0] += 1
        if steps and made[0] >= steps:
            raise StopProgramError

    hooks: Any = importlib.import_module("torch.optim.optimizer")
    hooks.register_optimizer_step_post_hook(count)


def watch_groups() -> list[dict[str, Any]]:
    """A list that gets the class of each optimizer, the names of its parameters by group, and the ranks of all parameters of the module that has
    them.
    """
    import torch

    from migrate_agent.tools.programs.judge.original import root_of

    optimizer: Any = torch.optim.Optimizer
    own, rows = optimizer.__init__, []

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        own(self, *args, **kwargs)
        groups = [[id(parameter) for parameter in group["params"]] for group in self.param_groups]
        root = root_of({one for group in groups for one in group})
        named = list(root.named_parameters()) if root is not None else []
        names = {id(parameter): name for name, parameter in named}
        axes = {name: parameter.dim() for name, parameter in named}
        rows.append(
            {"class": type(self).__name__, "groups": [[names[one] for one in group if one in names] for group in groups], "axes": axes}
        )

    optimizer.__init__ = __init__
    return rows


def _watch_constructions(script: Path) -> list[tuple[int, str, list[str]]]:
    """A list that gets line, class and keywords of each call of the script that constructs an optimizer or a scheduler of torch."""
    import torch

    rows: list[tuple[int, str, list[str]]] = []

    def watch(cls: Any) -> None:
        own = cls.__init__

        @functools.wraps(own)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            frame = sys._getframe(1)
            if frame.f_code.co_filename == str(script) and type(self) is cls:
                rows.append((frame.f_lineno, cls.__name__, list(kwargs)))
            own(self, *args, **kwargs)

        cls.__init__ = __init__

    for space, base in ((torch.optim, torch.optim.Optimizer), (torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler)):
        for cls in list(vars(space).values()):
            if isinstance(cls, type) and issubclass(cls, base) and cls is not base:
                watch(cls)
    return rows


def _run_watched(script: Path, session: Session, path: str) -> None:
    from migrate_agent.tools.record import instrument

    code = instrument.compile_instrumented(script.read_text(encoding="utf-8-sig"), str(script), path, session.recorder, script=True)
    main = types.ModuleType("__main__")
    main.__file__ = str(script)
    # Classes of the script are found by it, so it stays.
    sys.modules["__main__"] = main
    exec(code, vars(main))
