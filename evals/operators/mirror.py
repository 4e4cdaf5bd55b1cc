"""Rewrites pieces of source as one file of a repository, with the real engine, and imports the result."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from migrate_agent.evals.operators.op_source import observe
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft

FILE = "cases.py"


@dataclass(frozen=True)
class Source:
    """One function or class: its definition, and the tensors that its names (`x0`, …) stand for while it is observed."""

    text: str
    names: Mapping[str, torch.Tensor]

    @property
    def name(self) -> str:
        """The name that it defines."""
        return self.text.partition("(")[0].split()[1]

    @property
    def is_class(self) -> bool:
        """Whether it is a class."""
        return self.text.startswith("class ")


def rewrite(sources: Sequence[Source], folder: Path) -> tuple[list[str], Draft]:
    """Write the sources into one file below `folder` and migrate it; gives the first hole in each ("" for none), and the draft."""
    parts, lines, line = ["import torch\n\n\n"], [], 4
    for source in sources:
        parts.append(f"{source.text}\n\n")
        lines.append(range(line, line + parts[-1].count("\n")))
        line += parts[-1].count("\n")
    functions = [source for source in sources if not source.is_class]
    if functions:  # functions are migrated for the sake of modules that call them
        uses = "".join(f"        {source.name}({', '.join(['x + 0'] * len(source.names))})\n" for source in functions)
        parts.append(f"class Calls(torch.nn.Module):\n    def forward(self, x):\n{uses}")
    units = [f"{FILE}:{source.name}" for source in sources if source.is_class] + ([f"{FILE}:Calls"] if functions else [])
    repository = folder / "repository"
    repository.mkdir(parents=True)
    text = "".join(parts)
    (repository / FILE).write_text(text, encoding="utf-8")
    observations = {FILE: observe(text, {source.name: source.names for source in sources})}
    draft = compose(scan(repository), observations, units)
    for name, content in draft.files.items():
        (folder / "mirror" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "mirror" / name).write_text(content, encoding="utf-8")
    return [_first_hole(draft, span) for span in lines], draft


def _first_hole(draft: Draft, lines: range) -> str:
    return next((f"{hole.code}: {hole.reason}" for hole in draft.holes if hole.span.line in lines), "")


def load_mirror(folder: Path) -> ModuleType:
    """Import what was written by `rewrite`. Raises what the import raises."""
    sys.path.insert(0, str(folder / "mirror"))
    for name in ("cases_jax", "nnx_layers_jax"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    try:
        return importlib.import_module("cases_jax")
    finally:
        sys.path.pop(0)
