"""What the analyses say about one class, computed once before its file is rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.containers.gathered_layers import gathered_layers
from migrate_agent.tools.rewrite.analysis.containers.interim_containers import interim_containers
from migrate_agent.tools.rewrite.analysis.counters import counters
from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.memos import Memo, memos
from migrate_agent.tools.rewrite.analysis.plain_layers.class_names import names_only_tested
from migrate_agent.tools.rewrite.analysis.plain_layers.names import dotted, parts
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.self_references import SelfReferences, self_references
from migrate_agent.tools.rewrite.analysis.size_guards import SizeGuard, size_guards
from migrate_agent.tools.rewrite.analysis.taken_names import taken_names
from migrate_agent.tools.rewrite.tables.registry import functional_layers, layers
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span


@dataclass(frozen=True)
class ClassFacts:
    """The results of the analyses that look at a whole class. The defaults hold for code outside of
    any class.
    """

    memos: Mapping[str, Memo] = field(default_factory=dict)
    """Attribute → how it is computed, for attributes that only save a later call the work."""
    size_guards: tuple[SizeGuard, ...] = ()
    """Branches that compute anew what follows from a size, where that is another one."""
    self_references: SelfReferences = field(default_factory=SelfReferences)
    """Functions stored on the instance that hold the instance."""
    interim_containers: Mapping[Span, str] = field(default_factory=dict)
    """Span of an attribute in the constructor → the local variable that replaces it in the rewrite."""
    registered_reads: Mapping[Span, str] = field(default_factory=dict)
    """Span of a read of such an attribute in another method → the attribute that is registered with the same modules."""
    taken_names: frozenset[str] = frozenset()
    """Attributes whose names NNX uses for something else."""
    intermediates: Mapping[str, bool] = field(default_factory=dict)
    """Attribute that a call sets before anything reads it, such as attention weights → whether it is an array."""
    counters: frozenset[str] = frozenset()
    """Attributes that are numbers and that calls count up."""
    reads_training: bool = False
    """Whether a method of this module class reads or sets `self.training`, or other code asks for the mode of one."""


def class_facts(repo: Repo, file: FileModel, facts: Facts, randomness: Randomness) -> Mapping[str, ClassFacts]:
    """Class id → facts, for all classes of a file."""
    interim = {model.id: interim_containers(repo, model, facts) for model in file.classes.values()}
    gathered = {model.id: gathered_layers(repo, model, facts, interim[model.id].values()) for model in file.classes.values()}
    return {
        model.id: ClassFacts(
            memos=memos(repo, model, facts),
            size_guards=size_guards(repo, model, facts),
            self_references=self_references(repo, model, facts),
            interim_containers={**interim[model.id], **gathered[model.id].locals},
            registered_reads=gathered[model.id].reads,
            taken_names=taken_names(repo, model),
            intermediates=randomness.intermediates.get(model.id, {}),
            counters=counters(repo, model, facts, randomness),
            reads_training=repo.is_module_class(model)
            and (model.id in randomness.asked_modes or any(map(_reads_training, _methods(model.node.body)))),
        )
        for model in file.classes.values()
    }


def _methods(body: Iterable[ast.AST]) -> Iterator[FunctionNode]:
    """The functions in a class body, those under `if` and `try` included."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        # A method may be defined only under a condition; the flag must exist for it as well.
        elif isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, ast.ClassDef):
            yield from _methods(ast.iter_child_nodes(node))


def _reads_training(method: FunctionNode) -> bool:
    parameters = [*method.args.posonlyargs, *method.args.args]
    unbound = any(isinstance(node, ast.Name) and node.id in ("staticmethod", "classmethod") for node in method.decorator_list)
    if unbound or not parameters:
        return False
    # A class inside the method has a `self` of its own, under the same name.
    foreign = {id(inner) for node in walk(method) if isinstance(node, ast.ClassDef) for inner in walk(node)}
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "training"
        and isinstance(node.value, ast.Name)
        and node.value.id == parameters[0].arg
        and id(node) not in foreign
        for node in walk(method)
    )


def walked_classes(repo: Repo, facts: Mapping[str, Facts]) -> Set[str]:
    """The ids of the module classes whose children some code goes through (`for m in self.children()`), with their bases, and with the
    subclasses of those that do so themselves. Classes that derive from layers and containers are not among them.

    Their children must keep their order, and layers without state must be modules too.
    """
    walked: dict[str, ClassModel] = {}
    for file in repo.files.values():
        owners = {id(node): model for model in file.classes.values() for method in model.methods.values() for node in walk(method)}
        for receiver in _walked(file):
            owner = owners.get(id(receiver))
            if owner is not None and isinstance(receiver, ast.Name) and receiver.id == _self_name(owner, receiver):
                models = [owner, *repo.descendants.get(owner.id, ())]
            else:
                fact = facts[file.file.path].observed.get(span_of(receiver, file.lines))
                classes = (
                    repo.class_of(kind.removeprefix("module:")) for kind in (fact.kinds if fact else ()) if kind.startswith("module:")
                )
                models = [model for model in classes if model is not None]
            walked |= {one.id: one for model in models for one in repo.ancestors(model)}
    return {key for key, one in walked.items() if repo.is_module_class(one) and not _derives_from_layer(repo, one)}


def asked_modes(repo: Repo, facts: Mapping[str, Facts]) -> Set[str]:
    """The ids of the module classes whose mode other code reads: `def dropped(module, x): return x if not module.training else …`."""
    kinds = {
        kind.removeprefix("module:")
        for file in repo.files.values()
        for node in walk(file.tree)
        if isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load)
        if (fact := facts[file.file.path].observed.get(span_of(node.value, file.lines))) is not None
        for kind in fact.kinds
        if kind.startswith("module:")
    }
    models = (repo.class_of(kind) for kind in kinds)
    return {model.id for model in models if model is not None and repo.is_module_class(model)}


def asks_layers_for_class(repo: Repo, facts: Mapping[str, Facts]) -> bool:
    """Whether some code asks a layer that JAX has as a function for its class, as `copy = type(activation)()` does.

    A comparison with other classes holds for neither the layer nor the function.
    """
    return any(
        any(kind.removeprefix("module:") in functional_layers() for kind in fact.kinds)
        for file in repo.files.values()
        for receiver in _asked_for_class(repo, file)
        if (fact := facts[file.file.path].observed.get(span_of(receiver, file.lines))) is not None
    )


def _asked_for_class(repo: Repo, file: FileModel) -> Iterator[ast.expr]:
    compared = {id(part) for node in walk(file.tree) if isinstance(node, ast.Compare) for part in _compared_with_others(file, node)}
    named = names_only_tested(file.tree, repo.plain.mentioned, repo.plain.own_classes) if repo.is_plain else frozenset()
    for node in walk(file.tree):
        if id(node) in compared | named:
            continue
        match node:
            case ast.Attribute(value=receiver, attr="__class__", ctx=ast.Load()):
                yield receiver
            case ast.Call(func=ast.Name("type"), args=[receiver], keywords=[]):
                yield receiver


def _compared_with_others(file: FileModel, node: ast.Compare) -> list[ast.expr]:
    """The sides of a comparison, where the classes in it are layers that JAX has as classes too."""
    sides = [node.left, *node.comparators]
    classes = [dotted(file, part) for side in sides for part in parts(side) if not isinstance(part, ast.Call)]
    return sides if classes and all(name in layers() and name not in functional_layers() for name in classes) else []


def _walked(file: FileModel) -> Iterator[ast.expr]:
    """What a file asks for its children, or for all of its registry of them."""
    entries = {id(node.value) for node in walk(file.tree) if isinstance(node, ast.Subscript)}
    for node in walk(file.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr="children" | "named_children"), args=[], keywords=[]):
                yield receiver
            case ast.Attribute(value=receiver, attr="_modules") if id(node) not in entries:
                yield receiver


def _self_name(owner: ClassModel, node: ast.Name) -> str:
    """The name of the instance in the method of a class that holds a node; "" outside of any."""
    method = next((method for method in owner.methods.values() if any(one is node for one in walk(method))), None)
    parameters = [*method.args.posonlyargs, *method.args.args] if method else []
    return parameters[0].arg if parameters else ""


def _derives_from_layer(repo: Repo, model: ClassModel) -> bool:
    return any(base in layers() for one in repo.ancestors(model) for base in repo.bases(one))
