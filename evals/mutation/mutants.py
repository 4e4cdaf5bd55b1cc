"""The targets of mutation: hand-written rewrites of the corpora, and the rewriter's output for the examples and for packages."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_agent.evals.mutation import corpus
from migrate_agent.evals.mutation.mutate import Mutation, mutations
from migrate_agent.evals.zoo_packages.packages import load_packages
from migrate_agent.evals.zoo_packages.zoo_run import make_repository
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.examples import from_config
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Evidence, Example, Inventory, Unit
from migrate_agent.tools.verify import Options, verify

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("conformer", "g-mlp-pytorch", "lambda-networks", "linformer", "mingru-pytorch", "nystrom-attention", "siren-pytorch")
"""Packages of the zoo that are small enough to verify a thousand times."""
FAR_OFF, SAME, NOT_RUN = "parity first", "same program", "not run"
"""Names in place of a check, for mutants that are judged without the verifier."""
ARGUED = corpus.FOLDER / "mutants_argued.toml"


@dataclass(frozen=True)
class Target:
    """A file of a verified rewrite, and a unit in it with its examples.

    `places` are the top-level names of the file whose mutants this unit judges ("" for statements); None
    for all of them.
    """

    name: str
    unit: Unit
    examples: tuple[Example, ...]
    translated: tuple[Example, ...]
    inventory: Inventory
    candidate: Path
    places: frozenset[str] | None = None
    reached: frozenset[str] = frozenset()
    """Top-level names of the file that this unit needs, directly or through others."""

    @property
    def title(self) -> str:
        """The file, and the unit where there are several."""
        return self.name if self.places is None else f"{self.name}:{self.unit.name}"

    @property
    def file(self) -> Path:
        """The file that is mutated."""
        return self.candidate / self.unit.target

    def uses(self, owner: Target, path: str) -> bool:
        """Whether this unit needs the definition at `path` in the owner's file."""
        return self.file == owner.file and (not path or path.partition(".")[0] in self.reached)

    def mutations(self) -> list[tuple[str, Mutation]]:
        """Ids and mutations in the order of a hash, so that the first `n` are a fair sample of functions and operators."""
        every = mutations(self.file.read_text(encoding="utf-8"))
        own = [one for one in every if self.places is None or one.place.partition(".")[0] in self.places]
        named = [(f"{self.name}/{mutation.id}", mutation) for mutation in own]
        return sorted(named, key=lambda pair: hashlib.sha256(pair[0].encode()).digest())

    @contextlib.contextmanager
    def holding(self, text: str) -> Iterator[None]:
        """A context in which the file has this text."""
        before = self.file.read_text(encoding="utf-8")
        self.file.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            self.file.write_text(before, encoding="utf-8")

    def verify(self, sandbox: Sandbox, folder: Path, options: Options) -> Evidence:
        """Verify the unit as its file now stands."""
        root = self.inventory.root
        return verify(self.unit, self.examples, self.translated, root, self.candidate, self.inventory, sandbox, folder, options)


def subjects() -> list[str]:
    """The names of all subjects: `port-mlp`, `example-gpt`, `zoo-conformer`."""
    ports = [f"port-{name}" for name in corpus.load_originals() if (corpus.FOLDER / "right" / f"{name}.py").exists()]
    repositories = sorted(f"example-{path.parent.name}" for path in EXAMPLES.glob("*/migrate.toml"))
    return [*ports, *repositories, *(f"zoo-{name}" for name in PACKAGES)]


def targets(subject: str, sandbox: Sandbox, folder: Path) -> list[Target]:
    """The files of a subject, laid out below `folder`. Raises `KeyError` for an unknown one, `PackageError` where a package is not fetched."""
    kind, _, name = subject.partition("-")
    if kind == "port":
        return [_port(subject, name, folder)]
    if kind == "example":
        return _repository(subject, EXAMPLES / name, sandbox, folder)
    package = next(package for package in load_packages() if package.name == name)
    make_repository(package, folder / "repository")
    return _repository(subject, folder / "repository", sandbox, folder)


def _port(subject: str, name: str, folder: Path) -> Target:
    original = corpus.load_originals()[name]
    text = (corpus.FOLDER / "right" / f"{name}.py").read_text(encoding="utf-8")
    theirs, ours = corpus.write_trees(original, text, folder)
    translated = tuple(corpus.with_rngs(example) for example in original.examples)
    return Target(subject, original.unit, original.examples, translated, corpus.inventory(theirs, original.unit), ours)


def _repository(subject: str, root: Path, sandbox: Sandbox, folder: Path) -> list[Target]:
    """One target for each unit with an example of its own; it judges its class, and the other names of the file that it owns."""
    inventory = scan(root)
    rows = tomllib.loads((root / "migrate.toml").read_text(encoding="utf-8"))["example"]
    examples = from_config(inventory, rows)
    recording = record(inventory, examples, sandbox, folder / "recording")
    unit_ids = list(dict.fromkeys(example.unit for example in examples))
    draft = compose(inventory, recording.observations, unit_ids, examples=examples)
    mirror = folder / "mirror"
    for name, text in draft.files.items():
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).write_text(text, encoding="utf-8")
    files: dict[str, list[Unit]] = {}
    for identifier in unit_ids:
        files.setdefault(inventory.unit(identifier).target, []).append(inventory.unit(identifier))
    result = []
    for path, units in files.items():
        names_of_unit = names_by_unit((mirror / path).read_text(encoding="utf-8"), [unit.name for unit in units])
        for unit in units:
            own = tuple(example for example in examples if example.unit == unit.id)
            translated = tuple(translate(inventory, recording.observations, example) for example in own)
            name = f"{subject}/{path.removesuffix('.py')}"
            result.append(Target(name, unit, own, translated, inventory, mirror, *names_of_unit[unit.name]))
    return result


def names_by_unit(text: str, units: Sequence[str]) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Unit → the top-level names that it owns, and all names that it needs.

    A unit owns its class, and each name of whose users it needs the fewest names. A name that no unit
    needs has no owner.
    """
    needs: dict[str, set[str]] = {"": set()}
    for node in ast.parse(text).body:
        names = {node_name.id for node_name in ast.walk(node) if isinstance(node_name, ast.Name)}
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            needs[node.name] = names - {node.name}
    reached = {unit: _needed_names(unit.partition(".")[0], needs) for unit in units}
    own = {unit.partition(".")[0]: unit for unit in units}
    owned: dict[str, set[str]] = {unit: set() for unit in units}
    for name in needs:
        users = [unit for unit in units if not name or name in reached[unit]]
        owner = own.get(name) or min(users, key=lambda unit: len(reached[unit]), default=None)
        if owner is not None:
            owned[owner].add(name)
    return {unit: (frozenset(names), frozenset(reached[unit])) for unit, names in owned.items()}


def _needed_names(name: str, needs: Mapping[str, set[str]]) -> set[str]:
    waiting, needed = [name], set[str]()
    while waiting:
        needed.add(current := waiting.pop())
        waiting += needs.get(current, set()) & needs.keys() - needed
    return needed


def equivalent_mutants() -> Mapping[str, Mapping[str, str]]:
    """Id → `change` and `equivalence_reason` of the mutants that are argued to be equivalent."""
    if not ARGUED.exists():
        return {}
    return {str(row["id"]): row for row in tomllib.loads(ARGUED.read_text(encoding="utf-8")).get("mutant", [])}


def equivalence_reason(rows: Mapping[str, Mapping[str, str]], identifier: str, mutation: Mutation) -> str:
    """Why a mutant is equivalent, or "". The change must equal the argued one, because numbers shift when code changes."""
    row = rows.get(identifier)
    return row["reason"] if row and row["change"] == mutation.change else ""


def sample(pairs: Sequence[tuple[str, Mutation]], limit: int | None) -> Sequence[tuple[str, Mutation]]:
    """The first `limit` (all where None)."""
    return pairs if limit is None else pairs[:limit]
