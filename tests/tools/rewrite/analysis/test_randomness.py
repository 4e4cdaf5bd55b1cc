"""A function that gains an `rngs` keeps it through the decorators of the repository."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Observed, Span

SOURCE = """import functools

from torch import nn


def logged(name):
    def around(func):
        @functools.wraps(func)
        def inside(*args, **kwargs):
            print(name)
            return func(*args, **kwargs)

        return inside

    return around


class M(nn.Module):
    @logged("m")
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x)
"""


def test_keywords_that_are_handed_on_take_the_rngs_along(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/m.py").write_text(SOURCE)
    seen = {Span(11, 19, 11, 23): Observed(("function:pkg.m.M.__init__",))}
    text = compose(scan(tmp_path), {"pkg/m.py": seen}, ["pkg/m.py:M"]).files["pkg_jax/m.py"]
    assert "def logged(name):" in text and "return func(*args, **kwargs)" in text
    assert '@logged("m")\n    def __init__(self, n, *, rngs: nnx.Rngs):' in text
