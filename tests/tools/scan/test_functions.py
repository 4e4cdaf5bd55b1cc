"""Which functions of a repository are units, and why others are none."""

from __future__ import annotations

import pytest

from migrate_agent.tools.scan import scan
from tests.tools.scan.conftest import Write

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
UNITS = (
    "def f(x): return torch.relu(x)",
    "def f(x): return F.mse_loss(x, x)",
    "def f(a, t): return a.gather(-1, t)",
    "def f(x): return nn.MSELoss()(x, x)",
    "def f(x):\n    act = nn.ReLU()\n    return act(x)",
    "def f(x: torch.Tensor): return x + 1",
    "@torch.no_grad()\ndef f(x): return x.argmax(-1)",
    "import numpy as np\ndef f(x): return x.view(-1).unsqueeze(0) * np.sqrt(2)",
    "import numpy as np\ndef f(x): return torch.from_numpy(np.arange(3)) + torch.relu(x)",
    "def f(x):\n    y = x + 1\n    y.clamp_(0, 1)\n    return y",
    "def f(x): return x.split(2)[0]",
    "def f(d: nn.Module, x):\n    return torch.autograd.grad(d(x).sum(), x)[0]",
)
NO_UNITS = (
    "def f(n): return n + 1",
    "import math\nimport numpy as np\ndef f(n): return math.cos(n) + np.linalg.norm(n)",
    "import numpy as np\ndef f(d, pos): return np.einsum('m,d->md', pos.reshape(-1), np.arange(d))",
    "def f(x): x.zero_()",
    "def f(x):\n    yield torch.relu(x)",
    "def f(x):\n    torch.relu(x).backward()\n    return x",
    "def f(path): return torch.relu(torch.load(path))",
    "def f(model): return torch.stack([p.norm() for p in model.parameters()])",
    "def f(): return nn.Sequential(nn.Linear(2, 2))",
    "def f(name): return nn.ReLU() if name == 'relu' else nn.Identity()",
    "def f(name): return {'relu': nn.ReLU, 'gelu': nn.GELU}[name]",
    "def f(m):\n    nn.init.zeros_(m.weight)\n    return m.weight.abs()",
    "def f(seed):\n    torch.manual_seed(seed)\n    return seed",
    "data = torch.load('a.pt')\ndef f(i): return torch.stack([data[i]])",
    "class A(nn.Module): ...\ndef f(x): return torch.relu(A()(x))",
    "def _f(x): return torch.relu(x)",
    "@torch.jit.script\ndef f(x, n): return torch.tanh(x[:, : n[0]]) * x[:, n[0] :]",
    "@torch.jit.script\ndef f(x, n: torch.Tensor):\n    k = int(n[0])\n    return torch.tanh(x[:, :k])",
    "def f(tensor, std=1.0):\n    with torch.no_grad():\n        tensor.normal_(0, std)\n        return tensor.clamp_(-2, 2)",
    "def f(w): return w.data.uniform_(-1, 1).mul_(2)",
    "def f(x): return x[torch.randint(9, (4,))]\ndef main(loss): loss.backward()",
    "from torchvision import transforms\ndef f(x): return transforms.ToTensor()(x).mean()",
    "def f(x): return x.clip(0, 255).round().astype('uint8')",
    "def f(x): return x[::-1].squeeze(0)",
    "def f(x): return x.transpose(1, 0, 2).squeeze(0)",
    "import torchvision.transforms as T\ndef f(x): return T.ToTensor()(x).mean()",
    "def f(net, data_loader): return sum(net(x).argmax(-1).sum() for x, _ in data_loader)",
    "def f(net, val_loader):\n    out = []\n    for i, x in enumerate(val_loader):\n        out.append(net(x).argmax(-1))\n    return torch.cat(out)",
    "import os\ndef f(path): return torch.tensor(len(os.listdir(path)))",
    "def f(names):\n    kept = list(names)\n    kept.sort()\n    return kept",
    "def f(line): return line.split(',')[0]",
    "def f(line): return len(line.split())",
    "def f(words):\n    seen = set()\n    seen.add(words[0])\n    return seen",
)


SCALARS = (
    "@torch.jit.script\ndef f(x, n: int): return torch.tanh(x[:, :n])",
    "@torch.jit.script\ndef f(x, n): return torch.tanh(x * n[0])",
    "@torch.jit.script\ndef f(x, n): return torch.tanh(x[:, : n[0]] + n)",
    "def f(x, n): return torch.tanh(x[:, : n[0], : n[1]])",
    "def f(x): return x + torch.empty_like(x).normal_()",
)
"""What reads no size of a tensor alone, or draws into a tensor of its own."""


@pytest.mark.parametrize("text", (*UNITS, *SCALARS))
def test_tensor_maths_is_a_unit(write: Write, text: str) -> None:
    units = scan(write({"m.py": f"{HEAD}\n{text}\n"})).units
    assert [(unit.id, unit.kind, unit.strategy) for unit in units] == [("m.py:f", "function", "rewrite")]


@pytest.mark.parametrize("text", NO_UNITS)
def test_program_code_is_none(write: Write, text: str) -> None:
    assert [unit for unit in scan(write({"m.py": f"{HEAD}\n{text}\n"})).units if unit.kind == "function"] == []


def test_the_reason_is_told(write: Write) -> None:
    text = "def f(model): return torch.stack([p.norm() for p in model.parameters()])"
    (finding,) = [finding for finding in scan(write({"m.py": f"{HEAD}\n{text}\n"})).findings if finding.name == "f"]
    assert finding.detail == "it calls parameters: it handles modules, and is part of a program"


def test_a_function_comes_before_what_calls_it(write: Write) -> None:
    """Over files, and through a private helper; what only calls such functions is tensor maths too."""
    root = write(
        {
            "losses.py": f"{HEAD}\ndef both(x): return _twice(x) + one(x)\ndef _twice(x): return 2 * one(x)\ndef one(x): return x.exp()\n",
            "model.py": f"{HEAD}from losses import both\nclass A(nn.Module):\n    def forward(self, x): return both(x)\n",
        }
    )
    assert [(unit.id, unit.needs) for unit in scan(root).units] == [
        ("losses.py:one", ()),
        ("losses.py:both", ("losses.py:one",)),
        ("model.py:A", ("losses.py:both", "losses.py:one")),
    ]


def test_functions_of_tests_are_none(write: Write) -> None:
    assert scan(write({"tests/test_m.py": f"{HEAD}\ndef f(x): return torch.relu(x)\n"})).units == ()


def test_what_hands_on_to_an_initialiser_is_one(write: Write) -> None:
    text = "def trunc_(t, std): return _trunc(t, std)\ndef _trunc(t, std): return t.uniform_(-1, 1).mul_(std)\ndef f(x): return x + torch.ones(2)\n"
    assert [unit.id for unit in scan(write({"m.py": f"{HEAD}\n{text}"})).units] == ["m.py:f"]
