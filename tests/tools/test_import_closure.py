"""What a unit needs of the files that are imported for it, and that nothing else of them runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.harness.common import reach
from migrate_agent.tools.harness.common.example_text import construct, import_module, load_unit, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.import_closure import merged_parts, needed_parts, needed_roots, runs_scripts
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example

CLASS = """

class Net(nn.Module):
    def forward(self, x):
        return {body}
"""
SCRIPT = """import torch, argparse
import absent
from torch import nn
from helpers_x import widen, plot

torch.set_flush_denormal(False)
args = argparse.ArgumentParser().parse_args()
open("touched", "w").close()
SLOPE = 0.2
TABLE = {}


@TABLE.setdefault("a", 1).register
def unused(x):
    return x


def gate(x):
    return x * SLOPE
"""
HELPERS = """import absent


def widen(x):
    return 2 * x


def plot(x):
    absent.plot(x)
"""


def parts_of(root: Path, files: Mapping[str, str], unit: str, *texts: str) -> dict[str, Any]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    inventory = scan(root)
    examples = [Example(unit, "", text) for text in texts]
    return needed_parts(inventory, inventory.unit(unit), examples)


def lines(text: str, part: Mapping[str, Any]) -> list[str]:
    """The first words of the kept statements, with the names kept of imports."""
    body = ast.parse(text).body
    return [f"{ast.unparse(body[index]).split()[0]} {','.join(names or ())}".strip() for index, names in part["kept"]]


def test_definitions_constants_and_imports_are_kept(tmp_path: Path) -> None:
    text = SCRIPT + CLASS.format(body="gate(widen(x))")
    parts = parts_of(tmp_path, {"net.py": text, "helpers_x.py": HELPERS}, "net.py:Net")
    kept = ["import torch", "from nn", "from widen", "torch.set_flush_denormal(False)", "SLOPE", "def", "class"]
    assert lines(text, parts["net.py"]) == kept
    assert lines(HELPERS, parts["helpers_x.py"]) == ["def"]
    assert (parts["net.py"]["script"], parts["helpers_x.py"]["script"]) == (True, False)
    assert runs_scripts(parts)


def test_names_of_the_example_are_kept(tmp_path: Path) -> None:
    text = SCRIPT + CLASS.format(body="x")
    parts = parts_of(tmp_path, {"net.py": text, "helpers_x.py": HELPERS}, "net.py:Net", "torch.ones(3) * SLOPE")
    assert "SLOPE" in lines(text, parts["net.py"]) and "def" not in lines(text, parts["net.py"])


def test_nothing_is_trained_for_a_name(tmp_path: Path) -> None:
    text = "from torch import nn\nfor x in data:\n    loss = f(x)\n    loss.backward()\n" + CLASS.format(body="x * loss")
    assert lines(text, parts_of(tmp_path, {"net.py": text}, "net.py:Net")["net.py"]) == ["from nn", "class"]


@pytest.mark.parametrize("look_up", ["eval('Part' + kind)", "globals()[kind]"])
def test_what_is_asked_for_by_its_name_is_kept(tmp_path: Path, look_up: str) -> None:
    parts_file = f"class PartA:\n    ...\n\n\ndef get(kind):\n    return {look_up}\n\n\nLIMIT = 2\n"
    text = "from torch import nn\nfrom parts_x import get\n" + CLASS.format(body="get(x)")
    parts = parts_of(tmp_path, {"net.py": text, "parts_x.py": parts_file}, "net.py:Net")
    assert lines(parts_file, parts["parts_x.py"]) == ["class", "def", "LIMIT"]


@pytest.mark.parametrize(
    ("package", "imports", "body"),
    [
        ("from .deep import f, g\n", "from pkg_x import f", "f(x)"),
        ("from .deep import *\n", "from pkg_x import f", "f(x)"),
        ("", "import pkg_x.deep", "pkg_x.deep.f(x)"),
        ("", "from pkg_x import deep", "deep.f(x)"),
        ("from . import deep\n", "import pkg_x as p", "p.deep.f(x)"),
        ("", "import pkg_x.deep as d", "d.f(x)"),
    ],
)
def test_names_are_followed_through_packages(tmp_path: Path, package: str, imports: str, body: str) -> None:
    deep = "def f(x):\n    return x\n\n\ndef g(x):\n    return absent(x)\n"
    files = {"pkg_x/__init__.py": package, "pkg_x/deep.py": deep, "net.py": f"from torch import nn\n{imports}\n{CLASS.format(body=body)}"}
    parts = parts_of(tmp_path, files, "net.py:Net")
    assert parts["pkg_x/deep.py"]["kept"] == [[0, None]]
    assert parts["pkg_x/__init__.py"]["kept"] == ([[0, [package.split()[3].strip(",")]]] if package else [])


@pytest.mark.parametrize(
    ("files", "roots"), [({}, ("",)), ({"scripts/helper.py": "", "helper.py": ""}, ()), ({"a/helper.py": "", "b/helper.py": ""}, ("",))]
)
def test_other_import_roots(tmp_path: Path, files: Mapping[str, str], roots: tuple[str, ...]) -> None:
    imports = "from torch import nn\nfrom pkg_x.deep import f\nfrom helper_x import g\n"
    files = {
        **files,
        "pkg_x/__init__.py": "",
        "pkg_x/deep.py": "def f(x):\n    return x\n",
        "scripts/helper_x.py": "def g(x):\n    return x\n",
        "scripts/net.py": imports + CLASS.format(body="f(g(x))"),
    }
    parts_of(tmp_path, files, "scripts/net.py:Net")
    inventory = scan(tmp_path)
    assert needed_roots(inventory, inventory.unit("scripts/net.py:Net"), ()) == roots


def test_parts_of_two_units_are_merged() -> None:
    one: Any = {"a.py": {"script": False, "kept": [[0, ["x"]], [2, None]]}}
    other: Any = {"a.py": {"script": False, "kept": [[0, ["y"]], [1, None]]}, "b.py": {"script": True, "kept": []}}
    merged = merged_parts([one, other])
    assert merged == {"a.py": {"script": False, "kept": [[0, ["x", "y"]], [1, None], [2, None]]}, "b.py": {"script": True, "kept": []}}


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is imported from; what was imported is forgotten."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path
    use_parts({}, tmp_path)
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_script_runs_by_its_part(importing: Path) -> None:
    text = SCRIPT + CLASS.format(body="gate(widen(x))")
    use_parts(parts_of(importing, {"net_x.py": text, "helpers_x.py": HELPERS}, "net_x.py:Net"), importing)
    module = import_module("net_x")
    assert module.Net()(2.0) == 0.8 and not (importing / "touched").exists() and not hasattr(module, "args")


def test_other_files_run_whole(importing: Path) -> None:
    text = "from torch import nn\nUNUSED = 1\n" + CLASS.format(body="x")
    use_parts(parts_of(importing, {"net_y.py": text}, "net_y.py:Net"), importing)
    assert import_module("net_y").UNUSED == 1


@pytest.mark.parametrize(
    ("imports", "use", "error"),
    [
        ("import absent_y", "absent_y.f(x)", AttributeError),
        ("import absent_y.deep", "absent_y.deep.f(x)", AttributeError),
        ("from absent_y import f", "f(x)", ModuleNotFoundError),
        ("from absent_y import f", "f[x]", ModuleNotFoundError),
        ("from absent_y import Base as f", "isinstance(x, f)", ModuleNotFoundError),
        ("from math import absent_y, pi", "absent_y(pi)", ImportError),
    ],
)
def test_an_absent_name_is_an_error_where_it_is_used(importing: Path, imports: str, use: str, error: type[Exception]) -> None:
    text = f"from torch import nn\n{imports}\nimport absent_x\n" + CLASS.format(body=f"{use} if x else 3")
    use_parts(parts_of(importing, {"net_z.py": text}, "net_z.py:Net"), importing)
    net = import_module("net_z").Net()
    assert net(0) == 3
    with pytest.raises(error, match="absent_y"):
        net(1)


def test_folders_below_a_package_that_is_imported_again(importing: Path) -> None:
    text = "import absent_w\nfrom torch import nn\n" + CLASS.format(body="x")
    parts = parts_of(importing, {"kit_w/__init__.py": "", "kit_w/bare/net_w.py": text}, "kit_w/bare/net_w.py:Net")
    use_parts({**parts, "kit_w/__init__.py": {"script": False, "kept": []}}, importing)
    assert import_module("kit_w.bare.net_w").Net()(3) == 3


@pytest.mark.parametrize("use", ["class Net(Base, nn.Module):", "class Net(Base.Inner, nn.Module):", "@Base\nclass Net(nn.Module):"])
def test_what_an_import_needs_is_an_error_there(importing: Path, use: str) -> None:
    text = f"from torch import nn\nfrom absent_y import Base\n\n\n{use}\n    def forward(self, x):\n        return x\n"
    use_parts(parts_of(importing, {"net_u.py": text}, "net_u.py:Net"), importing)
    with pytest.raises(ModuleNotFoundError, match="absent_y"):
        import_module("net_u")


def test_what_a_setup_imports_runs_by_its_part(importing: Path) -> None:
    layers = "import absent\nfrom torch import nn\n\n\nclass Gate(nn.Module):\n    def forward(self, x):\n        return 2 * x\n"
    text = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, part):\n        super().__init__()\n        self.part = part\n"
    setup, files = "from layers_x import Gate", {"net_v.py": text, "layers_x.py": layers}
    for path, content in files.items():
        (importing / path).write_text(content)
    inventory, example = scan(importing), Example("net_v.py:Net", "Gate()", "", setup)
    use_parts(needed_parts(inventory, inventory.unit(example.unit), [example]), importing)
    namespace = make_namespace(import_module("net_v"), example)
    instance = construct(load_unit("net_v", "Net"), example, namespace)
    assert isinstance(instance, namespace["Net"]) and instance.part(3.0) == 6.0


def test_parts_are_counted(importing: Path) -> None:
    text = SCRIPT + CLASS.format(body="gate(widen(x))")
    parts = parts_of(importing, {"net_w.py": text, "helpers_x.py": HELPERS}, "net_w.py:Net")
    reach.count(importing)
    use_parts(parts, importing)
    module = import_module("net_w")
    reach.take()
    module.Net()(2.0)
    assert sorted(reach.by_file(reach.take())) == ["helpers_x.py", "net_w.py"]


BACKEND = """import absent


def pool(x):
    return 2 * x


def plot(x):
    absent.plot(x)
"""


@pytest.mark.parametrize("use", ['register("own", backend_x)', "getattr(backend_x, 'po' + 'ol')(1)"])
def test_a_module_that_is_handed_on_is_kept_whole(tmp_path: Path, use: str) -> None:
    text = f"from torch import nn\nimport backend_x\nTABLE = {{}}\n\n\ndef register(name, module):\n    TABLE[name] = module\n\n\nWIDTH = {use}\n"
    parts = parts_of(tmp_path, {"net.py": text + CLASS.format(body="x * WIDTH"), "backend_x.py": BACKEND}, "net.py:Net")
    assert lines(BACKEND, parts["backend_x.py"]) == ["import absent", "def", "def"]


def test_a_module_of_which_a_name_is_read_is_kept_in_part(tmp_path: Path) -> None:
    text = "from torch import nn\nimport backend_x\n" + CLASS.format(body="backend_x.pool(x)")
    parts = parts_of(tmp_path, {"net.py": text, "backend_x.py": BACKEND}, "net.py:Net")
    assert lines(BACKEND, parts["backend_x.py"]) == ["def"]


@pytest.mark.parametrize(("seed", "kept"), [("3", True), ("args.seed", False)])
def test_seeds_that_a_script_parses_are_not_asked_for(tmp_path: Path, seed: str, kept: bool) -> None:
    text = f"import torch\nfrom torch import nn\nfrom options_x import args\ntorch.manual_seed({seed})\n" + CLASS.format(body="x")
    parts = parts_of(tmp_path, {"net.py": text, "options_x.py": "args = parse()\n"}, "net.py:Net")
    assert (f"torch.manual_seed({seed})" in lines(text, parts["net.py"])) is kept
    assert ("options_x.py" in parts) is False


def test_the_else_of_a_main_block_is_imported(tmp_path: Path) -> None:
    start = "import torch, absent\nfrom torch import nn\n\nif __name__ == '__main__':\n    from helpers_x import widen\nelse:\n    from .helpers_x import widen\n"
    text = start + CLASS.format(body="widen(x)")
    parts = parts_of(tmp_path, {"pkg/__init__.py": "", "pkg/net.py": text, "pkg/helpers_x.py": HELPERS}, "pkg/net.py:Net")
    assert lines(text, parts["pkg/net.py"]) == ["from nn", "if", "class"]
    assert "def" in lines(HELPERS, parts["pkg/helpers_x.py"])
