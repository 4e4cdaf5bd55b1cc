"""Example texts in the mirror's names bring what they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.rewrite.assemble.translate import Untranslatable
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Inventory, SourceFile, Unit

SOURCE = "from torch import nn\n\n{more}class Net(nn.Module):\n    def __init__(self, act):\n        super().__init__()\n        self.act = act\n"


@pytest.mark.parametrize(
    ("path", "more", "init", "line"),
    [
        ("model.py", "", "nn.GELU()", "from nnx_layers_jax import GELU"),
        ("pkg/model.py", "", "nn.GELU()", "from pkg_jax.nnx_layers import GELU"),
        ("model.py", "class GELU:\n    pass\n\n\n", "nn.GELU()", "import nnx_layers_jax as nnx_layers"),
        ("pkg/model.py", "class GELU:\n    pass\n\n\n", "nn.GELU()", "from pkg_jax import nnx_layers"),
    ],
)
def test_imports_of_helpers(tmp_path: Path, path: str, more: str, init: str, line: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(SOURCE.format(more=more))
    target = "pkg_jax/model.py" if "/" in path else "model_jax.py"
    file = SourceFile(path, path[:-3].replace("/", "."), target, target[:-3].replace("/", "."), True)
    inventory = Inventory(tmp_path, (file,), (Unit(path, "Net", target, "rewrite"),))
    assert line in translate(inventory, {}, Example(f"{path}:Net", init, "")).setup


def test_functions_with_gradients_of_their_own_are_named_as_in_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE.format(more=""))
    inventory = scan(tmp_path)
    methods = ["apply of model.Round", "apply of other.Round", "encode"]
    translated = [translate(inventory, {}, Example("model.py:Net", "None", "", method=method)).method for method in methods]
    assert translated == ["apply of model_jax.Round", "apply of other.Round", "encode"]


def test_modules_of_setup_have_a_generator(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE.format(more=""))
    inventory = scan(tmp_path)
    setup = "act = nn.Linear(2, 2)\nmask = torch.ones(2)"
    assert translate(inventory, {}, Example("model.py:Net", "act", "", setup)).setup.endswith(
        "act = Linear(2, 2, rngs=nnx.Rngs(0))\nmask = jnp.ones(2)"
    )
    with pytest.raises(Untranslatable, match="is at hand"):
        translate(inventory, {}, Example("model.py:Net", "act", "", "act = torch.randn(2)"))


def test_packages_are_followed_to_what_is_read_from_them(tmp_path: Path) -> None:
    texts = {
        "pkg/__init__.py": "from . import parts\n",
        "pkg/parts/__init__.py": "from .second import Second\nfrom .first import First\n",
        "pkg/parts/second.py": "class Second:\n    pass\n",
        "pkg/parts/first.py": "from . import Second\n\n\nclass First(Second):\n    pass\n",
        "pkg/model.py": "import pkg\n" + SOURCE.format(more="") + "        self.other = pkg.parts.Second()\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    inventory = scan(tmp_path)
    example = Example("pkg/model.py:Net", "pkg.parts.First()", "", "import pkg")
    draft = compose(inventory, {}, [example.unit], examples=[example])
    assert not draft.holes
    assert "import pkg_jax" in draft.files["pkg_jax/model.py"] and "class First" in draft.files["pkg_jax/parts/first.py"]
    assert draft.files["pkg_jax/parts/__init__.py"].splitlines()[:2] == texts["pkg/parts/__init__.py"].splitlines(), (
        "the order is the source's"
    )


def test_imports_that_only_the_call_used(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "values.py").write_text("class Pair:\n    pass\n\n\ndef act(x):\n    return x\n")
    (tmp_path / "pkg" / "model.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, act):\n        super().__init__()\n"
    )
    setup = "import math\nfrom pkg.values import Pair, act\nfrom pkg import values"
    inventory = scan(tmp_path)
    assert (
        translate(inventory, {}, Example("pkg/model.py:Net", "act", "Pair()", setup)).setup == "import math\nfrom pkg_jax.values import act"
    )
