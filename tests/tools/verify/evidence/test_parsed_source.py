"""The static checks, one line of code at a time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.tables.helpers import render
from migrate_agent.tools.verify.checks.static import calls, constants, imports, patches
from migrate_agent.tools.verify.evidence.parsed_source import Source, closure, imported_modules, module_name, parse

HELPERS = Path(calls.__file__).parents[3] / "vendored"
FORBIDDEN_CALLS = [
    "eval('1')",
    "e = eval",
    "exec('x')",
    "open('f')",
    "__import__('os')",
    "import os\nos.environ['KEY']",
    "from os import environ",
    "from threading import Thread",
    "import threading\nthreading.Thread(target=f).start()",
    "import os\no = os\no.system('ls')",
    "import sys\nsys.modules['m']",
    "import sys as s\ns._getframe()",
    "import inspect\ninspect.stack()",
    "from pathlib import Path",
    "import jax\njax.pure_callback(f, x)",
    "from jax import pure_callback",
    "from jax.experimental import io_callback as c",
    "import jax\njax.debug.print('x')",
    "from jax._src import core",
    "import numpy as np\nnp.load('f')",
    "import jax.numpy as jnp\njnp.save('f', x)",
    "f.__globals__",
    "getattr(f, '__globals__')",
    "().__class__.__base__.__subclasses__()",
    "vars()",
    "import numpy as np\nnp.arange(3).tofile('f')",
    "import logging\nlogging.FileHandler('f')",
    "import jax\ngetattr(jax, 'pure' + '_callback')",
    "import jax\ngetattr(jax, 'pure_callback')",
    "import os.path\ngetattr(os.path, name)",
    "from operator import attrgetter\nattrgetter(name)",
]
HARMLESS = [
    "import os\nos.path.join('a', 'b')",
    "import threading\nlock = threading.Lock()",
    "import sys\nsys.float_info.max",
    "import inspect\ninspect.signature(f)",
    "import inspect\ninspect.Signature([])",
    "class A:\n    def open(self):\n        return self.open()",
    "def f(open):\n    return open()",
    "import jax\njax.nn.gelu(x, approximate=False)",
    "x.compile()",
    "import math\nmath.sqrt(2)",
    "import logging\nlogging.getLogger('model').info('x')",
    "import logging\nhandler: logging.Handler = logging.StreamHandler()",
    "import jax\ngetattr(jax.nn, 'gelu')(x)",
    "import collections\ngetattr(collections, name)",
    "import jax.numpy as jnp\ngetattr(jnp.fft, name)(x)",
    "from operator import attrgetter\nattrgetter('weight')",
    "getattr(self, name)",
    "from layers import pad\n\ndef f(x):\n    return pad(x, 1)\n\ndef g(n):\n    pad = n // 2\n    return pad",
]
PATCHES = [
    "import jax\njax.nn.relu = f",
    "import jax.numpy as jnp\njnp.sum = jnp.mean",
    "from flax import nnx\nnnx.Linear.__call__ = f",
    "import numpy\ndel numpy.sum",
    "import jax\nsetattr(jax.random, 'normal', f)",
    "import jax\njax.config.x64 += 1",
    "import time\ntime.__dict__['time'] = f",
    "from flax import nnx\ntype.__setattr__(nnx.Param, 'get_value', f)",
]
IMPORTS = [
    ("import torch", True),
    ("import subprocess", True),
    ("import linecache", True),
    ("from codecs import open as o", True),
    ("import zipfile", True),
    ("import safetensors.numpy", True),
    ("import math, functools", False),
    ("import threading", False),
    ("from collections import OrderedDict", False),
    ("import einops", False),
    ("import jax.numpy as jnp", False),
]


def source(text: str) -> Source:
    """A file of this text."""
    return Source("m_jax.py", ast.parse(text))


@pytest.mark.parametrize("text", FORBIDDEN_CALLS)
def test_forbidden_calls_are_found(text: str) -> None:
    assert list(calls.find(source(text)))


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_code_is_left_alone(text: str) -> None:
    assert not [*calls.find(source(text)), *patches.find(source(text)), *constants.find(source(text))]


@pytest.mark.parametrize("path", sorted(HELPERS.glob("*.py")), ids=lambda path: path.stem)
def test_our_own_helpers_are_harmless(path: Path) -> None:
    text = source(path.read_text())
    assert not [*calls.find(text), *patches.find(text), *constants.find(text)]


@pytest.mark.parametrize(("text", "forbidden"), IMPORTS)
def test_imports_that_reach_out_are_found(text: str, forbidden: bool) -> None:
    names = imported_modules(ast.parse(text), "m_jax", False)
    assert any(imports.reason(name, ()) for name in names) == forbidden


@pytest.mark.parametrize("text", PATCHES)
def test_changes_to_imported_modules_are_found(text: str) -> None:
    assert list(patches.find(source(text)))


@pytest.mark.parametrize(
    "text", ["x = '" + "a" * 5000 + "'", "x = [" + "0," * 600 + "]", f"x = {1 << 300}", "x = {" + "'a': [1, 2, 3]," * 200 + "}"]
)
def test_data_in_the_code_is_found(text: str) -> None:
    assert list(constants.find(source(text)))


@pytest.mark.parametrize(
    ("text", "original", "found"),
    [
        ("x = '" + "a" * 5000 + "'", 'x = (\n    """' + "a" * 5000 + '"""\n)', False),
        ("x = '" + "a" * 5000 + "'", "x = '" + "a" * 5001 + "'", True),
        ("x = [" + "0, " * 600 + "]", "y = [\n" + "    0,\n" * 600 + "]", False),
        ("x = [" + "0, " * 600 + "]", "y = [" + "0, " * 599 + "1]", True),
    ],
)
def test_what_the_original_holds_is_no_data(text: str, original: str, found: bool) -> None:
    assert bool(list(constants.find(source(text), source(original)))) == found


def test_documentation_is_not_data() -> None:
    assert not list(constants.find(source('"""' + "a" * 5000 + '"""')))


@pytest.mark.parametrize(
    ("text", "module", "package", "expected"),
    [
        ("import a.b", "p.m", False, {"a.b"}),
        ("from . import x", "p.m", False, {"p", "p.x"}),
        ("from .x import y", "p.m", False, {"p.x", "p.x.y"}),
        ("from .x import y", "p", True, {"p.x", "p.x.y"}),
        ("from ..x import y", "p.q.m", False, {"p.x", "p.x.y"}),
        ("def f():\n    import z", "m", False, {"z"}),
    ],
)
def test_imports_are_resolved(text: str, module: str, package: bool, expected: set[str]) -> None:
    assert set(imported_modules(ast.parse(text), module, package)) == expected


def test_closure_follows_imports_in_the_tree(tmp_path: Path) -> None:

    root = tmp_path
    files = {
        "src/pkg_jax/__init__.py": "",
        "src/pkg_jax/model.py": "from .blocks import Block\nimport jax",
        "src/pkg_jax/blocks.py": "from pkg_jax import nnx_layers",
        "src/pkg_jax/nnx_layers.py": "",
        "src/pkg_jax/unused.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = {item.path for item in closure(root, "src/pkg_jax/model.py", ("src",))}
    assert found == set(files) - {"src/pkg_jax/unused.py"}
    assert module_name("src/pkg_jax/__init__.py", "src") == "pkg_jax"


def test_helpers_of_training_scripts_may_save_beside_a_model(tmp_path: Path) -> None:
    helpers_text = render(["checkpoint_manager", "Linear"])
    assert "import orbax" in helpers_text
    for text, refused in ((helpers_text, False), (helpers_text + "\nocp.Checkpointer\n", True), ("import orbax.checkpoint as ocp\n", True)):
        (tmp_path / "layers.py").write_text(text)
        assert bool(list(imports.find(parse(tmp_path, "layers.py"), "layers", ()))) == refused
