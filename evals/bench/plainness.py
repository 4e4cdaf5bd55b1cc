"""How plain the JAX code of mirrors is: `python -m migrate_agent.evals.bench.plainness MIRROR…`.

For each folder: lines of its mirror files, lines of the helpers beside them, their ratio, and the share of layers, activations and losses that the
mirror takes from `flax.nnx`, `jax.nn` or `optax` themselves, without and with those of Flax around which a helper moves the axes
(`ChannelsFirstConv`). Blank lines do not count. Nothing is imported from the mirror.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flax import nnx

from migrate_agent.tools.rewrite.tables.helpers import of_programs, symbols
from migrate_agent.tools.rewrite.tables.registry import layers, ops

HELPERS = frozenset({"nnx_layers.py", "nnx_layers_jax.py"})
MODULES = ("jax.nn", "optax", "optax.losses")
"""Modules whose functions are layers that JAX has itself."""
CONTAINERS = frozenset({"List", "Dict", "Sequential", "ModuleDict", "ModuleList"})
"""They compute nothing."""
MOVED = frozenset({"ChannelsFirstConv", "ChannelsFirstConvTranspose", "ChannelsFirstGroupNorm", "channels_first_pool"})
"""Flax's own layers and pooling over (N, C, …): all that these add is `jnp.moveaxis` before and after."""


@dataclass(frozen=True)
class Plainness:
    """What one mirror is made of. `plain` and `copied`: name of a layer → how often the mirror makes or calls it."""

    mirror: str
    lines: int
    helper_lines: int
    plain: Counter[str]
    copied: Counter[str]

    @property
    def ratio(self) -> float:
        """Lines of helpers for each line of the mirror."""
        return self.helper_lines / max(self.lines, 1)

    @property
    def share(self) -> float:
        """The share of layers that are those of JAX itself; 1 for a mirror without layers."""
        return self._part(self.plain.total())

    @property
    def share_with_moved(self) -> float:
        """The same with the layers of Flax around which the axes are moved."""
        return self._part(self.plain.total() + sum(self.copied[name] for name in MOVED))

    def _part(self, count: int) -> float:
        every = self.plain.total() + self.copied.total()
        return count / every if every else 1.0


def measure(root: Path) -> Plainness:
    """Read the mirror files under a folder."""
    texts = [path.read_text(encoding="utf-8") for path in mirror_files(root)]
    files = [path for path in root.rglob("*.py") if path.name in HELPERS and not _is_hidden(path, root)]
    helpers = [path.read_text(encoding="utf-8") for path in files]
    plain: Counter[str] = Counter()
    copied: Counter[str] = Counter()
    for text in texts:
        for name, is_plain in layers_used(text):
            (plain if is_plain else copied)[name] += 1
    return Plainness(root.name, sum(map(_lines, texts)), sum(map(_model_lines, helpers)), plain, copied)


def mirror_files(root: Path) -> list[Path]:
    """The files of a mirror but its helpers: `*_jax.py`, and all below packages `*_jax`."""
    every = sorted(path for path in root.rglob("*.py") if not _is_hidden(path, root) and path.name not in HELPERS)
    return [path for path in every if any(part.removesuffix(".py").endswith("_jax") for part in path.relative_to(root).parts)]


def layers_used(text: str) -> Iterator[tuple[str, bool]]:
    """(name, whether JAX has it itself) of each layer, activation or loss that a file makes or calls."""
    tree = ast.parse(text)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] in ("nnx_layers", "nnx_layers_jax")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _plain_name(node)):
            yield name, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in imported and node.id in _torch_layers():
            yield node.id, False


def _plain_name(node: ast.Attribute) -> str:
    owner = ast.unparse(node.value)
    if owner == "nnx" and node.attr not in CONTAINERS | {"Module"}:
        kind = getattr(nnx, node.attr, None)
        return f"nnx.{node.attr}" if isinstance(kind, type) and issubclass(kind, nnx.Module) else ""
    return f"{owner}.{node.attr}" if owner in MODULES and node.attr not in ("initializers", "losses") else ""


def _torch_layers() -> frozenset[str]:
    """The helpers that stand for layers and functions of `torch.nn`, the short ones of common uses included."""
    functions = {name.rpartition(".")[2] for name in ops() if name.startswith("torch.nn.functional.")}
    short = {name for name, symbol in symbols().items() if symbol.position[0] in ("plain", "plain_layers")}
    return frozenset(row.vendored for row in layers().values()) - CONTAINERS | functions | short


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def _model_lines(text: str) -> int:
    """Lines of the helpers that models use; those of training scripts are no layers in disguise."""
    lines = text.splitlines()
    scripts = [node for node in ast.parse(text).body if getattr(node, "name", "") in of_programs()]
    inside = {number for node in scripts for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return sum(1 for number, line in enumerate(lines, 1) if line.strip() and number not in inside)


def row(one: Plainness) -> str:
    """One line of the table."""
    return f"{one.mirror:30} {one.lines:6} {one.helper_lines:8} {one.ratio:6.2f} {one.share:7.0%} {one.share_with_moved:7.0%}  {_often(one.copied)}"


def _often(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(8))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mirrors", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    print(f"{'mirror':30} {'lines':>6} {'helpers':>8} {'ratio':>6} {'plain':>7} {'moved':>7}  layers that are copied")
    for mirror in options.mirrors:
        print(row(measure(mirror.resolve())))


if __name__ == "__main__":
    main()
