"""Which statements of an original a port need not have: moves to another device, and what torch's process group is asked."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.verify.evidence.no_counterpart import asks_processes, for_compilers, loads_downloads, moves_device, only_logs
from migrate_agent.tools.verify.evidence.parsed_source import bindings


@pytest.mark.parametrize(
    ("statement", "moves"),
    [
        ("x = x.cuda()", True),
        ("self.table = self.table.cpu()", True),
        ("x = y.cuda()", False),
        ("x = x.cuda() + 1", False),
        ("x = x.double()", False),
        ("x.cuda()", False),
        ("x = x.to(y.device)", True),
        ("x = x.to('cuda:0', non_blocking=True)", True),
        ("x = x.to(device=torch.device('cpu'))", True),
        ("x = y.to(y.device)", False),
        ("x = x.to(y)", False),
        ("x = x.to(y.dtype)", False),
        ("x = x.to(y.device, torch.float16)", False),
        ("x = x.to(y.device, dtype=y.dtype)", False),
        ("x = x.to('float16')", False),
    ],
)
def test_only_a_move_of_the_same_name_has_no_counterpart(statement: str, moves: bool) -> None:
    assert moves_device(ast.parse(statement).body[0]) is moves


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("device = y.device\nx = x.to(device)", True),
        ("device = 'cuda' if ready else torch.device('cpu')\nx = x.to(device)", True),
        ("def f(x, device: torch.device):\n    x = x.to(device)", True),
        ("def f(x, device):\n    x = x.to(device)", False),
        ("def f(x, device: torch.dtype):\n    x = x.to(device)", False),
        ("device = y.device\ndevice = torch.float16\nx = x.to(device)", False),
        ("for device in places:\n    x = x.to(device)", False),
        ("device, kind = y.device, torch.float16\nx = x.to(device)", False),
    ],
)
def test_a_name_is_a_device_where_the_file_gives_it_devices_only(text: str, moves: bool) -> None:
    tree = ast.parse(text)
    last = tree.body[-1]
    assert moves_device(last.body[-1] if isinstance(last, (ast.FunctionDef, ast.For)) else last, tree) is moves


@pytest.mark.parametrize(
    ("statement", "asks"),
    [
        ("return dist.get_world_size()", True),
        ("rank = torch.distributed.get_rank(group=g)", True),
        ("def size():\n    if not dist.is_available():\n        return 1\n    return dist.get_world_size()", True),
        ("def size():\n    if not dist.is_available():\n        return 1\n    return 2", False),
        ("if not dist.is_available():\n    return 1", False),
        ("if dist.is_initialized():\n    n = 4", False),
        ("return dist.get_world_size() * 2", False),
        ("dist.all_reduce(x)", False),
        ("return dist.all_reduce(x)", False),
        ("return other.get_world_size()", False),
        ("return x", False),
        ("if not dist.is_available():\n    return x", False),
        ("if not other.is_available():\n    return 1", False),
        ("if x.sum() > 0:\n    return 1", False),
        ("if not dist.is_available():\n    x = x * 2\n    return 1", False),
    ],
)
def test_only_the_answer_of_the_process_group_has_no_counterpart(statement: str, asks: bool) -> None:
    tree = ast.parse(f"import torch\nfrom torch import distributed as dist\n{statement}\n")
    last = tree.body[-1]
    last = last.body[0] if isinstance(last, ast.FunctionDef) else last
    assert asks_processes(tree, last.body if isinstance(last, ast.If) else [last]) is asks


@pytest.mark.parametrize(
    ("statement", "body", "otherwise"),
    [
        ("if torch.jit.is_scripting():\n    x = 1\nelse:\n    x = 2", True, False),
        ("if not torch.jit.is_scripting():\n    x = 1\nelse:\n    x = 2", False, True),
        ("if wide and is_tracing():\n    x = 1\nelse:\n    x = 2", True, False),
        ("if wide or torch.jit.is_scripting():\n    x = 1\nelse:\n    x = 2", False, False),
        ("if not (wide and torch.jit.is_scripting()):\n    x = 1\nelse:\n    x = 2", False, False),
        ("if hasattr(torch, 'relu'):\n    x = 1\nelse:\n    x = 2", False, True),
        ("if not hasattr(torch.special, 'erf'):\n    x = 1\nelse:\n    x = 2", True, False),
        ("if hasattr(torch, 'no_such_name'):\n    x = 1\nelse:\n    x = 2", False, False),
        ("if hasattr(own, 'relu'):\n    x = 1\nelse:\n    x = 2", False, False),
        ("if own.jit.is_scripting():\n    x = 1\nelse:\n    x = 2", False, False),
        ("if torch.jit.is_scripting:\n    x = 1\nelse:\n    x = 2", False, False),
        ("if x.sum() > 0:\n    x = 1\nelse:\n    x = 2", False, False),
    ],
)
def test_only_what_compilers_alone_run_has_no_counterpart(statement: str, body: bool, otherwise: bool) -> None:
    tree = ast.parse(f"import torch\nfrom torch.jit import is_tracing\n{statement}\n")
    branch = tree.body[-1]
    assert isinstance(branch, ast.If)
    sides = [for_compilers(branch, side, bindings(tree)) for side in (branch.body, branch.orelse)]
    assert sides == [body, otherwise]


def test_a_name_of_the_file_is_not_torch() -> None:
    branch = ast.parse("torch = other\nif torch.jit.is_scripting():\n    x = 1\n").body[-1]
    assert isinstance(branch, ast.If)
    assert not for_compilers(branch, branch.body, {})


LOG = "    torch._C._log_api_usage_once(f'pkg.{name}')\n"


@pytest.mark.parametrize(
    ("body", "logs"),
    [
        ("    if flag:\n        name = obj.kind\n" + LOG, True),
        ("    if flag:\n        name = read(obj)\n" + LOG, False),
        ("    if flag:\n        name = obj.kind\n" + LOG + "    return name\n", False),
        ("    if flag:\n        name = obj.kind\n    else:\n        other = name\n" + LOG, False),
        ("    if flag:\n        obj.name = name\n" + LOG, False),
        ("    global name\n    if flag:\n        name = obj.kind\n" + LOG, False),
        ("    if flag:\n        name = obj.kind\n    own._C._log_api_usage_once(name)\n", False),
        ("    if flag:\n        name = obj.kind\n", False),
    ],
)
def test_only_what_nothing_but_the_log_reads_has_no_counterpart(body: str, logs: bool) -> None:
    tree = ast.parse(f"import torch\ndef f(obj, flag, name=''):\n{body}")
    branch = next(node for node in ast.walk(tree) if isinstance(node, ast.If))
    assert only_logs(tree, branch.body) is logs


@pytest.mark.parametrize(
    ("body", "leaves_out"),
    [
        ("        fitting[k] = v", True),
        ("        if k in own:\n            fitting[k] = v", True),
        ("        self.names.append(k)", False),
        ("        setattr(self, k, v)", False),
    ],
)
def test_only_the_loading_of_a_download_has_no_counterpart(body: str, leaves_out: bool) -> None:
    tree = ast.parse(
        "from torch.utils import model_zoo\n\ndef load(self):\n    own = self.state_dict()\n    fitting = {}\n"
        f"    for k, v in model_zoo.load_url('https://a.b/c').items():\n{body}\n    own.update(fitting)\n    self.load_state_dict(own)\n"
    )
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    assert loads_downloads(tree, loops[0].body) is leaves_out
    assert not loads_downloads(ast.parse(ast.unparse(tree).replace("torch.utils", "own.utils")), loops[0].body)
