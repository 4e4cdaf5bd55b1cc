"""The Docker backend: the warm worker and its jobs in a container of an engine on this machine.

Holds what bubblewrap holds (no network, a file system that shows only the system's libraries, Python and the job's `root`, an empty home,
no process but the worker's, no capabilities, no torch on the candidate's disk), and beyond it: the engine's seccomp filter, a cgroup with
limits on memory, processes and CPU that nothing inside can pass, the engine's masks over /proc and /sys, and a user that is not root even
where the host's is. One container serves the original's jobs of one `root`, one without torch all candidates of a run, whose code is copied
into its sight job by job; candidates that run at the same time get containers apart. A container is labelled, removed when the sandbox
closes, and ends by itself, and is removed, when the host's process dies. Does **not** hold: jobs of the original that run at the same time
from each other.

Image: one with packages of its own (`migrate-agent sandbox build --packages`), else the minimal one, with the host's system libraries and
Python environment mounted read-only. Source: the Docker Engine API's reference, "Create a container".
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from migrate_agent.sandbox import engine, idmap
from migrate_agent.sandbox.base import Device, SandboxError, SandboxUnavailable
from migrate_agent.sandbox.child import TOKEN
from migrate_agent.sandbox.process import START_SECONDS, Key, ProcessSandbox, area
from migrate_agent.sandbox.staging import remove
from migrate_agent.sandbox.view import OURS, PARTS, SYSTEM, gpus, packages, python
from migrate_agent.sandbox.worker import REFUSED
from migrate_agent.sandbox.zygote import END_SECONDS, Worker
from migrate_agent.tools.types import Limits

NOBODY = 65534
MEMORY_SHARE, MEMORY_JOBS = 0.75, 4
"""A container may use this share of the machine's memory, and no more than so many jobs at their default limits need."""
PROCESSES = 4096 + 256
SMALL, SHARED_MEMORY = 2**16, 256 * 2**20
CONTROL = "/run/migrate-agent"
INSIDE = "/opt/migrate-agent"
"""Where our own code lies in images that have a Python of their own."""
LOG_BYTES = 2**16
RESTART_SECONDS = 30.0
"""How long an engine that is being restarted is waited for."""
RETRY_SECONDS = 0.25


def missing() -> str:
    """Why this backend cannot be used here, or ""."""
    try:
        client = engine.connect()
    except SandboxUnavailable as error:
        return str(error)
    try:
        if reason := engine.unsuitable(client):
            return f"the Docker engine cannot serve: {reason}"
        present = engine.image(client, "candidate") and engine.image(client, "original")
        return "" if present else "the Docker engine has no image of ours: run `migrate-agent sandbox build`"
    except Exception as error:
        return f"the Docker engine does not answer: {engine.one_line(error)}"
    finally:
        client.close()


def user() -> int:
    """Whom jobs run as: this process's user, so that files agree; nobody where that is root."""
    return os.getuid() or NOBODY


class DockerSandbox(ProcessSandbox):
    """Runs jobs in children of warm workers inside containers. A context manager; safe for `run` from several threads."""

    name = "docker"
    shows = True
    shared = ("/dev/shm", "/dev/mqueue")

    def __init__(self, *, threads: int = 1, folder: Path | None = None, device: Device = "cpu") -> None:
        self.own_users = os.getuid() == 0
        self._client = engine.connect()
        self._starting, self._ended = threading.RLock(), False
        engine.prune(self._client)
        super().__init__(threads=threads, folder=folder, device=device)

    def close(self) -> None:
        """Stop all containers with whatever they run, and remove all files. May be called more than once."""
        self._ended = True
        waited = self._starting.acquire(timeout=RESTART_SECONDS)  # another thread may be starting one that nobody knows of yet
        try:
            super().close()
            with contextlib.suppress(Exception):  # without an engine there are none
                for container in self._client.containers.list(all=True, filters={"label": f"{engine.LABEL}={self._base.path}"}):
                    engine.remove(container)
        finally:
            if waited:
                self._starting.release()
        self._client.close()

    def _job_owner(self) -> tuple[int, int] | None:
        return (NOBODY, NOBODY) if os.getuid() == 0 else None

    def _launch(self, key: Key, environment: Mapping[str, str], log: Path, token: str) -> Worker:
        area = self._base.area(f"container-{token[:8]}")
        until = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                with self._starting:
                    if self._ended:
                        raise SandboxUnavailable("the sandbox was closed")
                    return self._container(key, {**environment, TOKEN: token}, log, area)
            except Exception as error:
                if time.monotonic() > until or isinstance(error, SandboxError) or getattr(error, "status_code", 500) < 500:
                    remove(area)
                    raise SandboxUnavailable(f"the Docker engine cannot start a container: {engine.one_line(error)}") from error
                threading.Event().wait(RETRY_SECONDS)  # it may be on its way up again

    def _container(self, key: Key, environment: Mapping[str, str], log: Path, folder: Path) -> Container:
        image = engine.image(self._client, key.side)
        if image is None:
            raise SandboxUnavailable("no image of ours is left: run `migrate-agent sandbox build`")
        own, code = self._base.area(area(key)), Path(key.root) if key.root else self._base.code(area(key))
        view = folder / "root"
        view.mkdir(exist_ok=True)
        with idmap.shown(code, view, NOBODY) if key.root and os.getuid() == 0 else contextlib.nullcontext(code) as shown:
            options = {
                "environment": _inside(image, environment),
                "labels": {engine.LABEL: str(self._base.path)},
                "tmpfs": _tmpfs(image, key.side),
                "volumes": _volumes(image, own, {str(shown): str(code)}, folder),
                "working_dir": str(own),
                **_program(image, key.side),
                **(devices(image) if self._device == "gpu" else {}),
            }
            return Container(self._client, image.name, options, log, folder, environment[TOKEN])


class Container(Worker):
    """A worker in a container. Raises what the engine's client raises, and `OSError`."""

    def __init__(self, client: Any, image: str, options: Mapping[str, Any], log: Path, area: Path, token: str) -> None:
        super().__init__(log, token)
        self._place = area
        self._control: socket.socket | None = None
        self._listener = _listen(area)
        try:
            self._container = client.containers.create(image, **_isolation(), **options)
            try:
                self._follow()
                self._container.start()
            except BaseException:
                engine.remove(self._container)
                raise
        except BaseException:
            self._listener.close()
            raise

    def _follow(self) -> None:
        """Write what the container says to the log, the first part of it."""
        from docker.utils.socket import frames_iter  # type: ignore[import-untyped]

        stream = self._container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})

        def copy() -> None:
            room = LOG_BYTES
            with self._log.open("wb") as file, stream, stream._response, contextlib.suppress(OSError):  # the engine may go away
                for _, data in frames_iter(stream, tty=False):
                    file.write(data[:room])
                    file.flush()
                    room -= len(data[:room])

        self._follower = threading.Thread(target=copy, daemon=True, name="sandbox-log")
        self._follower.start()

    def control(self) -> socket.socket:
        if self._control is None:
            until = time.monotonic() + START_SECONDS
            while not select.select([self._listener], [], [], RETRY_SECONDS)[0]:
                if not self._follower.is_alive() or time.monotonic() > until:
                    raise ConnectionError("the container ended before its worker came up")
            self._control = self._listener.accept()[0]
            self._listener.close()
            remove(self._place)
        return self._control

    def alive(self) -> bool:
        if self._control is None:
            return self._follower.is_alive()
        try:
            return self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        for end in (self._control, self._listener):
            if end is not None:
                end.close()
        remove(self._place)
        with contextlib.suppress(Exception):  # without its control socket it ends, and without an engine nobody can do more
            engine.remove(self._container)
        self._follower.join(END_SECONDS)


def _listen(area: Path) -> socket.socket:
    """A socket at `area`/control/socket, through a short name: addresses of sockets have at most 108 bytes."""
    folder = area / "control"
    remove(folder)
    folder.mkdir(mode=0o711)
    descriptor = os.open(folder, os.O_PATH)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/socket")
        os.chmod(folder / "socket", 0o666)  # the folders above it are ours alone
        listener.listen(1)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(descriptor)
    return listener


def _isolation() -> dict[str, Any]:
    """What separates every container, whatever it runs."""
    memory = int(min(MEMORY_SHARE * psutil.virtual_memory().total, MEMORY_JOBS * Limits().memory_bytes))
    return {
        "user": f"{user()}:{os.getgid() or NOBODY}",
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "ipc_mode": "private",
        "hostname": "sandbox",
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": PROCESSES,
        "nano_cpus": (os.cpu_count() or 1) * 10**9,
        "cpu_shares": 512,
        "oom_score_adj": 500,
        "shm_size": SHARED_MEMORY,
        "ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "log_config": {"Type": "none"},
        "auto_remove": True,
        "detach": True,
    }


def devices(image: engine.Image) -> dict[str, Any]:
    """The accelerators: where the host's libraries are mounted their devices are enough, else the engine has to bring the libraries too."""
    if image.python == engine.HOST:
        return {"devices": [f"{path}:{path}:rw" for path in gpus()]}
    from docker.types import DeviceRequest  # type: ignore[import-untyped]

    return {"device_requests": [DeviceRequest(count=-1, capabilities=[["gpu"]])]}


def _program(image: engine.Image, side: str) -> dict[str, Any]:
    import sys

    executable = sys.executable if image.python == engine.HOST else image.python
    return {
        "entrypoint": [executable],
        "command": ["-B", "-P", "-m", "migrate_agent.sandbox.worker", side, f"{CONTROL}/socket"],
    }


def _inside(image: engine.Image, environment: Mapping[str, str]) -> dict[str, str]:
    if image.python == engine.HOST:
        return dict(environment)
    passed = {name: value for name, value in environment.items() if name not in ("PATH", "LD_LIBRARY_PATH", "PYTHONUSERBASE")}
    return {**passed, "PYTHONPATH": INSIDE}


def _tmpfs(image: engine.Image, side: str) -> dict[str, str]:
    """Empty and read-only: /tmp and /root, below which something may be mounted, and packages that this side may not see."""
    hidden = packages(REFUSED[side]) if image.python == engine.HOST else []
    return dict.fromkeys([*hidden, "/root", "/tmp"], f"ro,nosuid,nodev,size={SMALL},mode=755")


def _volumes(image: engine.Image, own: Path, code: Mapping[str, str], area: Path) -> dict[str, dict[str, str]]:
    """Source and target of what is mounted, as lists of `source:target:mode` would say it. `own` is the one place to write to."""
    if image.python == engine.HOST:
        paths = [path for path in SYSTEM if not os.path.islink(path)]
        shown = {path: path for path in (*paths, *python()) if os.path.exists(path)}
    else:
        shown = {str(OURS / part): f"{INSIDE}/migrate_agent/{part}" for part in PARTS}
    mounts = {**shown, str(area / "control"): CONTROL, **code}
    volumes = {source: {"bind": target, "mode": "ro"} for source, target in mounts.items()}
    return {**volumes, str(own): {"bind": str(own), "mode": "rw"}}
