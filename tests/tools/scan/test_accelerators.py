"""Which code CUDA alone runs."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.scan.accelerators import lines_on_cuda, needs_cuda, runs_on_cuda


@pytest.mark.parametrize(
    ("text", "on_cuda"),
    [
        ("if x.is_cuda:\n    y = f(x)", True),
        ("if torch.cuda.is_available() and x.requires_grad:\n    y = f(x)", True),
        ("if torch.cuda.device_count() > 1:\n    y = f(x)", True),
        ("if x.device.type == 'cuda':\n    y = f(x)", True),
        ("if not x.is_cuda:\n    pass\nelse:\n    y = f(x)", True),
        ("if torch.cuda._initialized:\n    self.seen = True\nself.seen = None\nif self.seen:\n    y = f(x)", True),
        ("on_gpu = torch.cuda.is_available() and not args.no_cuda\nif on_gpu:\n    y = f(x)", True),
        ("if not torch.cuda.is_available() or small:\n    pass\nelse:\n    y = f(x)", True),
        ("def g():\n    if not torch.cuda.is_available() or not flash:\n        return\n    y = f(x)", True),
        ("for x in xs:\n    if not x.is_cuda:\n        continue\n    if x.small:\n        y = f(x)", True),
        ("if not (x.is_cuda and small):\n    pass\nelse:\n    y = f(x)", True),
        ("if (x.is_cuda or x.is_xpu) and self.count > 1:\n    y = f(x)", True),
        ("if args.accel and torch.accelerator.is_available():\n    y = f(x)", True),
        ("if device.type == 'cuda':\n    y = f(x)", True),
        ("if device == 'cuda':\n    y = f(x)", True),
        ("if args.device != 'cpu' and small:\n    y = f(x)", True),
        ("if 'cuda' in str(self.device):\n    y = f(x)", True),
        ("if device_type.startswith('cuda'):\n    y = f(x)", True),
        ("if device == 'cpu':\n    y = f(x)", False),
        ("if x == 'cuda' or device == 'cuda':\n    y = f(x)", False),
        ("if (x.is_cuda or small) and self.count > 1:\n    y = f(x)", False),
        ("def g():\n    if not x.is_cuda and small:\n        return\n    y = f(x)", False),
        ("def g():\n    if not x.is_cuda:\n        x = small\n    y = f(x)", False),
        ("def g():\n    if x.is_cuda:\n        return\n    y = f(x)", False),
        ("def g():\n    if small:\n        if not x.is_cuda:\n            return\n    y = f(x)", False),
        ("if torch.cuda.is_available() or small:\n    y = f(x)", False),
        ("if not (x.is_cuda or small):\n    pass\nelse:\n    y = f(x)", False),
        ("if not x.is_cuda:\n    y = f(x)", False),
        ("if x.device.type == 'cpu':\n    y = f(x)", False),
        ("self.seen = None\nif self.seen:\n    y = f(x)", False),
        ("if x.is_cuda:\n    self.seen = True\nself.seen = small\nif self.seen:\n    y = f(x)", False),
        ("if x.is_cuda:\n    self.seen = 1\nself.seen += 1\nif self.seen:\n    y = f(x)", False),
    ],
)
def test_a_branch_that_cuda_alone_takes_is_found(text: str, on_cuda: bool) -> None:
    tree = ast.parse(text)
    (statement,) = (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and ast.unparse(node) == "y = f(x)")
    assert runs_on_cuda(tree, statement) is on_cuda
    assert (statement.lineno in lines_on_cuda(tree)) is on_cuda


@pytest.mark.parametrize(
    ("text", "value", "on_cuda"),
    [
        ("x.is_cuda", True, True),
        ("x.is_cuda or x.is_xpu", True, True),
        ("x.is_cuda and small", True, True),
        ("x.is_cuda or small", True, False),
        ("not x.is_cuda", True, False),
        ("not x.is_cuda", False, True),
        ("not x.is_cuda or small", False, True),
        ("x.is_cuda", False, False),
    ],
)
def test_a_value_that_cuda_alone_gives_is_found(text: str, value: bool, on_cuda: bool) -> None:
    tree = ast.parse(text)
    (statement,) = tree.body
    assert isinstance(statement, ast.Expr)
    assert needs_cuda(tree, statement.value, value) is on_cuda
