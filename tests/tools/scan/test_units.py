"""Which classes are units, what they need, in which order, by which strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.scan import scan

Write = Callable[[Mapping[str, str | bytes]], Path]
FORWARD = "    def forward(self, x): return x\n"


def ids(root: Path) -> list[str]:
    return [unit.id for unit in scan(root).units]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch.nn as nn\nclass A(nn.Module): ...", ["A"]),
        ("from torch import nn\nclass A(nn.Module): ...", ["A"]),
        ("from torch.nn import Module as M\nclass A(M): ...", ["A"]),
        ("import torch\nclass A(torch.nn.Module): ...", ["A"]),
        ("import torch as t\nclass A(t.nn.Module): ...", ["A"]),
        ("from torch.nn import *\nclass A(Module): ...", ["A"]),
        ("from torch.nn.modules.module import Module\nclass A(Module): ...", ["A"]),
        ("import torch\nBase = torch.nn.Module\nclass A(Base): ...", ["A"]),
        ("import torch\nnn = torch.nn\nclass A(nn.Conv2d): ...", ["A"]),
        ("from torch import nn\nclass A(nn.Sequential): ...\nclass B(nn.Conv2d): ...", ["A", "B"]),
        ("from torch import nn\nfrom torch.nn.modules.batchnorm import _BatchNorm\nclass A(_BatchNorm): ...", ["A"]),
        ("from torch import nn\nclass A(object, nn.Module): ...", ["A"]),
        ("from torch import nn\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\nclass A(nn.Module, Generic[T]): ...", ["A"]),
        ("from torch import nn\nimport six\nfrom abc import ABCMeta\nclass A(six.with_metaclass(ABCMeta, nn.Module)): ...", ["A"]),
        ("import torch\nBase = torch.nn.Module if torch else object\nclass A(Base): ...", ["A"]),
        ("from torch import nn\nclass A(nn.Module):\n    class B(nn.Module): ...\n    class C: ...", ["A.B", "A"]),
        ("from torch import nn\nclass C:\n    class B(nn.Module): ...", ["C.B"]),
        ("from torch import nn\nif True:\n    class A(nn.Module): ...\nelse:\n    class B(nn.Module): ...", ["A", "B"]),
        ("try:\n    from torch import nn\n    class A(nn.Module): ...\nexcept ImportError:\n    pass", ["A"]),
        (
            "from torch import nn\ntry:\n    from apex import N\nexcept ImportError:\n    class N(nn.Module): ...\nclass A(N): ...",
            ["N", "A"],
        ),
        ("from torch import nn\nif True:\n    class A(nn.Module): ...\nelse:\n    class A(nn.Module): ...", ["A"]),
        # not modules
        ("from torch import nn\ntry:\n    from torch.nn import N\nexcept ImportError:\n    class N(nn.Module): ...", []),
        ("class Module: ...\nclass A(Module): ...", []),
        ("from flax import nnx\nclass A(nnx.Module): ...", []),
        ("import torch\nclass A(torch.autograd.Function): ...\nclass P(torch.nn.Parameter): ...", []),
        ("from torch.utils.data import Dataset\nclass A(Dataset): ...", []),
        ("from torch import nn\ndef make():\n    class A(nn.Module): ...\n    return A", []),
        ("class A(A): ...", []),
        ("from torch import nn\nnn = 3\nclass A: ...", []),
    ],
)
def test_modules_of_one_file(write: Write, text: str, names: list[str]) -> None:
    assert ids(write({"m.py": text})) == [f"m.py:{name}" for name in names]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {
                "pkg/__init__.py": "from .base import Base",
                "pkg/base.py": "from torch import nn\nclass Base(nn.Module): ...",
                "run.py": "import pkg\nclass A(pkg.Base): ...",
            },
            ["pkg/base.py:Base", "run.py:A"],
        ),
        (
            {
                "base.py": "from torch import nn\nclass Base(nn.Module): ...",
                "mid.py": "from base import *",
                "a.py": "from mid import *\nclass A(Base): ...",
            },
            ["base.py:Base", "a.py:A"],
        ),
        (
            {"compat.py": "from torch import nn", "a.py": "from compat import nn\nclass A(nn.Linear): ..."},
            ["a.py:A"],
        ),
        (
            {
                "src/p/__init__.py": "",
                "src/p/a.py": "from torch.nn import Module\nclass A(Module): ...",
                "src/p/b.py": "from .a import A\nclass B(A): ...",
            },
            ["src/p/a.py:A", "src/p/b.py:B"],
        ),
        (
            {"a.py": "from b import B\nclass A(B): ...", "b.py": "from a import A\nclass B(A): ..."},
            [],
        ),
    ],
)
def test_modules_across_files(write: Write, files: Mapping[str, str], found: list[str]) -> None:
    assert ids(write(files)) == found


HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def __init__(self): self.a = A()", {"B": ["A"]}),
        ("class A(nn.Module): ...\nclass B(A): ...", {"B": ["A"]}),
        (
            "class A(nn.Module): ...\ndef make(n): return [A() for _ in range(n)]\nclass B(nn.Module):\n    def f(self): return make(2)",
            {"B": ["A"]},
        ),
        (
            "class A(nn.Module): ...\nT = {'a': A}\ndef p(k): return T[k]()\nclass B(nn.Module):\n    def f(self): return p('a')",
            {"B": ["A"]},
        ),
        ("class A(nn.Module): ...\nTABLE = {}\nTABLE['a'] = A\nclass B(nn.Module):\n    def f(self): return TABLE['a']()", {"B": ["A"]}),
        ("class A(nn.Module): ...\nROW = []\nROW.append(A)\nclass B(nn.Module):\n    def f(self): return ROW[0]()", {"B": ["A"]}),
        ("class A(nn.Module): ...\nX, Y = A, 2\nclass B(nn.Module):\n    def f(self): return Y, X", {"B": ["A"]}),
        ("class A(nn.Module): ...\nclass Cfg:\n    block = A\nclass B(nn.Module):\n    def __init__(self, c: Cfg): ...", {"B": ["A"]}),
        (
            "class A(nn.Module): ...\nclass B(nn.Module):\n    block = A\nclass C(nn.Module):\n    def f(self): return B()",
            {"B": ["A"], "C": ["B"]},
        ),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def __init__(self, block=A): ...", {"B": ["A"]}),
        ("class A(nn.Module): ...\ndef wrap(f): return A()\nclass B(nn.Module):\n    @wrap\n    def f(self): ...", {"B": ["A"]}),
        # nested classes: the outer one contains the inner one, whoever uses the inner one from elsewhere needs both
        (
            "class A(nn.Module):\n    class I(nn.Module): ...\nclass B(nn.Module):\n    def f(self): return A.I()",
            {"A": ["A.I"], "B": ["A", "A.I"]},
        ),
        (
            "class A(nn.Module):\n    class I(nn.Module): ...\n    class J(I): ...\n    def f(self): return self.J()",
            {"A": ["A.I", "A.J"], "A.J": ["A.I"]},
        ),
        # circles
        ("class A(nn.Module):\n    def f(self): return B()\nclass B(nn.Module):\n    def f(self): return A()", {"A": ["B"], "B": ["A"]}),
        (
            "def f(): return g()\ndef g(): return f(), A()\nclass A(nn.Module): ...\nclass B(nn.Module):\n    def f(self): return f()",
            {"B": ["A"]},
        ),
        # a parameter or local variable hides the class of that name; strings are only text
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self, A): return A()", {}),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self):\n        A = 3\n        return A", {}),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self): return [A for A in range(3)]", {}),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self): return 'A'", {}),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self):\n        def g(): return A()\n        return g", {"B": ["A"]}),
        ("class A(nn.Module): ...\nclass B(nn.Module):\n    A = 3\n    def f(self): return A()", {"B": ["A"]}),
        (
            "class A(nn.Module): ...\nclass B(nn.Module):\n    def f(self):\n        global A\n        A = A\n        return A()",
            {"B": ["A"]},
        ),
    ],
)
def test_needs(write: Write, text: str, needs: Mapping[str, list[str]]) -> None:
    units = scan(write({"m.py": HEAD + text})).units
    assert {unit.name: [need.removeprefix("m.py:") for need in unit.needs] for unit in units if unit.needs} == needs


def test_needs_across_files(write: Write) -> None:
    root = write(
        {
            "pkg/__init__.py": "from .layers import *\nfrom .factory import build",
            "pkg/layers.py": "from torch import nn\n__all__ = ['Conv']\nclass Conv(nn.Module): ...",
            "pkg/factory.py": "def build():\n    from .layers import Conv\n    return Conv()",
            "pkg/net.py": "from torch import nn\nfrom pkg import build\nclass Net(nn.Module):\n    def __init__(self): self.c = build()",
            "main.py": "import pkg.net as n\nimport pkg\nclass Top(n.Net):\n    def f(self): return pkg.Conv()",
        }
    )
    inventory = scan(root)
    assert {unit.name: unit.needs for unit in inventory.units} == {
        "Conv": (),
        "Net": ("pkg/layers.py:Conv",),
        "Top": ("pkg/layers.py:Conv", "pkg/net.py:Net"),
    }
    assert {file.path: file.imports for file in inventory.files} == {
        "main.py": ("pkg/__init__.py", "pkg/layers.py", "pkg/net.py"),
        "pkg/__init__.py": ("pkg/factory.py", "pkg/layers.py"),
        "pkg/factory.py": ("pkg/layers.py",),
        "pkg/layers.py": (),
        "pkg/net.py": ("pkg/__init__.py", "pkg/factory.py"),
    }


def test_imports_through_a_star(write: Write) -> None:
    root = write(
        {"p/__init__.py": "from .a import A\nfrom .b import *", "p/a.py": "class A: ...", "p/b.py": "B = 1", "m.py": "from p import *"}
    )
    assert {file.path: file.imports for file in scan(root).files}["m.py"] == ("p/__init__.py", "p/a.py", "p/b.py")


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("import torch", True),
        ("def f():\n    import torch.nn as nn", True),
        ("from torchvision import models", True),
        ("from einops.layers.torch import Rearrange", True),
        ("from einops import rearrange", False),
        ("import numpy", False),
        ("from other import thing", False),
        ("from other import nn\ndef f(): return nn.Linear(1, 1)", True),
        ("from other import Net\nclass A(Net): ...", True),
    ],
)
def test_uses_torch(write: Write, text: str, uses: bool) -> None:
    other = "from torch import nn\nthing = 1\nclass Net(nn.Module): ...\n"
    files = {file.path: file for file in scan(write({"m.py": text, "other.py": other})).files}
    assert files["m.py"].uses_torch is uses


def test_one_bad_file_never_stops_the_others(write: Write) -> None:
    good = "from torch import nn\nclass A(nn.Module): ...\n"
    inventory = scan(
        write(
            {
                "good.py": good,
                "syntax.py": "import torch\n\ndef f(:\n",
                "bytes.py": b"x = 1\n\n# \xff\n",
                "null.py": b"x = 1\x00\n",
                "deep.py": "x = " + "(" * 3000 + ")" * 3000,
                "chain.py": "x = 1" + " + 1" * 20000,
                "empty.py": "",
                "child.py": "from syntax import Base\nclass B(Base): ...\n",
            }
        )
    )
    errors = {file.path: file.error for file in inventory.files}
    assert [unit.id for unit in inventory.units] == ["good.py:A"]
    assert errors["bytes.py"] == "line 3: cannot decode byte 0xff as utf-8"
    assert errors["syntax.py"].startswith("line 3: ")
    assert errors["null.py"].startswith("line 1: ")
    assert errors["deep.py"].startswith("line 1: ")
    assert errors["chain.py"].startswith("line 1: ")
    assert errors["good.py"] == errors["empty.py"] == errors["child.py"] == ""
    assert {file.path: file.uses_torch for file in inventory.files}["syntax.py"]


NETWORK = "    def __init__(self): self.fc = nn.Linear(1, 1)\n" + FORWARD


@pytest.mark.parametrize(
    ("text", "strategy", "reason"),
    [
        (f"class A(nn.Module):\n{NETWORK}", "rewrite", ""),
        (
            f"from transformers import PreTrainedModel\nclass A(PreTrainedModel):\n{NETWORK}",
            "redesign",
            "inherits from transformers.PreTrainedModel, which",
        ),
        (f"import lightning as L\nclass A(L.LightningModule):\n{NETWORK}", "redesign", "inherits from lightning.LightningModule: split"),
        (f"from unheard_of import Base\nclass A(Base):\n{NETWORK}", "redesign", "inherits from unheard_of.Base, which"),
        (f"from torch.nn import DataParallel\nclass A(DataParallel):\n{FORWARD}", "redesign", "inherits from torch.nn.DataParallel"),
        ("class A(nn.Module):\n    def forward(self, x): return x.as_strided((2, 2), (1, 1))", "redesign", "uses x.as_strided (m.py:5)"),
        ("class A(nn.Module):\n    def forward(self, x): return torch.as_strided(x, (2,), (1,))", "redesign", "uses torch.as_strided"),
        (
            "import torch.distributed as d\nclass A(nn.Module):\n    def forward(self, x): d.send(x, 1)",
            "redesign",
            "uses torch.distributed.send",
        ),
        (
            "import torch.distributed as d\ndef s(x): d.send(x, 1)\nclass A(nn.Module):\n    def forward(self, x): s(x)",
            "redesign",
            "uses torch.distributed.send through s",
        ),
        ("import torch.distributed as d\nclass A(nn.Module):\n    def forward(self, x): return d.get_rank()", "rewrite", ""),
        (
            "from flash_attn import flash_attn_func as f\nclass A(nn.Module):\n    def forward(self, x): return f(x)",
            "substitute",
            "uses flash_attn.flash_attn_func (",
        ),
        (
            "try:\n    import xformers.ops as xo\nexcept ImportError:\n    xo = None\n"
            "class A(nn.Module):\n    def forward(self, x): return xo.memory_efficient_attention(x)",
            "substitute",
            "uses xformers.ops.memory_efficient_attention",
        ),
        (
            "import triton\n@triton.jit\ndef k(p): ...\ndef run(x): k[(1,)](x)\n"
            "class A(nn.Module):\n    def forward(self, x): return run(x)",
            "substitute",
            "uses triton.jit through k",
        ),
        (
            "import triton\n@triton.jit\ndef k(p): ...\nclass Fn(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x): k[(1,)](x)\n"
            "go = Fn.apply\nclass A(nn.Module):\n    def forward(self, x): return go(x)",
            "substitute",
            "uses triton.jit through k",
        ),
        (
            "from torch.utils.cpp_extension import load_inline\next = load_inline('a')\n"
            "class A(nn.Module):\n    def forward(self, x): return ext.go(x)",
            "substitute",
            "uses torch.utils.cpp_extension.load_inline through ext",
        ),
        (
            # a table of alternatives does not decide for all that look things up in it
            "from flash_attn import f\ndef fast(x): return f(x)\ndef plain(x): return x\nTABLE = {'fast': fast, 'plain': plain}\n"
            "class A(nn.Module):\n    def forward(self, x): return TABLE['plain'](x)",
            "rewrite",
            "",
        ),
        (
            "from PIL import Image\nclass A(nn.Module):\n    def forward(self, p): return Image.open(p)",
            "keep",
            "no torch maths: it wraps PIL.Image.open",
        ),
        ("from PIL import Image\nclass A(nn.Module):\n    def forward(self, p): return F.relu(torch.tensor(Image.open(p)))", "rewrite", ""),
    ],
)
def test_strategy(write: Write, text: str, strategy: str, reason: str) -> None:
    unit = scan(write({"m.py": HEAD + text})).unit("m.py:A")
    assert unit.strategy == strategy
    assert unit.reason.startswith(reason) and bool(unit.reason) == bool(reason)


@pytest.mark.parametrize(
    "text",
    [
        "from unheard_of import Base\nclass A(Base):\n    def forward(self, x): return x",
        "from unheard_of import Base\nclass A(Base):\n    def __init__(self): self.fc = nn.Linear(1, 1)",
        f"from enum import Enum\nclass A(Enum):\n{NETWORK}",
        f"import torch.autograd as g\nclass A(g.Function):\n{NETWORK}",
        f"class A:\n{NETWORK}",
    ],
)
def test_not_plainly_a_module(write: Write, text: str) -> None:
    assert scan(write({"m.py": HEAD + text})).units == ()


def test_strategy_of_the_bases_passes_to_their_children(write: Write) -> None:
    root = write(
        {"m.py": f"{HEAD}import lightning as L\nclass A(L.LightningModule): ...\nclass B(A):\n{NETWORK}class C(nn.Module):\n{NETWORK}"}
    )
    assert {unit.name: unit.strategy for unit in scan(root).units} == {"A": "redesign", "B": "redesign", "C": "rewrite"}


def test_modules_that_only_tests_use(write: Write) -> None:
    root = write(
        {
            "net.py": "from torch import nn\nfrom tests.parts import Part\nclass Net(nn.Module):\n    def f(self): return Part()",
            "tests/parts.py": "from torch import nn\nclass Part(nn.Module): ...\nclass Fake(nn.Module): ...",
            "test_net.py": "from torch import nn\nclass Dummy(nn.Module): ...",
        }
    )
    assert {unit.name: unit.strategy for unit in scan(root).units} == {"Net": "rewrite", "Part": "rewrite", "Fake": "keep", "Dummy": "keep"}


def test_unit_fields(write: Write) -> None:
    unit = scan(write({"src/p/__init__.py": "", "src/p/m.py": HEAD + "\n@torch.no_grad\nclass A(nn.Module): ..."})).units[0]
    assert (unit.id, unit.target, unit.line) == ("src/p/m.py:A", "src/p_jax/m.py", 6)


@pytest.mark.parametrize(
    ("paths", "exclude", "units", "found"),
    [
        (None, [], ["base.py:Base", "pkg/a.py:A", "pkg/b.py:B"], ["base.py", "pkg/a.py"]),
        (["pkg/a.py"], [], ["base.py:Base", "pkg/a.py:A"], ["pkg/a.py"]),
        (["pkg"], [], ["base.py:Base", "pkg/a.py:A", "pkg/b.py:B"], ["pkg/a.py"]),
        (["base.py", "./pkg/b.py"], [], ["base.py:Base", "pkg/b.py:B"], ["base.py"]),
        (["none.py"], [], [], []),
        (None, ["base.py"], ["pkg/b.py:B"], ["pkg/a.py"]),
    ],
)
def test_narrowed(write: Write, paths: list[str] | None, exclude: list[str], units: list[str], found: list[str]) -> None:
    root = write(
        {
            "base.py": "import torch\nclass Base(torch.nn.Module): ...\ndef save(m): torch.save(m, 'm')",
            "pkg/a.py": "import torch\nfrom base import Base\nclass A(Base): ...\ndef save(m): torch.save(m, 'm')",
            "pkg/b.py": "import torch\nclass B(torch.nn.Module): ...",
        }
    )
    inventory = scan(root, paths, exclude)
    assert [unit.id for unit in inventory.units] == units
    assert list(dict.fromkeys(finding.source for finding in inventory.findings)) == found


FUSED = "from torch import nn\nimport torch\ndef norm(d):\n{}    return nn.LayerNorm(d)\nclass A(nn.Module):\n    def __init__(self, d): self.n = norm(d)\n"


@pytest.mark.parametrize(
    ("body", "strategy"),
    [
        ("    from apex.normalization import FusedLayerNorm\n    return FusedLayerNorm(d)\n", "substitute"),
        (
            "    try:\n        from apex.normalization import FusedLayerNorm\n        return FusedLayerNorm(d)\n    except ImportError: pass\n",
            "rewrite",
        ),
        ("    if torch.cuda.is_available():\n        from apex.normalization import F\n        return F(d)\n", "rewrite"),
        ("    if d > 3:\n        from apex.normalization import F\n        return F(d)\n", "substitute"),
    ],
)
def test_kernels_that_the_source_can_do_without_are_no_reason_to_substitute(write: Write, body: str, strategy: str) -> None:
    assert [unit.strategy for unit in scan(write({"m.py": FUSED.format(body)})).units] == [strategy]
