"""Decides which functions need an `nnx.Rngs` and how they reach it.

Torch draws from a global generator; JAX draws from keys that are passed along. A constructor of a
module takes `rngs`; what a constructor calls to build or initialise parts takes it too; a method
that draws while the module runs uses `self.rngs`; a free function that draws takes `rngs`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.draws import context_of, passes_of_call
from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.initialising_lambdas import initialising_lambdas
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.registry import Op, layers, methods, ops
from migrate_agent.tools.rewrite.tables.signatures import literal_argument, parse_signature
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import CALLING, Observed, Span

FunctionKey = tuple[str, str]
"""File path and qualified name."""


def draws(op: Op, call: ast.Call | None = None) -> bool:
    """Whether an operator draws random numbers; with `call`, whether this call of it may: not with
    an argument that silences it (`p=0`).
    """
    if not op.draws:
        return False
    signature = parse_signature(op.signature)
    return not (call and any(literal_argument(signature, call, name) == value for name, value in op.quiet))


@dataclass
class Randomness:
    """`parameter` holds the functions that gain a keyword-only `rngs`; `stored` the classes (ids)
    whose methods use `self.rngs`.
    """

    parameter: set[FunctionKey] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    contexts: dict[FunctionKey, str] = field(default_factory=dict)
    """Passes of autograd functions that draw → the name of their context, which has the `rngs`."""
    constructing: set[FunctionKey] = field(default_factory=set)
    """Methods that run only while the module is constructed."""
    live: set[FunctionKey] = field(default_factory=set)
    """Functions that constructing or calling a module may reach."""
    written: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → its parameters through which it changes a module's parameter (see `parameter_writes`)."""
    drawing: set[FunctionKey] = field(default_factory=set)
    """Functions that may draw random numbers, of their own or by what they call: of those that gain `rngs`, not all do."""
    passing: set[tuple[str, Span]] = field(default_factory=set)
    """(file path, span) of the callee of each call that forwards all keywords of its caller, `rngs`
    among them.
    """
    mutated: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → its parameters whose array it changes in place."""
    out_of_reach: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """The mutated parameters that are changed through a view without an inverse."""
    buffers: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → those of the mutated parameters that take the variable itself (see `buffer_arguments`)."""
    used_buffers: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → those of them that it does more with than to hand them on."""
    buffer_names: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → all of its names that may stand for such a variable."""
    made_buffers: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → those of them that become variables where they are handed on."""
    lent_buffers: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    """Function → its local tensors that are variables for single calls."""
    initialising: Mapping[str, frozenset[Span]] = field(default_factory=dict)
    """See `initialising_lambdas`."""
    walked: Set[str] = frozenset()
    """See `walked_classes`."""
    asked_modes: Set[str] = frozenset()
    """See `asked_modes` of class_facts."""
    factories: Set[FunctionKey] = frozenset()
    """See `_factories`."""
    asked_for_class: bool = False
    """See `asks_layers_for_class`."""
    intermediates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """Class id → attribute that a call sets before anything reads it → whether it is an array."""


@dataclass
class _Function:
    key: FunctionKey
    node: FunctionNode | ast.Lambda
    model: ClassModel | None
    calls: set[FunctionKey] = field(default_factory=set)
    needs: bool = False
    mentions: set[str] = field(default_factory=set)
    """Attribute names read from anything but `self`."""
    groups: set[frozenset[FunctionKey]] = field(default_factory=set)
    """Functions that one call may reach: an overridden method (`self.m()`), or several functions
    (`(f if x else g)()`).
    """
    of_parts: set[FunctionKey] = field(default_factory=set)
    """Methods that are called on other modules: `self.layer.reset()`."""
    later: set[FunctionKey] = field(default_factory=set)
    """Methods that are stored as a value (`self.fn = self.m`, `partial(self.m, 2)`), so that they
    may be called at any time.
    """


def analyse(repo: Repo, facts: Mapping[str, Facts]) -> Randomness:
    """Which functions take `rngs` and which classes store it. Fixed point over the calls of the
    repository.
    """
    initialising = initialising_lambdas(repo, facts)
    functions = function_graph(repo, facts)
    for key in _handing_keys(repo, facts, initialising.keys()) & functions.keys():
        functions[key].needs = True
    groups = {frozenset(k for k in group if k in functions) for function in functions.values() for group in function.groups}
    constructing = _constructor_methods(functions)
    for group in groups:
        # One call reaches all of a group: they must agree on how they get their keys.
        if not group <= constructing:
            constructing -= group
    free = {key for key, function in functions.items() if function.model is None}
    # Only functions of one kind can share a way: a method has `self.rngs`, a free function does
    # not.
    together = [group for group in groups if group <= constructing or group <= free]
    changed = True
    while changed:
        changed = False
        for function in functions.values():
            handed = function.of_parts & constructing
            if not function.needs and any(functions[k].needs for k in function.calls | handed if k in functions):
                function.needs = changed = True
        # The caller cannot know which of them it calls, so that it passes `rngs` to all or to none.
        for group in together:
            if len({functions[k].needs for k in group}) > 1:
                changed = True
                for key in group:
                    functions[key].needs = True
    passing = {(file.file.path, span) for file in repo.files.values() for span in _forwarding_calls(file)}
    result = Randomness(
        constructing=constructing,
        factories=_factories(functions, constructing),
        live=_reachable(functions),
        drawing={key for key, function in functions.items() if function.needs},
        passing=passing,
        initialising=initialising,
    )
    for function in functions.values():
        _assign_access(repo, function, result)
    result.parameter |= {key for file in repo.files.values() for key in _lambdas_of_examples(repo, file, facts[file.file.path])}
    return result


def _lambdas_of_examples(repo: Repo, file: FileModel, facts: Facts) -> set[FunctionKey]:
    """Lambdas that examples hand to what constructs a module class at other times: no lambda stands on their line, which is one of the example's."""
    if not any("<lambda>@" in kind for fact in facts.observed.values() for kind in fact.kinds):
        return set()
    called = {key for key in _called_as_classes(repo, file, facts) if key[1].startswith("<lambda>@")}
    trees = {path: repo.files[path].tree for path, _ in called}
    own = {(path, lambda_name(node.lineno)) for path, tree in trees.items() for node in walk(tree) if isinstance(node, ast.Lambda)}
    return called - own


def function_graph(repo: Repo, facts: Mapping[str, Facts]) -> dict[FunctionKey, _Function]:
    """The functions of the repository, each with the keys of those that it calls."""
    called_as_classes = {key for file in repo.files.values() for key in _called_as_classes(repo, file, facts[file.file.path])}
    functions = {f.key: f for file in repo.files.values() for f in _functions(repo, file, facts[file.file.path])}
    for file in repo.files.values():
        functions |= {f.key: f for f in _lambdas(repo, file, facts[file.file.path], called_as_classes)}
    for key in called_as_classes & functions.keys():
        functions[key].needs |= functions[key].model is None
    return functions


def callees_of(
    repo: Repo, file: FileModel, facts: Facts, caller: FunctionKey, owner: ClassModel | None, call: ast.Call
) -> set[FunctionKey]:
    """The functions of the repository that one call may run."""
    function = _Function(caller, file.functions[caller[1]], owner)
    _note_call(repo, file, facts, function, call, frozenset())
    if owner and isinstance(call.func, ast.Attribute) and id(call.func) in owner.own:
        _note_method(repo, function, owner, call.func.attr)
    return function.calls


def _reachable(functions: Mapping[FunctionKey, _Function]) -> set[FunctionKey]:
    by_name: dict[str, list[FunctionKey]] = {}
    for key in functions:
        by_name.setdefault(key[1].rpartition(".")[2], []).append(key)
    # Special methods count as entries, since Python calls them without naming them.
    todo = [key for key, function in functions.items() if function.model and (key[1].endswith((".forward", "__")))]
    live = set(todo)
    while todo:
        function = functions[todo.pop()]
        # `other.method()` on an unknown object may reach any method of this name.
        mentioned = [key for name in function.mentions for key in by_name.get(name, ()) if functions[key].model]
        for key in [*function.calls, *mentioned]:
            if key in functions and key not in live:
                live.add(key)
                todo.append(key)
    return live


def _assign_access(repo: Repo, function: _Function, result: Randomness) -> None:
    model = function.model
    is_module = model is not None and repo.is_module_class(model)
    name = function.key[1].rpartition(".")[2]
    # Every constructor takes `rngs`, used or not, so that callers need not look inside.
    if is_module and name == "__init__":
        result.parameter.add(function.key)
    elif not function.needs:
        return
    elif owner_context := context_of(repo, model, name):
        result.contexts[function.key] = owner_context
    elif is_module and model and not _is_static(function.node) and function.key not in result.constructing:
        result.stored.add(model.id)
    else:
        result.parameter.add(function.key)


def _is_static(node: FunctionNode | ast.Lambda) -> bool:
    return not isinstance(node, ast.Lambda) and any(
        isinstance(d, ast.Name) and d.id in ("staticmethod", "classmethod") for d in node.decorator_list
    )


def _constructor_methods(functions: Mapping[FunctionKey, _Function]) -> set[FunctionKey]:
    """The methods that only constructors reach, directly or through other such methods."""
    roots = {key for key in functions if key[1].endswith(".__init__")}
    reached = set(roots)
    todo = list(roots)
    while todo:
        for key in functions[todo.pop()].calls:
            if key in functions and key not in reached and functions[key].model:
                reached.add(key)
                todo.append(key)
    # A stored method runs later, when the constructor's `rngs` is gone.
    reached -= {key for f in functions.values() for key in f.later} - roots
    outside = [f for f in functions.values() if f.key not in reached]
    todo = [f.key for f in outside]
    while todo:
        for key in functions[todo.pop()].calls:
            if key in reached and key not in roots:
                reached.discard(key)
                todo.append(key)
    return reached


def _factories(functions: Mapping[FunctionKey, _Function], constructing: Set[FunctionKey]) -> Set[FunctionKey]:
    """The functions outside of classes that only constructors call, directly or through other such functions, so that values are there."""
    callers: dict[FunctionKey, set[FunctionKey]] = {}
    for function in functions.values():
        for key in function.calls | function.later:
            callers.setdefault(key, set()).add(function.key)
    found = {key for key in callers if key in functions and functions[key].model is None}
    while outside := {key for key in found if not callers[key] - {key} or not callers[key] <= constructing | found}:
        found -= outside
    return found


def _functions(repo: Repo, file: FileModel, facts: Facts) -> Iterator[_Function]:
    passing = frozenset(_forwarding_calls(file))
    for qualname, node in file.functions.items():
        owner = file.classes.get(qualname.rpartition(".")[0])
        # A nested function reads `rngs` from the function around it.
        if owner is None and qualname.rpartition(".")[0] in file.functions:
            continue
        function = _Function((file.file.path, qualname), node, owner)
        cls = class_parameter(node) if owner and repo.is_module_class(owner) else ""
        stored = {id(value) for child in walk(node) for value in _stored_values(child)}
        # `self.apply(f)` runs at once, so that `f` still sees the constructor's `rngs`.
        stored -= {id(part) for child in walk(node) if _is_apply(child) for part in walk(child)}
        for child in walk(node):
            if isinstance(child, ast.Call):
                _note_call(repo, file, facts, function, child, passing)
                function.calls |= _base_method(repo, owner, child)
                function.needs |= bool(cls) and isinstance(child.func, ast.Name) and child.func.id == cls
            elif isinstance(child, ast.Attribute) and owner and id(child) in owner.own:
                _note_method(repo, function, owner, child.attr, stored=id(child) in stored)
            elif isinstance(child, ast.Attribute):
                function.mentions.add(child.attr)
                if owner and cls and isinstance(child.value, ast.Name) and child.value.id == cls:
                    _note_method(repo, function, owner, child.attr)
        if owner and qualname.endswith(".__init__") and calls_reset(repo, owner):
            _note_method(repo, function, owner, "reset_parameters")
        yield function


def class_parameter(node: FunctionNode) -> str:
    """The name of the class in a class method, "" in any other function."""
    is_class_method = any(isinstance(one, ast.Name) and one.id == "classmethod" for one in node.decorator_list)
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if is_class_method and arguments else ""


def lambda_name(line: int) -> str:
    """The name of a lambda in function keys and in observed kinds."""
    return f"<lambda>@{line}"


def _called_as_classes(repo: Repo, file: FileModel, facts: Facts) -> set[FunctionKey]:
    """The functions and lambdas that a call of this file reaches which constructs a module at other times: `make(dim)`, where `make` is
    `Attention` for one caller and `lambda d: Attention(d, heads=4)` for another.
    """
    calls = [node for node in walk(file.tree) if isinstance(node, ast.Call)]
    callees = [facts.observed.get(span_of(node.func, file.lines)) for node in calls]
    return {key for fact in callees if fact and constructs_module(repo, "", fact) for key in observed_functions(repo, fact)}


def _handing_keys(repo: Repo, facts: Mapping[str, Facts], initialising: Set[str]) -> set[FunctionKey]:
    """The functions that call one of these lambdas, and must have a key to hand it."""
    return {
        (file.file.path, name)
        for file in (repo.files.values() if initialising else ())
        for name, node in file.functions.items()
        for child in walk(node)
        if isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Call)
        and (fact := facts[file.file.path].observed.get(span_of(child.value.func, file.lines))) is not None
        and initialising & set(fact.kinds)
    }


def _lambdas(repo: Repo, file: FileModel, facts: Facts, called_as_classes: Set[FunctionKey]) -> Iterator[_Function]:
    """The lambdas that are alone on their line, and stand outside of functions or are called as classes.

    A lambda beside a module class in a dict is called as that class is, so that it takes `rngs`
    too. Any other lambda inside a function reads `rngs` from there.
    """
    inside = {id(child) for node in file.functions.values() for child in walk(node)}
    everywhere = [node for node in walk(file.tree) if isinstance(node, ast.Lambda)]
    lines = Counter(node.lineno for node in everywhere)
    as_classes = {node.lineno for node in everywhere if (file.file.path, lambda_name(node.lineno)) in called_as_classes}
    beside = {
        id(value) for node in walk(file.tree) if isinstance(node, ast.Dict) for value in _values_beside_modules(repo, file, facts, node)
    }
    lambdas = [node for node in everywhere if id(node) not in inside or node.lineno in as_classes or id(node) in beside]
    for node in lambdas:
        # Lambdas are known by their line; two on one line could not be told apart.
        if lines[node.lineno] > 1:
            continue
        needs = id(node) in beside or node.lineno in as_classes
        function = _Function((file.file.path, lambda_name(node.lineno)), node, None, needs=needs)
        for child in walk(node):
            if isinstance(child, ast.Call):
                _note_call(repo, file, facts, function, child, frozenset())
        yield function


def _values_beside_modules(repo: Repo, file: FileModel, facts: Facts, table: ast.Dict) -> list[ast.expr]:
    names = [facts.dotted.get(span_of(value, file.lines), "") for value in table.values]
    return table.values if any(name and repo.is_module(name) for name in names) else []


def calls_reset(repo: Repo, model: ClassModel) -> bool:
    """Whether torch's own constructor calls the `reset_parameters` that this class, a subclass of a
    layer, defines.
    """
    return "reset_parameters" in model.methods and any(base in layers() for base in repo.bases(model))


RESETS: Mapping[str, str] = {
    **{f"torch.nn.{name}": "reset_affine" for name in ("Linear", *(f"Conv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3)))},
    **{f"torch.nn.{kind}Norm{n}d": "reset_normalisation" for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"torch.nn.{kind}Norm": "reset_normalisation" for kind in ("Layer", "Group", "RMS")},
    "torch.nn.Embedding": "reset_embedding",
}
"""Layer → the vendored function that does what its own `reset_parameters` does."""


def layers_reset(repo: Repo, owner: ClassModel | None, receiver: Observed | None, upwards: bool, own: bool) -> set[str]:
    """The torch layers whose own `reset_parameters` a call runs.

    `upwards` is a call on `super()` and `own` a call on `self`, both in the class `owner`;
    otherwise the observed `receiver` decides. Empty where a class of the repository defines the
    method, or nothing is known.
    """
    if upwards or own:
        lines = list(repo.ancestors(owner)) if owner else []
        if any("reset_parameters" in model.methods for model in lines[1:] if model is not owner) or (own and defines_reset(repo, owner)):
            return set()
        return {base for model in lines for base in repo.bases(model) if base in layers()}
    kinds = {kind.removeprefix("module:") for kind in receiver.kinds} if receiver else set()
    return kinds if kinds and kinds <= layers().keys() else set()


def layer_named(dotted: str) -> str:
    """The layer of torch whose `reset_parameters` a dotted name stands for, as in `nn.Linear.reset_parameters(self)`; "" for any other name."""
    layer = dotted.removesuffix(".reset_parameters")
    return layer if layer != dotted and layer in layers() else ""


def defines_reset(repo: Repo, owner: ClassModel | None) -> bool:
    """Whether the class or one below it defines `reset_parameters`."""
    return owner is not None and any("reset_parameters" in model.methods for model in (owner, *repo.descendants.get(owner.id, ())))


def _stored_values(node: ast.AST) -> list[ast.expr]:
    """The expressions that a node stores for a later call: assigned or returned values, and the
    function of `partial`.
    """
    match node:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
            return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[function, *_]):
            return [function]
    return []


def _is_apply(node: ast.AST) -> bool:
    """Whether a node is `self.apply(f)`, which calls `f` at once."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply"


def _note_method(repo: Repo, function: _Function, owner: ClassModel, name: str, stored: bool = False) -> None:
    definitions = overrides(repo, owner, name)
    keys = {(model.file.file.path, f"{model.qualname}.{name}") for model in definitions}
    function.calls |= keys
    if stored and not any(_decorated(model.methods[name]) for model in definitions):
        function.later |= keys
    if len(keys) > 1 and name != "__init__":
        function.groups.add(frozenset(keys))


def _decorated(node: FunctionNode) -> bool:
    """Whether reading the attribute may call the method already, as a property does."""
    return bool(node.decorator_list)


def overrides(repo: Repo, owner: ClassModel, name: str) -> list[ClassModel]:
    """The classes whose method `self.<name>` may be for an instance of `owner`: the nearest base,
    and all subclasses that override it.
    """
    above = next((model for model in repo.ancestors(owner) if name in model.methods), None)
    below = [model for model in repo.descendants.get(owner.id, ()) if name in model.methods]
    return [*([above] if above else []), *below]


def inherited(repo: Repo, owner: ClassModel, name: str) -> FunctionKey | None:
    """The method that `super().<name>` calls in this class; `None` where that is outside of the
    repository.
    """
    above = [model for model in repo.ancestors(owner) if model is not owner and name in model.methods]
    return (above[0].file.file.path, f"{above[0].qualname}.{name}") if above else None


def _base_method(repo: Repo, owner: ClassModel | None, call: ast.Call) -> set[FunctionKey]:
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if owner is not None and name != "__init__":
            return {key} if (key := inherited(repo, owner, name)) else set()
    return set()


def _forwarding_calls(file: FileModel) -> Iterator[Span]:
    """Spans of the callees that a decorator's wrapper calls with all its keywords: `func` of
    `func(*args, **kwargs)`.
    """
    for outer in walk(file.tree):
        if not isinstance(outer, ast.FunctionDef) or not any(isinstance(node, ast.FunctionDef) for node in walk(outer)[1:]):
            continue
        parameters = {argument.arg for argument in (*outer.args.posonlyargs, *outer.args.args)}
        for inner in walk(outer)[1:]:
            if isinstance(inner, ast.FunctionDef) and inner.args.kwarg and not any(a.arg in parameters for a in inner.args.args):
                calls = (node for node in walk(inner) if isinstance(node, ast.Call))
                yield from (span_of(call.func, file.lines) for call in calls if _forwards_keywords(call, parameters, inner.args.kwarg.arg))


def _forwards_keywords(call: ast.Call, parameters: set[str], keywords: str) -> bool:
    spread = [k.value for k in call.keywords if k.arg is None]
    return (
        isinstance(call.func, ast.Name) and call.func.id in parameters and any(isinstance(v, ast.Name) and v.id == keywords for v in spread)
    )


def methods_of_parts(repo: Repo, receiver: Observed | None, name: str) -> set[FunctionKey]:
    """The methods of this name that a call on another module may run; none where it may be no module of the repository's."""
    kinds = receiver.kinds if receiver else ()
    models = [repo.class_of(kind.removeprefix("module:")) if kind.startswith("module:") else None for kind in kinds]
    keys = [next((one for one in repo.ancestors(model) if name in one.methods), None) if model else None for model in models]
    return {(one.file.file.path, f"{one.qualname}.{name}") for one in keys if one} if keys and all(keys) else set()


def _note_call(repo: Repo, file: FileModel, facts: Facts, function: _Function, call: ast.Call, passing: Set[Span]) -> None:
    if isinstance(call.func, ast.Attribute):
        of_parts = methods_of_parts(repo, facts.observed.get(span_of(call.func.value, file.lines)), call.func.attr)
        function.of_parts |= of_parts
        function.groups |= {frozenset(of_parts)} if len(of_parts) > 1 else set()
    span = span_of(call.func, file.lines)
    function.calls |= passes_of_call(repo, facts.dotted.get(span, ""))
    # The keywords of the wrapper already carry `rngs` along.
    if span in passing:
        return
    dotted = facts.dotted.get(span, "")
    function.needs |= span in facts.draws
    if dotted in layers() and isinstance(written := layers()[dotted].to, str):
        # A `to` that is a function falls to the next branch, which takes it to need `rngs`.
        function.needs |= "{rngs}" in written if written else rngs_of(layers()[dotted].vendored) == "required"
    elif constructs_module(repo, dotted, facts.observed.get(span)) or dotted.startswith("torch.nn.init."):
        function.needs = True
    elif dotted in ops():
        function.needs |= draws(ops()[dotted], call)
        if dotted in CALLING and call.args:
            first = span_of(call.args[0], file.lines)
            function.calls |= functions_named(repo, facts.dotted.get(first, ""), facts.observed.get(first))
    elif layer := layer_named(dotted):
        function.needs |= _reset_draws(layer)
    elif dotted and not (repo.reads_object(dotted) and observed_functions(repo, facts.observed.get(span))):
        definition = repo.resolve(dotted)
        if definition and definition[1]:
            function.calls.add((definition[0].file.path, definition[1]))
    elif _initialises(facts.observed.get(span)):
        function.needs = True
    elif keys := observed_functions(repo, facts.observed.get(span)):
        function.calls |= keys
        function.groups.add(frozenset(keys))
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "reset_parameters":
        receiver, value = facts.observed.get(span_of(call.func.value, file.lines)), call.func.value
        upwards = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
        own = receiver is not None and receiver.kinds == ("self",)
        function.needs |= any(map(_reset_draws, layers_reset(repo, function.model, receiver, upwards, own)))
    elif _is_apply(call) and len(call.args) == 1:
        first = span_of(call.args[0], file.lines)
        function.calls |= functions_named(repo, facts.dotted.get(first, ""), facts.observed.get(first))
    elif isinstance(call.func, ast.Attribute) and is_sample_call(
        repo, function.model, call.func, facts.observed.get(span_of(call.func.value, file.lines))
    ):
        function.needs = True
    elif isinstance(call.func, ast.Attribute):
        row = methods().get(call.func.attr.removesuffix("_")) or methods().get(call.func.attr)
        receiver = facts.observed.get(span_of(call.func.value, file.lines))
        if row and draws(row) and (receiver is None or set(receiver.kinds) & {"tensor", "parameter"}):
            function.needs = True


def _reset_draws(layer: str) -> bool:
    return RESETS.get(layer, "") in ("reset_affine", "reset_embedding")


def functions_named(repo: Repo, dotted: str, fact: Observed | None) -> set[FunctionKey]:
    """The functions of the repository that a value was observed to be, or else the one that its
    dotted name resolves to.
    """
    definition = repo.resolve(dotted) if dotted else None
    return observed_functions(repo, fact) or ({(definition[0].file.path, definition[1])} if definition and definition[1] else set())


DRAWS = ("sample", "rsample")
"""Methods of a distribution that draw."""


def is_sample_call(repo: Repo, owner: ClassModel | None, func: ast.Attribute | cst.Attribute, receiver: Observed | None) -> bool:
    """Whether a call of this method draws as torch's distributions do: on a value that was observed to be one, or of a class of the repository that
    derives from one, or on `super()` in such a class."""
    name = func.attr if isinstance(func, ast.Attribute) else func.attr.value
    if name not in DRAWS:
        return False
    if is_super(func.value):
        above = [model for model in repo.ancestors(owner) if model is not owner] if owner else []
        return derives_from_distribution(repo, owner) and not any(name in model.methods for model in above)
    kinds = set(receiver.kinds) - {"none"} if receiver else set()
    return bool(kinds) and all(
        kind.startswith("object:torch.distributions.") or derives_from_distribution(repo, repo.class_of(kind.removeprefix("object:")))
        for kind in kinds
    )


def is_super(node: ast.expr | cst.BaseExpression) -> bool:
    """Whether this is `super()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def derives_from_distribution(repo: Repo, model: ClassModel | None) -> bool:
    """Whether a class of the repository derives from a distribution of torch."""
    return model is not None and any(base.startswith("torch.distributions.") for one in repo.ancestors(model) for base in repo.bases(one))


def own_draws(repo: Repo, receiver: Observed | None, name: str) -> set[FunctionKey]:
    """The methods of the repository's own distributions that a call of this name may run."""
    models = [repo.class_of(kind.removeprefix("object:")) for kind in (receiver.kinds if receiver else ())]
    own = [next((one for one in repo.ancestors(model) if name in one.methods), None) for model in models if model]
    return {(one.file.file.path, f"{one.qualname}.{name}") for one in own if one}


def _initialises(fact: Observed | None) -> bool:
    return fact is not None and any(kind.removeprefix("partial:").startswith("function:torch.nn.init.") for kind in fact.kinds)


def observed_functions(repo: Repo, fact: Observed | None) -> set[FunctionKey]:
    """The functions and methods of the repository that a value was observed to be, seen through
    `functools.partial`.
    """
    keys: set[FunctionKey] = set()
    for kind in fact.kinds if fact else ():
        head, _, name = kind.removeprefix("partial:").partition(":")
        module, _, own = name.rpartition(".")
        if head == "object":  # what its class has as `__call__` is what a call runs
            module, own = name, "__call__"
        owner = repo.class_of(module) if head in ("method", "object") else None
        if owner and not repo.is_module_class(owner) and not repo.is_mixin(owner):
            keys |= {(m.file.file.path, f"{m.qualname}.{own}") for m in overrides(repo, owner, own)[:1]}
        if head == "function" and own.startswith("<lambda>") and module in repo.modules:
            keys.add((repo.modules[module].file.path, own))
        elif head == "function" and (definition := repo.resolve(name)) and definition[1]:
            keys.add((definition[0].file.path, definition[1]))
    return keys


def constructs_module(repo: Repo, dotted: str, fact: Observed | None) -> bool:
    """Whether a call constructs a module: of a layer, a module class, or a value observed to be
    such a class.
    """
    if dotted and repo.is_module(dotted):
        return True
    for kind in fact.kinds if fact else ():
        head, _, name = kind.removeprefix("partial:").partition(":")
        if head == "class" and repo.is_module(name):
            return True
    return False
