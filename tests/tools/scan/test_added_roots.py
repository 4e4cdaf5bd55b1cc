"""Folders that files put on `sys.path` themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.import_closure import first_roots
from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.added_roots import added_roots
from migrate_agent.tools.scan.layout import layout, mirror_layout
from migrate_agent.tools.scan.names import Resolver

FOLDERS = frozenset({"", "a", "a/b", "a/b/lib", "a/lib", "lib", "tools"})
ADD_PATH = "def add(folder):\n    if folder not in sys.path:\n        sys.path.insert(0, folder)\n\n\n"
HERE = "here = os.path.dirname(os.path.abspath(__file__))\n"


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        # from where the program runs: the nearest folder first
        ("sys.path.append('lib')", (), ("a/b/lib", "a/lib", "lib")),
        ("sys.path.insert(0, '../lib')", (), ("a/lib", "lib")),
        ("sys.path.append(os.path.abspath(os.path.join(os.getcwd(), 'tools')))", (), ("tools",)),
        # from the file's own place
        ("sys.path.append(os.path.join(os.path.dirname(__file__), 'lib'))", (), ("a/b/lib",)),
        ("sys.path.append(os.path.dirname(os.path.abspath(__file__)))", (), ("a/b",)),
        ("sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))", ("a",), ()),
        ("sys.path.insert(1, os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))", (), ("",)),
        (f"{HERE}sys.path.append(here + '/../lib')", (), ("a/lib",)),
        (f"{HERE}sys.path.append(f'{{here}}/lib')", (), ("a/b/lib",)),
        (f"{HERE}root = here\nsys.path.extend([root, '/usr/lib'])", (), ("a/b",)),
        (f"{HERE}sys.path += [os.path.join(here, name), os.path.join(here, 'lib')]", (), ("a/b/lib",)),
        (f"{HERE}sys.path[:0] = [here, here + '/lib']", ("a/b", "a/b/lib"), ()),
        (f"{HERE}sys.path = [here] + sys.path", ("a/b",), ()),
        (f"{HERE}for name in ('lib', '../lib'):\n    sys.path.append(os.path.join(here, name))", (), ("a/b/lib", "a/lib")),
        (f"{HERE}{ADD_PATH}add(os.path.join(here, 'lib'))\nadd(here)", ("a/b", "a/b/lib"), ()),
        ("sys.path.append(str(Path(__file__).parent / 'lib'))", (), ("a/b/lib",)),
        ("root = Path(__file__).resolve().parents[2]\nif str(root) not in sys.path:\n    sys.path.append(str(root))\nroot = 1", (), ("",)),
        ("sys.path.append(Path(__file__).absolute().parent.parent.joinpath('lib').as_posix())", (), ("a/lib",)),
        ("def main():\n    path = 'tools'\n    sys.path.append(path)", (), ("tools",)),
        # what the text does not determine, and what lies outside of the repository
        ("sys.path.append(sys.argv[1])", (), ()),
        ("sys.path.append('/lib')", (), ()),
        ("sys.path.append(os.path.expanduser('~/lib'))", (), ()),
        ("sys.path.append(str(Path(__file__).resolve().parents[3]))", (), ()),
        ("if x:\n    lib = 'lib'\nelse:\n    lib = 'tools'\nsys.path.append(lib)", (), ()),
        ("sys.path.append('nowhere')", (), ()),
        ("sys.path.append('lib'", (), ()),
    ],
)
def test_folders_that_the_text_determines(text: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    imports = "import os\nimport sys\nfrom pathlib import Path\n"
    assert added_roots("a/b/net.py", imports + text, FOLDERS) == (before, after)


def test_other_names_of_the_modules() -> None:
    text = (
        "from sys import path\nimport os.path as osp\nfrom os.path import dirname as above\npath.append(osp.join(above(__file__), 'lib'))\n"
    )
    assert added_roots("net.py", text, FOLDERS).after == ("lib",)


APPENDS = "import sys\nsys.path.append('utils')\nfrom gate import Gate\n"
INSERTS = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))\n"
PATHS = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '../lib'))\n"


@pytest.mark.parametrize(
    ("files", "importer", "module", "found"),
    [
        ({"net.py": APPENDS, "utils/gate.py": ""}, "net.py", "gate", "utils/gate.py"),
        ({"net.py": APPENDS, "utils/__init__.py": "", "utils/gate.py": ""}, "net.py", "gate", "utils/gate.py"),
        # the program's own folder goes before what is appended, and after what is inserted
        ({"net.py": APPENDS, "gate.py": "", "utils/gate.py": ""}, "net.py", "gate", "gate.py"),
        ({"run/net.py": f"{INSERTS}import gate", "run/gate.py": "", "gate.py": ""}, "run/net.py", "gate", "gate.py"),
        # one file of a program adds it for the others
        (
            {"run/paths.py": PATHS, "run/net.py": "import paths\nimport nets.gate", "lib/nets/gate.py": ""},
            "run/net.py",
            "nets.gate",
            "lib/nets/gate.py",
        ),
        (
            {"run.py": f"{APPENDS}import nets.net", "nets/net.py": "import gate", "utils/gate.py": ""},
            "nets/net.py",
            "gate",
            "utils/gate.py",
        ),
        ({"run.py": APPENDS, "nets/net.py": "import gate", "utils/gate.py": ""}, "nets/net.py", "gate", None),
        ({"net.py": APPENDS, "utils/types.py": "", "utils/gate.py": ""}, "net.py", "types", None),
    ],
)
def test_modules_in_added_folders(files: Mapping[str, str], importer: str, module: str, found: str | None) -> None:
    near = {file.path: file for file in layout(files, files)}
    file = Resolver(near.values(), files).module(module, near[importer])
    assert (file and file.path) == found


def test_what_is_found_by_added_folders_alone_decides_last() -> None:
    files = {"net.py": APPENDS, "train.py": "import net\nfrom utils.data import load", "utils/gate.py": "", "utils/data.py": ""}
    laid = {file.path: file for file in layout(files, files)}
    assert laid["utils/gate.py"].module == "utils.gate"
    files = {"net.py": "import sys\nsys.path.append('lib')\nfrom nets.gate import Gate\n", "lib/nets/gate.py": ""}
    laid = {file.path: file for file in layout(files, files)}
    assert (laid["lib/nets/gate.py"].module, laid["lib/nets/gate.py"].import_root) == ("nets.gate", "lib")


def test_jobs_and_mirrors_use_added_folders(tmp_path: Path) -> None:
    net = (
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.gate = Gate()\n"
    )
    files = {"net.py": APPENDS + net, "utils/gate.py": "from torch import nn\n\n\nclass Gate(nn.Module):\n    pass\n"}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    inventory = scan(tmp_path)
    unit = inventory.unit("net.py:Net")
    assert unit.needs == ("utils/gate.py:Gate",) and first_roots(inventory, unit, ()) == ("", "utils")
    mirror = {"net_jax.py": "from gate_jax import Gate\n", "utils/gate_jax.py": "class Gate: ...\n"}
    laid = {file.path: file for file in mirror_layout(mirror, mirror, inventory.files)}
    found = Resolver(laid.values(), mirror).resolve("net_jax.Gate")
    assert found is not None and found.file.path == "utils/gate_jax.py"
