"""The facts of one file: its definitions, the dotted names that each uses, and every use with its line. One pass over the syntax tree.

Names are taken to their absolute dotted form by the scopes they stand in: parameters and local variables hide imports and
definitions, imports inside functions count where they stand. Uses belong to the top-level definition (or class) that they stand in, so that
the tree can be dropped as soon as the file is read.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from migrate_agent.tools.scan.exports import Exports, bindings, dotted_text, exports
from migrate_agent.tools.scan.patterns import asks_availability, assigned_variables, base_names, import_fails, leaves_unless_available
from migrate_agent.tools.types import SourceFile

UseKind = Literal["call", "base", "decorator", "load", "method"]
_BUILTINS = frozenset(dir(builtins))
_IGNORED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.Constant, ast.Pass, ast.Break, ast.Continue)


class Use(NamedTuple):
    """One use of a name.

    `name` is dotted and absolute; for `kind="method"`, a method call on a local object, it is the text (`self.optimizer.step`, `?.backward`
    where the object has no name). `owner` is the qualified name of the top-level definition or class it stands in ("" outside), `method`
    the function of that class that it stands in. `optional` uses stand where the source goes on without them: under `try` with
    `except ImportError`, or under `if …is_available():`.
    """

    name: str
    line: int
    kind: UseKind
    owner: str
    method: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A top-level function or variable, or a class that is reached from the top level through classes only.

    `kind` `local` is a class inside a function. `bases` and `uses` are dotted names, those of the file itself with its module in front.
    `methods` are the functions in the class's body.
    """

    name: str
    kind: Literal["class", "function", "variable", "local"]
    line: int
    bases: tuple[str, ...] = ()
    uses: frozenset[str] = frozenset()
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a file that later stages need. `imported` are the dotted names of its import statements (`pkg.*` for a star import).

    `fallbacks` are names that come from torch, and are defined only where an old torch has none: `try: from torch.nn import Identity …
    except ImportError: class Identity …`.
    """

    exports: Exports
    definitions: tuple[Definition, ...] = ()
    imported: tuple[str, ...] = ()
    fallbacks: frozenset[str] = frozenset()


def read_facts(tree: ast.Module, file: SourceFile) -> tuple[Facts, list[Use]]:
    """The facts of a parsed file, and all uses of names in it. Raises `RecursionError` on a tree too deep to walk."""
    table = exports(tree, file)
    reader = _Reader(file, table)
    reader.children(tree)
    reader.close_module()
    definitions = tuple(draft.definition(reader.used.get(draft.name, ())) for draft in reader.drafts.values())
    reader.visits.clear()  # bound methods: a circle that would wait for the garbage collector
    return Facts(table, definitions, tuple(dict.fromkeys(reader.imported)), frozenset(reader.fallbacks)), reader.uses


@dataclass(slots=True)
class _Draft:
    name: str
    kind: Literal["class", "function", "variable", "local"]
    line: int
    bases: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)

    def definition(self, uses: Iterable[str]) -> Definition:
        bases, methods = tuple(dict.fromkeys(self.bases)), tuple(dict.fromkeys(self.methods))
        return Definition(self.name, self.kind, self.line, bases, frozenset(map(sys.intern, uses)), methods)


@dataclass(slots=True)
class _Scope:
    """`bound`: local name → dotted name for imports, None for other bindings. `loads`: uses whose first name is not placed yet.
    `name`: of a class scope, the qualified name of the class."""

    kind: Literal["module", "class", "function"]
    parent: _Scope | None = None
    name: str = ""
    bound: dict[str, str | None] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)
    loads: list[Use] = field(default_factory=list)


class _Reader:
    """Walks the tree once. A use waits in its scope until the scope is complete: a later assignment in the function makes the name local."""

    def __init__(self, file: SourceFile, table: Exports) -> None:
        self.file, self.table = file, table
        self.scope = _Scope("module")
        self.owner = self.method = ""
        self.optional = False
        self.drafts: dict[str, _Draft] = {}
        self.used: dict[str, set[str]] = {}
        self.uses: list[Use] = []
        self.imported: list[str] = []
        self.fallbacks: set[str] = set()
        self.visits: dict[type[ast.AST], Callable[..., None]] = {
            ast.Name: self.name,
            ast.Attribute: self.attribute,
            ast.Call: self.call,
            ast.FunctionDef: self.function,
            ast.AsyncFunctionDef: self.function,
            ast.Lambda: self.closure,
            ast.ClassDef: self.klass,
            ast.Import: self.imports,
            ast.ImportFrom: self.imports,
            ast.Global: self.outward,
            ast.Nonlocal: self.outward,
            ast.Assign: self.assign,
            ast.AnnAssign: self.assign,
            ast.AugAssign: self.assign,
            ast.Expr: self.expression,
            ast.Try: self.attempt,
            ast.If: self.branch,
        }
        self.visits |= dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), self.closure)
        self.visits |= dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), self.capture)

    def visit(self, node: ast.AST) -> None:
        handler = self.visits.get(type(node))
        if handler is not None:
            handler(node)
        elif not isinstance(node, _IGNORED):
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST):
                self.visit(value)

    # Uses

    def record(self, text: str, node: ast.AST, kind: UseKind) -> None:
        self.scope.loads.append(Use(text, getattr(node, "lineno", 1), kind, self.owner, self.method, self.optional))

    def name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.record(node.id, node, "load")
        else:
            self.scope.bound.setdefault(node.id, None)

    def attribute(self, node: ast.Attribute) -> None:
        self.chain(node, "load")

    def chain(self, node: ast.expr, kind: UseKind) -> None:
        """A name or attribute chain as one use; an attribute of another expression by its last name."""
        text = dotted_text(node)
        if text is not None:
            self.record(text, node, kind)
            return
        if isinstance(node, ast.Attribute):
            if kind == "call":
                self.emit(Use(f"?.{node.attr}", node.lineno, "method", self.owner, self.method, self.optional))
            self.visit(node.value)
        else:
            self.visit(node)

    def call(self, node: ast.Call) -> None:
        self.chain(node.func, "call")
        for part in (*node.args, *node.keywords):
            self.visit(part)

    # What the source can do without

    def attempt(self, node: ast.Try) -> None:
        """`try: from apex import f … except ImportError: …`"""
        optional = any(import_fails(handler) for handler in node.handlers)
        self.spared(node.body, optional)
        if optional and self.scope.kind == "module":
            imports = [pair for part in node.body if isinstance(part, ast.Import | ast.ImportFrom) for pair in bindings(part, self.file)]
            self.fallbacks |= {local for local, dotted in imports if dotted.startswith("torch.")}
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def branch(self, node: ast.If) -> None:
        """`if torch.cuda.is_available(): …`"""
        self.visit(node.test)
        self.spared(node.body, asks_availability(node.test))
        for part in node.orelse:
            self.visit(part)
        self.optional |= self.scope.kind == "function" and leaves_unless_available(node)

    def spared(self, body: list[ast.stmt], optional: bool) -> None:
        before, self.optional = self.optional, self.optional or optional
        for part in body:
            self.visit(part)
        self.optional = before

    # Bindings

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for local, dotted in bindings(node, self.file):
            self.imported.append(f"{dotted}.*" if local == "*" else dotted)
            if local != "*":
                self.scope.bound[local] = dotted
        if isinstance(node, ast.Import):
            self.imported.extend(alias.name for alias in node.names)

    def outward(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.outer.update(node.names)

    def capture(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scope.bound.setdefault(node.name, None)
        self.children(node)

    # Statements of the top level belong to the variable that they assign or fill

    def assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for target in targets for name in assigned_variables(target) if self.table.definitions.get(name)]
        if self.scope.kind != "module" or not names:
            self.children(node)
            return
        for name in names:
            if self.table.definitions[name] == "variable":
                self.drafts.setdefault(name, _Draft(name, "variable", node.lineno))
        self.owner = names[0]
        self.children(node)
        self.owner = ""
        for name in names[1:]:
            self.used.setdefault(name, set()).add(f"{self.file.module}.{names[0]}")

    def expression(self, node: ast.Expr) -> None:
        """`TABLE.update(a=Block)`: what the call is given belongs to the variable as well."""
        self.children(node)
        if self.scope.kind == "module" and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            arguments = [text for part in ast.walk(node.value) if isinstance(part, ast.expr) and (text := dotted_text(part))]
            for name in assigned_variables(node.value.func):
                if self.table.definitions.get(name) == "variable":
                    names = (self.table.absolute(text, self.file.module) for text in arguments)
                    self.used.setdefault(name, set()).update(filter(None, names))

    # Definitions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.bound.setdefault(node.name, None)
        owner, method, optional = self.owner, self.method, self.optional
        if self.scope.kind == "module":
            self.owner = node.name
            self.drafts.setdefault(node.name, _Draft(node.name, "function", node.lineno))
        elif self.scope.kind == "class":
            self.method = node.name
            self.drafts[self.owner].methods.append(node.name)
        for decorator in node.decorator_list:
            self.decorate(decorator)
        if node.returns is not None:
            self.visit(node.returns)
        self.closure(node)
        self.owner, self.method, self.optional = owner, method, optional

    def decorate(self, node: ast.expr) -> None:
        if isinstance(node, ast.Call):
            self.chain(node.func, "decorator")
            for part in (*node.args, *node.keywords):
                self.visit(part)
        else:
            self.chain(node, "decorator")

    def closure(self, node: ast.AST) -> None:
        """The inside of a function, lambda or comprehension: a scope of its own. Defaults and annotations stand outside of it."""
        arguments = getattr(node, "args", None)
        names: list[str] = []
        if isinstance(arguments, ast.arguments):
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
            names = [argument.arg for argument in every]
            for outside in (*arguments.defaults, *arguments.kw_defaults, *(argument.annotation for argument in every)):
                if outside is not None:
                    self.visit(outside)
        self.scope = _Scope("function", self.scope, bound=dict.fromkeys(names))
        for name in node._fields:
            if name in ("args", "decorator_list", "returns", "type_comment", "type_params"):
                continue
            value = getattr(node, name, None)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    self.visit(part)
        self.close(self.scope)

    def klass(self, node: ast.ClassDef) -> None:
        self.scope.bound.setdefault(node.name, None)
        owner, method = self.owner, self.method
        is_local = self.scope.kind == "function"
        own = f"{owner}.{node.name}" if owner else node.name
        draft = self.drafts.setdefault(own, _Draft(own, "local" if is_local else "class", node.lineno))
        if not is_local:
            self.owner, self.method = own, ""
        for decorator in node.decorator_list:
            self.decorate(decorator)
        for base in node.bases:
            for part in base_names(base):
                if is_local:
                    draft.bases.append(self.scope_text(part))
                self.chain(part, "load" if is_local else "base")
        for keyword in node.keywords:
            self.visit(keyword.value)
        self.scope = _Scope("function" if is_local else "class", self.scope, own)
        for statement in node.body:
            self.visit(statement)
        self.close(self.scope)
        self.owner, self.method = owner, method
        if owner and not is_local:
            self.used.setdefault(owner, set()).add(f"{self.file.module}.{own}")

    def scope_text(self, node: ast.expr) -> str:
        """The dotted name of a base class of a class inside a function, as far as imports of enclosing scopes and the top level know it."""
        text = dotted_text(node) or ""
        first, dot, rest = text.partition(".")
        scope: _Scope | None = self.scope
        while scope is not None and scope.kind != "module":
            if first in scope.bound:
                return f"{scope.bound[first]}{dot}{rest}" if scope.bound[first] else ""
            scope = scope.parent
        return self.table.absolute(text, self.file.module) or f"{self.file.module}.{text}"

    # Placing uses

    def close(self, scope: _Scope) -> None:
        """Leaves a scope: places the uses of names it binds, hands the others to the next scope that they can see."""
        assert scope.parent is not None
        self.scope = outer = scope.parent
        # Python's rule: a function does not see the names of the class body around it.
        while scope.kind == "function" and outer.kind == "class" and outer.parent is not None:
            outer = outer.parent
        for use in scope.loads:
            first, dot, rest = use.name.partition(".")
            if first not in scope.bound or first in scope.outer:
                outer.loads.append(use)
            elif scope.bound[first] is not None:
                self.emit(use._replace(name=f"{scope.bound[first]}{dot}{rest}"))
            elif scope.kind == "class":
                self.emit(use._replace(name=f"{self.file.module}.{scope.name}.{use.name}"))
            else:
                self.local(use, first, rest)

    def local(self, use: Use, first: str, rest: str) -> None:
        """Record a use of a parameter or local variable where it can matter: a method call, or `self.Inner`, which may be a nested class."""
        if rest and use.kind == "call":
            self.emit(use._replace(kind="method"))
        if first in ("self", "cls") and rest[:1].isupper() and use.owner:
            self.used.setdefault(use.owner, set()).add(f"{self.file.module}.{use.owner}.{rest}")

    def close_module(self) -> None:
        for use in self.scope.loads:
            first, dot, rest = use.name.partition(".")
            dotted = self.table.absolute(use.name, self.file.module)
            if first in self.table.aliases and self.table.definitions.get(first) == "variable" and first not in self.table.imports:
                aliased = self.table.absolute(self.table.aliases[first], self.file.module)
                if aliased:
                    self.emit(use._replace(name=f"{aliased}{dot}{rest}"))
            if dotted is not None:
                self.emit(use._replace(name=dotted))
                if rest and use.kind == "call" and self.table.definitions.get(first) == "variable":
                    self.emit(use._replace(kind="method"))
            elif first in _BUILTINS:
                self.emit(use._replace(name=f"builtins.{use.name}"))
            # Only a star import can have bound the name; the resolver finds out whether one did.
            elif self.table.stars:
                self.emit(use._replace(name=f"{self.file.module}.{use.name}"))

    def emit(self, use: Use) -> None:
        self.uses.append(use)
        if use.kind == "method":
            return
        self.used.setdefault(use.owner, set()).add(use.name)
        if use.kind == "base" and use.owner in self.drafts and self.drafts[use.owner].kind == "class":
            self.drafts[use.owner].bases.append(use.name)
