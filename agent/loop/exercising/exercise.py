"""How units come to be exercised, in the contract's order: configuration, convention, stored recording, inference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.loop.exercising.growth import FEW_DRAFTS, MOST_DRAFTS, Growth
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.runs.class_text import public_methods, syntax_methods
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common.budgets import MAX_EXAMPLES
from migrate_agent.tools.record.at_once import in_order
from migrate_agent.tools.record.infer import Guess
from migrate_agent.tools.record.programs import run_files, run_snippets
from migrate_agent.tools.record.snippets import snippets
from migrate_agent.tools.record.store import merge_recordings
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Draft, Example, Inventory, Recording, Unit


def is_reached(recording: Recording, identifier: str) -> bool:
    """Whether an example exercises the unit, alone or inside another, or one that should have did not run."""
    return (
        identifier in recording.errors
        or identifier in recording.inside
        or any(example.unit == identifier and (not example.method or example.origin == "inference") for example in recording.examples)
    )


def _calls(examples: Sequence[Example]) -> list[Example]:
    """The examples that call the unit itself; of a module without `forward`, those of the method that is called in its place."""
    plain = [example for example in examples if not example.method]
    return plain or [example for example in examples if example.method == examples[0].method]


def _key(example: Example) -> tuple[str, str, str, str]:
    """What tells the examples of units apart."""
    return example.unit, example.init, example.call, example.method


def _worth_comparing(examples: Iterable[Example], reaching: Collection[tuple[str, str, str, str]]) -> Iterator[Example]:
    """The examples without recorded calls that are not among those that reach something, beyond the number that is compared in full."""
    counts = Counter[str]()
    for example in examples:
        counts[example.unit] += not example.method
        if example.method or example.origin != "recording" or _key(example) in reaching or counts[example.unit] <= MAX_EXAMPLES:
            yield example


def _shows_objects(recording: Recording, path: str) -> bool:
    """Whether something in a file was a plain object while the examples ran, which a call may be handed or give."""
    return any(kind.startswith("object:") for observed in recording.observations.get(path, {}).values() for kind in observed.kinds)


_IMPORTED = "the file was imported"
_CONSTRUCTED = re.compile(r"(?<!torch\.)(?<!nn\.)\b([A-Z]\w*)\(")
"""Classes that a text constructs."""
_GRADIENTS = re.compile(r"^\s*class \w+\([^)]*\bFunction\b.*\):", re.M)
"""The first line of a class that derives from torch's functions with gradients of their own."""
MOST_CONSTRUCTIONS = 6
"""Constructor calls of a unit on whose instances methods are called."""
FEW = 3
"""Examples that are not tried one by one where they leave a hole more, in a repository that adopts a package: each try is a run and a draft."""


@dataclass(frozen=True)
class Exercise:
    """Runs originals in the sandbox; what they write lies under `folder`."""

    services: Services
    config: Config
    inventory: Inventory
    sandbox: Sandbox
    folder: Path

    def run_given(self, stored: Recording, only: Sequence[Example] = ()) -> Recording:
        """What the examples that the user gave show (or `only` these of them), and what was recorded before."""
        examples = only or self.services.examples(self.inventory, self.config)
        ran = self.services.record(self.inventory, examples, self.sandbox, self.folder / "examples", self.config.limits.limits())
        return merge_recordings((ran, stored))

    def add_shown(self, identifiers: Sequence[str], recording: Recording) -> Recording:
        """The recording, grown by what docstrings, `__main__` blocks, tests and text files show of these units."""
        pieces = snippets(self.inventory, identifiers)
        if not pieces:
            return recording
        return merge_recordings(
            (recording, run_snippets(self.inventory, pieces, self.sandbox, self.folder / "shown", self.config.limits.limits()))
        )

    def add_explored(self, paths: Sequence[str], recording: Recording) -> Recording:
        """The recording, grown by what these tests and scripts do."""
        ran = run_files(self.inventory, paths, self.sandbox, self.folder / "explored", self.config.limits.limits())
        return merge_recordings((recording, ran))

    def add_guess(self, unit: Unit, recording: Recording) -> Recording:
        """The recording, grown by a guessed example of the unit."""
        return self.add_found(unit, self.search(unit), recording)

    def search(self, unit: Unit) -> Guess:
        """A guessed example of the unit, found by trials in the sandbox."""
        return self.services.infer(self.inventory, unit, self.sandbox, self._guess_folder(unit) / "guess", self.config.limits.limits())

    def add_found(self, unit: Unit, guess: Guess, recording: Recording) -> Recording:
        """The recording, grown by what a search found: an example that ran, or the reason why the unit's file cannot be imported."""
        folder = self._guess_folder(unit)
        if guess.example is not None:
            ran = self.services.record(self.inventory, (guess.example,), self.sandbox, folder / "run", self.config.limits.limits())
            return merge_recordings((recording, ran))
        if guess.imported is None:
            return merge_recordings((recording, self._import_error(unit, folder / "import")))
        errors = {} if guess.imported else {unit.id: f"its file cannot be imported: {guess.error}"}
        return merge_recordings((recording, Recording(errors=errors)))

    def add_alone(self, unit: Unit, guess: Guess, recording: Recording) -> Recording:
        """The recording, grown by the example that a search found of a unit of which only its part in others was seen, unless that leaves a hole more."""
        if guess.example is None:
            return recording
        folder = self._guess_folder(unit) / "alone"
        return self._grown_where_exact((guess.example,), recording, folder, lambda ran: replace(ran, errors={}))

    def _guess_folder(self, unit: Unit) -> Path:
        return self.folder / f"guessed-{self.inventory.units.index(unit):04d}"

    def add_further(self, units: Sequence[Unit], recording: Recording) -> Recording:
        """The recording, grown by further calls of these units that reach code that their examples do not, as far as they leave no hole more there:
        a stub refuses what no example reaches, and a hole the whole unit. Those that reach something come first: only so many examples of one unit
        are verified."""
        limits = self.config.limits.limits()
        pairs = [(unit, _calls(examples_of(recording, unit.id))) for unit in units]
        ordered = self.services.further(self.inventory, pairs, recording, self.sandbox, limits)
        own_keys = {_key(example) for _, own in pairs for example in own}
        examples = [example for example in ordered if _key(example) not in own_keys]
        merged = recording
        if examples:
            merged = self._grown_where_exact(examples, recording, self.folder / "further", lambda ran: replace(ran, errors={}))
        ranks = {_key(example): rank for rank, example in enumerate(ordered)}
        firsts = {_key(own[0]): -1 for _, own in pairs if own}
        order = sorted(merged.examples, key=lambda example: {**ranks, **firsts}.get(_key(example), len(ranks)))
        return replace(merged, examples=tuple(_worth_comparing(order, ranks.keys() | firsts.keys())))

    def add_methods(self, units: Sequence[Unit], recording: Recording, tell: Callable[[Unit], None] = lambda unit: None) -> Recording:
        """The recording, grown by guessed calls of the methods of units that no example calls, where their own call has an example. `tell` is called with
        each unit that is searched for them.

        What their expressions are is noted unless that leaves the rewrite a hole more: then it leaves stubs where it is unsure.
        """
        rows = in_order(lambda unit: self._method_calls(unit, recording, tell), units)
        calls = [call for row in rows for call in row]
        if not calls:
            return recording
        with_calls = merge_recordings((recording, Recording(tuple(calls))))
        return self._grown_where_exact(calls, with_calls, self.folder / "methods", lambda ran: Recording(observations=ran.observations))

    def _grown_where_exact(
        self, examples: Sequence[Example], recording: Recording, folder: Path, part: Callable[[Recording], Recording]
    ) -> Recording:
        """The recording, grown by this `part` of what a run of these examples shows: of all of them, or else of those that leave their units no hole
        more.

        A draft costs minutes where a repository adopts a large package: one without holes needs no other to compare with, and of one with holes only the
        units that have them do.
        """

        def grown(chosen: Sequence[Example], folder: Path) -> Recording:
            shown = self.services.record(self.inventory, chosen, self.sandbox, folder, self.config.limits.limits())
            return merge_recordings((recording, part(shown)))

        merged = grown(examples, folder)
        draft = self._draft(examples, merged)
        if draft is not None and not draft.holes:
            return merged
        left_out = self._leaving_holes(examples, recording, merged)
        if not left_out:
            return merged
        chosen = [example for example in examples if example not in left_out]
        return grown(chosen, folder.with_name(f"{folder.name}-0")) if chosen else recording

    def _leaving_holes(self, examples: Sequence[Example], recording: Recording, merged: Recording) -> Sequence[Example]:
        """Those of the examples that leave their units a hole more in the draft by the `merged` recording than there is by the one without them."""
        adopts = any(file.adopted for file in self.inventory.files)
        growth = Growth(recording, self._draft, FEW_DRAFTS if adopts else MOST_DRAFTS)
        after = {unit: holes for unit, holes in growth.holes_by_unit(examples, merged).items() if holes}
        before = growth.holes_by_unit([example for example in examples if example.unit in after], recording)
        more = [unit for unit in after if not after[unit] <= before[unit]]
        doubtful = [example for example in examples if example.unit in more]
        if len(doubtful) <= (FEW if adopts else 1):
            return doubtful
        apart = self.services.observe_apart(self.inventory, doubtful, self.sandbox, self.config.limits.limits())
        growth.drafts = 0
        old, new = (frozenset().union(*(holes[unit] for unit in more)) for holes in (before, after))
        chosen = growth.chosen(doubtful, apart, old, new)
        return [example for example in doubtful if example not in chosen]

    def _method_calls(self, unit: Unit, recording: Recording, tell: Callable[[Unit], None]) -> tuple[Example, ...]:
        examples = examples_of(recording, unit.id)
        constructions = dict[tuple[str, ...], Example]()
        for example in _calls(examples):
            objects = dict.fromkeys(_CONSTRUCTED.findall(example.call))  # that the call is handed, whose methods may be called after it
            constructions.setdefault((example.init, example.setup, *objects), example)
        of_methods = [example for example in examples if example.method]
        methods = {example.method for example in of_methods}
        infer, limits = self.services.infer_methods, self.config.limits.limits()
        different = [*constructions.values()][:MOST_CONSTRUCTIONS]
        file = self.inventory.root / unit.source
        if not different or infer is None:
            return ()
        open_methods = (public_methods(file, unit.name) | syntax_methods(file, unit.name)) - methods
        holds = any(map(self._takes_objects, different)) or _shows_objects(recording, unit.source)
        if not open_methods and not holds and not self._defines_gradients(unit):
            return ()
        tell(unit)
        return infer(self.inventory, different, of_methods, self.sandbox, limits)[0]

    def _defines_gradients(self, unit: Unit) -> bool:
        """Whether a file that the unit's file sees defines the gradient of a function, which the unit may hand an input detached."""
        own = [file for file in visible_from(self.inventory, unit.source).files if not file.adopted and not file.error]
        return any(_GRADIENTS.search((self.inventory.root / file.path).read_text(encoding="utf-8", errors="replace")) for file in own)

    def _takes_objects(self, example: Example) -> bool:
        """Whether an example hands its constructor or its call an object of a class that is no unit, such as a configuration, whose methods may be called
        too."""
        units = {unit.name for unit in self.inventory.units}
        classes = _CONSTRUCTED.findall(f"{example.setup} {example.init} {example.call}")
        return any(name not in units for name in classes)

    def _draft(self, examples: Sequence[Example], recording: Recording) -> Draft | None:
        """The draft of the units of some examples; None where there is none."""
        units = {example.unit for example in examples}
        chosen = [unit.id for unit in self.inventory.units if unit.id in units]
        texts = [example for identifier in chosen for example in examples_of(recording, identifier)]
        try:
            return self.services.compose(self.inventory, recording.observations, chosen, {}, texts)
        except Exception:  # the rewriter's fault comes up again in the unit's turn, and is told there
            return None

    def _import_error(self, unit: Unit, folder: Path) -> Recording:
        """Run nothing of the unit but its import: `setup` comes next, and ends it there."""
        probe = Example(unit.id, "", "", setup=f"raise LookupError({_IMPORTED!r})")
        ran = self.services.record(self.inventory, (probe,), self.sandbox, folder, self.config.limits.limits())
        error = ran.errors.get(unit.id, _IMPORTED)
        return Recording() if _IMPORTED in error else Recording(errors={unit.id: f"its file cannot be imported: {error}"})
