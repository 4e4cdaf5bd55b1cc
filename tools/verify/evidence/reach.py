"""Which statements of the original and of the port ran in calls that were compared, and which did not."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrate_agent.tools.harness.common.choices import choices
from migrate_agent.tools.harness.common.reach import Reached, heard, union
from migrate_agent.tools.leftovers import find
from migrate_agent.tools.scan.accelerators import runs_on_cuda
from migrate_agent.tools.types import Example, Reach, Surface, Unit
from migrate_agent.tools.verify.contract.scenario import CONFIGURATIONS, redrawn
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.copied_helpers import is_copied
from migrate_agent.tools.verify.evidence.counted_file import CountedFile, Missed, branches, counted_file
from migrate_agent.tools.verify.evidence.no_counterpart import asks_processes, loads_downloads, moves_device, only_logs
from migrate_agent.tools.verify.evidence.stubs import may_go, stubbed

if TYPE_CHECKING:
    from migrate_agent.tools.closure import Closures, Name

CONSTRUCTED = re.compile(r"(?<!torch\.)(?<!nn\.)\b([A-Z]\w*)\(")
"""Classes that the text of an example constructs."""
Side = Literal["original", "port"]
Names = Mapping[str, Collection[str]]
"""Path of a file → top-level names in it."""


@dataclass(frozen=True)
class Reaching:
    """What the compared calls of a candidate reached, in its files as they ran.

    `texts` are the port's files; `port` and `original` the top-level names of each side that are judged here: neither other units nor copied helpers.
    """

    results: Results

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The text of each file of the port."""
        return {source.path: source.text for source in self.results.sources if not source.error}

    @cached_property
    def _ran(self) -> tuple[Reached, Reached]:
        """What ran of the original, and of the port, in calls that both sides answered."""
        results = self.results
        both = {
            scenario.name for scenario, answer in results.answers() if not answer.error and not {"state", "absent"} & answer.facts.keys()
        }
        again = {redrawn(int(number)) for number, job in results.native.get("initial", {}).items() if "dtypes" in job}
        original = union(results.expected.reached.get(name, {}) for name in both | again)
        rows = []
        for kind in ("exact", "native"):
            run = results.of(kind).result
            wrong = {name for name, facts in run["scenarios"].items() if "error" in facts}
            reached = heard(run.get("reach", {"sets": [], "of": {}}))
            rows += [row for name, row in reached.items() if not name or (name in both and name not in wrong)]
        return original, union(rows)

    @cached_property
    def _refused(self) -> Reached:
        """What ran of the original with one other argument that the port refuses on purpose, whatever its value: nobody gets a result without it."""
        changes = [example["changes"] for example in self.results.expected.examples]
        names = {
            scenario.name
            for scenario, answer in self.results.answers(*CONFIGURATIONS)
            if answer.error and answer.facts.get("kind") != "error" and len(changes[scenario.example]) == 1
            if self._refuses_all(next(iter(changes[scenario.example])))
        }
        return union(self.results.expected.reached.get(name, {}) for name in names)

    def _refuses_all(self, argument: str) -> bool:
        """Whether the port raises under a condition that asks whether an argument is given, and not for some of its values."""
        name = argument.rpartition(":")[2].rpartition(".")[2]
        asking = {name, f"not {name}", *(f"{name} {rest}" for rest in ("> 0", "!= 0", "is None", "is not None"))}
        nodes = [node for text in self.texts.values() for node in ast.walk(counted_file(text).tree) if isinstance(node, ast.If)]
        return any(ast.unparse(node.test) in asking and is_stub(node.body[0]) for node in nodes)

    @cached_property
    def ran(self) -> Mapping[str, frozenset[str]]:
        """`file:function` of the port → digests of its statements that ran, here or where another unit was verified."""
        ran = {key: frozenset(digests) for key, digests in self.results.reached_before.items()}
        for path, text in self.texts.items():
            for key, digests in counted_file(text).digests_of(self._ran[1].get(path, frozenset())).items():
                ran[f"{path}:{key}"] = ran.get(f"{path}:{key}", frozenset()) | digests
        return ran

    @property
    def _others(self) -> Iterator[Unit]:
        """The modules that are judged on their own. Functions are judged here too: what is theirs runs as part of this unit."""
        return (unit for unit in self.results.inventory.units if unit.id != self.results.unit.id and unit.kind == "module")

    @cached_property
    def port(self) -> Names:
        """What is judged of the port: the unit and all that no other unit is, with the classes that it derives from, whose methods it has."""
        from migrate_agent.tools.closure import Closures, Name  # here alone: the sandbox imports this room without the rewriter
        from migrate_agent.tools.scan.layout import mirror_layout

        unit = self.results.unit
        root = Name(unit.target, _head(unit.name))
        # The mirror has no `__init__.py` where the original's folder is an import root in spite of one: what tells so is the original's.
        files = self.results.inventory.files
        on_path = [file for file in files if file.module == "__init__" and not file.adopted]
        closures = Closures([*mirror_layout(sorted(self.texts), self.texts, files), *on_path], self.texts, entries=False)
        without = {Name(other.target, _head(other.name)) for other in self._others if self.results.port is None}
        roots = [root, *self._named(self.results.translated, self.texts)]
        names = _by_path(closures.of(roots, without.difference(bases(closures, self.texts, root))).digests)
        return {path: {name for name in inside if not is_copied(name, self.texts[path])} for path, inside in names.items()}

    @cached_property
    def original(self) -> tuple[Names, Mapping[str, str]]:
        """What is judged of the original, and the texts of its files."""
        closures, sources = self._sources
        unit = self.results.unit
        without = {_name(other.source, other.name) for other in self._others}
        roots = [_name(unit.source, unit.name), *self._named(self.results.examples, sources)]
        return _by_path(closures.of(roots, without.difference(self._bases)).digests), sources

    def _named(self, examples: Iterable[Example], texts: Mapping[str, str]) -> Iterator[Name]:
        """The plain classes of these files that examples construct, such as a configuration: the unit need not name them to have them."""
        from migrate_agent.tools.closure import Name

        words = {word for example in examples for word in CONSTRUCTED.findall(f"{example.setup} {example.init} {example.call}")}
        others = {_head(other.name) for other in self._others}
        for path in texts if words - others else ():
            for node in counted_file(texts[path]).tree.body:
                if isinstance(node, ast.ClassDef) and node.name in words - others and not is_copied(node.name, texts[path]):
                    yield Name(path, node.name)

    @cached_property
    def _sources(self) -> tuple[Closures, Mapping[str, str]]:
        from migrate_agent.tools.closure import Closures
        from migrate_agent.tools.scan.walk import Sources

        own = [file for file in self.results.inventory.files if not file.adopted and not file.error]
        sources = Sources(self.results.original_root, tuple(file.path for file in own))
        return Closures(own, sources, entries=False), sources

    @cached_property
    def _bases(self) -> Sequence[Name]:
        """The classes of the original that the unit derives from, the nearest first."""
        closures, sources = self._sources
        return bases(closures, sources, _name(self.results.unit.source, self.results.unit.name))

    @cached_property
    def _of_bases(self) -> Mapping[tuple[str, str], bool]:
        """File and qualified name of each method of a class that the unit derives from, and whether the unit has it: no nearer class has another."""
        sources, unit = self._sources[1], self.results.unit
        nearer, inherited = _methods(sources[unit.source], _head(unit.name)), dict[tuple[str, str], bool]()
        for path, name in self._bases:
            methods = _methods(sources[path], name)
            inherited |= {(path, f"{name}.{method}"): method not in nearer for method in methods}
            nearer |= methods
        return inherited

    def judged(self) -> Reach:
        """How much of the port ran, and what is missed of either side."""
        lines = reached = stubs = 0
        missed: list[str] = []
        idle: dict[str, tuple[str, ...]] = {}
        for path, names in self.port.items():
            file = counted_file(self.texts[path])
            done = file.numbers_of(self.ran, path)
            own = _statements(file, names)
            rows = [row._replace(path=path) for row in file.missed(names, done)]
            left = [row for row in rows if not (self.results.unreached == "stub" and may_go(file, row) and self._stubs_hold)]
            raising = {number for number in own if is_stub(file.places[number].node)}
            waiting = (file.within(rows) | raising) - done
            lines, reached = lines + len(own & done | waiting), reached + len(own & done)
            stubs += len(raising) + len(rows) - len(left)
            missed += map(str, left)
            idle |= _digests(file, path, waiting)
        judged = tuple(f"{path}:{name}" for path, names in self.port.items() for name in sorted(names))
        ran = {key: tuple(sorted(digests)) for key, digests in sorted(self.ran.items()) if digests}
        return Reach(
            lines,
            reached,
            stubs,
            (*missed, *map(str, (*self._unseen(), *self._left_out(), *self._narrower(), *self._one_sided(), *self._sides_left()))),
            ran,
            judged,
            tuple(map(str, self._on_accelerators())),
            idle,
            self._surface_of_original(),
        )

    def _surface_of_original(self) -> Surface:
        """Of the original's files what ran, and what did not of the unit's functions: of those that nothing called too, without what has no
        counterpart."""
        names, sources = self.original
        idle: dict[str, tuple[str, ...]] = {}
        for path, inside in names.items():
            file, done = counted_file(sources[path]), self._ran[0].get(path, frozenset())
            rows = [row for row in file.missed(inside, done) if row.owner not in file.compiled and not _has_no_counterpart(row, file.tree)]
            idle |= _digests(file, path, file.within(rows) - done)
        return Surface(self._ran_of_original(), idle, tuple(f"{path}:{name}" for path, inside in names.items() for name in sorted(inside)))

    def _ran_of_original(self) -> dict[str, tuple[str, ...]]:
        """`file:function` of the original's own files → digests of the statements that ran, of other units too."""
        sources, ran = self._sources[1], dict[str, tuple[str, ...]]()
        for path, done in self._ran[0].items():
            if path in sources:
                file = counted_file(sources[path])
                ran |= _digests(file, path, {number for number in done if file.places[number].kind == "statement"})
        return ran

    def _unseen(self) -> Iterator[Missed]:
        """The beginning of what each compared call runs, the unit's constructor or its function, where it counts as not run.

        Then what ran was not seen, and stubs would take the place of all of it.
        """
        unit = self.results.unit
        if unit.target not in self.texts or self.results.port is not None:
            return
        file = counted_file(self.texts[unit.target])
        owner = unit.name if unit.kind == "function" else f"{unit.name}.__init__"
        number = next((number for number, place in enumerate(file.places) if place.owner == owner), None)
        if number is not None and number not in file.numbers_of(self.ran, unit.target):
            node = file.places[number].node
            assert isinstance(node, ast.stmt)
            yield Missed(unit.target, owner, (node,), "", f"{ast.unparse(node)[:90]}, which every call runs")

    @cached_property
    def _stubs_hold(self) -> bool:
        """Whether the port with stubs parses, and has nothing left of torch nor undefined names: only its text was not there when it ran."""
        names = [f"{path}:{name}" for path, inside in self.port.items() for name in inside]
        try:
            texts = {**self.texts, **stubbed(self.texts, names, self.ran)}
            for text in texts.values():
                ast.parse(text)
        except (SyntaxError, ValueError):
            return False
        return not list(find(texts, imports=False))

    def _missed_of_original(self) -> Iterator[Missed]:
        """What did not run of the functions of the original that ran, and of the unit's own methods."""
        return (row for row, tree in self._idle_of_original() if not _has_no_counterpart(row, tree))

    def _on_accelerators(self) -> Iterator[Missed]:
        """What an accelerator of torch's alone runs of these: it may be another computation, which no machine without one compares."""
        for row, tree in self._idle_of_original():
            computes = not all(moves_device(node, tree) for node in row.nodes) and not only_logs(tree, row.nodes)
            if computes and runs_on_cuda(tree, row.nodes[0]):
                yield row

    def _idle_of_original(self) -> Iterator[tuple[Missed, ast.Module]]:
        """What did not run of these functions, whatever it does, and the tree of its file."""
        names, sources = self.original
        own = self.results.unit
        for path, inside in names.items():
            file = counted_file(sources[path])
            done = self._ran[0].get(path, frozenset()) | self._refused.get(path, frozenset())
            ran = {file.places[number].owner for number in done}
            for row in file.missed(inside, done):
                of_unit = path == own.source and row.owner.startswith(f"{own.name}.")
                if row.owner not in file.compiled and (of_unit or row.owner in ran or self._is_inherited(path, row.owner)):
                    yield row._replace(path=path), file.tree

    def _is_inherited(self, path: str, owner: str) -> bool:
        """Whether the unit has this method of a class that was not judged, as far as the method goes, where another unit was verified."""
        before = self.results.reached_before.get(":".join(self._in_port(path, owner)))
        return not before and self._of_bases.get((path, ".".join(owner.split(".")[:2])), False)

    def _left_out(self) -> Iterator[Missed]:
        """What did not run of a function of the original that has fewer places in the port that did not run, or that refuse. What has no function
        of its own in the port may lie in any other."""
        rows: dict[tuple[str, str], list[Missed]] = {}
        for row in self._missed_of_original():
            rows.setdefault((row.path, row.owner), []).append(row)
        places = self._places_left
        for (path, owner), has in self._of_bases.items():
            # What no call asks for need not be there: it stands for nothing else that is left out. A method that the unit has anew may still
            # run, by `super()`.
            if not has and (path, owner) not in self._owners_that_ran:
                places.pop(self._in_port(path, owner), None)
        elsewhere: list[Missed] = []
        for (path, owner), missed in rows.items():
            key = self._in_port(path, owner)
            if key not in places:
                if not self._goes_with_its_function(path, owner, rows.keys(), places):
                    elsewhere += missed
                continue
            # What the original itself refuses so is no stub.
            own = sum(is_stub(place.node) for place in counted_file(self.original[1][path]).places if place.owner == owner)
            # What only another unit ran is there, and was compared as part of that.
            if self._places_idle_here.get(key, 0) - own < len(missed):
                yield from missed
            places[key] -= own + len(missed)
        # Written out elsewhere, each branch needs a place of its own: nothing says that what stood around it is there.
        if sum(max(count, 0) for count in places.values()) < sum(branches(row.nodes) for row in elsewhere):
            yield from elsewhere

    def _goes_with_its_function(
        self, path: str, owner: str, missed: Collection[tuple[str, str]], left_in_port: Mapping[tuple[str, str], int]
    ) -> bool:
        """Whether a function that is defined in another one is left out with that as a whole: nothing of the other one ran, and all that the port has in
        its place refuses."""
        outer = owner.rpartition(".")[0]
        if (path, outer) not in missed or (path, outer) in self._owners_that_ran:
            return False
        target, name = self._in_port(path, outer)
        here = (
            [statement.node for statement in counted_file(self.texts[target]).places if statement.owner == name]
            if target in self.texts
            else []
        )
        return (target, name) in left_in_port and bool(here) and all(map(is_stub, here))

    @cached_property
    def _conditions_of_packages(self) -> Collection[tuple[str, str, str]]:
        """File and function of the port, and the text of a condition, of those that stand in the same function of the installed package that the file
        mirrors. What ran of packages is not counted."""
        files = [file for file in self.results.inventory.files if file.adopted and file.target in self.texts]
        return {
            (*self._in_port(file.path, part.owner), ast.unparse(part.node.test))
            for file in files
            for part in counted_file(Path(file.path).read_text(encoding="utf-8-sig")).places
            if isinstance(part.node, ast.If)
        }

    def _narrower(self) -> Iterator[Missed]:
        """Conditions before what did not run, with more parts that no call looked at than those of the original have: what is refused may be less
        than what was not tried."""
        names, sources = self.original
        usual = Counter[tuple[str, str]]()
        for path in names:
            rows = counted_file(sources[path]).narrowed(self._ran[0].get(path, frozenset()), refused=is_stub)
            usual.update(self._in_port(path, owner) for owner, _ in rows)
        for path, inside in self.port.items():
            file = counted_file(self.texts[path])
            for owner, node in file.narrowed(file.numbers_of(self.ran, path), refused=is_stub):
                usual[path, owner] -= 1
                is_theirs = (path, owner, ast.unparse(node.test)) in self._conditions_of_packages
                if usual[path, owner] < 0 and _head(owner) in inside and not is_theirs:
                    yield Missed(path, owner, (node,), "", f"if {ast.unparse(node.test)}, whose parts no call looked at")

    def _one_sided(self) -> Iterator[Missed]:
        """Calls by which data chooses, all of whose compared calls took one side: what the other side gives was compared with nothing."""
        taken: dict[tuple[str, int], set[bool]] = {}
        for _, answer in self.results.answers():
            for path, number, held, failed in answer.facts.get("chosen", ()):
                taken.setdefault((str(path), int(number)), set()).update({True} if held else (), {False} if failed else ())
        for path, names in self.port.items():
            for number, choice in enumerate(choices(counted_file(self.texts[path]).tree)):
                sides = taken.get((path, number), {True, False})
                if len(sides) < 2 and _head(choice.owner) in names:
                    holds = "always holds" if True in sides else "never holds"
                    yield Missed(
                        path,
                        choice.owner,
                        (ast.Expr(choice.node, **_place(choice.node)),),
                        "",
                        f"{ast.unparse(choice.node)[:90]}, whose condition {holds}",
                    )

    def _sides_left(self) -> Iterator[Missed]:
        """Of a port by hand: sides of `a if c else b` that no compared call ran, where there are more of them than the original has."""
        if self.results.unreached:
            return
        names, sources = self.original
        usual = sum(len(counted_file(sources[path]).one_sided(self._ran[0].get(path, frozenset()))) for path in names)
        rows = []
        for path, inside in self.port.items():
            file = counted_file(self.texts[path])
            rows += [(path, place) for place in file.one_sided(file.numbers_of(self.ran, path)) if _head(place.owner) in inside]
        if len(rows) > usual:
            for path, place in rows:
                assert isinstance(place.node, ast.expr)
                yield Missed(
                    path,
                    place.owner,
                    (ast.Expr(place.node, **_place(place.node)),),
                    "",
                    f"{ast.unparse(place.node)[:90]}, a side that no call took",
                )

    def _in_port(self, path: str, owner: str) -> tuple[str, str]:
        """File and name of a function of the original in the port: `forward` of a module is `__call__` there, and that of an autograd function its own."""
        target, (head, _, last) = self._targets.get(path, ""), owner.rpartition(".")
        called = f"{head}.__call__"
        if not head or last != "forward":
            return target, owner
        owners = {place.owner for place in counted_file(self.texts[target]).places} if target in self.texts else ()
        return target, owner if owner in owners and called not in owners else called

    @cached_property
    def _targets(self) -> Mapping[str, str]:
        return {file.path: file.target for file in self.results.inventory.files}

    @cached_property
    def _owners_that_ran(self) -> frozenset[tuple[str, str]]:
        """File and name of each function of the original of which something ran."""
        files = {path: counted_file(self.original[1][path]) for path in self.original[0]}
        return frozenset((path, file.places[number].owner) for path, file in files.items() for number in self._ran[0].get(path, ()))

    @property
    def _places_left(self) -> dict[tuple[str, str], int]:
        """File and function of the port → places in it that did not run, here or where another unit was verified, or that refuse."""
        return self._idle_places({path: counted_file(self.texts[path]).numbers_of(self.ran, path) for path in self.port})

    @cached_property
    def _places_idle_here(self) -> Mapping[tuple[str, str], int]:
        """The same of this unit's own calls alone."""
        return self._idle_places({path: frozenset(self._ran[1].get(path, ())) for path in self.port})

    def _idle_places(self, done: Mapping[str, Collection[int]]) -> dict[tuple[str, str], int]:
        counts: dict[tuple[str, str], int] = {}
        for path, names in self.port.items():
            file = counted_file(self.texts[path])
            for place in file.places:
                if _head(place.owner) in names:
                    counts[path, place.owner] = counts.get((path, place.owner), 0) + is_stub(place.node)
            for row in file.missed(names, done[path]):
                counts[path, row.owner] = counts.get((path, row.owner), 0) + 1
        return counts


def judged(results: Results) -> Reach:
    """How much of the candidate's port ran. Where its proposer puts stubs in the place of the rest, they count as being there.

    Raises `CandidateFailed`, `OriginalFailed`.
    """
    if results.reach is None:
        results.reach = Reaching(results).judged()
    return results.reach


def _has_no_counterpart(row: Missed, tree: ast.Module) -> bool:
    """Whether these statements of the original move tensors between devices, run on one alone, ask for processes, tell something, or load a download."""
    moves = all(moves_device(node, tree) for node in row.nodes)
    idle = only_logs(tree, row.nodes) or loads_downloads(tree, row.nodes)
    return moves or asks_processes(tree, row.nodes) or runs_on_cuda(tree, row.nodes[0]) or idle


def _statements(file: CountedFile, names: Collection[str]) -> set[int]:
    """The numbers of the statements of these definitions."""
    return {number for number, part in enumerate(file.places) if part.kind == "statement" and _head(part.owner) in names}


def _digests(file: CountedFile, path: str, numbers: Collection[int]) -> dict[str, tuple[str, ...]]:
    """`path:function` → digests of these places."""
    return {f"{path}:{owner}": tuple(sorted(digests)) for owner, digests in file.digests_of(numbers).items()}


def _place(node: ast.expr) -> dict[str, int]:
    return {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}


def _head(owner: str) -> str:
    return owner.partition(".")[0]


def _name(path: str, name: str) -> Name:
    from migrate_agent.tools.closure import Name

    return Name(path, _head(name))


def bases(closures: Closures, sources: Mapping[str, str], name: Name) -> list[Name]:
    """The classes of these files that a class derives from, by way of others too: the nearest first."""
    classes, waiting = [name], [name]
    while waiting:
        path, text = (one := waiting.pop(0)).path, sources.get(one.path, "")
        definition = _definition(text, one.name)
        near = [base for node in (definition.bases if definition else ()) for base in closures.read(path, ast.unparse(node))]
        waiting += [base for base in dict.fromkeys(near) if base not in classes]
        classes += [base for base in dict.fromkeys(near) if base not in classes]
    return classes[1:]


def _definition(text: str, name: str) -> ast.ClassDef | None:
    """The top-level class of this name, the last one that the file defines."""
    classes = [node for node in counted_file(text).tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return classes[-1] if classes else None


def _methods(text: str, name: str) -> set[str]:
    """The names of a class's own methods."""
    definition = _definition(text, name)
    return {node.name for node in (definition.body if definition else ()) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _by_path(digests: Mapping[str, str]) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for key, digest in digests.items():
        path, _, name = key.partition(":")
        if digest and name:
            names.setdefault(path, set()).add(name)
    return names


def is_stub(node: ast.AST) -> bool:
    """Whether a statement is `raise NotImplementedError("…")`."""
    call = node.exc if isinstance(node, ast.Raise) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "NotImplementedError":
        return False
    return len(call.args) == 1 and isinstance(call.args[0], (ast.Constant, ast.JoinedStr))
