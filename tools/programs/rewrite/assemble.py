"""Rewrites a training program: the script with its compiled step, and the mirrors of what it needs of the repository."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst

from migrate_agent.tools.programs.contained import Contained
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.rewrite.configured import Construction
from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.drafts.initial_streams import repeats_streams
from migrate_agent.tools.programs.rewrite.drafts.shared_generator import with_one_generator
from migrate_agent.tools.programs.rewrite.function_groups import grouped
from migrate_agent.tools.programs.rewrite.method_optimizers import Inlined, RecordedOptimizer, inlined
from migrate_agent.tools.programs.rewrite.names import code, read
from migrate_agent.tools.programs.rewrite.plain_form import PlainForm, plain_form
from migrate_agent.tools.programs.rewrite.program_file import ProgramFile, TakenOut
from migrate_agent.tools.programs.rewrite.program_files import ProgramFiles
from migrate_agent.tools.programs.rewrite.spans import positions_of, span_of
from migrate_agent.tools.programs.rewrite.unreached import Region, block_around, with_errors
from migrate_agent.tools.rewrite.analysis.exercised import exercised
from migrate_agent.tools.rewrite.analysis.repo import FileModel
from migrate_agent.tools.rewrite.assemble.class_stubs import stub_reasons
from migrate_agent.tools.rewrite.assemble.compose import _Composer, _joined
from migrate_agent.tools.rewrite.assemble.workspace import Statement, Workspace
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Hole, Inventory, Observations, Observed, Span


def rewrite_program(
    inventory: Inventory,
    observations: Observations,
    program: Program,
    folder: Path,
    units: Sequence[str] = (),
    recorded: Sequence[RecordedOptimizer] = (),
    known: Observations | None = None,
    constructions: Sequence[Construction] = (),
    contained: Sequence[Contained] = (),
) -> Draft:
    """The draft of a program, with these verified units beside it; `folder` is for intermediate files, `recorded` are the optimizers that
    were seen, `constructions` the calls that made them and their schedulers, `contained` the modules that are parts of others, `observations` what
    the program's run showed, and `known` what the units' examples did.

    Other files of the repository that run as the program's own code, such as a trainer's or a data set's, are rewritten as the script is.
    Classes that neither are verified nor ran in the program are stubs. What is not understood is a hole, and then there are no files.
    """
    every = merged(observations, known or {})
    files = ProgramFiles(inventory, program.source, observations, units)
    paths = (program.source, *files.own(files.traced()))
    plain = {path: _plain(inventory, path, every, recorded, constructions if path == program.source else ()) for path in paths}
    stacked = inventory.scan_layers and bool(Workspace(inventory, every).repo.stacks.lists)
    parts = _taken_out(files, plain, stacked, contained)
    if isinstance(parts, Hole):
        return Draft({}, (parts,))
    targets = {file.path: file.target for file in inventory.files}

    def composed(texts: Mapping[str, str], streams: bool = False) -> Draft:
        changed = _changed(inventory, texts, folder / "intermediate")
        facts = {path: part.observed for path, part in parts.items()}
        space = Workspace(changed, {**every, **facts})
        space.hosts |= {path: replace(part.host, streams=streams) for path, part in parts.items()}
        own = {**observations, **facts}
        unjudged = stub_reasons(space.repo, own, exercised(space.repo, own), units)
        composer = _ProgramComposer(space, program.source, {path: part.helpers for path, part in parts.items()}, units, unjudged)
        composer.select_all()
        draft = _joined([composer.compose()], [composer.vendored()], changed.style == "plain")
        repeats = not streams and any(repeats_streams(draft.files.get(targets[path], "")) for path in parts)
        return composed(texts, True) if repeats else draft

    texts = {path: part.text for path, part in parts.items()}
    draft = composed(texts)
    if drawing := [hole for path, part in parts.items() for hole in _drawing(draft.files.get(targets[path], ""), path, part)]:
        return replace(draft, files={}, holes=(*drawing, *draft.holes))
    regions = {path: chosen for path, part in parts.items() if (chosen := _never_run(draft.holes, path, part))}
    if regions:
        draft = composed(texts | {path: with_errors(texts[path], chosen) for path, chosen in regions.items()})
    notes = [f"{path}: {note}" for path, form in plain.items() for note in form.notes]
    notes += [
        f"{path}: no run of [[program]] comes here{one.reason}: not migrated, an error once it runs"
        for path in regions
        for one in regions[path]
    ]
    own = {targets[path]: without_idle_names(draft.files[targets[path]]) for path in parts if targets[path] in draft.files}
    draft = replace(draft, files={**draft.files, **own}, notes=(*draft.notes, *notes))
    return with_one_generator(draft, inventory, targets[program.source])


def _plain(
    inventory: Inventory,
    path: str,
    observations: Observations,
    recorded: Sequence[RecordedOptimizer],
    constructions: Sequence[Construction],
) -> PlainForm:
    """The plain form of a file of the program."""

    def construction(call: cst.Call, torch: str) -> Inlined | None:
        sources = [
            (inventory.root / file.path).read_text(encoding="utf-8-sig") for file in inventory.files if not file.error and not file.adopted
        ]
        if call.args and isinstance(call.args[0].value, cst.Call):
            return grouped(code(call), sources, recorded, torch)
        if not isinstance(call.func, cst.Attribute):
            return None
        return inlined(code(call), code(call.func.value), call.func.attr.value, sources, recorded, torch)

    return plain_form((inventory.root / path).read_text(encoding="utf-8-sig"), observations.get(path, {}), construction, constructions)


def _taken_out(
    files: ProgramFiles, plain: Mapping[str, PlainForm], stacked: bool, contained: Sequence[Contained]
) -> dict[str, TakenOut] | Hole:
    """The files of a program without its training steps, or the first place that no rule covers."""
    rates = {path for path, form in plain.items() if "param_groups" in form.text}
    parts = {path: ProgramFile(form, shared=bool(rates - {path}), stacked=stacked, contained=contained) for path, form in plain.items()}
    path = files.source
    try:
        if not any(part.trains for part in parts.values()):
            raise NotUnderstoodError("no statement calls backward() in the program's files that ran")
        calls = {name: call for part in parts.values() for name, call in part.constructed().items()}
        trainings = {}
        for path, part in parts.items():
            part.others = calls
            trainings[path] = part.trainings()
        cores = [(path, core) for path, some in trainings.items() for one in some for core in one.cores]
        started = {files.resolved(path, name) for path, core in cores for node in (*core.slice, *core.losses) for name in read(node)}
        traced = files.traced(started)
        result = {}
        for path, part in parts.items():
            result[path] = part.taken_out(trainings[path], frozenset(name for file, name in traced if file == path) - part.noting)
        return result
    except NotUnderstoodError as error:
        return _hole(plain[path].module, path, error)


def _changed(inventory: Inventory, texts: Mapping[str, str], root: Path) -> Inventory:
    """The repository with other texts of some files, laid out below `root`."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(inventory.root, root)
    for path, text in texts.items():
        (root / path).write_text(text)
    return replace(scan(root), style=inventory.style, scan_layers=inventory.scan_layers)


def _never_run(holes: Sequence[Hole], source: str, script: TakenOut) -> list[Region]:
    """The blocks of a script that hold holes and that nothing was observed in."""
    ran = {line for span in script.observed for line in range(span.line, span.end_line + 1)}
    regions = [block_around(script.text, hole.span.line) for hole in holes if hole.source == source]
    unrun = {
        region.lines: region for region in regions if region is not None and not ran & set(range(region.lines[0], region.lines[1] + 1))
    }
    lines = script.text.splitlines()
    return [region for region in unrun.values() if region.replaceable(lines)]


def merged(first: Observations, second: Observations) -> Observations:
    """What two recordings observed; of one expression in both, what the second says of it."""
    result: dict[str, Mapping[Span, Observed]] = dict(first)
    for path, facts in second.items():
        result[path] = {**result.get(path, {}), **facts}
    return result


def _drawing(text: str, source: str, part: TakenOut) -> list[Hole]:
    """The losses that ask for a generator, which no step has: what they draw takes its shape from the middle of the step, or not in any case."""
    losses = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name in part.losses]
    drawn = [node.name for node in losses if any(one.arg == "rngs" for one in node.args.kwonlyargs)]
    reason = "random numbers are drawn in the middle of the step: draw them before it"
    return [Hole(source, part.losses[name], "training-step", reason, "") for name in drawn]


def _hole(module: cst.Module, source: str, error: NotUnderstoodError) -> Hole:
    position = positions_of(module).get(error.node) if error.node is not None else None
    span = span_of(position) if position else Span(1, 0, 1, 0)
    return Hole(source, span, "training-step", error.reason, code(error.node).strip() if error.node is not None else "")


class _ProgramComposer(_Composer):
    """Composes a script with all its statements."""

    def __init__(
        self, space: Workspace, path: str, names: Mapping[str, frozenset[str]], units: Sequence[str], refused: Collection[str]
    ) -> None:
        super().__init__(space, {}, list(units), refused)
        self._path, self._names = path, names

    def select_all(self) -> None:
        """Select all statements of the script, and what they need."""
        self.select(())
        selection = self.selection(self._path)
        for index, statement in enumerate(self.space.statements(self._path)):
            if index in selection.statements or statement.is_import or statement.is_docstring:
                continue
            selection.statements.add(index)
            self._needs(self._path, self._text(self._path, statement), statement)
        self._module_attributes()

    def need(self, path: str, name: str, statement: Statement | None = None) -> None:
        """Select what a name stands for; those of the step are helpers."""
        if name in self._names.get(path, ()):
            self.selection(path).vendored.add(name)
            return
        if path in self._names and statement is not None and name in _binds(statement.text) and name not in self.repo.files[path].top_names:
            # A loop's name that the rewrite has and the original has not.
            return
        super().need(path, name, statement)

    def _helpers_of(self, file: FileModel) -> tuple[str, str]:
        """A script is run by its path, where no relative import leads anywhere: it names the package of its mirror."""
        package, module = super()._helpers_of(file)
        return (file.file.target_module.partition(".")[0] if package and file.file.path == self._path else package), module


def _binds(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def without_idle_names(text: str) -> str:
    """The text without what is left of devices: assignments of `None` or "cpu" to names that nothing reads, and of names to themselves."""
    tree = ast.parse(text)
    loads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    lines = text.splitlines(keepends=True)
    for block in (getattr(node, "body", None) for node in ast.walk(tree)):
        for node in block if isinstance(block, list) and len(block) > 1 else ():
            if isinstance(node, ast.Assign) and node.lineno == node.end_lineno and _is_idle(node, loads):
                lines[node.lineno - 1] = ""
            elif isinstance(node, ast.If) and _only_looks(node.test) and _is_idle_branch(node, loads):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "".join(lines)


LOOKS = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.List, ast.Tuple, ast.UnaryOp, ast.expr_context, ast.cmpop, ast.unaryop)


def _only_looks(test: ast.expr) -> bool:
    """Whether a condition is of names, attributes and constants, so that asking it changes nothing. Parts of `and` and `or` are compared."""
    return all(isinstance(part, LOOKS) for part in ast.walk(test))


def _is_idle_branch(node: ast.If, loads: set[str]) -> bool:
    """Whether all that a choice does is idle."""
    return all(isinstance(one, ast.Pass) or (isinstance(one, ast.Assign) and _is_idle(one, loads)) for one in [*node.body, *node.orelse])


def _is_idle(node: ast.Assign, loads: set[str]) -> bool:
    if isinstance(node.value, ast.Constant) and node.value.value in (None, "cpu"):
        return all(isinstance(target, ast.Name) and target.id not in loads for target in node.targets)
    itself = isinstance(node.value, (ast.Name, ast.Tuple, ast.Attribute)) and len(node.targets) == 1
    return itself and ast.unparse(node.targets[0]) == ast.unparse(node.value)
