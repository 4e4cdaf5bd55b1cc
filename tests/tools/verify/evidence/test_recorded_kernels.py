"""What takes a kernel's place, beside calls of the kernel that were recorded where it ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.types import Inventory, KernelCall, Limits, SourceFile, Unit, Verdict
from migrate_agent.tools.vendored import autograd
from migrate_agent.tools.verify.evidence import recorded_kernels

UNIT = Unit("pkg/model.py", "Net", "pkg_jax/model.py", "rewrite")
FILES = ("pkg/model.py", "pkg/ops.py", "pkg/other.py")
IMPORT = "import jax\nimport jax.numpy as jnp\n\n\n"
TWO = {"tuple": [{"list": [{"leaf": 0}, {"float": "2.0"}]}, {"dict": []}]}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def recorded_call(folder: Path, dtype: str = "float32", name: str = "scaled", changed: tuple[str, ...] = ()) -> KernelCall:
    """`x * 2` and how many there are."""
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(dtype)
    tensor_files.save(folder / "call.safetensors", {"in/0": x, "out/0": x * 2})
    return KernelCall("pkg/ops.py", name, TWO, {"tuple": [{"leaf": 0}, {"value": 12}]}, changed, folder / "call.safetensors")


def judged(folder: Path, sandbox: Sandbox, call: KernelCall, ops: str, model: str = "from pkg_jax.ops import scaled\n") -> Verdict | None:
    """The verdict on a tree whose kernel's place is taken by `ops`."""
    tree = folder / "tree"
    for name, text in {"__init__.py": "", "model.py": model, "ops.py": IMPORT + ops, "other.py": ""}.items():
        (tree / "pkg_jax").mkdir(parents=True, exist_ok=True)
        (tree / "pkg_jax" / name).write_text(text)
    names = [(path, path.removesuffix(".py").replace("/", ".")) for path in FILES]
    files = [SourceFile(path, name, path.replace("pkg/", "pkg_jax/"), name.replace("pkg.", "pkg_jax."), True) for path, name in names]
    return recorded_kernels.judge([call], UNIT, Inventory(folder, tuple(files), (UNIT,)), tree, sandbox, Limits())


CASES = {
    "right": ("def scaled(x, factor):\n    return x * factor, x.size\n", "pass", "gives what its kernel gave"),
    "wrong": ("def scaled(x, factor):\n    return x * factor + 0.1, x.size\n", "fail", "does not give what its kernel gave"),
    "rounded": ("def scaled(x, factor):\n    return x * (factor + 1e-3), x.size\n", "unverified", "rounding"),
    "raises": ("def scaled(x, factor):\n    raise ValueError('not yet')\n", "fail", "ValueError: not yet"),
    "out of memory": ("def scaled(x, factor):\n    raise MemoryError('no')\n", "unverified", "MemoryError: no"),
    "another form": ("def scaled(x, factor):\n    return x * factor\n", "fail", "another form"),
    "another shape": ("def scaled(x, factor):\n    return x[0] * factor, x.size\n", "fail", "shape [4] instead of [3, 4]"),
    "another number": ("def scaled(x, factor):\n    return x * factor, 1\n", "fail", "elements differ"),
    "nan": ("def scaled(x, factor):\n    return x * jnp.nan, x.size\n", "fail", "NaN at other places"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_recorded_call_judges(name: str, tmp_path: Path, sandbox: Sandbox) -> None:
    text, status, told = CASES[name]
    verdict = judged(tmp_path, sandbox, recorded_call(tmp_path), text)
    assert verdict is not None
    assert (verdict.stage, verdict.check, verdict.status) == ("numeric", "recorded_kernels", status)
    assert told in verdict.detail


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_each_dtype_has_its_limit(dtype: str, tmp_path: Path, sandbox: Sandbox) -> None:
    verdict = judged(tmp_path, sandbox, recorded_call(tmp_path, dtype), "def scaled(x, factor):\n    return x * (factor + 1e-4), x.size\n")
    assert verdict is not None and verdict.status == {"float64": "unverified", "float16": "pass"}[dtype]


def test_a_function_with_a_gradient_of_its_own_is_applied(tmp_path: Path, sandbox: Sandbox) -> None:
    source = Path(autograd.__file__).read_text().partition('"""\n')[2]
    scaled = "\n\nclass Scaled(AutogradFunction):\n    @staticmethod\n    def forward(ctx, x, factor):\n        return x * factor, jnp.int32(x.size)\n"
    verdict = judged(tmp_path, sandbox, recorded_call(tmp_path, name="Scaled.forward"), source + scaled, "import pkg_jax.ops\n")
    assert verdict is not None and verdict.status == "pass"


@pytest.mark.parametrize(
    ("ops", "model", "options"),
    [
        ("def scaled(x, factor):\n    return x\n", "import pkg_jax.other\n", {}),
        ("scaled = None\n", "from pkg_jax.ops import scaled\n", {}),
        ("def scaled(x, factor):\n    return x\n", "from pkg_jax.ops import scaled\n", {"changed": ("x",)}),
    ],
    ids=["not used by the unit", "not migrated", "changes its argument"],
)
def test_what_says_nothing_is_not_judged(ops: str, model: str, options: dict[str, Any], tmp_path: Path, sandbox: Sandbox) -> None:
    assert judged(tmp_path, sandbox, recorded_call(tmp_path, **options), ops, model) is None
