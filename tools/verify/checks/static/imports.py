"""The candidate imports no torch, nothing of the original, and nothing that reaches out of the program."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator

from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.copied_helpers import is_copied
from migrate_agent.tools.verify.evidence.parsed_source import Source, imported_modules, judged, module_name, once, root_of, within

TORCH = ("torch", "torchax", "torch_xla", "torchvision", "torchaudio", "functorch", "torchgen", "jax2torch", "torch2jax")
REACHING_OUT = "requests httpx aiohttp urllib3 cffi safetensors h5py orbax fsspec psutil migrate_agent".split()
"""Packages that no model needs, and that reach files, processes or the network."""
PURE = frozenset(
    """__future__ abc argparse array ast base64 binascii bisect calendar cmath collections colorsys contextlib contextvars copy dataclasses
    datetime decimal difflib enum errno fractions functools graphlib hashlib heapq hmac html inspect io itertools json keyword logging math
    numbers operator os pathlib platform posixpath pprint queue random re reprlib secrets statistics string struct sys textwrap time token
    threading traceback types typing unicodedata uuid warnings weakref zlib zoneinfo""".split()
)
"""Modules of the standard library that may be imported. A model needs no others, and many of those open files.

The check `calls` judges which parts of some of these (`os`, `sys`, `inspect`, …) are used.
"""


def judge(results: Results) -> Verdict:
    """Fail for the first forbidden import, wherever in a file it stands."""
    # A file without torch is its own mirror, and may be imported.
    originals = tuple(file.module for file in results.inventory.files if file.uses_torch and file.module != file.target_module)
    roots, wrapped = results.import_roots, tuple((unit.target, unit.name) for unit in results.wrapped.units)

    def found(source: Source) -> Iterable[tuple[int, str]]:
        return find(source, module_name(source.path, root_of(source.path, roots)), originals, wrapped)

    return judged("imports", results.sources, found)


@once
def find(source: Source, module: str, originals: tuple[str, ...], wrapped: tuple[tuple[str, str], ...] = ()) -> Iterator[tuple[int, str]]:
    """(line, message) of each forbidden import of a module. `wrapped`: file and name of each class that runs its original through torchax."""
    for node in _outside_wrappers(source, wrapped):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for name in imported_modules(ast.Module([node], []), module, source.path.endswith("__init__.py")):
            if (words := reason(name, originals)) and not (within(name, REACHING_OUT) and _is_for_helpers(source, node)):
                yield node.lineno, words
                break


def _outside_wrappers(source: Source, wrapped: Collection[tuple[str, str]]) -> Iterator[ast.AST]:
    """All nodes but those of wrappers, whose text is known to the last statement, and of the helpers that they derive from."""
    for node in source.tree.body:
        name = getattr(node, "name", "")
        if not ((source.path, name) in wrapped or (wrapped and name in helpers.of_torchax() and is_copied(name, source.text))):
            yield from ast.walk(node)


def _is_for_helpers(source: Source, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether only the project's own helpers use what is imported: those of a training script stand in one file with those of its model."""
    bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    using = [part for part in source.tree.body if part is not node and bound & {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}]
    return node in source.tree.body and bool(using) and all(is_copied(getattr(part, "name", ""), source.text) for part in using)


def reason(name: str, originals: tuple[str, ...]) -> str:
    """Why this module may not be imported, or ""."""
    if within(name, TORCH):
        return f"imports {name}"
    if name in originals:
        return f"imports the original ({name})"
    head = name.partition(".")[0]
    outside = within(name, REACHING_OUT) or (head in sys.stdlib_module_names and head not in PURE)
    return f"imports {name}, which reaches out of the program" if outside else ""


CHECK = Check("static", "imports", judge)
