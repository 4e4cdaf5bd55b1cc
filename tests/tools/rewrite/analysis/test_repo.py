"""Names that `from module import *` binds, torch's own among them."""

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
