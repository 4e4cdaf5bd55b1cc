"""Every detector: what it sees, what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.detectors import DETECTORS
from migrate_agent.tools.types import Finding

Write = Callable[[Mapping[str, str | bytes]], Path]
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


class Case(NamedTuple):
    """A kind, code with exactly one finding of it (in `place`, with `strategy`), and code with none."""

    kind: str
    strategy: str
    place: str
    seen: str
    ignored: str


def forward(body: str) -> str:
    return f"class A(nn.Module):\n    def forward(self, x):\n        {body}\n        return x\n"


CASES = [
    Case("training-loop", "redesign", "fit", "def fit(loss): loss.backward()", "def f(ctx, x): return ctx.backward_mode(x)"),
    Case("training-loop", "redesign", "fit", "def fit(self):\n    self.optimizer.step()", "def fit(env): env.step()"),
    Case("training-loop", "redesign", "<module>", "opt = make()\nfor x in y:\n    opt.step()", "step = 3\nadopt = step"),
    Case("training-loop", "redesign", "fit", "def fit(s, l): s.scale(l).backward()", "class A:\n    def backward(self): ..."),
    Case(
        "training-loop", "redesign", "T", "class T:\n    def fit(self, l):\n        torch.autograd.backward(l)", "torch.autograd.grad(1, 2)"
    ),
    Case("optimizer", "redesign", "make", "def make(p): return torch.optim.AdamW(p)", "def make(o: torch.optim.AdamW): ..."),
    Case(
        "optimizer", "redesign", "make", "from torch.optim.lr_scheduler import StepLR\ndef make(o): return StepLR(o)", "import torch.optim"
    ),
    Case("optimizer", "redesign", "Lion", "class Lion(torch.optim.Optimizer): ...", "class Optimizer: ..."),
    Case(
        "distributed",
        "redesign",
        "up",
        "import torch.distributed as dist\ndef up(): dist.init_process_group('nccl')",
        "import torch.distributed",
    ),
    Case("distributed", "redesign", "up", "def up(m): return nn.DataParallel(m)", "def up(m): return isinstance(m, nn.DataParallel)"),
    Case(
        "distributed",
        "redesign",
        "up",
        "from torch.nn.parallel import DistributedDataParallel as DDP\ndef up(m): return DDP(m)",
        "class DDP: ...\ndef up(m): return DDP(m)",
    ),
    Case(
        "distributed",
        "redesign",
        "up",
        "from torch.distributed.fsdp import fully_shard\ndef up(m): fully_shard(m)",
        "def up(m): fully_shard(m)",
    ),
    Case("distributed", "redesign", "r", "import torch.distributed as d\ndef r(): return d.get_rank()", "def r(d): return d.get_rank()"),
    Case("distributed", "redesign", "r", "import torch.distributed as d\ndef r(x): d.all_reduce(x)", "def r(d, x): d.all_reduce(x)"),
    Case("distributed", "redesign", "main", "import deepspeed\ndef main(m): deepspeed.initialize(m)", "import deepspeed"),
    Case("distributed", "redesign", "P", "class P(nn.DataParallel): ...", "class P(nn.Module): ..."),
    Case(
        "cuda-kernel",
        "substitute",
        "ext",
        "from torch.utils.cpp_extension import load\next = load(name='e')",
        "from json import load\nx = load(1)",
    ),
    Case("cuda-kernel", "substitute", "f", "from . import _C\ndef f(x): return _C.roi(x)", "def f(x): return torch._C.roi(x)"),
    Case(
        "cuda-kernel",
        "substitute",
        "f",
        "import deform_conv_cuda as d\ndef f(x): return d.run(x)",
        "import pycudalib as d\ndef f(x): return d.run(x)",
    ),
    Case("triton-kernel", "substitute", "k", "import triton\n@triton.jit\ndef k(p): ...", "@torch.jit.script\ndef k(p): ..."),
    Case(
        "triton-kernel",
        "substitute",
        "k",
        "from triton import autotune\n@autotune(configs=[])\ndef k(p): ...",
        "import triton.language as tl",
    ),
    Case("fused-kernel", "substitute", "A", "from flash_attn import f\n" + forward("f(x)"), "from flash_attn import f\n" + forward("f")),
    Case(
        "fused-kernel",
        "substitute",
        "g",
        "import xformers.ops as o\ndef g(x): return o.mea(x)",
        "import xformers.ops as o\ndef g(o): return o.mea()",
    ),
    Case("storage", "redesign", "A", forward("x.as_strided((1,), (1,))"), forward("x.stride()")),
    Case("storage", "redesign", "A", forward("x.t().storage()"), forward("x.storage")),
    Case("storage", "redesign", "f", "def f(x): return torch.as_strided(x, 1, 1)", "def f(x): return torch.unfold_copy(x, 1, 1)"),
    Case("storage", "redesign", "f", "def f(x, y): return x.data_ptr() == y.data_ptr()", "def f(x): return x.data"),
    Case("hooks", "redesign", "f", "def f(m): m.register_forward_hook(print)", "def f(m): m.register_buffer('a', 1)"),
    Case("cuda-runtime", "redesign", "f", "def f(): torch.cuda.synchronize()", "def f(): torch.cuda.is_available()"),
    Case("logging", "redesign", "A", forward("print(x.shape)"), "class A(nn.Module):\n    def __init__(self): print(1)"),
    Case("logging", "redesign", "A", "import wandb\n" + forward("wandb.log({})"), "import wandb\ndef f(): wandb.log({})"),
    Case(
        "logging",
        "redesign",
        "A",
        "import logging\nlogger = logging.getLogger()\n" + forward("logger.info(1)"),
        "import logging\nlogger = logging.getLogger()\n" + forward("x.log()"),
    ),
    Case("logging", "redesign", "A", forward("self.log('a', x)"), "class A:\n    def forward(self): print(1)"),
    Case("logging", "redesign", "A", forward("self.writer.add_scalar(1)"), forward("self.log_scale(x)")),
    Case(
        "data-loading",
        "keep",
        "D",
        "from torch.utils.data import Dataset\nclass D(Dataset): ...",
        "class Dataset: ...\nclass D(Dataset): ...",
    ),
    Case(
        "data-loading",
        "keep",
        "f",
        "from torch.utils.data import DataLoader as L\ndef f(d): return L(d)",
        "from torch.utils.data import DataLoader",
    ),
    Case("checkpoint-io", "keep", "f", "def f(m): torch.save(m, 'a')", "import numpy\ndef f(m): numpy.save('a', m)"),
    Case("checkpoint-io", "keep", "<module>", "state = 1\nif state:\n    torch.load('a')", "import json\njson.load(1)"),
    Case("export", "redesign", "f", "def f(m): torch.onnx.export(m)", "def f(m): m.export()"),
    Case("autograd-function", "rewrite", "F1", "class F1(torch.autograd.Function): ...", "class Function: ...\nclass F1(Function): ..."),
    Case("lightning", "redesign", "L", "import lightning.pytorch as pl\nclass L(pl.LightningModule): ...", "class L(nn.Module): ..."),
    Case("trainer", "redesign", "f", "import pytorch_lightning as pl\ndef f(): pl.Trainer()", "class Trainer: ...\ndef f(): Trainer()"),
    Case(
        "trainer", "redesign", "T", "from transformers import Trainer\nclass T(Trainer): ...", "class Trainer: ...\nclass T(Trainer): ..."
    ),
    Case(
        "local-module",
        "redesign",
        "make.A",
        "def make():\n    class A(nn.Module): ...\n    return A",
        "def make():\n    class A: ...\n    return A\nclass B(nn.Module): ...",
    ),
    Case(
        "local-module",
        "redesign",
        "make.A",
        "def make():\n    import torch.nn as t\n    class A(t.Linear): ...",
        "def make(nn):\n    class A(nn.Module): ...",
    ),
    Case("function", "rewrite", "gelu_", "def gelu_(x): torch.tanh_(x)", "def gelu(x): return torch.tanh(x)"),
    Case("function", "redesign", "fit", "def fit(x):\n    torch.tanh(x).backward()", "def fit(x): x.backward()"),
    Case("function", "keep", "f", "def f(m): torch.save(m, 'a')", "class A:\n    def f(self, m): torch.save(m, 'a')"),
    Case(
        "function",
        "substitute",
        "f",
        "from flash_attn import g\ndef f(x): g(torch.relu(x))",
        "import triton\n@triton.jit\ndef f(x): ...",
    ),
]


def found(write: Write, text: str, kind: str) -> list[Finding]:
    return [finding for finding in scan(write({"m.py": HEAD + text})).findings if finding.kind == kind]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.seen[:30]!r}")
def test_seen(write: Write, case: Case) -> None:
    findings = found(write, case.seen, case.kind)
    assert [(finding.name, finding.strategy) for finding in findings] == [(case.place, case.strategy)]
    assert findings[0].line > 3 and findings[0].detail and "\n" not in findings[0].detail


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.ignored[:30]!r}")
def test_ignored(write: Write, case: Case) -> None:
    assert found(write, case.ignored, case.kind) == []


def test_every_row_has_a_case(write: Write) -> None:
    root = write({f"case{number}.py": HEAD + case.seen for number, case in enumerate(CASES)})
    details = {finding.detail for finding in scan(root).findings}
    assert [row for row in DETECTORS if not any(detail.endswith(row.detail) for detail in details)] == []


def test_base_classes_are_followed_over_files(write: Write) -> None:
    root = write(
        {
            "base.py": "from torch.utils.data import Dataset\nclass Base(Dataset): ...",
            "m.py": "from base import Base\nclass Images(Base): ...",
        }
    )
    assert [(finding.source, finding.name) for finding in scan(root).findings] == [("base.py", "Base"), ("m.py", "Images")]


def test_functions_that_modules_reach_are_carried_along(write: Write) -> None:
    text = "def _inner(x): return torch.tanh(x)\ndef outer(x): return _inner(x)\ndef _alone(x): return torch.tanh(x)\n"
    findings = found(write, text + forward("outer(x)"), "function")
    assert [(finding.name, finding.strategy, "along with m.py:A" in finding.detail) for finding in findings] == [
        ("_inner", "rewrite", True),
        ("_alone", "rewrite", False),
    ]


def test_what_is_only_dropped_does_not_keep_a_function_from_being_carried_along(write: Write) -> None:
    text = "def helper(x):\n    torch.cuda.empty_cache()\n    x.tanh_()\n"
    assert [finding.strategy for finding in found(write, text + forward("helper(x)"), "function")] == ["rewrite"]
    assert [finding.strategy for finding in found(write, text, "function")] == ["redesign"]


def test_functions_of_tests_stay(write: Write) -> None:
    findings = scan(write({"tests/test_m.py": "import torch\ndef test_it(): assert torch.ones(3).sum() == 3"})).findings
    assert [(finding.kind, finding.strategy) for finding in findings] == [("function", "keep")]


def test_one_finding_for_each_place(write: Write) -> None:
    findings = found(write, "def fit(a, b):\n    a.backward()\n    b.backward()\ndef more(a): a.backward()", "training-loop")
    assert [(finding.name, finding.line) for finding in findings] == [("fit", 5), ("more", 7)]
