"""Files that Python 3 does not read, and who imports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.exports import parse
from migrate_agent.tools.scan.unreadable import PYTHON_2, unreadable_below
from migrate_agent.tools.scan.walk import SourceError

Write = Callable[[Mapping[str, str | bytes]], Path]


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("print 'a'", True),
        ("for x in y: print x,", True),
        ("exec 'a'", True),
        ("try:\n    f()\nexcept A, e:\n    pass", True),
        ("x = 0777", True),
        ("x = 10L", True),
        ("if a <> b: pass", True),
        ("raise E, 'm'", True),
        ("x = `a`", True),
        ("x = ur'a'", True),
        ("def f((a, b)): pass", True),
        ("f = lambda (a, b): a", True),
        ("class A:\n    def f(self):\n\tx = 1\n        y = 2\n", True),
        ("def f(:", False),
        ("x = (1", False),
        ("x = 1a", False),
        ("return 1", False),
        ("raise E from", False),
        ("x = a b", False),
    ],
)
def test_python_2_is_named(text: str, old: bool) -> None:
    with pytest.raises(SourceError) as raised:
        parse(text)
    assert (PYTHON_2 in str(raised.value)) == old and str(raised.value).startswith("line ")


def test_unreadable_files_of_imports(write: Write) -> None:
    files = {
        "net.py": "from layers import *\nfrom torch import nn\n\nclass A(nn.Module): ...\n",
        "layers.py": "from utils import *\nimport net\n",
        "utils.py": "def f(x):\n    print x\n",
        "alone.py": "print 'a'\n",
    }
    inventory = scan(write(files))
    assert [file.path for file in unreadable_below(inventory, "net.py")] == ["utils.py"]
    assert unreadable_below(inventory, "alone.py")[0].error.startswith(f"line 1: {PYTHON_2}")
