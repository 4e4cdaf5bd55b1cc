"""Which forge a git remote is, where its interface lies, and whose token opens it.

A token is only ever sent to the host that it is for: `github.com`, `gitlab.com`, the host that the environment of a CI job names as its own
server, or the one that the user names on the command line. Nothing in the repository's files can change that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from migrate_agent.agent.config.errors import MissingError, UsageError

Kind = Literal["github", "gitlab"]
KINDS: tuple[Kind, ...] = ("github", "gitlab")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>[^/:]+):(?P<path>(?!/).+)$")


class Located(NamedTuple):
    """The parts of a remote. `host` has its port where it is reached over HTTP."""

    scheme: str
    host: str
    path: str


@dataclass(frozen=True)
class Address:
    """A project on a forge. `api` is where its interface lies; `host` is the server's name."""

    kind: Kind
    host: str
    api: str
    project: str


class Server(NamedTuple):
    """A server that the environment names: variables of its web address and of its interface."""

    kind: Kind
    web: str
    api: str


SERVERS = (Server("github", "GITHUB_SERVER_URL", "GITHUB_API_URL"), Server("gitlab", "CI_SERVER_URL", "CI_API_V4_URL"))
"""As GitHub Actions and GitLab CI set them."""

TOKENS: Mapping[Kind, tuple[str, ...]] = {"github": ("GITHUB_TOKEN", "GH_TOKEN"), "gitlab": ("GITLAB_TOKEN",)}


def located(url: str) -> Located:
    """The parts of a remote's address: HTTP(S), ssh in both spellings, or a file. What stands before an `@` is left out."""
    if "://" not in url:
        match = _SCP.match(url)
        return Located("ssh", match["host"].lower(), _project(match["path"])) if match else Located("file", "", url)
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port and parts.scheme in ("http", "https") else ""
    return Located(parts.scheme, f"{name}{port}", parts.path if parts.scheme == "file" else _project(parts.path))


def _project(path: str) -> str:
    return path.strip("/").removesuffix(".git")


def address(url: str, environment: Mapping[str, str], kind: str = "", api: str = "", project: str = "") -> Address:
    """The project behind a remote. `kind`, `api` and `project` are what the user said, "" where nothing.

    Raises `UsageError` where it cannot be known which forge this is, or the token would go over the wire in the clear.
    """
    location = located(url)
    if kind and kind not in KINDS:
        raise UsageError(f"--forge {kind}: one of {', '.join(KINDS)}")
    said = next((name for name in KINDS if name == kind), None)
    server = _named_server(location.host, environment)
    forge = said or (server.kind if server else _public(location.host))
    if forge is None:
        host = location.host or "a folder"
        raise UsageError(f"the remote is {host}, which may be any forge: add --forge github or --forge gitlab, and --base-url for a folder")
    base = api or (environment[server.api] if server and server.kind == forge else _interface(forge, location))
    path = project or location.path
    if location.scheme == "file" and not project:
        raise UsageError("the remote is a folder: say with --project OWNER/NAME which project of the forge it is")
    if path.count("/") < 1 or (forge == "github" and path.count("/") != 1):
        raise UsageError(f"{path or 'the remote'} names no project of the form OWNER/NAME: say it with --project")
    _encrypted(base)
    return Address(forge, location.host or urlsplit(base).netloc, base.rstrip("/"), path)


def _named_server(host: str, environment: Mapping[str, str]) -> Server | None:
    for server in SERVERS:
        web = environment.get(server.web, "")
        if environment.get(server.api) and host and host in (urlsplit(web).netloc.lower(), (urlsplit(web).hostname or "").lower()):
            return server
    return None


def _public(host: str) -> Kind | None:
    if host in ("github.com", "ssh.github.com") or host.endswith(".ghe.com"):
        return "github"
    return "gitlab" if host in ("gitlab.com", "altssh.gitlab.com") else None


def _interface(kind: Kind, location: Located) -> str:
    host = location.host.removeprefix("ssh.").removeprefix("altssh.")
    if not host:
        raise UsageError("the remote is a folder: say with --base-url where the forge's interface lies")
    scheme = "http" if location.scheme == "http" else "https"
    if kind == "gitlab":
        return f"{scheme}://{host}/api/v4"
    return f"https://api.{host}" if host == "github.com" or host.endswith(".ghe.com") else f"{scheme}://{host}/api/v3"


def _encrypted(api: str) -> None:
    parts = urlsplit(api)
    if parts.username or parts.password:
        raise UsageError("the forge's address must hold no password: give the token in GITHUB_TOKEN or GITLAB_TOKEN")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{api} is no address of a forge's interface: it begins with https://")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise UsageError(f"{api} is not encrypted, and the token would be sent to it: use https")


def find_token(kind: Kind, host: str, environment: Mapping[str, str], ask: Callable[[str], str] | None = None) -> str:
    """The token: from the environment, else (GitHub) what `gh auth token` gives. Raises `MissingError` with what to do."""
    for name in TOKENS[kind]:
        if environment.get(name, "").strip():
            return environment[name].strip()
    if kind == "github" and (token := (ask or gh_token)(host)):
        return token
    advice = "set GITHUB_TOKEN, or log in with `gh auth login`" if kind == "github" else "set GITLAB_TOKEN to a token with the scope api"
    raise MissingError(f"no token for {host}: {advice}")


def gh_token(host: str) -> str:
    """What GitHub's own command line knows, "" where it is not there or knows none."""
    command = shutil.which("gh")
    if command is None:
        return ""
    name = host.removeprefix("ssh.").partition(":")[0]
    try:
        process = subprocess.run([command, "auth", "token", "--hostname", name], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
