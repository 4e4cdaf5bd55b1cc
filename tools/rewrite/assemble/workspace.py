"""A repository with its facts and rewritten files. A file is rewritten once, when it is first needed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.buffer_arguments import buffer_arguments
from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import mutated_parameters, written_parameters
from migrate_agent.tools.rewrite.analysis.class_facts import asked_modes, asks_layers_for_class, walked_classes
from migrate_agent.tools.rewrite.analysis.coverage import unexercised
from migrate_agent.tools.rewrite.analysis.exercised import Exercised, exercised
from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.host_draws.find import as_tensors, host_draws
from migrate_agent.tools.rewrite.analysis.inference import infer
from migrate_agent.tools.rewrite.analysis.intermediates import intermediates
from migrate_agent.tools.rewrite.analysis.plain_layers.stacks import layer_stacks
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, Randomness, analyse
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo
from migrate_agent.tools.rewrite.analysis.runtime_imports import find_imports
from migrate_agent.tools.rewrite.analysis.scopes import Scopes
from migrate_agent.tools.rewrite.assemble.idle_methods import holes_by_method, with_stubs
from migrate_agent.tools.rewrite.assemble.import_errors import aliased_name, names_bound, names_used
from migrate_agent.tools.rewrite.rules.context import Host
from migrate_agent.tools.rewrite.rules.engine import Rewritten, rewrite_file
from migrate_agent.tools.scan.symbols import defined_names, global_names, registered_with, registrars
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Hole, Inventory, Observations, Span

DEEP = 20_000
"""Recursion limit in frames. libcst walks trees recursively; a sum of a thousand strings takes
about five frames a term.
"""


@dataclass(frozen=True)
class Statement:
    """A top-level statement after rewriting: its text, the names it defines, and the global names
    it needs. Lines are the original's.
    """

    text: str
    defines: tuple[str, ...]
    needs: frozenset[str]
    first_line: int
    last_line: int
    is_import: bool
    is_docstring: bool
    holes: tuple[Hole, ...] = ()
    notes: tuple[str, ...] = ()
    registers: frozenset[str] = frozenset()
    """Top-level objects that running the statement changes (`TABLE` for `@TABLE.register("x")`)."""


class Workspace:
    """Facts, randomness and rewritten files of a repository."""

    def __init__(self, inventory: Inventory, observations: Observations) -> None:
        # Raised and never lowered: another thread may be in the middle of a deep tree.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEP))
        self.inventory = inventory
        self.repo = Repo(inventory, observations.keys())
        self.observations = observations = self.repo.placed(observations)
        find_imports(self.repo, observations)
        if inventory.scan_layers:
            self.repo.stacks = layer_stacks(
                self.repo.files,
                lambda path, node: span_of(node, self.repo.files[path].lines),
                lambda path, span: observations.get(path, {}).get(span),
            )
        self.hosts: dict[str, Host] = {}
        """Scripts whose statements are rewritten as such, by path."""
        self._facts: dict[str, Facts] = {}
        self._rewritten: dict[str, Rewritten] = {}
        self._statements: dict[str, tuple[Statement, ...]] = {}
        self._settled: set[tuple[str, int]] = set()
        self._defined: dict[str, frozenset[str]] = {}

    def facts(self, path: str) -> Facts:
        """The facts of a file. Those of the files it imports are inferred first, so that inherited
        attributes are known.
        """
        if path not in self._facts:
            # Set before the recursion, so that files that import each other end it.
            self._facts[path] = Facts()
            file = self.repo.files[path]
            for other in file.file.imports:
                if other in self.repo.files:
                    self.facts(other)
            self._facts[path] = infer(self.repo, file, self.observations.get(path, {}))
        return self._facts[path]

    @cached_property
    def randomness(self) -> Randomness:
        """Which functions need `rngs`, and which write to their arguments."""
        facts = {path: self.facts(path) for path in self.repo.files}
        self._trace_draws(facts)
        result = analyse(self.repo, facts)
        # A script's own functions make the `rngs` of what they construct.
        result.parameter -= {key for key in result.parameter if key[0] in self.hosts and self._at_host(key)}
        result.written = written_parameters(self.repo, facts)
        mutations = mutated_parameters(self.repo, facts)
        result.mutated, result.out_of_reach = mutations
        taking = buffer_arguments(self.repo, facts, mutations, result.written)
        result.buffers, result.used_buffers = taking.taken, taking.used
        result.buffer_names, result.made_buffers, result.lent_buffers = taking.names, taking.made, taking.lent
        result.walked = walked_classes(self.repo, facts)
        result.asked_modes = asked_modes(self.repo, facts)
        result.asked_for_class = asks_layers_for_class(self.repo, facts)
        result.intermediates = intermediates(self.repo, facts, result, self.observed_lines)
        return result

    def _at_host(self, key: tuple[str, str]) -> bool:
        path, name = key
        first = name.partition(".")[0]
        model = self.repo.files[path].classes.get(first)
        return (model is None or not self.repo.is_module_class(model)) and first not in self.hosts[path].traced

    def _runs_in_python(self, key: tuple[str, str]) -> bool:
        """Whether a function is one of a script that is never traced, such as a method of a data set."""
        return key[0] in self.hosts and self._at_host(key)

    def _trace_draws(self, facts: Mapping[str, Facts]) -> None:
        """Infer the facts of files anew where random numbers of Python and NumPy become arrays."""
        for path, found in host_draws(self.repo, facts, self._runs_in_python).items():
            known, file = facts[path], self.repo.files[path]
            for model in file.classes.values():
                model.attributes.clear()
            observed = as_tensors(self.observations.get(path, {}), found, file, known)
            # In place: whoever asked for the facts before holds this object.
            known.observed = infer(self.repo, file, observed).observed
            known.draws, known.shared_draws, known.traced = found.calls, found.shared, found.traced

    def rewritten(self, path: str) -> Rewritten:
        """The file after all rules."""
        if path not in self._rewritten:
            lines = self.observed_lines(path)
            file, facts = self.repo.files[path], self.facts(path)
            self._rewritten[path] = rewrite_file(self.repo, file, facts, self.randomness, lines, self.exercised, self.hosts.get(path))
        return self._rewritten[path]

    @cached_property
    def exercised(self) -> Exercised | None:
        """What the examples made use of."""
        return exercised(self.repo, self.observations)

    def observed_lines(self, path: str) -> frozenset[int]:
        """Lines of a file on which something ran while the examples did."""
        return frozenset(span.line for span in self.observations.get(path, ()))

    def statements(self, path: str) -> tuple[Statement, ...]:
        """The file's top-level statements after all rules, in order."""
        if path not in self._statements:
            self._statements[path] = tuple(self._split(self.repo.files[path]))
        return self._statements[path]

    def defined(self, path: str) -> frozenset[str]:
        """The names that the statements of a file define, which are known before it is rewritten."""
        if path not in self._defined:
            tree = self.repo.files[path].tree
            self._defined[path] = frozenset(name for one in tree.body for name in defined_names(one, as_script=path in self.hosts))
        return self._defined[path]

    @cached_property
    def entries(self) -> Mapping[FunctionKey, Sequence[tuple[str, int]]]:
        """Path and name of a top-level object → the statements (path, index) of other files that put something of theirs into it, such as
        `@BLOCKS.register("mlp")`. Files that the examples did not import have none.
        """
        found: dict[FunctionKey, list[tuple[str, int]]] = {}
        for path, file in self.repo.files.items():
            if not self.observed_lines(path):
                continue
            tables = _tables_elsewhere(self.repo, file)
            for index, original in enumerate(_statement_groups(file.tree) if tables else ()):
                names = registered_with(original[0], tables.keys(), {name: {name} for name in tables})
                if not isinstance(original[0], ast.Expr) or global_names(ast.unparse(original[0])) & (
                    file.classes.keys() | file.functions.keys()
                ):
                    for table in {table for name in names for table in tables[name]}:
                        found.setdefault(table, []).append((path, index))
        return found

    def enters(self, path: str, name: str, statement: Statement) -> bool:
        """Whether a statement of a file is a function that puts something into a top-level object of it: `def register(f): TABLE[…] = f`."""
        file = self.repo.files[path]
        functions = registrars(file.tree.body, {name} & file.top_names)
        return any(defined in functions for defined in statement.defines)

    def settle(self, path: str, index: int) -> Statement:
        """The statement at `index`, which is now selected. If importing it uses a stub, it becomes
        a stub itself.
        """
        if (path, index) not in self._settled:
            # Marked first: two statements that use each other would settle each other for ever.
            self._settled.add((path, index))
            original = _statement_groups(self.repo.files[path].tree)[index]
            reasons = (self._dead(path, name) for name in sorted(names_used(original) & self.statements(path)[index].needs))
            if reason := next(filter(None, reasons), ""):
                self._bury(path, index, original, reason)
            elif reason := self._dead(path, aliased_name(original)):
                result = self._rewritten[path]
                self._rewritten[path] = replace(result, dead={**result.dead, **dict.fromkeys(names_bound(original[0]), reason)})
        return self.statements(path)[index]

    def _dead(self, path: str, name: str) -> str:
        """The reason of the stub that a name of a file stands for; "" where it stands for none."""
        file = self.repo.files[path]
        if name not in file.top_names:
            definition = self.repo.resolve(file.bindings.get(name, ""))
            if definition is None or not definition[1]:
                return ""
            path, name = definition[0].file.path, definition[1].partition(".")[0]
        for index, statement in enumerate(self.statements(path)):
            if name in statement.defines:
                self.settle(path, index)
        return self.rewritten(path).dead.get(name, "")

    def _bury(self, path: str, index: int, original: list[ast.stmt], reason: str) -> None:
        """Replace a statement by a stub. Where an example used what it defines, or it does more
        than bind names, add a hole instead.
        """
        statement, result, uses = self._statements[path][index], self._rewritten[path], self.exercised
        names = names_bound(original[0]) if len(original) == 1 else ()
        ran = any(statement.first_line <= line <= statement.last_line for line in self.observed_lines(path))
        # A stub would break what an example is known to use; the hole asks a person or the model
        # instead.
        if not names or ran or uses is None or {(path, name) for name in names} & (uses.read | uses.compared):
            span = Span(statement.first_line, 0, statement.last_line, 0)
            new = replace(statement, holes=(*statement.holes, Hole(path, span, "unknown-op", reason, "")))
        else:
            # A file may define that name itself.
            name_clash = "NotMigrated" in Scopes(self.repo.files[path]).taken
            text = f"{' = '.join(names)} = {'nnx_layers.' if name_clash else ''}NotMigrated({reason!r})\n"
            note = f"{path}:{statement.first_line}: not migrated, an error once it is used: {reason}"
            new = replace(statement, text=text, needs=global_names(text), holes=(), notes=(*statement.notes, note))
            helper = frozenset({"NotMigrated"})
            vendored, qualified = result.vendored | (set() if name_clash else helper), result.qualified | (helper if name_clash else set())
            dead = {**result.dead, **dict.fromkeys(names, reason)}
            self._rewritten[path] = replace(result, dead=dead, vendored=vendored, qualified=qualified)
        every = self._statements[path]
        self._statements[path] = (*every[:index], new, *every[index + 1 :])

    def _split(self, file: FileModel) -> list[Statement]:
        result = self.rewritten(file.file.path)
        statements: list[Statement] = []
        objects = file.top_names - file.classes.keys() - file.functions.keys()
        tables = registrars(file.tree.body, objects)
        for original, nodes, span in zip(_statement_groups(file.tree), result.body, result.spans, strict=True):
            holes = [h for h in result.holes if original[0].lineno <= h.span.line <= span.end_line]
            nodes, holes, notes = self._without_idle(file, original[0], nodes, holes)
            if isinstance(original[0], ast.ClassDef) and (model := file.classes.get(original[0].name)):
                notes = [*notes, *unexercised(model, self.observed_lines(file.file.path))]
            text = "".join(result.header.code_for_node(node) for node in nodes)
            # Functions of a script that is run read what its main block binds; who imports the file has no such names.
            names = (name for statement in original for name in defined_names(statement, as_script=file.file.path in self.hosts))
            defines = tuple(name for name in names if name not in file.runtime_imports)
            first = original[0]
            needs = global_names(text) if text.strip() else frozenset()
            is_import = all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in original)
            docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
            registers = registered_with(first, objects, tables)
            docstring = docstring and not statements
            lines = (first.lineno, span.end_line)
            statements.append(Statement(text, defines, needs, *lines, is_import, docstring, tuple(holes), tuple(notes), registers))
        return statements

    def _without_idle(
        self, file: FileModel, original: ast.stmt, nodes: tuple[cst.BaseStatement, ...], holes: list[Hole]
    ) -> tuple[tuple[cst.BaseStatement, ...], list[Hole], list[str]]:
        """Replace methods with holes that no constructor or call reaches by stubs, so that they do
        not block the class.

        Gives the statements, the remaining holes, and a note for each replaced method.
        """
        model = file.classes.get(original.name) if isinstance(original, ast.ClassDef) else None
        if model is None or not holes or not nodes or not isinstance(nodes[0], cst.ClassDef):
            return nodes, holes, []
        # Nothing that the checks run reaches these, so that the error cannot be met by accident.
        idle = {
            name: own_holes[0]
            for name, own_holes in holes_by_method(model, holes).items()
            if name and (file.file.path, f"{model.qualname}.{name}") not in self.randomness.live
        }
        if not idle:
            return nodes, holes, []
        remaining = [hole for name, own_holes in holes_by_method(model, holes).items() if name not in idle for hole in own_holes]
        notes = [f"{model.id}.{name} was not migrated: {hole.reason}" for name, hole in idle.items()]
        return (with_stubs(nodes[0], idle), *nodes[1:]), remaining, notes


def _tables_elsewhere(repo: Repo, file: FileModel) -> dict[str, Set[FunctionKey]]:
    """Each name that a file imports from another one of the repository → the top-level objects there (path, name) that it is or, of a function,
    that it changes.
    """
    found: dict[str, Set[FunctionKey]] = {}
    for name, dotted in file.bindings.items():
        definition = None if name in file.top_names else repo.resolve(dotted)
        if definition is None or definition[0] is file:
            continue
        other, own = definition
        objects = other.top_names - other.classes.keys() - other.functions.keys()
        changed = {own} & objects or registrars(other.tree.body, objects).get(own, frozenset())
        if changed:
            found[name] = {(other.file.path, table) for table in changed}
    return found


def _statement_groups(tree: ast.Module) -> list[list[ast.stmt]]:
    """Statements grouped as libcst groups them: those joined by semicolons on one line are one."""
    groups: list[list[ast.stmt]] = []
    for statement in tree.body:
        compound = isinstance(
            statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
        )
        previous = groups[-1][-1] if groups else None
        # `a = 1; b = 2` is one line to libcst and two statements to `ast`; both lists must pair up.
        if previous is not None and not compound and previous.end_lineno == statement.lineno and not _is_compound(previous):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def _is_compound(node: ast.stmt) -> bool:
    return hasattr(node, "body")


MOST_KEPT = 8
"""Number of workspaces in the cache: one for each project of a repository whose projects have files of the same name."""
_cache: list[tuple[Inventory, Observations, Workspace]] = []


def workspace(inventory: Inventory, observations: Observations, path: str) -> Workspace:
    """The workspace of what the file at `path` sees of the repository. Those of the last observations are cached, since a run asks for them
    once per unit, and again where it has read the same observations from a file.
    """
    inventory = visible_from(inventory, path)
    # By identity first: comparing takes longer than looking up, and one draft asks many times.
    for known in _cache:
        if known[0] is inventory and known[1] is observations:
            return known[2]
    same = [(known, observations, space) for known, seen, space in _cache if seen is observations or seen == observations]
    space = next((space for known, _, space in same if known is inventory), None) or Workspace(inventory, observations)
    _cache[:] = [*[row for row in same if row[0] is not inventory][1 - MOST_KEPT :], (inventory, observations, space)]
    return space


def code(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return cst.Module([]).code_for_node(node)


__all__ = ["Mapping", "Statement", "Workspace", "code", "workspace"]
