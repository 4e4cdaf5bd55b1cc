"""The process that runs one job's code: set its limits, call the entry, send what it returned, end.

Runs inside the sandbox, forked by `keeper`; everything after `_confine` may be hostile. The result goes over an inherited pipe to the
keeper. Code of the same process can write to that pipe, so a result says what the job *claims*, and is no more trusted than that.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import fcntl
import importlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from migrate_agent.sandbox import linux, seccomp

RESULT_BYTES = 16 * 2**20
"""The largest result, as JSON. Arrays belong into files in the output folder."""
TRACEBACK_CHARACTERS = 32_000
ERROR_CHARACTERS = 500
WHERE_SIGNAL = signal.SIGUSR2
"""What the keeper sends before it ends a job that is out of time: the job's stacks are written to the log."""
THREADS_PER_PROCESS = 16
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TOKEN = "MIGRATE_AGENT_SANDBOX"
"""The variable by which everything that comes from a worker is found again; programs that the job starts inherit it."""


def main(spec: Mapping[str, Any], result: int, log: int) -> NoReturn:
    """Run the job of `spec`; `result` and `log` are the writing ends of pipes. Never returns."""
    code = 1
    try:
        result = _confine(spec, result, log)
        answer = _answer(spec)
        _send(result, answer)
        code = 0
    finally:
        _flush()
        os._exit(code)


def _confine(spec: Mapping[str, Any], result: int, log: int) -> int:
    """Give up everything that the job does not need. Returns the file descriptor that the result pipe has now."""
    os.setsid()
    linux.die_with_parent()
    linux.set_traceable(True)
    result = _file_descriptors(result, log)
    os.umask(0o077)
    _limits(spec["limits"], bool(spec["own_users"]))
    environment = {**spec["environment"], TOKEN: os.environ.get(TOKEN, "")}
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(spec["folders"]["scratch"])
    linux.drop_privileges()
    seccomp.apply(spec["protected"], sockets=spec["side"] == "original")
    _python(spec)
    return result


def _file_descriptors(result: int, log: int) -> int:
    """0 from nowhere, 1 and 2 to the log, 3 the result pipe (not inherited by programs that the job starts), nothing else."""
    sources = (os.open(os.devnull, os.O_RDONLY), log, log, result)
    for number, source in enumerate([fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 64) for source in sources]):
        os.dup2(source, number, inheritable=number < 3)
    for name in os.listdir("/dev/fd"):
        if int(name) > 3:
            with contextlib.suppress(OSError):  # the listing's own
                os.close(int(name))
    return 3


def _limits(limits: Mapping[str, Any], own_users: bool) -> None:
    """What the kernel can hold by itself; memory of the whole tree, time and number of processes are the keeper's."""
    seconds = int(limits["seconds"] * (os.cpu_count() or 1)) + 60
    rows = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: int(limits["file_bytes"]), resource.RLIMIT_CPU: seconds}
    if own_users:  # elsewhere the count includes whatever else the user runs
        rows[resource.RLIMIT_NPROC] = int(limits["processes"]) * THREADS_PER_PROCESS
    for limit, value in rows.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _python(spec: Mapping[str, Any]) -> None:
    """An interpreter that looks new: own streams, `__main__`, path and random state."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.BufferedWriter(io.FileIO(n, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True)
        for n in (1, 2)
    )
    faulthandler.enable(sys.stderr)
    faulthandler.register(WHERE_SIGNAL, sys.stderr)
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = [""]
    sys.path.insert(0, spec["root"])
    sys.dont_write_bytecode = True
    tempfile.tempdir = None
    importlib.invalidate_caches()
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)


def _answer(spec: Mapping[str, Any]) -> str:
    try:
        module, _, name = spec["entry"].partition(":")
        function = getattr(importlib.import_module(module), name)
        inputs = {key: Path(path) for key, path in spec["inputs"].items()}
        value = function(spec["arguments"], inputs, Path(spec["folders"]["output"]))
        text = json.dumps({"status": "ok", "result": value})
        if len(text) > RESULT_BYTES:
            raise ValueError(f"the result has {len(text)} bytes as JSON, more than {RESULT_BYTES}; write arrays to files")
        return text
    except BaseException as error:  # SystemExit and KeyboardInterrupt end the job like any other exception
        return json.dumps(_failure(error, spec["root"]))


def _failure(error: BaseException, root: str) -> dict[str, str]:
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be formatted)"
    origin = _place(error, root)
    line = f"{type(error).__name__}: {message}"[:ERROR_CHARACTERS] + (f" ({origin})" if origin else "")
    if status := _exhausted(error):
        return {"status": status, "error": line, "traceback": ""}
    try:
        text = "".join(traceback.format_exception(type(error), error, _own_frames_dropped(error)))
    except Exception:
        text = ""
    return {"status": "error", "error": line, "traceback": text[-TRACEBACK_CHARACTERS:]}


def _exhausted(error: BaseException) -> str:
    """`memory` or `disk` where that is what the job ran out of; else nothing."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return "memory"
    return "disk" if number in DISK_ERRORS else ""


def _own_frames_dropped(error: BaseException) -> types.TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, importlib.__file__):
        trace = trace.tb_next
    return trace


def _place(error: BaseException, root: str) -> str:
    """`file:line` of the deepest frame in the user's code, else of the deepest one anywhere."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename, root)}:{error.lineno}"
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(_own_frames_dropped(error))]
    frames = [frame for frame in frames if not frame[0].startswith("<frozen")]
    inside = [frame for frame in frames if Path(frame[0]).is_relative_to(root)]
    for filename, line in reversed(inside or frames):
        return f"{_relative(filename, root)}:{line}"
    return ""


def _relative(filename: str, root: str) -> str:
    path = Path(filename)
    return str(path.relative_to(root)) if path.is_relative_to(root) else filename


def _send(result: int, text: str) -> None:
    data = memoryview(text.encode("ascii"))
    while data:
        data = data[os.write(result, data) :]
    os.close(result)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the job may have closed or replaced it
            stream.flush()
