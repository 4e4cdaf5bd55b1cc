"""The job inside the sandbox, on the side of the original: runs the examples with the recorder installed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.example_text import (
    call_arguments,
    construct,
    import_module,
    in_mode,
    load_unit,
    make_namespace,
)
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.rerun import rerun
from migrate_agent.tools.record.session import Session, Writer, import_roots
from migrate_agent.tools.record.store import APART, NAME, example_from_json, observations_to_json, write_json
from migrate_agent.tools.types import Example, Recording

SEED = 0


def start_session(arguments: Mapping[str, Any]) -> Session:
    """Open a session on the repository, which lies where `sys.path` begins."""
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # torch.compile runs its function as it is
    import torch

    from migrate_agent.tools.harness.torch_side.downloads import spare_downloads
    from migrate_agent.tools.harness.torch_side.removed_functions import restore_functions
    from migrate_agent.tools.harness.torch_side.scripts_as_written import run_scripts_as_written

    spare_downloads()  # scripts and tests are run without `import_module`
    run_scripts_as_written()
    restore_functions()
    torch.manual_seed(SEED)
    root = Path(sys.path[0] or ".").resolve()
    session = Session(
        root, arguments["files"], arguments["units"], arguments["max_bytes"], None, arguments["launching"], arguments["functions"]
    )
    use_parts(arguments["parts"], root)
    # Their order counts: of folders without `__init__.py` that several roots have, Python takes a file from the first.
    roots = import_roots(root, arguments)
    sys.path[:] = [*roots, *(folder for folder in sys.path if folder not in roots)]
    session.install()
    return session


def record_examples(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run examples and write `recording.json` and its tensors to `output`. Returns the indices of those that ran, and of those whose
    file or setup could not be imported (`{"ran": [0, 2], "unimported": [1]}`).

    `arguments` holds `files` and `units` (see `session.plan`), `examples` (JSON rows with the `module` of their unit), `max_bytes` of
    tensors for each unit, and `check_seconds`, the time for running the derived examples again. `inputs` are tensors files.
    """
    session = start_session(arguments)
    errors: dict[str, str] = {}
    ran: list[int] = []
    unimported: list[int] = []
    for index, row in enumerate(arguments["examples"]):
        example = _example(row, index, inputs, output)
        namespace: dict[str, Any] | None = None
        try:
            namespace = make_namespace(import_module(row["module"]), example)
            run_example(session, row["module"], example, namespace)
            ran.append(index)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit included: user code may call sys.exit
            session.forget_outside(error)
            errors[example.unit] = session.line_of(error)
            unimported += [index] if namespace is None else []
    session.capture.active = False
    recorded = Writer(output).recording(session, {})
    examples, reasons = check_examples(session, recorded, time.monotonic() + arguments["check_seconds"])
    inside = {**recorded.inside, **reasons}
    recording = Recording(examples, session.recorder.table(), {**recorded.errors, **errors}, recorded.kernel_calls, inside)
    write_json(recording, output / NAME)
    return {"ran": ran, "unimported": unimported}


def _example(row: Mapping[str, Any], index: int, inputs: Mapping[str, Path], folder: Path) -> Example:
    return replace(example_from_json({**row, "tensors": None}, folder), tensors=inputs.get(f"tensors{index}"))


def observe_examples(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run examples, and write what expressions evaluate to in each of them to `output`: a list of tables, null for one that did not run.
    The arguments are those of `record_examples`."""
    session = start_session(arguments)
    session.capture.active = False
    rows: list[dict[str, Any] | None] = []
    for index, row in enumerate(arguments["examples"]):
        example = _example(row, index, inputs, output)
        session.recorder.forget()
        try:
            run_example(session, row["module"], example, make_namespace(import_module(row["module"]), example))
            rows.append(observations_to_json({path: table for path, table in session.recorder.table().items() if table}))
        except KeyboardInterrupt:
            raise
        except BaseException:  # SystemExit included: user code may call sys.exit
            rows.append(None)
    (output / APART).write_text(json.dumps(rows))
    return {}


def run_example(session: Session, module: str, example: Example, namespace: dict[str, Any]) -> None:
    """Build the unit and call it in training and evaluation mode; its texts are evaluated in `namespace`.

    Raises the user's error where it runs in neither mode.
    """
    import torch

    from migrate_agent.tools.harness.torch_side.filled_memory import FilledMemory

    name = example.unit.partition(":")[2]
    cls = load_unit(module, name, example.init)
    # A constructor that reads uninitialised memory would record other values on every run.
    with FilledMemory():
        instance = construct(cls, example, namespace)
    # Its calls repeat the example that exists already; only those of its submodules are new.
    session.capture.forget(instance)
    failures = []
    modes = (False,) if example.train is False else (True, False)
    for training in modes:
        torch.manual_seed(SEED)
        args, kwargs = call_arguments(example, namespace)
        try:
            with session.functions.example_of(example.unit):
                backward(methods.bound(in_mode(instance, training=training), example.method)(*args, **kwargs))
        except Exception as error:
            failures.append(error)
    if len(failures) == len(modes):
        raise failures[-1]


def backward(result: Any) -> None:
    """Run the backward pass, so that custom gradients are recorded. An error there is no error of the example."""
    import torch

    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if leaves:
        with suppress(Exception):
            torch.autograd.backward([leaf.sum() if not leaf.is_complex() else leaf.abs().sum() for leaf in leaves])


def check_examples(session: Session, recorded: Recording, deadline: float) -> tuple[tuple[Example, ...], dict[str, str]]:
    """Run the recorded examples again from their source texts.

    Returns those that run, and unit id → error for units none of whose examples runs. Examples not
    reached before `deadline` are returned unchecked.
    """
    runnable: list[Example] = []
    reasons: dict[str, str] = {}
    # All was observed where it was recorded. Of a call that reads what another method sets, one without that would be observed here.
    session.recorder.active = False
    for example in recorded.examples:
        try:
            # An unchecked example is safe: a later stage runs it again and reports its error then.
            runnable.append(rerun(session.module_of(example.unit.partition(":")[0]), example) if time.monotonic() < deadline else example)
        except Exception as error:
            reasons[example.unit] = f"its recorded example does not run: {session.line_of(error)}"
    units = {example.unit for example in runnable}
    return tuple(runnable), {unit: reason for unit, reason in reasons.items() if unit not in units}
