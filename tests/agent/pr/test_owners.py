"""CODEOWNERS: https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners."""

from __future__ import annotations

import pytest

from migrate_agent.agent.pr.owners import owners

TEXT = r"""
# comment
*           @all  # everyone
*.py        @py @org/python docs@example.invalid
/vision/    @vision
apps/       @apps
/build/logs/ @logs
docs/*      @docs
**/deep     @deep
/a\ b/x.py  @space
/none.py
"""


@pytest.mark.parametrize(
    ("path", "people"),
    [
        ("README.md", "all"),
        ("model.py", "py org/python"),
        ("lib/model.py", "py org/python"),
        ("vision/x/net.py", "vision"),
        ("lib/vision/net.py", "py org/python"),
        ("lib/apps/x.txt", "apps"),
        ("build/logs/a/b.txt", "logs"),
        ("docs/a.md", "docs"),
        ("docs/sub/a.md", "all"),
        ("x/deep/y.txt", "deep"),
        ("a b/x.py", "space"),
        ("none.py", ""),
    ],
)
def test_the_last_pattern_counts(path: str, people: str) -> None:
    assert owners(TEXT, [path]) == tuple(people.split())


def test_the_first_path_that_is_owned_counts() -> None:
    assert owners("/vision/ @v\n/vision_jax/ @j\n", ["vision_jax/a.py", "vision/a.py"]) == ("j",)
    assert owners("/vision/ @v\n", ["vision_jax/a.py", "vision/a.py"]) == ("v",)
    assert owners("", ["a"]) == ()


def test_sections_of_gitlab_give_defaults() -> None:
    assert owners("[Models][2] @lead @@developers\nmodels/\nother/ @o\n", ["models/a.py"]) == ("lead",)
