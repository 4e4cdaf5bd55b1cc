"""Modules, import roots and targets."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from migrate_agent.tools.scan.layout import layout

MAIN = 'if __name__ == "__main__":\n    main()\n'
INIT = "__init__.py"


@pytest.mark.parametrize(
    ("files", "path", "root", "module", "target", "target_module"),
    [
        ({"model.py": ""}, "model.py", "", "model", "model_jax.py", "model_jax"),
        ({f"pkg/{INIT}": "", "pkg/a.py": ""}, "pkg/a.py", "", "pkg.a", "pkg_jax/a.py", "pkg_jax.a"),
        ({f"pkg/{INIT}": ""}, f"pkg/{INIT}", "", "pkg", f"pkg_jax/{INIT}", "pkg_jax"),
        ({f"pkg/{INIT}": "", f"pkg/a/{INIT}": "", "pkg/a/b.py": ""}, "pkg/a/b.py", "", "pkg.a.b", "pkg_jax/a/b.py", "pkg_jax.a.b"),
        ({f"src/pkg/{INIT}": "", "src/pkg/a.py": ""}, "src/pkg/a.py", "src", "pkg.a", "src/pkg_jax/a.py", "pkg_jax.a"),
        ({f"code/lib/pkg/{INIT}": ""}, f"code/lib/pkg/{INIT}", "code/lib", "pkg", f"code/lib/pkg_jax/{INIT}", "pkg_jax"),
        ({"scripts/model.py": ""}, "scripts/model.py", "scripts", "model", "scripts/model_jax.py", "model_jax"),
        ({"src/model.py": ""}, "src/model.py", "src", "model", "src/model_jax.py", "model_jax"),
        ({"a/b/train-v2.py": ""}, "a/b/train-v2.py", "a/b", "train-v2", "a/b/train-v2_jax.py", "train-v2_jax"),
        ({INIT: "", "model.py": "from .x import y"}, "model.py", "", "model", "model_jax.py", "model_jax"),
    ],
)
def test_by_init_files(files: Mapping[str, str], path: str, root: str, module: str, target: str, target_module: str) -> None:
    file = {file.path: file for file in layout(files, files)}[path]
    assert (file.import_root, file.module, file.target, file.target_module) == (root, module, target, target_module)


@pytest.mark.parametrize(
    ("files", "path", "module", "target"),
    [
        ({"models/net.py": "", "train.py": "from models.net import Net"}, "models/net.py", "models.net", "models_jax/net.py"),
        ({"models/net.py": "", "train.py": "from models import (\n    net,\n)"}, "models/net.py", "models.net", "models_jax/net.py"),
        ({"models/net.py": "", "train.py": "import os, models.net as net"}, "models/net.py", "models.net", "models_jax/net.py"),
        ({"lib/models/net.py": "", "main.py": "import lib.models.net"}, "lib/models/net.py", "lib.models.net", "lib_jax/models/net.py"),
        ({"lib/models/net.py": "", "lib/main.py": "import models.net"}, "lib/models/net.py", "models.net", "lib/models_jax/net.py"),
        ({"lib/net.py": "from .parts import x", "lib/parts.py": ""}, "lib/parts.py", "lib.parts", "lib_jax/parts.py"),
        ({"src/models/net.py": "", "tests/test_net.py": "import models.net"}, "src/models/net.py", "models.net", "src/models_jax/net.py"),
        # folders without `__init__.py` inside of packages
        (
            {f"src/nets/{INIT}": "from .layers.norm import Norm", "src/nets/layers/norm.py": ""},
            "src/nets/layers/norm.py",
            "nets.layers.norm",
            "src/nets_jax/layers/norm.py",
        ),
        (
            {f"a/{INIT}": "", f"a/b/{INIT}": "", "a/b/net.py": "from ..parts.norm import Norm", "a/parts/norm.py": ""},
            "a/parts/norm.py",
            "a.parts.norm",
            "a_jax/parts/norm.py",
        ),
        # folders that are put on PYTHONPATH, one of them with a file of its own name
        (
            {f"nets/{INIT}": "", "nets/part.py": "class A: ...", "nets/net.py": "from part import A"},
            "nets/net.py",
            "net",
            "nets/net_jax.py",
        ),
        (
            {f"nets/{INIT}": "", "nets/part.py": "class A: ...", "nets/net.py": "from part import A", "main.py": "from nets import net"},
            "nets/net.py",
            "nets.net",
            "nets_jax/net.py",
        ),
        (
            {f"nets/{INIT}": "", "nets/net.py": "from tools import pad", f"tools/{INIT}": "", "tools/tools.py": "def pad(): ..."},
            "tools/tools.py",
            "tools",
            "tools/tools_jax.py",
        ),
        (
            {"nets/net.py": "from tools import pad", f"tools/{INIT}": "from .tools import pad", "tools/tools.py": "def pad(): ..."},
            "tools/tools.py",
            "tools.tools",
            "tools_jax/tools.py",
        ),
        (
            {"nets/net.py": "from tools import pad", f"tools/{INIT}": "", "tools/tools.py": "def cut(): ..."},
            "tools/tools.py",
            "tools.tools",
            "tools_jax/tools.py",
        ),
        # a folder of scripts with a needless `__init__.py`, and one that something imports as a package
        (
            {f"run/{INIT}": "", "run/data.py": "", "run/train.py": f"from data import x\n{MAIN}"},
            "run/train.py",
            "train",
            "run/train_jax.py",
        ),
        (
            {f"run/{INIT}": "", f"run/nets/{INIT}": "", "run/nets/a.py": "", "run/train.py": f"from nets.a import A\n{MAIN}"},
            "run/nets/a.py",
            "nets.a",
            "run/nets_jax/a.py",
        ),
        (
            {f"run/{INIT}": "", "run/a.py": "", "run/b.py": f"import a\n{MAIN}", "main.py": "import run.b"},
            "run/b.py",
            "run.b",
            "run_jax/b.py",
        ),
        ({f"run/{INIT}": "", "run/a.py": "from . import b", "run/b.py": f"import a\n{MAIN}"}, "run/b.py", "run.b", "run_jax/b.py"),
        ({f"run/{INIT}": "", "run/a.py": "", "run/b.py": "import a"}, "run/b.py", "run.b", "run_jax/b.py"),
        ({f"run/{INIT}": "", "run/types.py": "", "run/b.py": f"import types\n{MAIN}"}, "run/b.py", "run.b", "run_jax/b.py"),
        # not evidence: neighbours that import each other, packages from elsewhere with the name of a folder here, wholly other names
        ({"scripts/model.py": "", "scripts/train.py": "from model import Net"}, "scripts/model.py", "model", "scripts/model_jax.py"),
        ({"datasets/net.py": "", "train.py": "from datasets import load_dataset"}, "datasets/net.py", "net", "datasets/net_jax.py"),
        ({"a/net.py": "", "b/train.py": "import net"}, "a/net.py", "net", "a/net_jax.py"),
        # what a library imports goes before what the scripts beside it import
        (
            {"s/a.py": "from s.b import x", "s/b.py": "", "s/c.py": "import a, b", "s/d.py": "import a, b", "t.py": "from s.a import y"},
            "s/a.py",
            "s.a",
            "s_jax/a.py",
        ),
        # a file with its folder's name is not what `from utils.constants import x` means
        (
            {"utils/utils.py": "from utils.constants import x", "utils/constants.py": "", "utils/data.py": "from utils.constants import x"},
            "utils/utils.py",
            "utils.utils",
            "utils_jax/utils.py",
        ),
        # the majority decides, for the folder as a whole
        (
            {"s/a.py": "", "s/b.py": "import a", "s/c.py": "import a", "t.py": "import s.a"},
            "s/a.py",
            "a",
            "s/a_jax.py",
        ),
        (
            {f"code/pkg/{INIT}": "", "code/pkg/a.py": "from code.pkg import b", "code/pkg/b.py": ""},
            "code/pkg/a.py",
            "code.pkg.a",
            "code_jax/pkg/a.py",
        ),
    ],
)
def test_by_import_statements(files: Mapping[str, str], path: str, module: str, target: str) -> None:
    file = {file.path: file for file in layout(files, files)}[path]
    assert (file.module, file.target) == (module, target)


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("import torch.nn as nn", True),
        ("def f():\n    from torch import nn\n", True),
        ("import torchmetrics_like", False),
        ("# torch", False),
    ],
)
def test_torch_shows_even_where_a_file_does_not_parse(text: str, uses: bool) -> None:
    files = {"a.py": text + "\ndef (:\n"}
    assert layout(files, files)[0].uses_torch is uses
