"""What rules may ask about the file that is rewritten, and what they note for each other and for the report."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import walks_parameters
from migrate_agent.tools.rewrite.analysis.class_facts import ClassFacts
from migrate_agent.tools.rewrite.analysis.exercised import Exercised
from migrate_agent.tools.rewrite.analysis.facts import Facts
from migrate_agent.tools.rewrite.analysis.loop_slices import Part
from migrate_agent.tools.rewrite.analysis.parameter_loops import parameter_handles, parameter_names
from migrate_agent.tools.rewrite.analysis.plain_layers.uses import PlainLayers
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, Randomness, lambda_name
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.scopes import Scopes
from migrate_agent.tools.rewrite.tables.new_arrays import of_detached, of_new_array, over_new_array
from migrate_agent.tools.rewrite.tables.templates import fill, unbroken, wrap
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Hole, Observed, Span

NO_SPAN = Span(0, 0, 0, 0)
NO_FACTS = ClassFacts()


@dataclass(frozen=True)
class Host:
    """A file that is a script: what it says outside of classes and of the `traced` functions runs in Python, with all values there.

    `seeds` are the texts of the seeds with which modules draw their parameters: name of a function, or "" for the file itself → text. With `streams`
    each module has a stream of its own instead, since several would draw the same.
    """

    seeds: Mapping[str, str]
    traced: frozenset[str]
    streams: bool = False
    draws: bool = True
    """Whether values may be drawn outside of modules; not where they are to be the other side's."""


@dataclass
class Context:
    """What rules may ask and note while a file is rewritten."""

    repo: Repo
    file: FileModel
    facts: Facts
    randomness: Randomness
    positions: Any
    scopes: Scopes
    """Names bound in the file, so that helpers do not clash with them."""
    facts_by_class: Mapping[str, ClassFacts]
    """Class id → facts, for the classes of the file."""
    observed_lines: frozenset[int] = frozenset()
    """Lines on which something ran while the examples did."""
    exercised: Exercised | None = None
    """What the examples made use of, over all files; `None` where there were none."""
    host: Host | None = None
    """What is known of the file where it is a script."""
    stack: list[cst.CSTNode] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    vendored: set[str] = field(default_factory=set)
    qualified: set[str] = field(default_factory=set)
    classes: list[ClassModel | None] = field(default_factory=list)
    functions: list[cst.FunctionDef] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    assigned: dict[int, tuple[cst.Assign, cst.Assign]] = field(default_factory=dict)
    """Line → an assignment before and after rewriting, for rules that must say it again."""
    parted: dict[int, dict[str, Part]] = field(default_factory=dict)
    """Line of a loop → its variables that are changed in place, and what they are parts of."""
    with_copies: dict[str, ast.AST] = field(default_factory=dict)
    """Dotted path of a function → itself, with what selects elements marked as a copy."""
    nonlocals: dict[str, set[str]] = field(default_factory=dict)
    """Dotted path of a function within another → names of the outer one that it binds anew, where it changed their tensors in place."""
    saved_last: set[str] = field(default_factory=set)
    """Dotted paths of functions that change in place what they have saved for a backward pass."""
    traced: set[tuple[FunctionKey, str]] = field(default_factory=set)
    """(function, name) of names that a branch on tensors binds, so that their values are not there while tracing."""
    dead: dict[str, str] = field(default_factory=dict)
    """Top-level names that stand for nothing but an error, with its reason."""

    @property
    def function_key(self) -> FunctionKey:
        """The key of the function (or class) at hand in the tables of the analysis; its name is "" at the top of the file."""
        return (self.file.file.path, ".".join(self.path))

    @property
    def plain(self) -> PlainLayers:
        """The layers that become Flax's own in the file at hand."""
        return self.repo.plain_in(self.file)

    @property
    def at_host(self) -> bool:
        """Whether the place at hand runs in Python and is never traced."""
        if self.host is None or any(one is not None and self.repo.is_module_class(one) for one in self.classes):
            return False
        if any(one is not None and one.qualname in self.host.traced for one in self.classes):
            return False
        return not any(function.name.value in self.host.traced for function in self.functions)

    @property
    def function(self) -> FunctionNode | None:
        """The innermost enclosing function as the analysis has it, or `None` outside of functions."""
        return self.file.functions.get(".".join(self.path))

    @property
    def constructing(self) -> bool:
        """Whether the function at hand runs only while a module is constructed, so that values are there."""
        return self.function_key in self.randomness.constructing

    @property
    def before_calls(self) -> bool:
        """Whether only constructors run the function at hand, those of functions outside of classes too: nothing is differentiated there."""
        return self.constructing or self.function_key in self.randomness.factories

    @property
    def taken(self) -> frozenset[str]:
        """Names bound anywhere in the file."""
        return self.scopes.taken

    # -- facts ------------------------------------------------------------------------------------------------------
    def span(self, node: cst.CSTNode) -> Span:
        """Where an original node stands."""
        position = self.positions.get(node)
        return Span(position.start.line, position.start.column, position.end.line, position.end.column) if position else NO_SPAN

    def observed(self, node: cst.CSTNode) -> Observed | None:
        """What an original expression is."""
        return self.facts.observed.get(self.span(node))

    def dotted(self, node: cst.CSTNode) -> str:
        """The dotted name that an original name or attribute stands for, or ""."""
        return self.facts.dotted.get(self.span(node), "") if isinstance(node, (cst.Name, cst.Attribute)) else ""

    def unfollowed(self, node: cst.CSTNode) -> str:
        """The dotted name of something from a package that needs torch and whose source cannot be followed, or ""."""
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        name = root.value if isinstance(root, cst.Name) else ""
        return self.dotted(node) if name and self.repo.unfollowed(self.file, name) else ""

    def parent(self, level: int = 1) -> cst.CSTNode | None:
        """The original parent of the node that is being left."""
        return self.stack[-level] if len(self.stack) >= level else None

    @property
    def cls(self) -> ClassModel | None:
        """The innermost enclosing class."""
        return self.classes[-1] if self.classes else None

    def counts(self, name: str) -> bool:
        """Whether an attribute of the innermost class is a number that calls count up."""
        return name in self.class_facts.counters

    def facts_of(self, identifier: str) -> ClassFacts:
        """The facts of a class of this file by its id; empty ones for any other class."""
        return self.facts_by_class.get(identifier, NO_FACTS)

    @property
    def class_facts(self) -> ClassFacts:
        """The facts of the innermost enclosing class; empty ones outside of classes."""
        return self.facts_of(self.cls.id) if self.cls else NO_FACTS

    def self_name(self) -> str:
        """The name of the first parameter of the enclosing method, or ""."""
        if not self.functions or self.cls is None or len(self.path) < 2:
            return ""
        outer = self.method()
        if outer is None or any(
            isinstance(d.decorator, cst.Name) and d.decorator.value in ("staticmethod", "classmethod") for d in outer.decorators
        ):
            return ""
        first = [*outer.params.posonly_params, *outer.params.params]
        return first[0].name.value if first else ""

    def method(self) -> cst.FunctionDef | None:
        """The outermost function inside the innermost class (or file)."""
        return self.functions[0] if self.functions else None

    def is_self(self, node: cst.CSTNode) -> bool:
        """Whether an original node is the module instance itself."""
        return isinstance(node, cst.Name) and bool(name := self.self_name()) and node.value == name

    def is_module(self, node: cst.BaseExpression) -> bool:
        """Whether an original expression is a module: `self` of a module class, or what was seen to be nothing else."""
        if self.is_self(node):
            return bool(self.cls and self.repo.is_module_class(self.cls))
        fact = self.observed(node)
        return fact is not None and all(kind.startswith("module:") for kind in fact.kinds)

    def is_handle(self, node: cst.CSTNode) -> bool:
        """Whether an original name stands for a variable itself: a parameter that the function writes to, or what a loop over parameters gives."""
        if not isinstance(node, cst.Name):
            return False
        if node.value in self.randomness.written.get(self.function_key, ()):
            return True
        if self.is_parameter_name(node) or self.is_buffer_name(node):
            return True
        loops = [n for n in self.stack if isinstance(n, cst.For) and isinstance(n.target, cst.Name) and n.target.value == node.value]
        return bool(loops) and self.walks_variables(loops[-1])

    def is_buffer_name(self, node: cst.CSTNode) -> bool:
        """Whether an original name may stand for the variable that a caller hands over to have it changed (see `buffer_arguments`)."""
        return isinstance(node, cst.Name) and node.value in self.randomness.buffer_names.get(self.function_key, ())

    def is_parameter_name(self, node: cst.CSTNode) -> bool:
        """Whether an original name is what a loop over the parameters of modules gives, or a parameter whose data the function replaces."""
        function = self.function
        if not isinstance(node, cst.Name) or function is None or not self.file.names_torch:
            return False
        return node.value in parameter_names(function, self.span(node).line) or self.is_parameter_handle(node)

    def is_parameter_handle(self, node: cst.CSTNode) -> bool:
        """Whether an original name is a local one for a parameter whose data the function replaces (`u.data = y`)."""
        function = self.function
        return isinstance(node, cst.Name) and function is not None and node.value in parameter_handles(function)

    def walks_variables(self, loop: cst.For) -> bool:
        """Whether a loop goes through parameters that are written out one by one, and changes them."""
        function = self.function
        if function is None or not isinstance(loop.iter, (cst.List, cst.Tuple, cst.Name)):
            return False
        line = self.span(loop).line
        loops = [n for n in walk(function) if isinstance(n, ast.For) and n.lineno == line]
        return any(walks_parameters(self.repo, self.file, self.facts, self.randomness.written, function, n) for n in loops)

    # -- output -----------------------------------------------------------------------------------------------------
    def hole(self, node: cst.CSTNode, reason: str, code: str = "unsupported") -> None:
        """Leave this place as it is, with the reason."""
        text = cst.Module([]).code_for_node(node)
        self.holes.append(Hole(self.file.file.path, self.span(node), code, reason, text, ""))

    def drop_holes(self, *nodes: cst.CSTNode) -> None:
        """Original nodes that are not in the rewrite: what could not be rewritten inside them is no hole."""
        spans = [self.span(node) for node in nodes]
        gone = [h for h in self.holes if any((s.line, s.column) <= h.span[:2] <= (s.end_line, s.end_column) for s in spans)]
        self.holes[:] = [hole for hole in self.holes if hole not in gone]

    def build(self, template: str, /, **arguments: cst.BaseExpression) -> cst.BaseExpression:
        """Fill a template and note the helpers it uses. The result may need parentheses: see `parenthesise`."""
        return self.use(fill(template, arguments))

    def use(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Resolve `vendored.f` in a filled template to the helper's name here."""
        result = node.visit(_Vendored(self))
        assert isinstance(result, cst.BaseExpression)
        return result

    def unpacked_into(self, node: cst.CSTNode) -> bool:
        """Whether a node that is left is what a value is unpacked into, or has a type: `a, node = …`, `for a, node in …`, `node: T = …`."""
        inside = node
        for holder in reversed(self.stack):
            if not isinstance(holder, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
                target = isinstance(holder, (cst.For, cst.CompFor, cst.AnnAssign)) and holder.target is inside
                return target or (inside is not node and isinstance(holder, cst.AssignTarget))
            inside = holder
        return False

    def is_target(self, node: cst.CSTNode) -> bool:
        """Whether a node that is left is bound, written to or deleted there, alone or in a tuple."""
        inside = node
        for holder in reversed(self.stack):
            if not isinstance(holder, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
                return isinstance(holder, cst.Del) or getattr(holder, "target", None) is inside
            inside = holder
        return False

    def parenthesise(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """`node` with the parentheses that the place of the node being left asks for, or that its line breaks do."""
        wrapped = wrap(node, self.parent())
        return wrapped if isinstance(self.parent(), (cst.Arg, cst.Element)) else unbroken(wrapped)

    def helper(self, name: str) -> cst.BaseExpression:
        """A reference to a vendored helper, by its bare name unless that stands for something else here."""
        if name in self.scopes.visible(self.path):
            self.qualified.add(name)
            return cst.Attribute(cst.Name("nnx_layers"), cst.Name(name))
        self.vendored.add(name)
        return cst.Name(name)

    def rngs(self) -> cst.BaseExpression | None:
        """The expression for the `nnx.Rngs` reachable here."""
        if self.at_host and self.host is not None:
            if self.host.streams:
                return cst.Call(cst.Attribute(self.helper("default_generator"), cst.Name("rngs")))
            function = self.functions[0].name.value if self.functions else ""
            return cst.parse_expression(f"nnx.Rngs({self.host.seeds.get(function, '0')})")
        outer = self.method()
        if any(isinstance(n, cst.Lambda) and self.lambda_takes_rngs(n) for n in self.stack):
            return cst.Name("rngs")
        if outer is None:
            return None
        key = (self.file.file.path, ".".join(self.path[: self._depth()]))
        if key in self.randomness.parameter:
            return cst.Name("rngs")
        if key in self.randomness.contexts:
            return cst.Attribute(cst.Name(self.randomness.contexts[key]), cst.Name("rngs"))
        name = self.self_name()
        if name and self.cls and self.repo.is_module_class(self.cls):
            self.randomness.stored.add(self.cls.id)
            return cst.Attribute(cst.Name(name), cst.Name("rngs"))
        return None

    def lambda_takes_rngs(self, function: cst.Lambda) -> bool:
        """Whether an original lambda gains a keyword-only `rngs`."""
        return (self.file.file.path, lambda_name(self.span(function).line)) in self.randomness.parameter

    def initialises(self, function: cst.Lambda) -> bool:
        """Whether an original lambda gives its argument new values, so that it gains a parameter `key` (see `initialising_lambdas`)."""
        return self.span(function) in self.randomness.initialising.get(self.lambda_kind(function), ())

    def lambda_kind(self, function: cst.Lambda) -> str:
        """The kind that an original lambda of this file is observed to be."""
        return f"function:{self.file.file.module}.{lambda_name(self.span(function).line)}"

    def _depth(self) -> int:
        return len(self.path) - len(self.functions) + 1

    def key(self) -> cst.BaseExpression | None:
        """The expression for a fresh key here."""
        if any(isinstance(node, cst.Lambda) and self.initialises(node) for node in self.stack):
            return cst.Name("key")
        rngs = self.rngs()
        if rngs is None or (self.at_host and self.host is not None and not self.host.draws):
            return None
        constructing = (self.file.file.path, ".".join(self.path[: self._depth()])) in self.randomness.constructing
        return cst.Call(cst.Attribute(rngs, cst.Name("params"))) if constructing else cst.Call(rngs)


class _Vendored(cst.CSTTransformer):
    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if isinstance(original_node.value, cst.Name) and original_node.value.value == "vendored":
            return self.context.helper(original_node.attr.value)
        return of_new_array(updated_node) or of_detached(updated_node) or updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        return over_new_array(updated_node) or updated_node
