"""Files of a repository for parameters that take paths."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.objects.own_files import NO_PATH, file_texts, refuse_descriptors
from migrate_agent.tools.record.infer import infer

FILES = {
    "config/net.cfg": 300,
    "config/net-tiny.cfg": 100,
    "config/words.txt": 50,
    "config/run.yaml": 20,
    "image.jpg": 10,
    ".hidden/a.cfg": 5,
}


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("config_path", [], ["config/net-tiny.cfg", "config/net.cfg", "config/run.yaml", "config/words.txt"]),
        ("vocab_file", [], ["config/words.txt", "config/run.yaml", "config/net-tiny.cfg", "config/net.cfg"]),
        ("source", [{"model": "config/net.cfg"}], ["config/net-tiny.cfg", "config/net.cfg", "config/run.yaml", "config/words.txt"]),
        ("model_path", [{"model": "./config/net.cfg"}], ["config/net.cfg", "config/net-tiny.cfg", "config/run.yaml", "config/words.txt"]),
    ],
)
def test_files_that_fit_come_first(name: str, settings: list[dict[str, str]], expected: list[str], tmp_path: Path) -> None:
    for path, size in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("a" * size)
    assert list(file_texts(tmp_path, name, settings)) == list(map(repr, expected))


@pytest.mark.parametrize(
    ("error", "is_path"),
    [
        ("TypeError: expected str, bytes or os.PathLike object, not NoneType", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: ''", True),
        ("ValueError: the configuration 64 does not exist.", True),
        ("TypeError: 'Linear' object is not subscriptable", False),
    ],
)
def test_errors_that_ask_for_a_file(error: str, is_path: bool) -> None:
    assert bool(NO_PATH.search(error)) is is_path


def test_numbers_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", open)
    refuse_descriptors()
    with pytest.raises(TypeError, match=r"os\.PathLike"):
        open(1)  # noqa: SIM115
    with open(__file__, encoding="utf-8") as file:
        assert file.readline()


def test_a_class_is_given_a_file_of_the_repository(repository: object, sandbox: Sandbox, tmp_path: Path) -> None:
    source = (
        "import json\nfrom torch import nn\n\ndef read(path):\n    return json.load(open(path))['widths']\n\n"
        "class Net(nn.Module):\n    def __init__(self, spec):\n        super().__init__()\n        first, *_, last = read(spec)\n"
        "        self.fc = nn.Linear(first, last)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    )
    files = {"net.py": source, "specs/wide.json": '{"widths": [64, 32, 128, 64]}', "specs/small.json": '{"widths": [8, 4]}'}
    inventory = repository(files)  # type: ignore[operator]
    guess = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path)
    assert guess.error == "" and guess.example is not None
    assert guess.example.init == "'specs/small.json'"
