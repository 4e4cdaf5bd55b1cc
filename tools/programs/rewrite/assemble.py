"""Rewrites a training program: the script with its compiled step, and the mirrors of what it needs of the repository."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst
from libcst import matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.rewrite.configured import Construction
from migrate_agent.tools.programs.rewrite.core import Core, NotUnderstoodError, blocks, body, call_of, find_cores, optimizer_names
from migrate_agent.tools.programs.rewrite.drawn_arguments import DrawnArguments
from migrate_agent.tools.programs.rewrite.functions import Step, plan_step, scope_of
from migrate_agent.tools.programs.rewrite.groups import optimizers_of, parameter_owners, schedulers_of
from migrate_agent.tools.programs.rewrite.host import SEEDS, Optimizers, RewriteHost, Training, traced_functions
from migrate_agent.tools.programs.rewrite.initial_streams import repeats_streams
from migrate_agent.tools.programs.rewrite.method_optimizers import RecordedOptimizer, inlined
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, chain_of, code, name_of
from migrate_agent.tools.programs.rewrite.normalise import Normalise
from migrate_agent.tools.programs.rewrite.unreached import Region, block_around, with_errors
from migrate_agent.tools.programs.rewrite.views import View, views
from migrate_agent.tools.rewrite.analysis.exercised import exercised
from migrate_agent.tools.rewrite.assemble.class_stubs import stub_reasons
from migrate_agent.tools.rewrite.assemble.compose import _Composer, _joined
from migrate_agent.tools.rewrite.assemble.workspace import Statement, Workspace
from migrate_agent.tools.rewrite.rules.context import Host
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Hole, Inventory, Observations, Observed, Span


@dataclass(frozen=True)
class _Intermediate:
    """The script with its step taken out, still in torch otherwise: its text, where observed expressions stand in it, and helpers it uses."""

    text: str
    observed: Mapping[Span, Observed]
    helpers: frozenset[str]
    host: Host


def rewrite_program(
    inventory: Inventory,
    observations: Observations,
    program: Program,
    folder: Path,
    units: Sequence[str] = (),
    recorded: Sequence[RecordedOptimizer] = (),
    known: Observations | None = None,
    constructions: Sequence[Construction] = (),
) -> Draft:
    """The draft of a program, with these verified units beside it; `folder` is for intermediate files, `recorded` are the optimizers that
    were seen, `constructions` the calls that made them and their schedulers, `observations` what the program's run showed, and `known` what
    the units' examples did.

    Classes that neither are verified nor ran in the program are stubs. What is not understood is a hole, and then there are no files.
    """
    text = (inventory.root / program.source).read_text()

    def construction(call: cst.Call, torch: str) -> str:
        if not isinstance(call.func, cst.Attribute):
            return ""
        sources = [(inventory.root / file.path).read_text() for file in inventory.files if not file.error and not file.adopted]
        return inlined(code(call), code(call.func.value), call.func.attr.value, sources, recorded, torch)

    every = merged(observations, known or {})
    module, observed, notes = _normalised(cst.parse_module(text), text, every.get(program.source, {}), construction, constructions)
    try:
        intermediate = _intermediate(module, module.code, observed)
    except NotUnderstoodError as error:
        return Draft({}, (_hole(module, program.source, error),))

    def composed(text: str, streams: bool = False) -> Draft:
        changed = _changed(inventory, program.source, text, folder / "intermediate")
        own = {**observations, program.source: intermediate.observed}
        space = Workspace(changed, {**every, program.source: intermediate.observed})
        space.hosts[program.source] = replace(intermediate.host, streams=streams)
        unjudged = stub_reasons(space.repo, own, exercised(space.repo, own), units)
        composer = _ProgramComposer(space, program.source, intermediate.helpers, units, unjudged)
        composer.select_all()
        draft = _joined([composer.compose()], [composer.vendored()], changed.style == "plain")
        return composed(text, True) if not streams and repeats_streams(draft.files.get(target, "")) else draft

    target = next(file.target for file in inventory.files if file.path == program.source)
    draft = composed(intermediate.text)
    if regions := _never_run(draft.holes, program.source, intermediate):
        draft = composed(with_errors(intermediate.text, regions))
    notes += [f"no run of [[program]] comes here{region.reason}: not migrated, an error once it runs" for region in regions]
    files = {**draft.files, target: without_idle_names(draft.files[target])}
    return replace(draft, files=files, notes=(*draft.notes, *(f"{program.source}: {note}" for note in notes)))


def _changed(inventory: Inventory, path: str, text: str, root: Path) -> Inventory:
    """The repository with another text of one file, laid out below `root`."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(inventory.root, root)
    (root / path).write_text(text)
    return replace(scan(root), style=inventory.style)


def _never_run(holes: Sequence[Hole], source: str, script: _Intermediate) -> list[Region]:
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


def _hole(module: cst.Module, source: str, error: NotUnderstoodError) -> Hole:
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    position = positions.get(error.node) if error.node is not None else None
    span = Span(position.start.line, position.start.column, position.end.line, position.end.column) if position else Span(1, 0, 1, 0)
    return Hole(source, span, "training-step", error.reason, code(error.node).strip() if error.node is not None else "")


def _normalised(
    module: cst.Module,
    text: str,
    observed: Mapping[Span, Observed],
    construction: Callable[[cst.Call, str], str],
    constructions: Sequence[Construction],
) -> tuple[cst.Module, dict[Span, Observed], list[str]]:
    """The script in its plain form, what was observed by where it stands there, and notes."""
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)

    def kinds(node: cst.CSTNode) -> Sequence[str]:
        fact = observed.get(_span(positions[node])) if node in positions else None
        return fact.kinds if fact is not None else ()

    def constructed(node: cst.CSTNode) -> Sequence[Construction]:
        span = _span(positions[node])
        return [one for one in dict.fromkeys(constructions) if span.line <= one.line <= span.end_line]

    normalise = Normalise(module, Imports(text), kinds, construction, constructed)
    new = module.visit(normalise)
    assert isinstance(new, cst.Module)
    facts, plain = _moved(new, normalise.origin, positions, observed), cst.parse_module(new.code)
    spans = MetadataWrapper(plain, unsafe_skip_copy=True).resolve(PositionProvider)
    drawn = DrawnArguments(plain, Imports(plain.code))
    last = plain.visit(drawn)
    assert isinstance(last, cst.Module)
    return cst.parse_module(last.code), _moved(last, drawn.origin, spans, facts), list(dict.fromkeys(normalise.notes))


def _intermediate(module: cst.Module, text: str, observed: Mapping[Span, Observed]) -> _Intermediate:
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    imports = Imports(text)
    kinds = _kinds(positions, observed)
    free, seen = FreeNames(text), _optimizers(kinds)
    modules, parts = _modules(positions, observed), []
    for view in views(module):
        owners = {**dict.fromkeys(seen, ""), **parameter_owners(view.module, imports)}
        cores, inside = find_cores(view.module, imports, modules, owners)
        parts.append((view, cores, tuple(view.origins.get(statement, statement) for statement in inside)))
    _refuse_shared_optimizers(imports, parts)
    alone = sum(len(cores) for _, cores, _ in parts) == 1
    trainings = []
    for view, cores, inside in parts:
        scope = scope_of(module, inside)
        others = {id(core): [other for other in cores if other is not core] for core in cores}
        steps = [plan_step(core, list(_outside(module, core, inside)), scope, kinds, others[id(core)], free, alone) for core in cores]
        schedulers = schedulers_of(view.module, imports, cores)
        calls = optimizers_of(view.module, imports, schedulers, seen)
        optimizers = Optimizers(calls, schedulers, optimizer_names(view.module, imports))
        steps = [_with_filters(core, step, optimizers) for core, step in zip(cores, steps, strict=True)]
        trainings.append(Training(view.function, cores, steps, optimizers))
    traced = traced_functions(module, [core for one in trainings for core in one.cores])
    host = RewriteHost(
        imports,
        trainings,
        traced,
        free.pick("eval_step", "predict", "forward_step"),
        _called_modules(positions, observed),
        _devices(positions, observed),
        _holders(positions, observed),
    )
    new = module.visit(host)
    assert isinstance(new, cst.Module)
    if clash := sorted(host.helpers & _own_names(text)):
        raise NotUnderstoodError(f"{clash[0]} is a name of the script, and of a helper that the rewrite needs: rename it")
    moved = _moved(new, host.origin, positions, observed)
    losses = frozenset(step.loss_name for step in host.steps)
    return _Intermediate(new.code, moved, frozenset(host.helpers), Host(_seeds(module, imports), traced | losses))


def _refuse_shared_optimizers(imports: Imports, parts: Sequence[tuple[View, Sequence[Core], object]]) -> None:
    """Refuse an optimizer that several functions step: whether a schedule goes with each of its updates is not seen from one of them."""
    names = [name for view, cores, _ in parts for name in {n for core in cores for n in core.optimizers} - _constructed(view, imports)]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise NotUnderstoodError(f"{shared[0]} steps in several functions")


def _constructed(view: View, imports: Imports) -> set[str]:
    """The optimizers that a training function constructs itself."""
    function = cst.Module([view.function]) if isinstance(view.function, cst.FunctionDef) else cst.Module([])
    return set(optimizer_names(function, imports))


def _own_names(text: str) -> set[str]:
    """Names that a script gives to values, parameters, functions and classes."""
    tree = list(ast.walk(ast.parse(text)))
    names = {node.id for node in tree if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in tree if isinstance(node, ast.arg)}
    return names | {node.name for node in tree if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _with_filters(core: Core, step: Step, optimizers: Optimizers) -> Step:
    """The step, whose gradients are those of the parameters that its optimizers have."""
    calls = [optimizers.calls.get(name) for name in core.optimizers]
    if len(core.optimizers) == 1 and calls[0] is None:
        # The function has another name for the only one.
        calls = [next(iter(optimizers.calls.values()), None)]
    filters = tuple(call.trainable if call is not None else "" for call in calls)
    if any(filters) and core.accumulates:
        raise NotUnderstoodError("gradients of some parameters that add up over batches have no rule", core.backwards[0])
    return replace(step, trainable=filters) if any(filters) else step


def _optimizers(kinds: Mapping[str, frozenset[str]]) -> list[str]:
    """Names that were seen to hold optimizers of torch."""
    of_torch = re.compile(r"object:torch\.optim\.(?!lr_scheduler|swa_utils)")
    return [name for name, some in kinds.items() if some and all(of_torch.match(kind) for kind in some)]


def _span(position: object) -> Span:
    start, end = position.start, position.end  # type: ignore[attr-defined]
    return Span(start.line, start.column, end.line, end.column)


def _modules(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[str]:
    """Names that were seen to hold modules, other than losses of torch, which have no parameters."""
    names = set()
    for node, position in positions.items():
        if not (name := name_of(node)):
            continue
        fact = observed.get(_span(position))
        if (
            fact is not None
            and fact.kinds
            and all(k.startswith("module:") and not re.match(r"module:torch\..*Loss$", k) for k in fact.kinds)
        ):
            names.add(name)
    return frozenset(names)


def _kinds(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> dict[str, frozenset[str]]:
    """Name, with attributes or without → what it was seen to hold, anywhere in the file."""
    kinds: dict[str, frozenset[str]] = {}
    for node, position in positions.items():
        name = chain_of(node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        fact = observed.get(_span(position)) if name else None
        if fact is not None:
            kinds[name] = kinds.get(name, frozenset()).union(fact.kinds)
    return kinds


def _devices(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Names that were seen to hold devices."""
    facts = {node: observed.get(_span(position)) for node, position in positions.items() if isinstance(node, (cst.Name, cst.Attribute))}
    return frozenset(node for node, fact in facts.items() if fact is not None and tuple(fact.kinds) == ("device",))


def _holders(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Names that were seen to hold modules or optimizers, which have a state."""
    prefixes = ("module:", "object:torch.optim.")
    facts = {node: observed.get(_span(position)) for node, position in positions.items() if isinstance(node, (cst.Name, cst.Attribute))}
    return frozenset(n for n, fact in facts.items() if fact is not None and fact.kinds and all(k.startswith(prefixes) for k in fact.kinds))


def _called_modules(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Calls of modules of the repository on tensors alone."""
    calls = set()
    for node in positions:
        if not isinstance(node, cst.Call) or not name_of(node.func) or not node.args:
            continue
        facts = [observed.get(_span(positions[part])) for part in (node.func, *(argument.value for argument in node.args))]
        kinds = [fact.kinds if fact is not None else () for fact in facts]
        # A loss of torch has no parameters, and is compiled with whatever calls it.
        own = bool(kinds[0]) and all(kind.startswith("module:") and not kind.startswith("module:torch.") for kind in kinds[0])
        if own and all(kind == ("tensor",) for kind in kinds[1:]) and not any(argument.star for argument in node.args):
            calls.add(node)
    return frozenset(calls)


def _moved(
    new: cst.Module, origin: Mapping[cst.CSTNode, cst.CSTNode], positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]
) -> dict[Span, Observed]:
    """What was observed, by where the expressions stand now."""
    spans = MetadataWrapper(new, unsafe_skip_copy=True).resolve(PositionProvider)
    facts: dict[Span, Observed] = {}
    for node, old in origin.items():
        if node in spans and old in positions and isinstance(node, cst.BaseExpression):
            fact = observed.get(_span(positions[old]))
            if fact is not None:
                facts[_span(spans[node])] = fact
    return facts


def _outside(module: cst.Module, core: Core, inside: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Statements and headers of statements of the function around the step, or of the file, that are no part of the step."""
    gone = {*core.gone, *core.fetched}
    function = next((statement for statement in inside if isinstance(statement, cst.FunctionDef)), None)
    for block, around in blocks(module):
        own = next((statement for statement in around if isinstance(statement, cst.FunctionDef)), None)
        if own is not function or any(statement in gone for statement in around):
            continue
        for statement in body(block):
            if statement in gone or isinstance(statement, (cst.ClassDef, cst.FunctionDef)):
                continue
            if isinstance(statement, cst.SimpleStatementLine):
                yield statement
            for name in ("test", "iter", "subject"):
                if isinstance(header := getattr(statement, name, None), cst.BaseExpression):
                    yield header
            for item in getattr(statement, "items", ()):
                yield item.item


def _seeds(module: cst.Module, imports: Imports) -> dict[str, str]:
    """Function, or "" for the file → the text of the seed that it sets. Numbers that are set anywhere stand for every function."""
    seeds: dict[str, str] = {}
    for block, inside in blocks(module):
        for statement in body(block):
            call = call_of(statement)
            if call is None or imports.of(call.func) not in SEEDS or not call.args:
                continue
            functions = [s.name.value for s in inside if isinstance(s, cst.FunctionDef)]
            seeds.setdefault(functions[0] if functions else "", code(call.args[0].value))
    number = next((text for text in seeds.values() if text.isdecimal()), "0")
    functions = [node.name.value for node in m.findall(module, m.FunctionDef()) if isinstance(node, cst.FunctionDef)]
    return {name: seeds.get(name, number) for name in ("", *functions)}


class _ProgramComposer(_Composer):
    """Composes a script with all its statements."""

    def __init__(self, space: Workspace, path: str, names: frozenset[str], units: Sequence[str], refused: Collection[str]) -> None:
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
        if path == self._path and name in self._names:
            self.selection(path).vendored.add(name)
            return
        if path == self._path and statement is not None and name in _binds(statement.text) and name not in self.repo.files[path].top_names:
            # A loop's name that the rewrite has and the original has not.
            return
        super().need(path, name, statement)


def _binds(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def without_idle_names(text: str) -> str:
    """The text without what is left of devices: assignments of `None` to names that nothing reads, and of names to themselves."""
    tree = ast.parse(text)
    loads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    lines = text.splitlines(keepends=True)
    for block in (getattr(node, "body", None) for node in ast.walk(tree)):
        for node in block if isinstance(block, list) and len(block) > 1 else ():
            if isinstance(node, ast.Assign) and node.lineno == node.end_lineno and _is_idle(node, loads):
                lines[node.lineno - 1] = ""
            elif isinstance(node, ast.If) and isinstance(node.test, (ast.Name, ast.Constant)) and _is_idle_branch(node, loads):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "".join(lines)


def _is_idle_branch(node: ast.If, loads: set[str]) -> bool:
    """Whether all that a choice does is idle."""
    return all(isinstance(one, ast.Pass) or (isinstance(one, ast.Assign) and _is_idle(one, loads)) for one in [*node.body, *node.orelse])


def _is_idle(node: ast.Assign, loads: set[str]) -> bool:
    if isinstance(node.value, ast.Constant) and node.value.value is None:
        return all(isinstance(target, ast.Name) and target.id not in loads for target in node.targets)
    itself = isinstance(node.value, (ast.Name, ast.Tuple)) and len(node.targets) == 1
    return itself and ast.unparse(node.targets[0]) == ast.unparse(node.value)
