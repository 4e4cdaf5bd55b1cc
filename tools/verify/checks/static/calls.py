"""The candidate evaluates no text, opens no file, calls nothing on the host, and reads no internals."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.static.imports import REACHING_OUT
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.copied_helpers import is_copied
from migrate_agent.tools.verify.evidence.parsed_source import Source, bindings, dotted, judged, once, uses, within

BUILTINS = tuple(f"builtins.{name}" for name in "eval exec compile open __import__ globals locals vars breakpoint input memoryview".split())
HOST = (
    "jax.pure_callback",
    "jax.experimental.io_callback",
    "jax.experimental.host_callback",
    "jax.debug",
    "jax.monitoring",
    "jax.distributed",
    "jax.profiler",
    "jax.ffi",
    "jax.extend",
    "jax.config",
    "jax.clear_caches",
    "jax.disable_jit",
    "jax._src",
    "jax.core",
    "jax.dlpack",
    "jaxlib",
    "numpy.load",
    "numpy.save",
    "numpy.savez",
    "numpy.fromfile",
    "numpy.memmap",
    "numpy.loadtxt",
    "numpy.genfromtxt",
    "numpy.ctypeslib",
    "jax.numpy.load",
    "jax.numpy.save",
    "jax.numpy.savez",
    "numpy.DataSource",
    "flax.nnx.io",
    "flax.serialization",
)
PARTLY: dict[str, str] = {
    "os": "path sep PathLike fspath linesep",
    "sys": "maxsize float_info version_info version platform",
    "inspect": "signature Signature Parameter isfunction isclass ismethod isbuiltin getfullargspec FullArgSpec",
    "io": "StringIO BytesIO",
    "pathlib": "PurePath PurePosixPath",
    "threading": "Lock RLock",
    "traceback": "",
    "weakref": "",
    "platform": "system machine",
    "argparse": "ArgumentParser Namespace ArgumentTypeError",
    "logging": "getLogger Logger LoggerAdapter Handler NullHandler StreamHandler Formatter getLevelName DEBUG INFO WARNING WARN ERROR CRITICAL NOTSET"
    " debug info warning error critical exception log",
}
"""Module → the attributes of it that may be used."""
INTERNALS = (
    "__globals__",
    "__code__",
    "__builtins__",
    "__subclasses__",
    "__closure__",
    "__loader__",
    "__spec__",
    "f_back",
    "tb_frame",
    "gi_frame",
)
FILE_METHODS = ("tofile", "write_text", "read_text", "write_bytes", "read_bytes")
"""Methods of arrays and paths that reach files without an imported name."""
LOOKUPS = ("builtins.getattr", "operator.attrgetter", "operator.methodcaller")


def judge(results: Results) -> Verdict:
    """Fail for the first forbidden use, or for a helper of training scripts that reaches files and that the unit needs."""
    verdict = judged("calls", results.sources, find)
    needed = _needed_of_programs(results) if verdict.status == "pass" else ""
    return Verdict("static", "calls", "fail", detail=f"{needed}: a helper of training scripts, which reaches files") if needed else verdict


def _needed_of_programs(results: Results) -> str:
    """The first helper of training scripts that reaches files and that the unit needs, as `path:name`; "" where it needs none."""
    from migrate_agent.tools.closure import Closures, Name  # here alone: the sandbox imports this room without the rewriter
    from migrate_agent.tools.scan.layout import mirror_layout

    texts = {source.path: source.text for source in results.sources if not source.error}
    theirs = {
        f"{source.path}:{node.name}"
        for source in results.sources
        for node in source.tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in helpers.of_programs() and node.name in reaching_files()
    }
    if not theirs:
        return ""
    root = Name(results.unit.target, results.unit.name.partition(".")[0])
    mirror = mirror_layout(sorted(texts), texts, results.inventory.files)
    return next(iter(sorted(theirs & Closures(mirror, texts).of([root]).digests.keys())), "")


@lru_cache(1)
def reaching_files() -> frozenset[str]:
    """The helpers of training scripts that read or write files, and those that use one that does."""
    text = helpers.render(set(helpers.of_programs()))
    source = Source("helpers.py", ast.parse(text), text=text)
    outside = {
        alias.asname or alias.name.partition(".")[0]
        for node in source.tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if within(alias.name if isinstance(node, ast.Import) else node.module or "", (*REACHING_OUT, "pathlib"))
    }
    lines = {line for line, _ in _uses(source)}
    read = {
        node.name: {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for node in source.tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    reaching = {node.name for node in source.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and lines & {*_lines(node)}}
    reaching |= {name for name, names in read.items() if names & outside}
    while more := {name for name, names in read.items() if name not in reaching and names & reaching}:
        reaching |= more
    return frozenset(reaching & helpers.of_programs())


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@once
def find(source: Source) -> Iterator[tuple[int, str]]:
    """(line, message) of each forbidden use in a file. Helpers of training scripts, which read data, may stand beside those of models."""
    theirs = [*_lines_of_programs(source), *_lines_of_torchax(source)]
    yield from (row for row in _uses(source) if not any(row[0] in lines for lines in theirs))


def _lines_of_programs(source: Source) -> Iterator[range]:
    """The lines of the project's own helpers of training scripts."""
    theirs = [
        node
        for node in source.tree.body
        if getattr(node, "name", "") in helpers.of_programs() and is_copied(getattr(node, "name", ""), source.text)
    ]
    others = {part.id for node in source.tree.body if node not in theirs for part in ast.walk(node) if isinstance(part, ast.Name)}
    for node in source.tree.body:
        # An import for nobody else is theirs too.
        imported = {alias.asname or alias.name.partition(".")[0] for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)}
        if node in theirs or (theirs and imported and not imported & others):
            yield _lines(node)


def _lines_of_torchax(source: Source) -> Iterator[range]:
    """The lines of the project's own helpers of what runs through torchax, which call torch for initial values."""
    for node in source.tree.body:
        name = getattr(node, "name", "")
        if name in helpers.of_torchax() and is_copied(name, source.text):
            yield _lines(node)


def _uses(source: Source) -> Iterator[tuple[int, str]]:
    for use in uses(source):
        if within(use.name, BUILTINS) or within(use.name, HOST):
            yield use.line, f"uses {use.name.removeprefix('builtins.')}"
        head, _, rest = use.name.partition(".")
        if head in PARTLY and rest.partition(".")[0] not in PARTLY[head].split():
            yield use.line, f"uses {use.name}"
    # `getattr(jax, "pure" + "_callback")` has no forbidden name in it.
    yield from _lookups(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in (*INTERNALS, *FILE_METHODS):
            yield node.lineno, f"uses {node.attr}"
        # A string is enough to reach an attribute, by `getattr` or by `operator.attrgetter`.
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in INTERNALS:
            yield node.lineno, f"names {node.value}"


def _lookups(source: Source) -> Iterator[tuple[int, str]]:
    """Look-ups of attributes of imported names by a name made at run time, or by the name of something forbidden."""
    imported = bindings(source.tree)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        function, first = dotted(node.func), dotted(node.args[0])
        head, _, rest = function.partition(".")
        if imported.get(head, "builtins." + head) + ("." + rest if rest else "") not in LOOKUPS:
            continue
        if not head.endswith("getattr"):
            if not isinstance(node.args[0], ast.Constant):
                yield node.lineno, f"looks up a name made at run time ({function})"
        # `getattr` of the user's own objects is ordinary Python, and judged by what it finds.
        elif len(node.args) > 1 and first.partition(".")[0] in imported:
            named = node.args[1]
            whole = imported[first.partition(".")[0]] + first[len(first.partition(".")[0]) :]
            if not (isinstance(named, ast.Constant) and isinstance(named.value, str)):
                if whole.partition(".")[0] in PARTLY or any(within(forbidden, [whole]) for forbidden in HOST):
                    yield node.lineno, f"looks up a name made at run time in {whole}"
            elif within(f"{whole}.{named.value}", HOST):
                yield node.lineno, f"uses {whole}.{named.value}"


CHECK = Check("static", "calls", judge)
