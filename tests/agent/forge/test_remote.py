"""Which forge a remote is, and whose token goes there."""

from __future__ import annotations

import pytest

from migrate_agent.agent.config.errors import MissingError, UsageError
from migrate_agent.agent.forge.remote import Address, address, find_token

ACTIONS = {"GITHUB_SERVER_URL": "https://git.acme.example", "GITHUB_API_URL": "https://git.acme.example/api/v3"}
PIPELINE = {"CI_SERVER_URL": "https://code.acme.example:8443", "CI_API_V4_URL": "https://code.acme.example:8443/api/v4"}


@pytest.mark.parametrize(
    ("url", "environment", "given", "expected"),
    [
        ("https://github.com/acme/vision.git", {}, {}, Address("github", "github.com", "https://api.github.com", "acme/vision")),
        ("git@github.com:acme/vision.git", {}, {}, Address("github", "github.com", "https://api.github.com", "acme/vision")),
        ("ssh://git@ssh.github.com:443/acme/vision", {}, {}, Address("github", "ssh.github.com", "https://api.github.com", "acme/vision")),
        ("https://user:secret@github.com/acme/vision", {}, {}, Address("github", "github.com", "https://api.github.com", "acme/vision")),
        ("https://acme.ghe.com/a/b", {}, {}, Address("github", "acme.ghe.com", "https://api.acme.ghe.com", "a/b")),
        ("git@git.acme.example:a/b.git", ACTIONS, {}, Address("github", "git.acme.example", "https://git.acme.example/api/v3", "a/b")),
        ("https://x.example/a/b", {}, {"kind": "github"}, Address("github", "x.example", "https://x.example/api/v3", "a/b")),
        ("https://gitlab.com/group/sub/p.git", {}, {}, Address("gitlab", "gitlab.com", "https://gitlab.com/api/v4", "group/sub/p")),
        ("https://code.acme.example:8443/g/p", PIPELINE, {}, Address("gitlab", "code.acme.example:8443", "https://code.acme.example:8443/api/v4", "g/p")),
        ("/srv/git/p.git", {}, {"kind": "github", "api": "http://127.0.0.1:9", "project": "a/b"}, Address("github", "127.0.0.1:9", "http://127.0.0.1:9", "a/b")),
    ],
)  # fmt: skip
def test_address(url: str, environment: dict[str, str], given: dict[str, str], expected: Address) -> None:
    assert address(url, environment, **given) == expected


@pytest.mark.parametrize(
    ("url", "given", "says"),
    [
        ("https://git.example/a/b", {}, "may be any forge: add --forge"),
        ("https://gitlab.evil.example/a/b", {}, "may be any forge"),
        ("/srv/git/p.git", {"kind": "github"}, "--base-url"),
        ("/srv/git/p.git", {"kind": "github", "api": "https://x.example"}, "--project"),
        ("https://github.com/acme", {}, "OWNER/NAME"),
        ("https://github.com/a/b/c", {}, "OWNER/NAME"),
        ("http://git.example/a/b", {"kind": "github"}, "not encrypted"),
        ("https://github.com/a/b", {"api": "https://me:pass@x.example"}, "no password"),
        ("https://github.com/a/b", {"api": "ftp://x.example"}, "no address"),
        ("https://github.com/a/b", {"kind": "gitea"}, "--forge gitea"),
    ],
)
def test_address_is_refused(url: str, given: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        address(url, {}, **given)


def test_a_job_of_one_server_gives_no_address_of_another() -> None:
    assert address("https://github.com/a/b", ACTIONS).api == "https://api.github.com"


def test_token_is_the_environments_else_what_gh_knows() -> None:
    assert find_token("github", "github.com", {"GITHUB_TOKEN": " t \n"}) == "t"
    assert find_token("github", "github.com", {}, lambda host: f"of {host}") == "of github.com"
    assert find_token("gitlab", "gitlab.com", {"GITLAB_TOKEN": "g", "GITHUB_TOKEN": "t"}) == "g"


@pytest.mark.parametrize(("kind", "says"), [("github", "gh auth login"), ("gitlab", "GITLAB_TOKEN")])
def test_no_token(kind: str, says: str) -> None:
    with pytest.raises(MissingError, match=says):
        find_token(kind, "host", {}, lambda host: "")  # type: ignore[arg-type]
