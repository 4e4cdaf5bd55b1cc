"""Counts what makes the code base hard or easy to read: vague local names, comments, crowded folders and import circles.

    python -m migrate_agent.evals.bench.readability [--names] [FOLDER ...]

Prints a row for each folder; `--names` lists every vague local name with its file, line and function. `tests/test_readability.py` holds
the limits.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import networkx as nx  # type: ignore[import-untyped]  # it ships no types

ROOT = Path(__file__).parents[2]
ROOMS = ("agent", "evals", "prompts", "sandbox", "tools")
VAGUE = frozenset(
    """found place places told kept each how given taken made done seen known held asked wanted left tried got what which why where whose
    otherwise further thing things stuff it this that these those ones them such same""".split()
)
"""Participles and pointing words that name no kind of thing; fields of data classes and names of functions count elsewhere."""


class LocalName(NamedTuple):
    """A name that a function binds: in an assignment, a loop, a comprehension, or as a parameter."""

    path: str
    line: int
    function: str
    name: str


def product_files(folders: Sequence[str] = ROOMS) -> list[Path]:
    """The Python files of the product below these folders."""
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def local_names(path: Path) -> Iterator[LocalName]:
    """Each name that each function of the file binds, once a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    relative = path.relative_to(ROOT).as_posix()

    def visit(node: ast.AST, function: str) -> Iterator[LocalName]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                qualified = f"{function}.{child.name}" if function else child.name
                if not isinstance(child, ast.ClassDef):
                    yield from _bound(child, qualified, relative)
                yield from visit(child, qualified)
            else:
                yield from visit(child, function)

    yield from visit(tree, "")


def _bound(function: ast.FunctionDef | ast.AsyncFunctionDef, qualified: str, path: str) -> Iterator[LocalName]:
    lines: dict[str, int] = {}

    def collect(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue  # counts for itself
            if isinstance(child, ast.arg):
                lines.setdefault(child.arg, child.lineno)
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                lines.setdefault(child.id, child.lineno)
            collect(child)

    collect(function)
    yield from (LocalName(path, line, qualified, name) for name, line in lines.items() if name not in ("self", "cls", "_"))


def comment_lines(path: Path) -> int:
    """How many comments the file has, apart from directives to tools."""
    with path.open("rb") as file:
        tokens = [token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    return sum(not text.startswith(("# noqa", "# type:", "# pragma")) for text in tokens)


def import_graph(files: Sequence[Path], top_level: bool = True) -> nx.DiGraph[str]:
    """Module → module of ours that it imports when it is loaded (`top_level`), or anywhere."""
    names = {module_name(file): file for file in files}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, file in names.items():
        graph.add_node(name)
        for node in _loaded(ast.parse(file.read_text(encoding="utf-8")), top_level):
            for target in _targets(node):
                while target and target not in names:
                    target = target.rpartition(".")[0]
                if target and target != name:
                    graph.add_edge(name, target)
    return graph


def _loaded(node: ast.AST, top_level: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not (top_level and (isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or _type_checking(child))):
            yield from _loaded(child, top_level)


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names]


def module_name(file: Path) -> str:
    """`migrate_agent.tools.types` for `tools/types.py`; of `__init__.py` the package's name."""
    return "migrate_agent." + ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def circles(files: Sequence[Path]) -> list[list[str]]:
    """Groups of modules that import each other, anywhere in them."""
    return sorted(sorted(group) for group in nx.strongly_connected_components(import_graph(files, top_level=False)) if len(group) > 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=list(ROOMS))
    parser.add_argument("--names", action="store_true", help="list every vague local name")
    options = parser.parse_args(arguments)
    files = product_files(options.folders)
    if options.names:
        for row in (row for file in files for row in local_names(file) if row.name in VAGUE):
            print(f"{row.path}:{row.line} {row.function} {row.name}")
        return 0
    print(f"{'folder':44} {'files':>5} {'lines':>6} {'vague names':>16} {'comments per 1,000 lines':>26}")
    folders: Counter[Path] = Counter(file.parent for file in files)
    for folder in [*sorted(folders), None]:
        of_folder = [file for file in files if folder in (None, file.parent)]
        names = [row for file in of_folder for row in local_names(file)]
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in of_folder)
        vague, comments = sum(row.name in VAGUE for row in names), sum(map(comment_lines, of_folder))
        label = folder.relative_to(ROOT).as_posix() if folder else "all"
        share = f"{vague} ({100 * vague / max(len(names), 1):.1f} %)"
        print(f"{label:44} {len(of_folder):5} {lines:6} {share:>16} {1000 * comments / max(lines, 1):26.1f}")
    for group in circles(product_files()):
        print("circle: " + " ".join(name.removeprefix("migrate_agent.") for name in group))
    return 0


if __name__ == "__main__":
    sys.exit(main())
