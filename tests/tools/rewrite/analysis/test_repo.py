"""Names that a file has from other files, torch's own among them."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.scan import scan

FILES = {
    "__init__.py": "",
    "base.py": "import torch\nfrom torch import nn as nn\nfrom torch.nn import functional as F\n\n_hidden = 1\n\ndef swish(x):\n    return x * x.sigmoid()\n",
    "middle.py": "from .base import *\n",
    "named.py": '__all__ = ["shown"]\nimport torch\n\ndef shown(x):\n    return x\n',
    "layers.py": "from torch.nn import *\n",
    "builder.py": "from .layers import *\nfrom torch.nn.functional import *\n\nKINDS = {'norm': LayerNorm, 'relu': relu, 'most': max}\n",
    "user.py": "from .middle import *\nfrom .named import *\n\nACTIVATIONS = {'relu': F.relu, 'swish': swish}\nDTYPE = torch.float32\n",
}


def test_torchs_names_come_through_star_imports(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    space = Workspace(scan(tmp_path), {})
    text = "".join(statement.text for statement in space.statements("pkg/user.py"))
    assert "'relu': jax.nn.relu, 'swish': swish" in text and "DTYPE = jnp.float32" in text
    assert not space.rewritten("pkg/user.py").holes
    bindings = space.repo.files["pkg/user.py"].bindings
    assert bindings["swish"] == "pkg.middle.swish" and bindings["shown"] == "pkg.named.shown" and "_hidden" not in bindings
    text = "".join(statement.text for statement in space.statements("pkg/builder.py"))
    assert "'norm': LayerNorm, 'relu': jax.nn.relu, 'most': max" in text and not space.rewritten("pkg/builder.py").holes
    assert space.repo.files["pkg/builder.py"].bindings["LayerNorm"] == "torch.nn.LayerNorm"


HANDED_ON = {
    "__init__.py": "",
    "compat.py": "import torch.nn as nn\nfrom torch import Tensor, dtype as _dtype\nfrom torch.nn import functional\n\nWidth = int\n",
    "types.py": "from pkg.compat import Tensor, _dtype, Width\nfrom math import pi\n",
    "user.py": (
        "from .types import Tensor as T, _dtype, Width, pi\nfrom pkg.compat import nn, functional as F\n\n\n"
        "class Net(nn.Module):\n    def __init__(self, width: Width, dtype: _dtype = None):\n        super().__init__()\n"
        "        self.fc = nn.Linear(width, width)\n\n    def forward(self, x: T):\n        return F.relu(self.fc(x)) * pi\n"
    ),
}


def test_what_files_hand_on_of_torch(tmp_path: Path) -> None:
    for name, text in HANDED_ON.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    space = Workspace(scan(tmp_path), {})
    text = "".join(statement.text for statement in space.statements("pkg/user.py"))
    assert not space.rewritten("pkg/user.py").holes
    # Of the imports, what is not torch's stays.
    assert "from .types import Width, pi\n" in text and "import nn" not in text
    assert "class Net(nnx.Module)" in text and "dtype: jnp.dtype = None" in text and "jax.nn.relu(self.fc(x)) * pi" in text
    assert "from pkg_jax.compat import Width" in "".join(statement.text for statement in space.statements("pkg/types.py"))


OTHER_NAMES = {
    "__init__.py": "",
    "base.py": (
        "import sys\nfrom torch import nn\n\n\nclass Base(nn.Module):\n    pass\n\n\nCalculation = Base\nDense = nn.Linear\nModule = nn.Module\n"
        "Either = Base\nif sys.argv:\n    Either = dict\n"
    ),
    "user.py": (
        "from .base import Calculation, Dense, Either, Module\n\n\nclass Told(Calculation):\n    pass\n\n\nclass Layer(Dense):\n    pass\n\n\n"
        "class Net(Module):\n    pass\n\n\nShort = Net\n\n\nclass Long(Short):\n    pass\n\n\nclass Unsure(Either):\n    pass\n"
    ),
}


def test_bases_under_another_name(tmp_path: Path) -> None:
    for name, text in OTHER_NAMES.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    repo = Workspace(scan(tmp_path), {}).repo
    classes = repo.files["pkg/user.py"].classes
    assert repo.bases(classes["Told"]) == ["pkg.base.Base"] and repo.bases(classes["Layer"]) == ["torch.nn.Linear"]
    assert repo.class_of("pkg.user.Short") is classes["Net"]
    # What a file binds twice may be either, so nothing is known of it.
    assert [name for name, model in classes.items() if repo.is_module_class(model)] == ["Told", "Layer", "Net", "Long"]
