"""The Docker engine: whether it answers, the images of ours that it holds, building them, and the containers that were left behind."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import tarfile
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.sandbox.base import SandboxError, SandboxUnavailable
from migrate_agent.tools import extras

REPOSITORY = "migrate-agent-sandbox"
LABEL = "migrate-agent.sandbox"
"""On each container: the folder of the sandbox that started it, whose lock says whether that still runs."""
PYTHON_LABEL = "migrate-agent.python"
HOST = "host"
DEFAULT_SOCKET = "/var/run/docker.sock"
ENGINE_SECONDS = 60
IMAGE_FOLDER = Path(__file__).parent / "image"
EMPTY = "scratch"
"""The base image that is made here, of nothing but empty folders: needs no registry."""
SUPPLIED = ("numpy", "scipy", "psutil", "safetensors", "einops", "torch", "jax", "jaxlib", "flax", "optax")
FOLDERS = ("dev", "etc", "home", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var")
LINKS = ("bin", "sbin", "lib", "lib32", "lib64")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


class Image(NamedTuple):
    """An image of ours: its name, and the Python in it (`host`: the host's, mounted)."""

    name: str
    python: str


def connect() -> Any:
    """A client of the engine that the environment names (`DOCKER_HOST`, else the usual socket). Raises `SandboxUnavailable`."""
    if not extras.installed("docker"):
        raise SandboxUnavailable(extras.advice("docker", "--sandbox docker"))
    address = os.environ.get("DOCKER_HOST", f"unix://{DEFAULT_SOCKET}")
    if not address.startswith("unix://"):
        raise SandboxUnavailable(f"the Docker engine at {address} is not on this machine, so it cannot see the folders of jobs")
    if not os.path.exists(address.removeprefix("unix://")):
        raise SandboxUnavailable(f"no Docker engine at {address}: start one, or set DOCKER_HOST")
    import docker  # type: ignore[import-untyped]  # slow to import: not before it is clear that it is of use

    try:
        client = docker.DockerClient(base_url=address, timeout=ENGINE_SECONDS, version="auto")
    except docker.errors.DockerException as error:
        raise SandboxUnavailable(f"the Docker engine at {address} does not answer: {one_line(error)}") from error
    return client


def one_line(error: Exception) -> str:
    """What the engine or the client said."""
    return " ".join(str(getattr(error, "explanation", "") or error).split())


def unsuitable(client: Any) -> str:
    """Why this engine cannot serve, or ""."""
    about = client.info()
    options = " ".join(about.get("SecurityOptions") or ())
    if about.get("OSType") != "linux":
        return "its containers are not Linux"
    for word in ("rootless", "userns"):
        if f"name={word}" in options:
            return f"it maps users ({word}), so that files of jobs would belong to somebody else"
    return "" if "seccomp" in options else "it has no seccomp"


def image(client: Any, side: str) -> Image | None:
    """The image for this side: one with its own packages where it was built, else the one that takes the host's."""
    from docker.errors import ImageNotFound  # type: ignore[import-untyped]

    for tag in (side, "base"):
        with contextlib.suppress(ImageNotFound):
            tagged = client.images.get(f"{REPOSITORY}:{tag}")
            return Image(tagged.id, (tagged.labels or {}).get(PYTHON_LABEL, HOST))
    return None


def build(client: Any, base: str, targets: tuple[str, ...], arguments: Mapping[str, str], say: Callable[[str], None]) -> list[str]:
    """Build these targets of the Dockerfile on this base image (`scratch`: made here). Gives the names. Raises `SandboxError`."""
    if base == EMPTY:
        if targets != ("base",):
            raise SandboxError("an image with packages needs a base image with Python or Debian's package tools: name one with --base")
        base = _import_empty(client)
    return [_build(client, target, {**arguments, "BASE": base}, say) for target in targets]


def _build(client: Any, target: str, arguments: Mapping[str, str], say: Callable[[str], None]) -> str:
    import docker

    name = f"{REPOSITORY}:{target}"
    stage, side = ("base", {}) if target == "base" else ("packages", {"SIDE": target})
    options = {"fileobj": _context(), "custom_context": True, "tag": name, "rm": True, "forcerm": True, "network_mode": "host"}
    try:
        _, log = client.images.build(**options, target=stage, buildargs={**arguments, **side})
    except (docker.errors.BuildError, docker.errors.APIError) as error:
        raise SandboxError(f"cannot build {name}: {_last_of(error)}") from error
    for entry in log:
        if text := str(entry.get("stream", "")).strip():
            say(text)
    return name


def _last_of(error: Any) -> str:
    lines = [str(entry.get("stream") or entry.get("error") or "").strip() for entry in getattr(error, "build_log", ())]
    messages = [line for line in lines if line.startswith(("ERROR", "E: "))] or [line for line in lines if line]
    return " ".join(messages[-2:] or [one_line(error)])


def _import_empty(client: Any) -> str:
    """An image of empty folders, with the links of this host's root (`/bin` → `usr/bin`)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in FOLDERS:
            _add(archive, name, tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755)
        for name in LINKS:
            path = Path("/", name)
            if path.is_symlink():
                _add(archive, name, tarfile.SYMTYPE, link=os.readlink(path))
            elif path.exists():
                _add(archive, name, tarfile.DIRTYPE)
        for name, text in ACCOUNTS.items():
            _add(archive, name, tarfile.REGTYPE, content=text.encode(), mode=0o644)
    name = f"{REPOSITORY}-empty"
    client.api.import_image_from_data(data.getvalue(), repository=name, tag="latest")
    return f"{name}:latest"


def _certificates() -> bytes:
    """Whom this host trusts, which matters behind a company's proxy."""
    import certifi

    named = (os.environ.get(name, "") for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"))
    return Path(next(filter(None, named), certifi.where())).read_bytes()


def _root() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        _add(archive, "root", tarfile.DIRTYPE)
    return data.getvalue()


def _add(archive: tarfile.TarFile, name: str, kind: bytes, *, link: str = "", content: bytes = b"", mode: int = 0o755) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size, entry.mode = kind, link, len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _context() -> io.BytesIO:
    """The image's folder, and the versions that this environment has, so that host and image agree."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(IMAGE_FOLDER.iterdir()):
            archive.add(path, path.name)
        _add(archive, "certificates.pem", tarfile.REGTYPE, content=_certificates(), mode=0o644)
        _add(archive, "root.tar", tarfile.REGTYPE, content=_root())
        _add(archive, "constraints.txt", tarfile.REGTYPE, content="".join(f"{line}\n" for line in _constraints()).encode())
    data.seek(0)
    return data


def _constraints() -> list[str]:
    pins = []
    for name in SUPPLIED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            pins.append(f"{name}=={re.sub(r'[+].*', '', metadata.version(name))}")
    return pins


def orphans(client: Any) -> list[Any]:
    """The containers whose sandbox has ended: nobody holds the lock of its folder."""
    return [
        container
        for container in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
        if not _held(Path(container.labels[LABEL]) / "lock")
    ]


def _held(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # somebody else's: not ours to judge
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def prune(client: Any) -> list[str]:
    """Remove the containers of sandboxes that have ended. Gives their names."""
    containers = orphans(client)
    for container in containers:
        remove(container)
    return [str(container.name) for container in containers]


def remove(container: Any) -> None:
    """Remove a container with whatever runs in it; none where there is none any more. Raises the client's errors otherwise."""
    from docker.errors import APIError, NotFound

    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # it is being removed already
            raise
