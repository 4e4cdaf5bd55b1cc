"""What names mean, in one file and over the repository."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from textwrap import dedent

import pytest

from migrate_agent.tools.scan.exports import canonical
from migrate_agent.tools.scan.layout import layout
from migrate_agent.tools.scan.names import Imports, RepositoryName, Resolver


def resolver(files: Mapping[str, str]) -> Resolver:
    texts = {path: dedent(text) for path, text in files.items()}
    return Resolver(layout(texts, texts), texts)


def imports(text: str, path: str = "pkg/sub/mod.py", others: Mapping[str, str] | None = None) -> Imports:
    files = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", path: text, **(others or {})}
    laid = layout(files, files)
    return Imports(ast.parse(text), next(file for file in laid if file.path == path), Resolver(laid, files))


@pytest.mark.parametrize(
    ("statement", "text", "dotted"),
    [
        ("import torch", "torch.nn.Linear", "torch.nn.Linear"),
        ("import torch.nn as nn", "nn.Linear", "torch.nn.Linear"),
        ("from torch import nn", "nn.Linear", "torch.nn.Linear"),
        ("from torch.nn import Module as M", "M", "torch.nn.Module"),
        ("import torch.nn.functional as F", "F.relu", "torch.nn.functional.relu"),
        ("from torch.nn import functional as F", "F.relu", "torch.nn.functional.relu"),
        ("import a.b.c", "a.b.c.d", "a.b.c.d"),
        ("import a.b as c", "c.d", "a.b.d"),
        ("from . import x", "x.y", "pkg.sub.x.y"),
        ("from .x import y", "y", "pkg.sub.x.y"),
        ("from .. import x", "x", "pkg.x"),
        ("from ..x.y import z as w", "w.v", "pkg.x.y.z.v"),
        ("from torch.nn.modules.linear import Linear", "Linear", "torch.nn.Linear"),
        ("import torch", "torch.nn.modules.conv.Conv2d.forward", "torch.nn.Conv2d.forward"),
        ("def f():\n    from einops import rearrange", "rearrange", "einops.rearrange"),
        ("try:\n    import numpy as np\nexcept ImportError:\n    np = None", "np.sum", "numpy.sum"),
        ("if True:\n    from torch import nn\nelse:\n    import fake as nn", "nn.Linear", "torch.nn.Linear"),
        ("try:\n    from apex import Norm\nexcept ImportError:\n    from torch.nn import LayerNorm as Norm", "Norm", "torch.nn.LayerNorm"),
        ("from torch import einsum\nfrom einops import einsum", "einsum", "einops.einsum"),
        ("try:\n    from torch import einsum\nexcept ImportError:\n    pass\nfrom einops import einsum", "einsum", "einops.einsum"),
        ("from torch.nn import Norm\ntry:\n    from apex import Norm\nexcept ImportError:\n    pass", "Norm", "torch.nn.Norm"),
        ("class Block: ...", "Block.size", "pkg.sub.mod.Block.size"),
        ("def helper(): ...", "helper", "pkg.sub.mod.helper"),
        ("from torch.nn import *", "Linear", "torch.nn.Linear"),
        ("from math import *\nfrom torch.nn import *", "Linear", "torch.nn.Linear"),
        ("from math import *\nfrom os import *", "sqrt", None),
        ("import torch", "x.view", None),
    ],
)
def test_dotted(statement: str, text: str, dotted: str | None) -> None:
    found = imports(statement)
    assert found.dotted(text) == dotted
    assert found.of(ast.parse(text, mode="eval").body) == dotted


def test_of_other_expressions() -> None:
    assert imports("import torch").of(ast.parse("torch.zeros(3).sum", mode="eval").body) is None


def test_relative_import_in_a_package_file() -> None:
    assert imports("from . import x", path="pkg/sub/__init__.py").dotted("x") == "pkg.sub.x"
    assert imports("from ..... import x").dotted("x") == "x", "further up than the repository goes: the import root"


def test_star_import_of_a_repository_file() -> None:
    others = {"pkg/layers.py": "__all__ = ['Block', '_shown']\nclass Block: ...\nclass Other: ...\n_shown = 1\n"}
    found = imports("from pkg.layers import *", others=others)
    assert [found.dotted(name) for name in ("Block", "Other", "_shown")] == ["pkg.layers.Block", None, "pkg.layers._shown"]


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("torch.nn.modules.Linear", "torch.nn.Linear"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.nn.modules.utils._pair", "torch.nn.modules.utils._pair"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch.nn.utils.weight_norm.weight_norm", "torch.nn.utils.weight_norm"),
        ("torch.nn.utils.weight_norm", "torch.nn.utils.weight_norm"),
        ("torch.autograd.variable.Variable", "torch.autograd.Variable"),
        ("torch.optim.adamw.AdamW", "torch.optim.AdamW"),
        ("torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
        ("torch.utils.data.dataset.Dataset", "torch.utils.data.Dataset"),
        ("pkg.nn.modules.linear.Linear", "pkg.nn.modules.linear.Linear"),
    ],
)
def test_canonical(name: str, public: str) -> None:
    assert canonical(name) == public


PACKAGE = {
    "pkg/__init__.py": "from .blocks import Block, act as activation\nfrom .attention import attention\nfrom . import layers\n",
    "pkg/blocks.py": "from .layers import *\nimport torch.nn as nn\nclass Block(nn.Module):\n    class Inner: ...\ndef act(): ...\n",
    "pkg/layers.py": "import torch\nfrom torch import nn\nLinear = nn.Linear\nNorm = Linear\nclass Conv: ...\nclass _Hidden: ...\n",
    "pkg/attention.py": "def attention(): ...\ndef mask(): ...\n",
    "pkg/loop.py": "from .pool import thing\nSelf = Self\nfrom pkg.loop import lost\n",
    "pkg/pool.py": "from .loop import thing\n",
    "train.py": "from pkg import *\nfrom pkg import Block as B\n",
    "broken.py": "def (:\n",
}


@pytest.mark.parametrize(
    ("dotted", "path", "name"),
    [
        ("pkg.blocks.Block", "pkg/blocks.py", "Block"),
        ("pkg.Block", "pkg/blocks.py", "Block"),
        ("pkg.Block.Inner", "pkg/blocks.py", "Block.Inner"),
        ("pkg.activation", "pkg/blocks.py", "act"),
        ("pkg.blocks.Conv", "pkg/layers.py", "Conv"),
        ("pkg.layers", "pkg/layers.py", ""),
        ("pkg.attention", "pkg/attention.py", "attention"),
        ("pkg.attention.mask", "pkg/attention.py", "mask"),
        ("train.B", "pkg/blocks.py", "Block"),
        ("train.Block", "pkg/blocks.py", "Block"),
        ("pkg.layers.Linear", "pkg/layers.py", "Linear"),
        ("pkg", "pkg/__init__.py", ""),
    ],
)
def test_resolve(dotted: str, path: str, name: str) -> None:
    found = resolver(PACKAGE).resolve(dotted)
    assert found is not None
    assert (found.file.path, found.name) == (path, name)


@pytest.mark.parametrize(
    "dotted", ["torch.nn.Linear", "pkg.nothing", "pkg.blocks._Hidden", "pkg.loop.thing", "pkg.loop.lost", "broken.x", "else.x"]
)
def test_leads_nowhere(dotted: str) -> None:
    assert resolver(PACKAGE).resolve(dotted) is None


def test_file_without_text() -> None:
    """The rewriter reads no file that does not parse: what another imports of it leads nowhere."""
    known = resolver({"main.py": "import lost.net as net\n", "lost/net.py": "x = 1\n"})
    files = [known.module(name) for name in ("main", "lost.net")]
    partial = Resolver([file for file in files if file], {"main.py": "import lost.net as net\n"})
    assert partial.resolve("main.net.build") is None


@pytest.mark.parametrize(
    ("dotted", "origin"),
    [
        ("pkg.layers.Linear", "torch.nn.Linear"),
        ("pkg.layers.Norm", "torch.nn.Linear"),
        ("pkg.blocks.Linear", "torch.nn.Linear"),
        ("pkg.Block", "pkg.blocks.Block"),
        ("pkg.loop.Self", "pkg.loop.Self"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("pkg.nothing", None),
    ],
)
def test_origin(dotted: str, origin: str | None) -> None:
    assert resolver(PACKAGE).origin(dotted) == origin


def test_scripts_of_one_name() -> None:
    files = {"a/model.py": "class A: ...", "a/train.py": "", "b/model.py": "class B: ...", "b/train.py": "", "c/train.py": ""}
    names = resolver(files)
    near = {file.path: file for file in layout(files, files)}
    assert names.module("model", near["a/train.py"]) == near["a/model.py"]
    assert names.module("model", near["b/train.py"]) == near["b/model.py"]
    assert names.module("model", near["c/train.py"]) is None
    assert names.resolve("model.B", near["b/train.py"]) == RepositoryName(near["b/model.py"], "B")


def test_neighbours_in_a_package_that_is_run_as_a_folder_of_scripts() -> None:
    files = {"models/__init__.py": "", "models/net.py": "from layers import Conv", "models/layers.py": "class Conv: ..."}
    near = {file.path: file for file in layout(files, files)}
    assert resolver(files).resolve("layers.Conv", near["models/net.py"]) == RepositoryName(near["models/layers.py"], "Conv")


@pytest.mark.parametrize(
    ("path", "statement", "text", "dotted"),
    [
        ("pkg/torch/__init__.py", "import torch", "torch.nn", None),
        ("pkg/torch/__init__.py", "import torch.nn as nn", "torch.nn", None),
        ("pkg/types.py", "import types", "types", None),
        ("pkg/einops.py", "import einops", "einops", None),
        ("pkg/torch/__init__.py", "import pkg.torch", "pkg.torch", "pkg/torch/__init__.py"),
        ("pkg/helpers.py", "import helpers", "helpers", "pkg/helpers.py"),
    ],
)
def test_files_of_a_package_that_have_the_name_of_another_package(path: str, statement: str, text: str, dotted: str | None) -> None:
    files = {"pkg/__init__.py": "", "pkg/net.py": statement, path: ""}
    near = {file.path: file for file in layout(files, files)}
    assert resolver(files).module(text, near["pkg/net.py"]) == near.get(dotted or "")


def test_the_way_there() -> None:
    link = resolver(PACKAGE).follow("pkg.Block")
    assert link is not None
    assert [file.path for file in link.via] == ["pkg/__init__.py", "pkg/blocks.py"]
