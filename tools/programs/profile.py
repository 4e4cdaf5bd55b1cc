"""What training programs a repository has, read from their syntax alone: nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from migrate_agent.tools.programs.hand_updates import hand_updates
from migrate_agent.tools.programs.rewrite.core import blocks, body, function_of, is_optimizer, method_of
from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.tables.registry import functions as own_rows
from migrate_agent.tools.programs.tables.registry import optimizers as rows
from migrate_agent.tools.programs.tables.registry import schedules as schedule_rows
from migrate_agent.tools.types import Inventory


@dataclass(frozen=True)
class Profile:
    """A program of a repository: its script, the line of its first `backward()`, what it uses of torch, and why it will be refused."""

    source: str
    line: int
    optimizers: tuple[str, ...]
    schedules: tuple[str, ...]
    features: tuple[str, ...]
    refused: tuple[str, ...]


FEATURES = {
    "clip_grad_norm_": "clipping",
    "clip_grad_value_": "clipping",
    "autocast": "autocast",
    "GradScaler": "loss scaling",
    "DataLoader": "data loader",
    "no_grad": "evaluation",
    "inference_mode": "evaluation",
    "save": "checkpoints",
    "load": "resume",
    "DistributedDataParallel": "distributed",
    "FullyShardedDataParallel": "distributed",
    "param_groups": "rate set by hand",
    "AveragedModel": "average of weights",
}
"""Last part of a dotted name of torch, or an attribute → what it says of a program."""


REFUSALS = {
    "torchdiffeq": "torchdiffeq's adaptive solvers choose their steps by the data: write the solver with diffrax",
    "torch.utils.cpp_extension": "a kernel in C++ or CUDA has no counterpart: write it in JAX or Pallas",
    "torch.distributed.pipelining": "pipeline parallelism has no rule: shard the layers over a mesh axis",
    "torch.distributed.rpc": "torch.distributed.rpc has no counterpart: JAX programs are the same on every process",
}
"""Module that a script imports → why such a program is refused."""


def refusals(text: str) -> list[str]:
    """Why a script is refused by what it imports, whatever it does with it."""
    dotted = set(Imports(text).dotted.values())
    return [reason for name, reason in REFUSALS.items() if any(one == name or one.startswith(f"{name}.") for one in dotted)]


def profiles(inventory: Inventory) -> tuple[Profile, ...]:
    """The scripts of a repository that take gradients."""
    rows = []
    for file in inventory.files:
        if file.error or file.adopted or not file.uses_torch:
            continue
        text = Path(inventory.root / file.path).read_text(errors="replace")
        if ".backward(" in text and (row := profile(file.path, text)) is not None:
            rows.append(row)
    return tuple(rows)


def profile(source: str, text: str) -> Profile | None:
    """The profile of one file; `None` where no statement of it calls `backward()`, or where it is no script."""
    tree, imports = ast.parse(text), Imports(text)
    lines = sorted(node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _attribute(node) == "backward")
    if not lines or not _is_script(tree):
        return None
    names = dict.fromkeys(_dotted(tree, imports))
    optimizers = tuple(name for name in names if is_optimizer(name))
    schedules = tuple(name.rpartition(".")[2] for name in names if name.startswith("torch.optim.lr_scheduler."))
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    parts = {name.rpartition(".")[2] for name in names if name.startswith("torch.")} | (attributes & {"param_groups"})
    features = dict.fromkeys(feature for part, feature in FEATURES.items() if part in parts)
    return Profile(
        source,
        lines[0],
        tuple(name.rpartition(".")[2] for name in optimizers),
        schedules,
        tuple(features),
        tuple(_reasons(text, optimizers, schedules)),
    )


def _is_script(tree: ast.Module) -> bool:
    """Whether running the file does more than define: it has a `__main__` block, or calls something at its top."""
    return any(
        isinstance(node, (ast.For, ast.While, ast.With)) or (isinstance(node, ast.If) and "__main__" in ast.unparse(node.test))
        for node in tree.body
    )


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _dotted(tree: ast.Module, imports: Imports) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            root, _, rest = ast.unparse(node).partition(".")
            if root in imports.dotted:
                yield ".".join(filter(None, (imports.dotted[root], rest)))


def _reasons(text: str, optimizers: tuple[str, ...], schedules: tuple[str, ...]) -> Iterator[str]:
    yield from refusals(text)
    if not optimizers and not hand_updates(text):
        yield "no optimizer of torch.optim is constructed here"
    yield from (f"{name} has no row" for name in optimizers if name not in rows() and name not in own_rows())
    yield from (f"{name} has no row" for name in schedules if f"torch.optim.lr_scheduler.{name}" not in schedule_rows())
    module = cst.parse_module(text)
    functions = {function_of(inside) for block, inside in blocks(module) for s in body(block) if method_of(s)[1] == "backward"}
    if len(functions) > 1:
        yield "backward() is called in several functions"
