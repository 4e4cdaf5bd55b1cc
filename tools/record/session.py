"""Recording in this process: the import hook, the capture of modules and kernels, and saving what they recorded."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.record.capture import Capture, Sample
from migrate_agent.tools.record.function_calls import FunctionCapture
from migrate_agent.tools.record.instrument import Watched, install
from migrate_agent.tools.record.kernel_calls import KernelCapture, KernelSample, Skipped
from migrate_agent.tools.record.kinds import Kinds
from migrate_agent.tools.record.observe import Recorder
from migrate_agent.tools.types import Example, Inventory, KernelCall, Recording

_KEPT = 8
_launching: list[tuple[Inventory, Mapping[str, Skipped]]] = []


def plan(inventory: Inventory, roots: Iterable[str] = ()) -> dict[str, Any]:
    """The facts of the repository that a session needs, as JSON: files, units, and functions that launch kernels or are units.

    `roots` are import roots that go before those of the files: of a folder that import statements spell in two ways (`models.net` and `net`) the
    files have one alone.
    """
    return {
        "roots": list(roots),
        "files": [[file.path, file.module, file.import_root] for file in inventory.files if not file.error],
        "units": [unit.id for unit in inventory.units],
        "launching": _launching_of(inventory),
        "functions": [unit.id for unit in inventory.units if unit.kind == "function"],
    }


def import_roots(root: Path, arguments: Mapping[str, Any]) -> list[str]:
    """The folders that importing starts from, by a `plan`, for a repository that lies at `root`."""
    folders = (*arguments.get("roots", ()), *(import_root for _, _, import_root in arguments["files"]))
    return list(dict.fromkeys(str(root / folder) for folder in folders))


def _launching_of(inventory: Inventory) -> Mapping[str, Skipped]:
    """Functions that launch kernels, read once: every job of a run asks, and parsing a repository with kernels takes seconds."""
    from migrate_agent.tools.rewrite.analysis.custom_kernels import launching  # here alone: a session runs where libcst may be missing

    # By identity: a run has one inventory, and comparing two takes long.
    for other, functions in _launching:
        if other is inventory:
            return functions
    fresh = launching(inventory)
    _launching[:] = [*_launching[1 - _KEPT :], (inventory, fresh)]
    return fresh


class Session:
    """Watches the repository's files and module classes. `root` is where the repository lies for this process."""

    def __init__(
        self,
        root: Path,
        files: Iterable[Iterable[str]],
        units: Iterable[str],
        max_bytes: int,
        changed: Callable[[], None] | None = None,
        launching: Mapping[str, Skipped] = MappingProxyType({}),
        functions: Iterable[str] = (),
    ) -> None:
        self.root = root
        rows = [tuple(row) for row in files]
        self.paths = {str((root / path).resolve()): path for path, _, _ in rows}
        self.import_roots = list(dict.fromkeys(str(root / import_root) for _, _, import_root in rows))
        self._modules = {path: module for path, module, _ in rows}
        self._units = frozenset(units)
        self._files: dict[str, str] = {}
        self.recorder = Recorder(Kinds(self.own), changed)
        self.capture = Capture(self.unit_of, self.own, max_bytes, changed)
        self.recorder.quiet = self.quiet
        self.kernels = KernelCapture(lambda: self.capture.active, changed)
        self._launching = launching
        self.functions = FunctionCapture(self.capture)
        self._functions: dict[str, frozenset[str]] = {}
        for unit in functions:
            path, _, name = unit.rpartition(":")
            self._functions[path] = self._functions.get(path, frozenset()) | {name}

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """A context in which what torch and the repository do is not recorded."""
        active = self.recorder.active, self.capture.active
        self.recorder.active = self.capture.active = False
        try:
            yield
        finally:
            self.recorder.active, self.capture.active = active

    def install(self) -> None:
        """Instrument files that are imported from now on, and capture as soon as torch is there."""
        loaded = "torch" in sys.modules
        watched = Watched(self._launching, self.kernels, self._functions, self.functions)
        install(self.paths, self.recorder, None if loaded else self.capture.install, watched)
        if loaded:
            self.capture.install()

    def file_of(self, module: str) -> str:
        """The repository's file that a module was loaded from, else ""."""
        if module not in self._files:
            file = getattr(sys.modules.get(module), "__file__", None)
            if not file:
                return ""
            self._files[module] = self.paths.get(os.path.realpath(file), "")
        return self._files[module]

    def own(self, module: str) -> str:
        """The name under which the repository imports a module of its own, else ""."""
        return self._modules.get(self.file_of(module), "")

    def module_of(self, path: str) -> str:
        """The name under which the repository imports a file. Raises `KeyError`."""
        return self._modules[path]

    def unit_of(self, cls: type) -> str:
        """The id of the class's unit, else ""."""
        name = f"{self.file_of(cls.__module__)}:{cls.__qualname__}"
        return name if name in self._units else ""

    def line_of(self, error: BaseException) -> str:
        """Exception type, message and the last line of the user's code that it came through, in one line."""
        if isinstance(error, AttributeError) and isinstance(error.__cause__, ImportError):
            error = error.__cause__  # the import that failed says more than what reads its name
        position, trace = "", error.__traceback__
        while trace is not None:
            path = self.paths.get(os.path.realpath(trace.tb_frame.f_code.co_filename))
            position = f" ({path}:{trace.tb_lineno})" if path else position
            trace = trace.tb_next
        if isinstance(error, SyntaxError) and self.paths.get(os.path.realpath(error.filename or "")):
            position = f" ({self.paths[os.path.realpath(str(error.filename))]}:{error.lineno})"
        message = re.sub(r"\s+", " ", str(getattr(error, "msg", "") or error)).strip()
        return f"{type(error).__name__}: {message}"[:500].rstrip(": ") + position

    def forget_outside(self, error: BaseException) -> None:
        """Forget what was observed in the user's statement that raised, where it asked for what this machine has not: a download, a file, a package.
        It never ended, so that its part of the code is none that ran."""
        if not isinstance(error, (OSError, ImportError)) or isinstance(error, TimeoutError):
            return
        place, trace = ("", 0, ""), error.__traceback__
        while trace is not None:
            file = os.path.realpath(trace.tb_frame.f_code.co_filename)
            place = (self.paths[file], trace.tb_lineno, file) if file in self.paths else place
            trace = trace.tb_next
        if place[0]:
            first, last = _statement_lines(Path(place[2]), place[1])
            self.recorder.forget_lines(place[0], first, last)


def _statement_lines(path: Path, line: int) -> tuple[int, int]:
    """The first and the last line of the innermost statement on a line; of one with a body, of what stands before it."""
    lines = (line, line)
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8-sig"))):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                body = getattr(node, "body", None)
                last = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno or node.lineno
                lines = (node.lineno, last) if line <= last else lines
    return lines


class Writer:
    """Writes samples into a folder, each tensors file once."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self._folder = folder
        self._prefix = prefix
        self._written: dict[int, tuple[Sample, Example]] = {}
        self._kernels: dict[int, tuple[KernelSample, KernelCall]] = {}

    def example(self, sample: Sample) -> Example:
        """The sample as an example, its tensors saved."""
        # The sample is stored beside its example, so that its id is not used again.
        if id(sample) not in self._written:
            self._written[id(sample)] = (sample, self._write(sample))
        return self._written[id(sample)][1]

    def _write(self, sample: Sample) -> Example:
        path = self._save(f"{sample.unit}-{len(self._written)}", sample.tensors) if sample.tensors else None
        return Example(sample.unit, sample.init, sample.call, sample.setup, origin="recording", tensors=path, method=sample.method)

    def recording(self, session: Session, errors: Mapping[str, str]) -> Recording:
        """Everything that the session recorded so far."""
        examples = tuple(self.example(sample) for sample in session.capture.samples())
        calls = tuple(self.kernel_call(sample) for sample in session.kernels.samples())
        inside = session.capture.reasons()
        return Recording(examples, session.recorder.table(), {**session.kernels.reasons(), **errors}, calls, inside)

    def kernel_call(self, sample: KernelSample) -> KernelCall:
        """The call of a function that launches a kernel, its tensors saved."""
        if id(sample) not in self._kernels:
            path = self._save(f"kernel-{sample.name}-{len(self._kernels)}", sample.tensors) if sample.tensors else None
            call = KernelCall(sample.source, sample.name, sample.arguments, sample.result, sample.changed, path)
            self._kernels[id(sample)] = (sample, call)
        return self._kernels[id(sample)][1]

    def _save(self, name: str, tensors: Mapping[str, Any]) -> Path:
        from safetensors.torch import save_file

        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
        path = self._folder / f"{self._prefix}{slug}.safetensors"
        save_file(dict(tensors), path)
        return path
