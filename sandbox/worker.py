"""The zygote: imports torch or jax once, then forks a `keeper` for every job that the host sends.

Started by the host as `python -m migrate_agent.sandbox.worker SIDE CONTROL`, where CONTROL is the number of an inherited socket, or the
path of one that the host listens on. Each message on it is one byte with the job's own socket attached; the end of the stream means that
the host closed the sandbox, or died. The zygote only imports: it runs no operator and starts no thread, since neither XLA's backends nor
OpenMP's threads survive a fork.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

import psutil  # type: ignore[import-untyped]

from migrate_agent.sandbox import keeper, linux
from migrate_agent.sandbox.view import gpus

PRELOAD: dict[str, tuple[str, ...]] = {
    # torch's first tensor imports dynamo, which takes as long as torch; the search runs jax beside torch
    "original": (
        "numpy",
        "torch",
        "torch._dynamo",
        "safetensors.numpy",
        "safetensors.torch",
        "einops",
        "scipy.linalg",
        "jax",
        "jax.export",
        "migrate_agent.tools.verify.original.job",
        "migrate_agent.tools.verify.original.adversarial_search",
    ),
    "candidate": ("numpy", "jax", "jax.numpy", "flax.nnx", "optax", "safetensors.numpy", "einops"),
    # torchax itself takes its dtypes from jax when it is imported, and a job may have other ones
    "torchax": ("numpy", "torch", "jax", "jax.numpy", "flax.nnx", "optax", "safetensors.numpy", "einops"),
}
REFUSED: dict[str, frozenset[str]] = {
    "original": frozenset(),
    "candidate": frozenset({"torch", "torchvision", "torchaudio", "torchax", "torchgen", "functorch"}),
    "torchax": frozenset(),
}


class Refusal:
    """A finder, first in `sys.meta_path`, that refuses top-level packages by name."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Raises `ModuleNotFoundError` for what is refused, so that `try: import torch` takes its other branch."""
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"{name} cannot be imported on the candidate's side", name=name)


def main(side: str, control: socket.socket) -> NoReturn:
    """Serve jobs until the host hangs up. Never returns."""
    keeper.end_with_parent()
    linux.adopt_orphans()
    linux.set_traceable(False)
    sys.meta_path.insert(0, Refusal(REFUSED[side]))
    if not gpus():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # before dynamo imports triton, whose own functions settle by it how they run
    for name in PRELOAD[side]:
        importlib.import_module(name)
    loaded = REFUSED[side] & sys.modules.keys()
    if loaded:
        raise ImportError(f"loaded before it could be refused: {', '.join(sorted(loaded))}")
    gc.collect()
    gc.freeze()  # else the first collection of every child copies all pages
    _serve(control)
    keeper.kill_descendants()
    os._exit(0)


def _control(address: str) -> socket.socket:
    """The control socket from its place: the number of one that was inherited, or the path of one that listens."""
    if address.isdigit():
        return socket.socket(fileno=int(address))
    control = socket.socket(socket.AF_UNIX)
    control.connect(address)
    return control


def _serve(control: socket.socket) -> None:
    wake, wake_end = socket.socketpair()
    wake.setblocking(False)
    wake_end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_end.fileno())
    keepers: set[int] = set()
    while True:
        ready = select.select([control, wake], [], [])[0]
        if wake in ready:
            wake.recv(4096)
            _reap(keepers)
        if control in ready:
            message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not message:
                return
            with socket.socket(fileno=descriptors[0]) as connection:
                keepers.add(_fork(connection, (control, wake, wake_end)))


def _fork(connection: socket.socket, ours: tuple[socket.socket, ...]) -> int:
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in ours:
            descriptor.close()
        keeper.main(connection)
    return pid


def _reap(keepers: set[int]) -> None:
    """Take in what ended. A keeper cleans up after itself; where it was killed, what it leaves is orphaned to us, and killed here."""
    try:
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            keepers.discard(pid)
    except ChildProcessError:
        return
    for process in psutil.Process().children():
        if process.pid not in keepers:
            for stray in (*process.children(recursive=True), process):
                try:
                    stray.kill()
                except psutil.Error:
                    continue


if __name__ == "__main__":
    main(sys.argv[1], _control(sys.argv[2]))
