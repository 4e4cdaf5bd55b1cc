"""A server whose certificate nobody vouches for gets no token: not from the clients, not from git."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from migrate_agent.agent.forge.base import ForgeError
from migrate_agent.agent.forge.connect import connect
from migrate_agent.agent.forge.faults import Caller
from migrate_agent.agent.forge.remote import Address
from migrate_agent.agent.pr.push import USERS, GitRemote
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.tests.agent.conftest import CANARY
from migrate_agent.tests.agent.repositories import git, repository


class Asked(BaseHTTPRequestHandler):
    """Notes that a request came through."""

    came: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Any request at all is too much."""
        self.came.append(self.path)
        self.send_error(500)


def signed_by_itself(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(datetime.datetime(2020, 1, 1)).not_valid_after(datetime.datetime(2120, 1, 1))
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = made.add_extension(place, critical=False).sign(key, hashes.SHA256())
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(*plain))
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """A server over TLS."""
    Asked.came.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*signed_by_itself(tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_client_sends_nothing(kind: Literal["github", "gitlab"], host: str) -> None:
    forge = connect(Address(kind, host, f"https://{host}/api/v4", "acme/vision"), CANARY)
    forge._caller = Caller(host, lambda seconds: None)  # type: ignore[attr-defined]  # do not wait between tries
    with pytest.raises(ForgeError, match="certificate is not trusted"):
        forge.project()
    forge.close()
    assert Asked.came == []


def test_git_sends_nothing(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo", {"a.py": "1\n"})
    git(root, "remote", "add", "origin", f"https://{host}/acme/vision.git")
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")
    git(root, "config", "http.sslVerify", "false")
    remote = GitRemote(open_repository(root), "origin", host, USERS["github"], CANARY)
    with pytest.raises(ForgeError, match="certificate is not trusted"):
        remote.push("migrate-agent/pr/a.py/A", "HEAD", "")
    assert Asked.came == []
