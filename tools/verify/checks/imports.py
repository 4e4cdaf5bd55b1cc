"""The candidate imports no torch, nothing of the original, and nothing that reaches out of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.results import Results
from migrate_agent.tools.verify.static import Source, imported_modules, judged, module_name, within

TORCH = ("torch", "torchax", "torch_xla", "torchvision", "torchaudio", "functorch", "torchgen", "jax2torch", "torch2jax")
REACHING_OUT = (
    "subprocess multiprocessing socket ssl http urllib requests httpx asyncio ctypes cffi signal shutil tempfile posix "
    "importlib imp runpy pkgutil zipimport gc builtins code codeop marshal pickle shelve dbm sqlite3 mmap fcntl resource "
    "atexit concurrent pty glob fileinput safetensors h5py orbax migrate_agent"
).split()
"""Modules that no model needs. Others (`os`, `sys`, `inspect`, …) are judged by what is used of them, in `calls`."""


def judge(results: Results) -> Verdict:
    """Fail for the first forbidden import, wherever in a file it stands."""
    originals = tuple(file.module for file in results.inventory.files if file.uses_torch and file.module != file.target_module)

    def find(source: Source) -> Iterator[tuple[int, str]]:
        module = module_name(source.path, results.file.import_root)
        for node in ast.walk(source.tree):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            for name in imported_modules(ast.Module([node], []), module, source.path.endswith("__init__.py")):
                reason = _reason(name, originals)
                if reason:
                    yield node.lineno, reason
                    break

    return judged("imports", results.sources, find)


def _reason(name: str, originals: tuple[str, ...]) -> str:
    if within(name, TORCH):
        return f"imports {name}"
    if name in originals:
        return f"imports the original ({name})"
    return f"imports {name}, which reaches out of the program" if within(name, REACHING_OUT) else ""


CHECK = Check("static", "imports", judge)
