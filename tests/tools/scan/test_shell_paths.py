"""Folders that shell scripts and the like put on `PYTHONPATH`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.import_closure import first_roots
from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.layout import layout
from migrate_agent.tools.scan.names import Resolver
from migrate_agent.tools.scan.shell_paths import PathLists, path_lists, shell_paths

HERE = '$(cd "$(dirname "${BASH_SOURCE[0]}")" >/dev/null 2>&1 && pwd)'


@pytest.mark.parametrize(
    ("path", "text", "lists"),
    [
        # from the script's folder, and from the repository's root
        ("run.sh", "export PYTHONPATH=src:lib", [("src", "lib")]),
        ("a/run.sh", "export PYTHONPATH=./src", [("a/src",), ("src",)]),
        ("a/run.sh", "export PYTHONPATH=../src/:$PYTHONPATH", [("src",)]),
        ("run.sh", "PYTHONPATH=. python train.py", [("",)]),
        ("run.sh", 'PYTHONPATH="$PWD/src":$PYTHONPATH python -m net', [("src",)]),
        ("run.sh", "export PYTHONPATH=$(pwd)/src:`pwd`/lib:${PWD}/src", [("src", "lib")]),
        ("run.sh", "PYTHONPATH=\\\n$PWD/lib", [("lib",)]),
        ("run.sh", "export PYTHONPATH=src${PYTHONPATH:+:${PYTHONPATH}}", [("src",)]),
        ("run.sh", "export PYTHONPATH=${PYTHONPATH:-}:src", [("src",)]),
        # variables that the script sets
        (
            "egs/a/path.sh",
            "ROOT=$PWD/../..\nSRC=$ROOT/src\nPATH=$SRC/bin:$PATH\nexport PYTHONPATH=${SRC}/data/:$SRC/utils/:$PYTHONPATH",
            [("src/data", "src/utils")],
        ),
        ("run.sh", "ROOT=/opt\nexport PYTHONPATH=$ROOT/src:lib", [("lib",)]),
        ("run.sh", "if x; then A=src; else A=lib; fi\nexport PYTHONPATH=$A:tools", [("tools",)]),
        ("run.sh", "export PYTHONPATH=$UNKNOWN/src:$(other command)/lib", []),
        # the script's own place
        ("a/b/run.sh", "export PYTHONPATH=$(dirname $0)/../lib", [("a/lib",)]),
        ("a/run.sh", f'ROOT="{HERE}"\nexport PYTHONPATH="$ROOT/src:$PYTHONPATH"', [("a/src",)]),
        ("a/run.sh", 'export PYTHONPATH=$(cd "$(dirname "$(readlink -f "$0")")/.."; pwd)/src', [("src",)]),
        # make files, container files, text for people
        ("Makefile", "export PYTHONPATH := $(CURDIR)/src\ntest:\n\tPYTHONPATH=$$PWD/lib pytest", [("src",), ("lib",)]),
        ("Dockerfile", "ENV PYTHONPATH ./src:./lib\nENV PYTHONPATH=/opt/src", [("src", "lib")]),
        ("README.md", "Set `export PYTHONPATH=$PYTHONPATH:$(pwd)/src` first, see PYTHONPATH and others.", [("src",)]),
        # outside of the repository, and what is no path
        ("run.sh", "export PYTHONPATH=../src:/lib:~/lib", []),
        ("run.sh", "export PYTHONPATH=\npython net.py", []),
        ("run.bat", "set PYTHONPATH=%PYTHONPATH%;src", []),
        ("run.sh", "echo $PYTHONPATH", []),
    ],
)
def test_paths_that_the_text_determines(path: str, text: str, lists: list[tuple[str, ...]]) -> None:
    assert list(path_lists(path, text)) == lists


GATE = "def gate(): ...\n"
USES = "from utils import gate\n"


@pytest.mark.parametrize(
    ("files", "lists", "importer", "module", "path"),
    [
        ({"nets/net.py": USES, "lib/utils.py": GATE}, [("lib",)], "nets/net.py", "utils", "lib/utils.py"),
        # a package of the same name does not have what is asked for, unlike the module in it
        (
            {"src/nets/net.py": USES, "src/utils/__init__.py": "", "src/utils/utils.py": GATE, "run.py": "import utils.utils"},
            [("src/utils",)],
            "src/nets/net.py",
            "utils",
            "src/utils/utils.py",
        ),
        # what is found otherwise stays
        ({"nets/net.py": USES, "nets/utils.py": GATE, "lib/utils.py": GATE}, [("lib",)], "nets/net.py", "utils", "nets/utils.py"),
        # the first of a list, and nothing where scripts differ
        ({"n/net.py": USES, "a/utils.py": GATE, "b/utils.py": GATE}, [("b", "a")], "n/net.py", "utils", "b/utils.py"),
        ({"n/net.py": USES, "a/utils.py": GATE, "b/utils.py": GATE}, [("b",), ("a",)], "n/net.py", "utils", None),
        # a package from elsewhere with the name of a file here
        ({"n/net.py": USES, "lib/utils.py": "def other(): ...\n"}, [("lib",)], "n/net.py", "utils", None),
        ({"n/net.py": "import numpy", "lib/numpy.py": ""}, [("lib",)], "n/net.py", "numpy", None),
        # files of the same program have it too
        (
            {"n/net.py": USES, "n/part.py": "", "n/run.py": "import net, part", "lib/utils.py": GATE},
            [("lib",)],
            "n/part.py",
            "utils",
            "lib/utils.py",
        ),
        ({"n/net.py": USES, "m/part.py": "import z", "lib/utils.py": GATE, "lib/z/y.py": ""}, [("lib",)], "m/part.py", "utils", None),
    ],
)
def test_modules_on_the_path_of_scripts(files: Mapping[str, str], lists: PathLists, importer: str, module: str, path: str | None) -> None:
    laid = {file.path: file for file in layout(files, files, tuple(lists))}
    file = Resolver(laid.values(), files).module(module, laid[importer])
    assert (file and file.path) == path


def test_the_scripts_of_a_repository(tmp_path: Path) -> None:
    net = "from torch import nn\nfrom utils import Gate\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.gate = Gate()\n"
    files = {
        "src/nets/net.py": net,
        "src/utils/__init__.py": "",
        "src/utils/utils.py": "from torch import nn\n\n\nclass Gate(nn.Module):\n    pass\n",
        "test/test_gate.py": "from utils.utils import Gate\n",
        "egs/path.sh": "export PYTHONPATH=$PWD/../src/utils:$PWD/../src/nets\n",
        "README.md": "PYTHONPATH=../elsewhere\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert shell_paths(tmp_path) == (("src/utils", "src/nets"),)
    inventory = scan(tmp_path)
    unit = inventory.unit("src/nets/net.py:Net")
    # the folder that the import statement starts from goes before that of the package
    assert unit.needs == ("src/utils/utils.py:Gate",) and first_roots(inventory, unit, ()) == ("src/nets", "src/utils", "src")
