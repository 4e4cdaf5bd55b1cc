"""Takes the training steps out of a file of a program: what stands there then is still torch, apart from the steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.contained import Contained
from migrate_agent.tools.programs.rewrite.core import (
    RECORDS,
    STATE,
    Core,
    NotUnderstoodError,
    blocks,
    body,
    call_of,
    find_cores,
    method_of,
    notes_calls,
    optimizer_names,
)
from migrate_agent.tools.programs.rewrite.episodes.collected import REPLAY
from migrate_agent.tools.programs.rewrite.functions import Step, closure_scope, plan_step, scope_of
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall, optimizers_of, parameter_owners, schedulers_of
from migrate_agent.tools.programs.rewrite.host import SEEDS, Optimizers, RewriteHost, Training, traced_functions
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, chain_of, code, name_of
from migrate_agent.tools.programs.rewrite.plain_form import PlainForm, module_names
from migrate_agent.tools.programs.rewrite.spans import moved, positions_of, span_of
from migrate_agent.tools.programs.rewrite.views import View, views
from migrate_agent.tools.rewrite.rules.context import Host
from migrate_agent.tools.types import Observed, Span


@dataclass(frozen=True)
class TakenOut:
    """A file with its steps taken out, still in torch otherwise: its text, where observed expressions stand in it, and helpers it uses."""

    text: str
    observed: Mapping[Span, Observed]
    helpers: frozenset[str]
    host: Host
    losses: Mapping[str, Span]
    """Function of a loss → the first `backward()` of its step."""


class ProgramFile:
    """A file of a program in its plain form. `others` are the optimizers that other files construct, by name, and `shared` says whether other files
    set the rates of optimizers. `stacked`: modules of the program hold layers as stacks. `contained` are modules that are parts of others.
    """

    def __init__(
        self,
        plain: PlainForm,
        others: Mapping[str, OptimizerCall] | None = None,
        shared: bool = False,
        stacked: bool = False,
        contained: Sequence[Contained] = (),
    ) -> None:
        self.plain, self.module, self.observed = plain, plain.module, plain.observed
        self.imports = Imports(plain.text)
        self.positions = positions_of(plain.module)
        self.kinds = _kinds(self.positions, plain.observed)
        self.seen = _optimizers(self.kinds)
        self.others, self.shared, self.stacked, self.contained = others or {}, shared, stacked, contained
        self._free = FreeNames(plain.text)

    @property
    def trains(self) -> bool:
        """Whether a statement calls `backward()`."""
        return any(method_of(s)[1] == "backward" for block, _ in blocks(self.module) for s in body(block))

    def trainings(self) -> list[Training]:
        """Its training functions; without any, what it knows of optimizers. Raises `NotUnderstoodError` for a form that no rule covers."""
        if not self.trains:
            return [Training(None, [], [], self._optimizers(self.module, []))]
        modules, parts = module_names(self.positions, self.observed), []
        for view in views(self.module):
            owners = {**dict.fromkeys(self.seen, ""), **parameter_owners(view.module, self.imports)}
            cores, inside = find_cores(view.module, self.imports, modules, owners, self.contained)
            parts.append((view, cores, tuple(view.origins.get(statement, statement) for statement in inside)))
        _refuse_shared_optimizers(self.imports, parts)
        alone = sum(len(cores) for _, cores, _ in parts) == 1
        return [self._training(view, cores, inside, alone) for view, cores, inside in parts]

    def constructed(self) -> dict[str, OptimizerCall]:
        """The optimizers that it constructs, by name."""
        return optimizers_of(self.module, self.imports, {}, shared=self.shared)

    def _training(self, view: View, cores: Sequence[Core], inside: Sequence[cst.CSTNode], alone: bool) -> Training:
        closed = any(core.closure is not None for core in cores)
        scope = closure_scope(inside) if closed else scope_of(self.module, inside)
        others = {id(core): [other for other in cores if other is not core] for core in cores}
        kinds = {**self.kinds, **self._kinds_in(view.function)}
        steps = [
            plan_step(core, list(_outside(self.module, core, inside)), scope, kinds, others[id(core)], self._free, alone) for core in cores
        ]
        if closed:
            steps = [replace(step, name=self._free.pick("loss_and_grads", "value_and_grads")) for step in steps]
        optimizers = self._optimizers(view.module, cores)
        steps = [_with_filters(core, step, optimizers) for core, step in zip(cores, steps, strict=True)]
        return Training(view.function, cores, steps, optimizers)

    def _kinds_in(self, function: cst.CSTNode | None) -> dict[str, frozenset[str]]:
        """What names were seen to hold in a function, where other functions have other things of the same names."""
        if function is None:
            return {}
        nodes: dict[cst.CSTNode, object] = {}
        todo = [function]
        while todo:
            node = todo.pop()
            nodes |= {node: self.positions[node]} if node in self.positions else {}
            todo += node.children
        return _kinds(nodes, self.observed)

    def _optimizers(self, module: cst.Module, cores: Sequence[Core]) -> Optimizers:
        schedulers = schedulers_of(module, self.imports, cores)
        calls = optimizers_of(module, self.imports, schedulers, self.seen, self.shared)
        if not calls and len(self.others) == 1:
            # The file is handed the only optimizer of the program.
            calls = {name: call for name in self.seen for call in self.others.values()}
        calls = {name: replace(call, stacked=self.stacked) for name, call in calls.items()}
        return Optimizers(calls, schedulers, optimizer_names(module, self.imports))

    @property
    def noting(self) -> frozenset[str]:
        """Its functions that note what they call a module with: they act on something outside, so that nothing traces them."""
        functions = [node for node in self.module.body if isinstance(node, cst.FunctionDef)]
        return frozenset(one.name.value for one in functions if notes_calls(one))

    def taken_out(self, trainings: Sequence[Training], traced: frozenset[str]) -> TakenOut:
        """The file without its training steps. `traced` are its functions and classes that other code which is traced uses."""
        traced |= traced_functions(self.module, [core for one in trainings for core in one.cores])
        host = RewriteHost(
            self.imports,
            trainings,
            traced,
            self._free.pick("eval_step", "predict", "forward_step"),
            _called_modules(self.positions, self.observed),
            self._compiled_methods([core for one in trainings for core in one.cores]),
            _devices(self.positions, self.observed),
            _holders(self.positions, self.observed),
            _tensors(self.positions, self.observed),
            _distributions(self.positions, self.observed),
        )
        new = self.module.visit(host)
        assert isinstance(new, cst.Module)
        host.helpers |= _replaying(new.code)
        if clash := sorted(host.helpers & _own_names(self.plain.text)):
            raise NotUnderstoodError(f"{clash[0]} is a name of the script, and of a helper that the rewrite needs: rename it")
        facts = moved(new, host.origin, self.positions, self.observed)
        losses = {step.loss_name: self._backward(core) for core, step in zip(host.cores, host.steps, strict=True)}
        seeds = _seeds(self.module, self.imports)
        return TakenOut(new.code, facts, frozenset(host.helpers), Host(seeds, traced | losses.keys()), losses)

    def _compiled_methods(self, cores: Sequence[Core]) -> dict[cst.CSTNode, str]:
        """Calls outside of the steps of methods that losses call too, so that they can be traced → the function that compiles each."""
        inside = {node for core in cores for statement in core.slice for node in _calls_in(statement)}
        called = _called_methods(self.positions, self.observed)
        traced = {(one.kinds, one.name) for node, one in called.items() if node in inside}
        outside = {n: one.name for n, one in called.items() if one.plain and n not in inside and (one.kinds, one.name) in traced}
        names = {name: self._free.pick(f"eval_{name}", f"{name}_step") for name in sorted(set(outside.values()))}
        return {node: names[name] for node, name in outside.items()}

    def _backward(self, core: Core) -> Span:
        position = self.positions.get(core.backwards[0])
        return span_of(position) if position is not None else Span(1, 0, 1, 0)


def _refuse_shared_optimizers(imports: Imports, parts: Sequence[tuple[View, Sequence[Core], object]]) -> None:
    """Refuse an optimizer that several functions step: whether a schedule goes with each of its updates is not seen from one of them."""
    names = [name for view, cores, _ in parts for name in {n for core in cores for n in core.optimizers} - _constructed(view, imports)]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise NotUnderstoodError(f"{shared[0]} steps in several functions")


def _constructed(view: View, imports: Imports) -> set[str]:
    """The optimizers that a training function constructs itself."""
    function = cst.Module([view.function]) if isinstance(view.function, cst.FunctionDef) else cst.Module([])
    return set(optimizer_names(function, imports))


def _replaying(text: str) -> set[str]:
    """The helpers by which a script notes calls of a module and computes them again, where it does."""
    called = {node.func.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    helpers = {STATE, RECORDS, REPLAY}
    return helpers if helpers <= called else set()


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
    if any(text and path for text, path in zip(filters, core.paths, strict=True)):
        raise NotUnderstoodError("an optimizer of some parameters of a part of the loss's module has no rule", core.backwards[0])
    if any(filters) and core.accumulates:
        raise NotUnderstoodError("gradients of some parameters that add up over batches have no rule", core.backwards[0])
    return replace(step, trainable=tuple(_filter_of(core, filters, model) for model in step.models)) if any(filters) else step


def _filter_of(core: Core, filters: Sequence[str], model: str) -> str:
    """The filter of the parameters of a module that any of its optimizers has; "" for all."""
    texts = list(dict.fromkeys(text for text, owner in zip(filters, core.owners, strict=True) if owner == model))
    return "" if "" in texts else texts[0] if len(texts) == 1 else f"nnx.Any({', '.join(texts)})"


def _optimizers(kinds: Mapping[str, frozenset[str]]) -> list[str]:
    """Names that were seen to hold optimizers of torch."""
    of_torch = re.compile(r"object:torch\.optim\.(?!lr_scheduler|swa_utils)")
    return [name for name, some in kinds.items() if some and all(of_torch.match(kind) for kind in some)]


def _kinds(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> dict[str, frozenset[str]]:
    """Name, with attributes or without → what it was seen to hold, anywhere in the file."""
    kinds: dict[str, frozenset[str]] = {}
    for node, position in positions.items():
        name = chain_of(node) if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) else ""
        fact = observed.get(span_of(position)) if name else None
        if fact is not None:
            kinds[name] = kinds.get(name, frozenset()).union(fact.kinds)
    return kinds


def _devices(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Names that were seen to hold devices."""
    facts = {node: observed.get(span_of(position)) for node, position in positions.items() if isinstance(node, (cst.Name, cst.Attribute))}
    return frozenset(node for node, fact in facts.items() if fact is not None and tuple(fact.kinds) == ("device",))


def _holders(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Names that were seen to hold modules or optimizers, which have a state, and calls that gave some."""
    prefixes = ("module:", "object:torch.optim.")
    kinds = (cst.Name, cst.Attribute, cst.Call)
    facts = {node: observed.get(span_of(position)) for node, position in positions.items() if isinstance(node, kinds)}
    return frozenset(n for n, fact in facts.items() if fact is not None and fact.kinds and all(k.startswith(prefixes) for k in fact.kinds))


def _tensors(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Expressions that were seen to be tensors."""
    facts = {node: observed.get(span_of(position)) for node, position in positions.items() if isinstance(node, cst.BaseExpression)}
    return frozenset(node for node, fact in facts.items() if fact is not None and tuple(fact.kinds) == ("tensor",))


def _distributions(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> dict[cst.CSTNode, str]:
    """Expressions that were seen to be distributions of torch of one class, and that class."""
    facts = {node: observed.get(span_of(position)) for node, position in positions.items() if isinstance(node, cst.BaseExpression)}
    kinds = {node: fact.kinds[0] for node, fact in facts.items() if fact is not None and len(fact.kinds) == 1}
    return {node: kind.rpartition(".")[2] for node, kind in kinds.items() if kind.startswith("object:torch.distributions.")}


def _called_modules(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[cst.CSTNode]:
    """Calls of modules of the repository on tensors alone."""
    calls = set()
    for node in positions:
        if not isinstance(node, cst.Call) or not name_of(node.func) or not node.args:
            continue
        facts = [observed.get(span_of(positions[part])) for part in (node.func, *(argument.value for argument in node.args))]
        kinds = [fact.kinds if fact is not None else () for fact in facts]
        # A loss of torch has no parameters, and is compiled with whatever calls it.
        own = bool(kinds[0]) and all(_is_own_module(kind) for kind in kinds[0])
        if own and all(kind == ("tensor",) for kind in kinds[1:]) and not any(argument.star for argument in node.args):
            calls.add(node)
    return frozenset(calls)


@dataclass(frozen=True)
class _Method:
    """A method that is called: its module's kinds, its name, and whether all that it is called with are tensors."""

    kinds: tuple[str, ...]
    name: str
    plain: bool


def _called_methods(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> dict[cst.CSTNode, _Method]:
    """Calls of methods of the repository's modules."""
    calls: dict[cst.CSTNode, _Method] = {}
    for node in positions:
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not name_of(node.func.value):
            continue
        module, *rest = (observed.get(span_of(positions[part])) for part in (node.func.value, *(a.value for a in node.args)))
        kinds = tuple(module.kinds) if module is not None else ()
        if kinds and all(_is_own_module(kind) for kind in kinds):
            tensors = bool(rest) and all(fact is not None and tuple(fact.kinds) == ("tensor",) for fact in rest)
            calls[node] = _Method(kinds, node.func.attr.value, tensors and not any(a.star or a.keyword is not None for a in node.args))
    return calls


def _calls_in(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The calls of a statement."""
    yield from ([statement] if isinstance(statement, cst.Call) else [])
    for child in statement.children:
        yield from _calls_in(child)


def _is_own_module(kind: str) -> bool:
    """Whether a kind is a module of the repository, or what wraps one for several devices."""
    return kind.startswith("module:") and (not kind.startswith("module:torch.") or kind.endswith(".DataParallel"))


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
