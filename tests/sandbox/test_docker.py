"""What is particular to the Docker backend: how containers are made, what becomes of those left behind, and the commands for it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent import cli
from migrate_agent.sandbox import Sandbox, SandboxError, SandboxUnavailable, engine, missing, open_sandbox
from migrate_agent.sandbox.docker import devices
from migrate_agent.sandbox.staging import Base
from migrate_agent.tests.sandbox.support import REASONS, containers, job
from migrate_agent.tools.types import Job

pytestmark = pytest.mark.skipif(bool(REASONS["docker"]), reason=f"docker: {REASONS['docker']}")
CANARY = "canary-of-the-docker-tests"


@pytest.fixture
def client() -> Iterator[Any]:
    with contextlib.closing(engine.connect()) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def sandbox(folder: Path) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARY)
        opened = open_sandbox("docker", folder=folder)
        yield opened
        opened.close()
    assert containers(folder) == []


def test_how_a_container_is_made(sandbox: Sandbox, client: Any, folder: Path) -> None:
    assert sandbox.run(job("echo")).status == "ok"
    listed = client.containers.list(filters={"label": engine.LABEL})
    about = next(each.attrs for each in listed if each.labels[engine.LABEL].startswith(str(folder)))
    host, configuration = about["HostConfig"], about["Config"]
    assert CANARY not in json.dumps(about)
    assert configuration["User"].split(":")[0] not in ("", "0", "root")
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]) == ("none", True, ["ALL"], False)
    assert host["CapAdd"] in (None, [])
    assert host["SecurityOpt"] == ["no-new-privileges:true"], "and so the engine's own seccomp filter"
    assert host["AutoRemove"] and host["PidsLimit"] > 0 and host["Memory"] == host["MemorySwap"] > 0 and host["NanoCpus"] > 0
    writable = [mount["Destination"] for mount in about["Mounts"] if mount["RW"]]
    assert len(writable) == 1 and Path(writable[0]).is_relative_to(folder)
    assert not any("docker" in mount["Source"] and mount["Source"].endswith(".sock") for mount in about["Mounts"])


def test_jobs_see_changes_of_the_code(sandbox: Sandbox, tmp_path: Path) -> None:
    """A candidate is written anew between jobs; what only its owner may read is shown all the same."""
    root = tmp_path / "code"
    root.mkdir(mode=0o700)
    for text in ("first", "second"):
        (root / "answers.py").write_text(f"def f(arguments, inputs, output):\n    return {text!r}\n", encoding="utf-8")
        (root / "answers.py").chmod(0o600)
        assert sandbox.run(Job("candidate", "answers:f", root)).result == text


def test_no_mount_stays_on_the_host(sandbox: Sandbox, folder: Path) -> None:
    assert sandbox.run(job("echo")).status == "ok"
    assert str(folder) not in Path("/proc/self/mounts").read_text(encoding="utf-8")


def test_prune_takes_what_is_left_and_leaves_what_is_in_use(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = engine.image(client, "candidate")
    assert image is not None
    used, gone = Base(tmp_path), tmp_path / "gone"
    made = {place: client.containers.create(image.name, ["none"], labels={engine.LABEL: str(place)}) for place in (used.path, gone)}
    assert made[gone].id in {each.id for each in engine.orphans(client)}
    assert cli.guarded(["sandbox", "prune", "--folder", str(tmp_path)]) == 0
    assert f"removed {made[gone].name}" in capsys.readouterr().out
    left = {each.id for each in client.containers.list(all=True, filters={"label": engine.LABEL}, ignore_removed=True)}
    engine.remove(made[used.path])
    assert made[used.path].id in left and made[gone].id not in left
    used.close()


def test_auto_takes_docker(tmp_path: Path) -> None:
    said: list[str] = []
    sandbox = open_sandbox("auto", folder=tmp_path, warn=said.append)
    sandbox.close()
    assert (sandbox.name, said) == ("docker", [])


def test_check_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.guarded(["sandbox", "check"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["docker", "bubblewrap", "process", "auto"]


def test_build_with_packages_needs_a_base(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.guarded(["sandbox", "build", "--packages"]) == 3
    assert "--base" in capsys.readouterr().err


def test_build_that_fails_says_why(client: Any) -> None:
    with pytest.raises(SandboxError, match="cannot build"):
        engine.build(client, "migrate-agent-no-such-image:none", ("base",), {}, lambda line: None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=default"], "OSType": "linux"}, ""),
        ({"SecurityOptions": ["name=apparmor"], "OSType": "linux"}, "no seccomp"),
        ({"SecurityOptions": ["name=seccomp", "name=rootless"], "OSType": "linux"}, "rootless"),
        ({"SecurityOptions": ["name=seccomp", "name=userns"], "OSType": "linux"}, "userns"),
        ({"SecurityOptions": ["name=seccomp"], "OSType": "windows"}, "not Linux"),
    ],
)
def test_engines_that_do_not_fit_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str) -> None:
    monkeypatch.setattr(type(client), "info", lambda self: change)
    found = engine.unsuitable(client)
    assert (reason in found) and bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("address", "reason"),
    [("tcp://127.0.0.1:1", "not on this machine"), ("unix:///nonexistent", "no Docker engine at unix:///nonexistent")],
)
def test_no_engine(monkeypatch: pytest.MonkeyPatch, address: str, reason: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    assert reason in missing("docker")
    with pytest.raises(SandboxUnavailable, match=reason):
        open_sandbox("docker")


def test_gpus_are_passed_through_where_asked(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine of ours has one: a harmless device stands in for it, and is there inside."""
    monkeypatch.setattr("migrate_agent.sandbox.view.GPUS", ("/dev/full",))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    sandbox = open_sandbox("docker", folder=tmp_path, device="gpu")
    seen = sandbox.run(job("surroundings")).result
    about = next(each.attrs for each in client.containers.list(filters={"label": engine.LABEL}) if str(tmp_path) in str(each.labels))
    sandbox.close()
    assert [each["PathOnHost"] for each in about["HostConfig"]["Devices"]] == ["/dev/full"]
    assert (seen["environment"]["CUDA_VISIBLE_DEVICES"], seen["environment"]["JAX_PLATFORMS"]) == ("3", "cuda,cpu")
    assert containers(tmp_path) == []


@pytest.mark.parametrize(
    ("python", "options"), [(engine.HOST, {"devices": ["/dev/full:/dev/full:rw"]}), ("/opt/venv/bin/python", {"device_requests": [-1]})]
)
def test_how_gpus_are_asked_for(monkeypatch: pytest.MonkeyPatch, python: str, options: dict[str, Any]) -> None:
    """With the host's libraries, the devices; an image with its own needs the engine to bring the driver's."""
    monkeypatch.setattr("migrate_agent.sandbox.view.GPUS", ("/dev/full",))
    found = devices(engine.Image("image", python))
    assert all(request.capabilities == [["gpu"]] for request in found.get("device_requests", ()))
    assert {key: [each if isinstance(each, str) else each.count for each in value] for key, value in found.items()} == options
