"""What the analyses say about one class, computed once before its file is rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.counters import counters
from migrate_agent.tools.rewrite.analysis.facts import Facts
from migrate_agent.tools.rewrite.analysis.interim_containers import interim_containers
from migrate_agent.tools.rewrite.analysis.memos import Memo, memos
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.self_references import SelfReferences, self_references
from migrate_agent.tools.rewrite.analysis.taken_names import taken_names
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span


@dataclass(frozen=True)
class ClassFacts:
    """The results of the analyses that look at a whole class. The defaults hold for code outside of
    any class.
    """

    memos: Mapping[str, Memo] = field(default_factory=dict)
    """Attribute → how it is computed, for attributes that only save a later call the work."""
    self_references: SelfReferences = field(default_factory=SelfReferences)
    """Functions stored on the instance that hold the instance."""
    interim_containers: Mapping[Span, str] = field(default_factory=dict)
    """Span of an attribute in the constructor → the local variable that replaces it in the rewrite."""
    taken_names: frozenset[str] = frozenset()
    """Attributes whose names NNX uses for something else."""
    intermediates: Mapping[str, bool] = field(default_factory=dict)
    """Attribute that a call sets before anything reads it, such as attention weights → whether it is an array."""
    counters: frozenset[str] = frozenset()
    """Attributes that are numbers and that calls count up."""
    reads_training: bool = False
    """Whether a method of this module class reads or sets `self.training`."""


def class_facts(repo: Repo, file: FileModel, facts: Facts, randomness: Randomness) -> Mapping[str, ClassFacts]:
    """Class id → facts, for all classes of a file."""
    return {
        model.id: ClassFacts(
            memos=memos(repo, model, facts),
            self_references=self_references(repo, model),
            interim_containers=interim_containers(repo, model, facts),
            taken_names=taken_names(repo, model),
            intermediates=randomness.intermediates.get(model.id, {}),
            counters=counters(repo, model, facts, randomness),
            reads_training=repo.is_module_class(model) and any(map(_reads_training, _methods(model.node.body))),
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
