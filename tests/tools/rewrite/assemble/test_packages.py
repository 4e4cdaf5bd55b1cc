"""The `__init__.py` files that a mirror brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan

NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n"


@pytest.mark.parametrize(
    ("files", "unit", "packages"),
    [
        (
            ("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/net.py"),
            "pkg/sub/net.py:Net",
            {"pkg_jax/__init__.py", "pkg_jax/sub/__init__.py"},
        ),
        (("src/pkg/__init__.py", "src/pkg/net.py"), "src/pkg/net.py:Net", {"src/pkg_jax/__init__.py"}),
        (("lib/net.py", "train.py"), "lib/net.py:Net", set()),
        # A package from inside of which scripts import: it belongs to the originals alone.
        (("app/__init__.py", "app/lib/__init__.py", "app/lib/net.py", "app/train.py"), "app/lib/net.py:Net", {"app/lib_jax/__init__.py"}),
    ],
)
def test_packages_below_the_import_root(tmp_path: Path, files: tuple[str, ...], unit: str, packages: set[str]) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        script = 'from lib.net import Net\n\nif __name__ == "__main__":\n    Net()\n'
        (tmp_path / name).write_text(NET if name.endswith("net.py") else script if name.endswith("train.py") else "")
    draft = compose(scan(tmp_path), {}, [unit])
    assert {path for path in draft.files if path.endswith("__init__.py")} == packages
