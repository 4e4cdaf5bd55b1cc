"""Units of scripts are run in a copy of the working tree whose main blocks are lifted; the working tree stays as it is."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.agent.repository.git import open_repository
from migrate_agent.agent.repository.lifted_view import lifted_view
from migrate_agent.agent.runs.recordings import store_recording, stored_recording
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.scan.main_globals import lifted
from migrate_agent.tools.types import Example, Recording

SCRIPT = (
    module("Net").replace("nn.Linear(width, width)", "nn.Linear(size, size)") + '\n\nif __name__ == "__main__":\n    size = 3\n    Net(1)\n'
)


def test_a_copy_where_a_main_block_is_in_the_way(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"net.py": SCRIPT, "data/rows.csv": "1,2\n", ".gitignore": "big/\n"})
    (root / "big").mkdir()
    (root / "big/rows.bin").write_bytes(b"1")
    (root / "new.py").write_text(module("New"))
    with lifted_view(open_repository(root)) as view:
        assert view != root and view.name == "repo"
        assert (view / "net.py").read_text() == lifted(SCRIPT) != SCRIPT
        assert {str(path.relative_to(view)) for path in view.rglob("*") if path.is_file()} == {
            "net.py",
            "new.py",
            "data/rows.csv",
            ".gitignore",
        }
    assert not view.exists() and (root / "net.py").read_text() == SCRIPT
    assert git(root, "status", "--short") == "?? new.py"


def test_the_working_tree_itself_where_none_is(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"net.py": module("Net") + '\n\nif __name__ == "__main__":\n    net = Net(1)\n'})
    with lifted_view(open_repository(root)) as view:
        assert view == open_repository(root).root


def test_what_was_recorded_of_a_script_holds_for_its_lifted_copy(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"net.py": SCRIPT})
    (tmp_path / "home/recording.new").mkdir(parents=True)
    recording = Recording((Example("net.py:Net", "1", "torch.randn(2, 3), scale=1"),))
    from migrate_agent.tools.record.store import NAME, write_json

    write_json(recording, tmp_path / "home/recording.new" / NAME)
    store_recording(tmp_path / "home", root, recording)
    with lifted_view(open_repository(root)) as view:
        found, changed = stored_recording(tmp_path / "home", view)
        assert [example.unit for example in found.examples] == ["net.py:Net"] and not changed
        (view / "net.py").write_text((view / "net.py").read_text() + "# more\n")
        assert stored_recording(tmp_path / "home", view)[1] == ["net.py"]
