"""The working tree as its units are run: with what definitions read of main blocks at the top level (`tools.scan.main_globals`)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrate_agent.agent.repository.git import Repository
from migrate_agent.tools.scan.main_globals import lifted_bytes


@contextmanager
def lifted_view(repository: Repository) -> Iterator[Path]:
    """The folder to run units in: the working tree itself where no main block is in the way, else a copy of its files, which ends with the context.

    Files that git ignores are not in a copy. The working tree is never written to.
    """
    names = repository.run("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    files = [name for name in dict.fromkeys(names) if name and (repository.root / name).is_file()]
    texts = {name: (repository.root / name).read_bytes() for name in files if name.endswith(".py")}
    changed = {name: new for name, old in texts.items() if (new := lifted_bytes(old)) != old}
    if not changed:
        yield repository.root
        return
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch:
        view = Path(scratch) / repository.root.name
        for name in files:
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository.root / name, view / name, follow_symlinks=False)
        for name, text in changed.items():
            (view / name).unlink()
            (view / name).write_bytes(text)
        yield view
