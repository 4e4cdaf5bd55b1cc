"""The git side of the forge: look at the remote's branches, and push ours. The token goes to git through its environment, and to one host only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.forge.base import ForgeError
from migrate_agent.agent.forge.remote import Kind, located
from migrate_agent.agent.pr.build import Remote
from migrate_agent.agent.pr.stack import PREFIX
from migrate_agent.agent.repository.git import GitFailed, Repository

TOKEN, USER = "MIGRATE_AGENT_FORGE_TOKEN", "MIGRATE_AGENT_FORGE_USER"
USERS: Mapping[Kind, str] = {"github": "x-access-token", "gitlab": "oauth2"}
_HELPER = f"""!f() {{ test "$1" = get && printf 'username=%s\\npassword=%s\\n' "${USER}" "${TOKEN}"; }}; f"""


class Refusal(NamedTuple):
    """What git or the server says when it does not take a push or give a fetch, and what that means."""

    says: re.Pattern[str]
    means: str


def _row(says: str, means: str) -> Refusal:
    return Refusal(re.compile(says, re.IGNORECASE), means)


REFUSALS = (
    _row(r"stale info|fetch first|non-fast-forward|cannot lock ref", "the remote branch moved since it was looked at: run the command again"),
    _row(r"GH013|GH006|protected branch|protected from|not allowed to (force )?push", "the server protects branches of this name"),
    _row(r"GH001|file size limit|larger than|exceeds|HTTP 413|too large", "the server refuses it for its size"),
    _row(r"GH009|GH008|secret", "the server sees a secret in it"),
    _row(r"hook declined|hook rejected", "a hook of the server refuses it"),
    _row(r"authentication failed|could not read (username|password)|HTTP (Basic|401)|error: 401|permission denied \(", "not let in: check the token (or the ssh key)"),
    _row(r"error: 403|permission to .* denied|write access .* not granted|access denied|insufficient", "the token may not push: it needs write access to the contents"),
    _row(r"not found|error: 404|does not appear to be a git repository|could not be found", "not there, or hidden from this token: check --remote"),
    _row(r"certificate|SSL", "its certificate is not trusted: http.sslCAInfo names an authority"),
    _row(r"could not resolve|unable to access|connect|hung up|RPC failed|early EOF|timed out", "the network failed: run the command again, it goes on from there"),
)  # fmt: skip


@dataclass(frozen=True)
class GitRemote:
    """A remote of the repository. `host` is the forge's, the only one that the token is given to."""

    repository: Repository
    name: str
    host: str = ""
    user: str = ""
    token: str = field(default="", repr=False)

    def fetch(self, target: str) -> Remote:
        """The target branch and our branches, fetched under names of our own: no branch or remote branch of the user moves."""
        ours = f"refs/migrate-agent/{self.name}"
        specs = (f"+refs/heads/{PREFIX}*:{ours}/pr/*", f"+refs/heads/{target}:{ours}/target")
        self._git(f"looking at {self.name}", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--prune", "--refmap=",
                  "--no-recurse-submodules", self.name, *specs)  # fmt: skip
        lines = self.repository.run("for-each-ref", "--format=%(refname) %(objectname)", f"{ours}/pr/").splitlines()
        heads = {f"{PREFIX}{name.removeprefix(f'{ours}/pr/')}": sha for name, _, sha in (line.rpartition(" ") for line in lines)}
        return Remote(target, self.repository.run("rev-parse", f"{ours}/target^{{commit}}"), heads)

    def push(self, branch: str, commit: str, expected: str) -> None:
        """Put `commit` on `branch`, if that is at `expected` ("": not there). Raises `ForgeError` with one line."""
        if not branch.startswith(PREFIX):
            raise AssertionError(f"{branch} is not ours to push")
        ref = f"refs/heads/{branch}"
        self._git(f"pushing {branch}", "push", "--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
                  f"--force-with-lease={ref}:{expected}", self.name, f"{commit}:{ref}")  # fmt: skip

    def _git(self, operation: str, command: str, *arguments: str) -> str:
        os.environ.pop("GIT_SSL_NO_VERIFY", None)  # git asks only whether it is there
        env = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "LC_ALL": "C", **({TOKEN: self.token, USER: self.user} if self.token else {})}
        try:
            return self.repository.run(*self._options(), command, *arguments, env=env)
        except GitFailed as error:
            raise ForgeError(f"{operation}: {explained(error.stderr)}") from None

    def _options(self) -> tuple[str, ...]:
        """The user's own helpers neither give nor keep anything: the token would end in their stores."""
        plain = ("-c", "http.sslVerify=true", "-c", "protocol.ext.allow=never")
        if not self.token or not self.host:
            return plain
        scheme = "http" if self.host.partition(":")[0] in ("127.0.0.1", "localhost") else "https"
        return (*plain, "-c", "credential.helper=", "-c", f"credential.{scheme}://{self.host}.helper={_HELPER}")


def explained(stderr: str) -> str:
    """What a failed push or fetch means, with the server's own first words."""
    text = stderr.replace("stderr: ", "").strip(" \n'")
    row = next((row for row in REFUSALS if row.says.search(text)), None)
    lines = [line.strip() for line in text.splitlines() if line.strip(" \n-=*")]
    remote = [re.sub(r"^remote:\s*(error:\s*)?", "", line) for line in lines if line.startswith("remote:")]
    said = next((line for line in remote if line), "") or next(
        (line for line in lines if re.match(r"fatal|error|!", line)), lines[-1] if lines else ""
    )
    clean = re.sub(r"://[^/@\s]+@", "://", said)
    return f"{row.means} ({clean})" if row else clean or "git gave no reason"


def remote_url(repository: Repository, name: str) -> str:
    """Where a remote pushes to. Raises `UsageError` where there is no such remote."""
    url = repository.answer("remote", "get-url", "--push", name)
    if not url:
        remotes = ", ".join(repository.answer("remote").split())
        raise UsageError(
            f"there is no remote {name}: " + (f"give --remote, one of {remotes}" if remotes else "add one with `git remote add origin URL`")
        )
    return url


def check_remote(repository: Repository, url: str) -> None:
    """Raises `UsageError` where requests cannot be made over this remote: a shallow clone, or certificates that are not checked."""
    if repository.answer("rev-parse", "--is-shallow-repository") == "true":
        raise UsageError("this is a shallow clone, which lacks the history: run `git fetch --unshallow` first")
    location = located(url)
    if location.scheme == "https" and repository.answer("config", "--get-urlmatch", "http.sslVerify", f"https://{location.host}") in (
        "false",
        "0",
        "no",
    ):
        raise UsageError(f"git is told not to check the certificate of {location.host} (http.sslVerify): remove that first")
