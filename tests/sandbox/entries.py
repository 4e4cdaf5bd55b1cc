"""What the contract tests run inside the sandbox. The hostile ones are bounded in count, size and time."""

from __future__ import annotations

import builtins
import gc
import importlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Arguments = Mapping[str, Any]
Inputs = Mapping[str, Path]
BOUND_SECONDS = 120.0
"""Far longer than any test waits, so that what is not stopped is seen."""


def echo(arguments: Arguments, inputs: Inputs, output: Path) -> Any:
    """Arguments, texts of the inputs; leaves a file."""
    (output / "folder").mkdir()
    (output / "folder" / "file.txt").write_text("left")
    print("for people")
    return {"arguments": arguments, "inputs": {name: path.read_text() for name, path in inputs.items()}}


def raises(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """An exception of two lines, with a terminal escape in it."""
    raise ValueError("first\nsecond \x1b[31m")


def leaves(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """`sys.exit`, `os._exit`, a signal to itself, or a stop of itself and its keeper."""
    how = arguments["how"]
    if how == "sys.exit":
        sys.exit(3)
    if how == "os._exit":
        os._exit(0)
    os.kill(os.getpid(), getattr(signal, how))


def loops(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """Ignores what can be ignored and computes on."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    until = time.monotonic() + BOUND_SECONDS
    while time.monotonic() < until:
        pass


def allocates(arguments: Arguments, inputs: Inputs, output: Path) -> int:
    """One gibibyte at most, in this process or spread over children."""
    if arguments["children"]:
        for _ in range(arguments["children"] - 1):
            if os.fork() == 0:
                break
    blocks = [bytearray(b"x" * 2**24) for _ in range(64 // max(arguments["children"], 1))]
    time.sleep(BOUND_SECONDS)
    return len(blocks)


def prints(arguments: Arguments, inputs: Inputs, output: Path) -> str:
    """Thirty megabytes of log, to both streams and from a program."""
    print("begin")
    for _ in range(10):
        sys.stdout.write("o" * 2**20 + "\n")
        sys.stderr.write("e" * 2**20 + "\n")
        subprocess.run([sys.executable, "-c", "print('p' * 2**20)"], check=True)
    print("end")
    return "done"


def returns(arguments: Arguments, inputs: Inputs, output: Path) -> Any:
    """A result that is too large, or no JSON, or badly formed."""
    return {"large": "x" * 2**25, "set": {1, 2}, "surrogate": "\ud800"}[arguments["what"]]


def forges(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """Writes to every open file descriptor what is no result, and leaves as if all were well."""
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, arguments["text"].encode())
        except OSError:
            continue
    os._exit(0)


def imports(arguments: Arguments, inputs: Inputs, output: Path) -> dict[str, str]:
    """Module → its version, or the name of the exception."""
    found = {}
    for name in arguments["names"]:
        try:
            found[name] = str(importlib.import_module(name).__name__)
        except ImportError as error:
            found[name] = type(error).__name__
    found["loaded"] = ",".join(sorted({name.partition(".")[0] for name in sys.modules} & set(arguments["names"])))
    return found


def surroundings(arguments: Arguments, inputs: Inputs, output: Path) -> dict[str, Any]:
    """What a job can see of where it runs."""
    return {
        "environment": dict(os.environ),
        "at_start": Path("/proc/self/environ").read_text(errors="replace"),
        "cwd": os.getcwd(),
        "path": sys.path[0],
        "home": sorted(os.listdir(Path.home())),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": len(os.listdir("/proc/self/task")),
        "stdin": sys.stdin.read(),
        "main": sorted(name for name in vars(sys.modules["__main__"]) if not name.startswith("__")),
        "argv": sys.argv,
    }


class Finder:
    """Finds nothing."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Nothing."""


def soils(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """Changes all that could leak into the next job."""
    LIBRARIES[arguments["library"]][0]()
    os.environ["LEAK"] = "1"
    for folder in (Path.home(), Path(os.environ["TMPDIR"]), Path.cwd(), output):
        (folder / "leak").write_text("")
    os.chdir("/")
    os.umask(0)
    os.nice(5)
    sys.path.insert(0, "/leak")
    sys.modules["leak"] = sys
    sys.argv.append("leak")
    sys.setrecursionlimit(777)
    sys.meta_path.append(Finder())
    builtins.leak = True  # type: ignore[attr-defined]
    gc.disable()
    warnings.simplefilter("error")
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    threading.Thread(target=time.sleep, args=(BOUND_SECONDS,), daemon=True, name="leak").start()


def _soil_jax() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    jax.config.update("jax_default_matmul_precision", "bfloat16")  # type: ignore[no-untyped-call]
    jax.numpy.zeros(3).block_until_ready()
    jax.leak = True  # type: ignore[attr-defined]


def _soil_torch() -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(777)
    torch.ones(3).sum()
    torch.leak = True  # type: ignore[attr-defined]


def soiled(arguments: Arguments, inputs: Inputs, output: Path) -> list[str]:
    """The leaks found."""
    umask = os.umask(0)
    checks = {
        "environment": "LEAK" in os.environ,
        "files": [place for place in (Path.home(), os.environ["TMPDIR"], Path.cwd(), output) if os.listdir(place)],
        "cwd": os.getcwd() == "/",
        "umask": umask == 0,
        "priority": os.nice(0) >= os.getpriority(os.PRIO_PROCESS, os.getppid()) + 5,
        "path": "/leak" in sys.path,
        "modules": "leak" in sys.modules,
        "argv": "leak" in sys.argv,
        "recursion": sys.getrecursionlimit() == 777,
        "finders": any(type(finder).__name__ == "Finder" for finder in sys.meta_path),
        "builtins": hasattr(builtins, "leak"),
        "collector": not gc.isenabled(),
        "warnings": any(action == "error" and category is Warning for action, _, category, *_ in warnings.filters),
        "signals": signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN,
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64,
        "threads": len(os.listdir("/proc/self/task")) > 1,
        **LIBRARIES[arguments["library"]][1](),
    }
    return [name for name, leaked in checks.items() if leaked]


def soils_and_looks(arguments: Arguments, inputs: Inputs, output: Path) -> list[str]:
    """All leaks, in the process that made them."""
    soils(arguments, inputs, output)
    return soiled(arguments, inputs, output)


def _soiled_jax() -> dict[str, bool]:
    import jax

    return {
        "x64": jax.numpy.zeros(1, float).dtype == "float64",
        "precision": jax.config.jax_default_matmul_precision is not None,  # type: ignore[attr-defined]
        "attribute": hasattr(jax, "leak"),
    }


def _soiled_torch() -> dict[str, bool]:
    import torch

    return {
        "dtype": torch.get_default_dtype() == torch.float64,
        "gradients": not torch.is_grad_enabled(),
        "determinism": torch.are_deterministic_algorithms_enabled(),
        "seed": torch.initial_seed() == 777,
        "attribute": hasattr(torch, "leak"),
    }


LIBRARIES = {"jax": (_soil_jax, _soiled_jax), "torch": (_soil_torch, _soiled_torch)}


def draws(arguments: Arguments, inputs: Inputs, output: Path) -> list[float]:
    """From every generator that a library seeds by itself, and the order of a set of strings."""
    import random

    import numpy as np

    values = [random.random(), float(np.random.rand()), float(hash("text"))]
    if "torch" in sys.modules:
        values.append(float(sys.modules["torch"].rand(())))
    return values


def starts(arguments: Arguments, inputs: Inputs, output: Path) -> str:
    """`count` programs that carry `marker` on their command line; with `daemon`, each in its own session, orphaned."""
    program = [sys.executable, "-S", "-c", f"import time; time.sleep({BOUND_SECONDS})", arguments["marker"]]
    if arguments["daemon"]:
        if (pid := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.execv(program[0], program)
            os._exit(0)
        os.waitpid(pid, 0)
        return "started"
    for _ in range(arguments["count"]):
        subprocess.Popen(program, start_new_session=True)
    time.sleep(arguments.get("seconds", 0.0))
    return "started"


def meets(arguments: Arguments, inputs: Inputs, output: Path) -> list[str]:
    """Leaves a file, and looks for those of another job that runs at the same time: what it finds of them."""
    (output / "mine").write_text(arguments["name"])
    found: set[str] = set()
    until = time.monotonic() + arguments["seconds"]
    while time.monotonic() < until:
        for path in output.parents[1].glob("*/output/mine"):
            if path.parent != output and (text := path.read_text()):
                found.add(text)
        time.sleep(0.02)
    return sorted(found)


def ends_worker(arguments: Arguments, inputs: Inputs, output: Path) -> None:
    """Kills its keeper (1 generation up) or the worker (2)."""
    import psutil  # type: ignore[import-untyped]

    process = psutil.Process()
    for _ in range(arguments["generations"]):
        process = process.parent()
    process.send_signal(getattr(signal, arguments["signal"]))
    time.sleep(BOUND_SECONDS)


def outputs(arguments: Arguments, inputs: Inputs, output: Path) -> str:
    """Leaves something odd in the output folder."""
    what, place = arguments["what"], output / "odd"
    if what == "symlink":
        place.symlink_to("/etc/hostname")
    elif what == "hardlink":
        (output / "first").write_text("")
        os.link(output / "first", place)
    elif what == "fifo":
        os.mkfifo(place)
    elif what == "socket":
        os.chdir(output)
        socket.socket(socket.AF_UNIX).bind("odd")
    elif what == "replaced":
        output.rmdir()
        output.symlink_to("/etc")
    elif what == "removed":
        output.rmdir()
    elif what == "deep":
        os.chdir(output)
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
    elif what == "large":
        place.write_bytes(b"x" * 2**22)
    elif what == "many":
        for number in range(64):
            (output / str(number)).write_bytes(b"x" * 2**17)
    elif what == "closed":
        place.mkdir()
        (place / "file").write_text("")
        place.chmod(0)
    return "left"


def overwrites(arguments: Arguments, inputs: Inputs, output: Path) -> str:
    """Changes its input, permissions or not."""
    for path in inputs.values():
        path.chmod(0o600)
        path.write_text("changed")
    return "changed"


def reaches(arguments: Arguments, inputs: Inputs, output: Path) -> dict[str, str]:
    """Tries to leave a bubblewrap sandbox; what is said is "no" or what was reached."""
    return {name: _tried(what, arguments) for name, what in ESCAPES.items()}


def _tried(what: Any, arguments: Arguments) -> str:
    try:
        return str(what(arguments))
    except (OSError, ValueError):
        return "no"


def _connect(arguments: Arguments) -> str:
    with socket.create_connection(("127.0.0.1", arguments["port"]), timeout=2):
        return "connected"


def _environments(arguments: Arguments) -> str:
    texts = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            texts.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return "canary" if any(arguments["canary"] in text for text in texts) else "no"


ESCAPES = {
    "network": _connect,
    "canary": _environments,
    "host file": lambda arguments: Path(arguments["secret"]).read_text(),
    "system": lambda arguments: (
        [str(path) for path in Path("/sys").rglob("*") if path.is_file() and str(path) != "/sys/devices/system/cpu/possible"] or "no"
    ),
    "etc": lambda arguments: Path("/etc/passwd").read_text(),
    "write root": lambda arguments: Path(arguments["root"], "written").write_text("x"),
    "write usr": lambda arguments: Path("/usr/written").write_text("x"),
    "write slash": lambda arguments: Path("/written").write_text("x"),
    "write python": lambda arguments: Path(sys.prefix, "written").write_text("x"),
    "signal host": lambda arguments: os.kill(arguments["pid"], 0),
    "root user": lambda arguments: os.setuid(0),
    "user": lambda arguments: "no" if os.getuid() == 65534 else os.getuid(),
    "chroot": lambda arguments: os.chroot("/tmp"),
    "device": lambda arguments: os.mknod("/tmp/device", 0o600 | 0o20000, os.makedev(1, 3)),
    "host name": lambda arguments: socket.sethostname("changed"),
    "torch on disk": lambda arguments: any(Path(place, "torch", "__init__.py").exists() for place in sys.path) or "no",
}
