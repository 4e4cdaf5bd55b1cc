"""The search for calls and constructions of one unit that reach code which its examples do not, cheapest first."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods, reach
from migrate_agent.tools.harness.common.example_text import build, make_namespace
from migrate_agent.tools.record.guessing.arguments import Call, by_position, first_samples, text_of
from migrate_agent.tools.record.guessing.beyond.other_calls import (
    first_element,
    in_other_containers,
    objects_asked,
    of_one_sample,
    of_other_ranks,
    others,
)
from migrate_agent.tools.record.guessing.beyond.trial import Trial, arguments_of, changed_names, result_of, trial_of, unit_of, value_of
from migrate_agent.tools.record.guessing.beyond.unlike_calls import MOST as MOST_UNLIKE
from migrate_agent.tools.record.guessing.beyond.unlike_calls import with_inferred_call
from migrate_agent.tools.record.guessing.configs import of_relatives
from migrate_agent.tools.record.guessing.distinctions import (
    SWITCH,
    asked_containers,
    conditions_asked,
    distinctions,
    indexed,
    other_constructions,
    other_settings,
)
from migrate_agent.tools.record.guessing.feedback import fed_back, given_by_methods, refilled
from migrate_agent.tools.record.guessing.forms import features, of_other_axes, of_other_lengths, without_modules
from migrate_agent.tools.record.guessing.kinds_asked import asked_kinds, in_other_brackets, of_other_kinds
from migrate_agent.tools.record.guessing.refused import SIZES, names_asked
from migrate_agent.tools.record.guessing.rows import annotation_text, parameter_texts
from migrate_agent.tools.record.guessing.trials.own_seconds import OwnSeconds
from migrate_agent.tools.record.guessing.trials.trial import constructor_parameters
from migrate_agent.tools.types import Example

MOST = 12
"""Further calls of one module."""
MOST_REACHING = 24
"""Further calls of one module that are looked for: of more than `MOST`, those are chosen that reach most together."""
MOST_OF_FUNCTION = 6
"""Further calls of one function."""
DEPTH = 2
"""So many arguments are changed more where code refuses what was changed alone."""
ALIKE = 3
"""Values of one argument that end with the same error: no more of them are tried."""
MOST_TOGETHER = 6
"""Changes that are tried together with one that is refused."""


class Start(NamedTuple):
    """An example that runs, the number of the one that it comes from, and what it showed."""

    number: int
    example: Example
    trial: Trial


def reaching_most(starts: Sequence[Start], known: frozenset[int], most: int) -> list[Start]:
    """At most so many of these, in their order: of more than that those that together run most beyond the known places."""
    left, chosen = list(starts), list[Start]()
    while len(starts) > most and left and len(chosen) < most:
        best = max(left, key=lambda start: len(start.trial.ran - known))
        known |= best.trial.ran
        chosen.append(best)
        left.remove(best)
    return [start for start in starts if len(starts) <= most or start in chosen]


@dataclass
class Search:
    """The search for calls and constructions of one unit that run what none did before. What one leaves unreached may lie behind one change more: so
    those that reach something are changed in turn."""

    module: Any
    name: str
    time: OwnSeconds
    root: Path
    method: str = ""
    """The method that is called in place of the module."""
    files: Sequence[tuple[Path, str]] = ()
    """Those of the repository, with the names of their modules."""
    known: set[int] = field(default_factory=set)
    count: int = 0
    _errors: dict[tuple[str, str], str] = field(default_factory=dict)
    _later: list[tuple[Start, Example]] = field(default_factory=list)
    _idle: set[frozenset[tuple[str, str]]] = field(default_factory=set)
    """Changes, names with texts, that ran nothing new beside some example."""
    _done: dict[tuple[str, str], Trial | frozenset[str]] = field(default_factory=dict)
    _ran_in_vain: dict[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    """Init and call of what was refused → the places that it ran and no other call did."""
    _refusing: dict[frozenset[int], tuple[Start, Example]] = field(default_factory=dict)
    """Places that no call reached → a construction that ran them and refused its call."""

    def adds(self, trial: Trial) -> bool:
        """Note what a trial ran; whether it ran something new."""
        new = not trial.ran <= self.known
        self.known |= trial.ran
        return new

    def beyond(self, starts: Sequence[Start]) -> Iterator[Start]:
        """Further calls, those with other arguments of the call first, then those with other arguments of the constructor, and so on. What nothing
        that did not run asks about is tried last."""
        while starts:
            reaching: list[Start] = []
            for change in (self._other_calls, self._constructed_otherwise):
                waiting = [*starts, *reaching]
                while waiting:
                    start = waiting.pop(0)
                    for other in self._changed(start, change):
                        waiting.append(other)
                        reaching.append(other)
                        yield other
            for other in self._with_unlike_calls():
                reaching.append(other)
                yield other
            starts = reaching
        while self._later and not self._over:
            start, example = self._later.pop(0)
            yield from self._added(start, (example,))

    def _with_unlike_calls(self) -> Iterator[Start]:
        """Constructions that ran new places and refused the call, with calls that they take."""
        refusing = [(lines, row) for lines, row in self._refusing.items() if not lines <= self.known]
        for lines, (start, example) in refusing[:MOST_UNLIKE]:
            del self._refusing[lines]
            if self._over:
                return
            with suppress(Exception, SystemExit):  # what was reached before an error counts
                inferred = with_inferred_call(self.unit, self.module, example, self.files, self.root)
                yield from self._added(start, (inferred,) if inferred is not None else ())

    @property
    def _over(self) -> bool:
        return (
            self.time.spent or self.count >= (MOST_REACHING if isinstance(self.unit, type) else self.most) or not reach.any_left(self.known)
        )

    @cached_property
    def most(self) -> int:
        """So many further calls are compared."""
        return MOST if isinstance(self.unit, type) else MOST_OF_FUNCTION

    @cached_property
    def unit(self) -> Any:
        """The class or the function."""
        return unit_of(self.module, self.name)

    @cached_property
    def tree(self) -> ast.Module:
        """The file of the unit."""
        return ast.parse(inspect.getsource(self.module))

    @cached_property
    def options(self) -> Mapping[str, Sequence[str]]:
        """What the files of the repository that were imported tell apart."""
        return distinctions(ast.Module([statement for tree in reach.trees() for statement in tree.body], []))

    @cached_property
    def kinds(self) -> Mapping[str, Sequence[str]]:
        """Of what kinds the file of the unit asks arguments to be."""
        return asked_kinds(self.tree)

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """Those of the call."""
        of_module = isinstance(self.unit, type)
        return list(inspect.signature(methods.unbound(self.unit, self.method) if of_module else self.unit).parameters.values())[
            int(of_module) :
        ]

    @cached_property
    def objects(self) -> Mapping[str, Sequence[str]]:
        """Texts of what the call takes that is a plain object of the repository by its annotation, such as a cache."""
        return objects_asked(self.parameters, vars(self.module))

    @cached_property
    def constructor(self) -> list[inspect.Parameter]:
        """Parameters of the constructor; none of a function."""
        return constructor_parameters(self.unit) if isinstance(self.unit, type) else []

    def _changed(self, start: Start, change: Callable[[Start], Iterator[Example]]) -> Iterator[Start]:
        """The changes of an example that run something new."""
        if self._over:
            return
        errors = Counter[tuple[frozenset[str], str]]()
        for other in change(start):
            if self._over:
                return
            names, values = self._changed_names(start.example, other), self._changed_values(start.example, other)
            # What ran nothing new beside one example seldom does so beside another.
            if values in self._idle or not names & reach.names_before_idle(frozenset(self.known)):
                self._later.append((start, other))
            # What ends alike with several values does so with others.
            elif all(count < ALIKE for (changed, _), count in errors.items() if changed == names):
                reaching = list(self._added(start, self._with_what_is_asked(other, start)))
                yield from reaching
                if not reaching and start.example.init != other.init and (lines := self._ran_in_vain.get(_key(other))):
                    self._refusing.setdefault(lines, (start, other))
                # One that was refused may run beside another example.
                if not reaching and isinstance(self._done.get(_key(other)), Trial):
                    self._idle.add(values)
                errors[names, self._errors.get(_key(other), repr(other))] += 1

    def _added(self, start: Start, examples: Iterable[Example]) -> Iterator[Start]:
        """Those of these examples that run something new."""
        for example in examples:
            outcome = self._attempt(example)
            if isinstance(outcome, Trial) and self.adds(outcome):
                self.count += 1
                yield Start(start.number, example, outcome)

    def _changed_names(self, example: Example, other: Example) -> frozenset[str]:
        """The names of what the other example has changed."""
        init = changed_names(example.init, other.init, self.constructor)
        return frozenset(init | changed_names(example.call, other.call, self.parameters))

    def _changed_values(self, example: Example, other: Example) -> frozenset[tuple[str, str]]:
        """The names of what the other example has changed, with the new texts ("": left out)."""
        rows = set[tuple[str, str]]()
        for one, new, parameters in ((example.init, other.init, self.constructor), (example.call, other.call, self.parameters)):
            names = [parameter.name for parameter in parameters]
            before, after = (call.by_name(names) if (call := Call.of(text)) else {} for text in (one, new))
            rows |= {(name, after.get(name, "")) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        return frozenset(rows)

    def _with_what_is_asked(self, example: Example, start: Start) -> Iterator[Example]:
        """The example; where the code refuses it on purpose, the example with what it asked before changed too, up to `DEPTH` times, and where another
        construction does not take the inputs of `start`, with inputs of another form."""
        waiting, trial = [(example, 0)], start.trial
        while waiting and not self._over:
            one, depth = waiting.pop(0)
            outcome = self._attempt(one)
            if isinstance(outcome, Trial):
                yield one
                return
            if depth < DEPTH:
                waiting += [(other, depth + 1) for other in islice(self._changed_in(one, outcome, trial), MOST_TOGETHER)]
                waiting += [(other, DEPTH) for other in islice(self._of_other_form(one, start.example, trial), MOST_TOGETHER)]

    def _attempt(self, example: Example) -> Trial | frozenset[str]:
        """What a call showed; or the names that the code asked before it refused it, none where it was tried before."""
        key = _key(example)
        if key in self._done:
            return self._done[key]
        try:
            result: Trial | frozenset[str] = trial_of(self.module, self.name, example)
        except (Exception, SystemExit) as error:
            result = names_asked(error, self.root)
            self._errors[key] = f"{type(error).__name__}: {error}"
            self._ran_in_vain[key] = reach.take() - self.known
        self._done[key] = result
        return result

    def _changed_in(self, example: Example, names: frozenset[str], trial: Trial) -> Iterator[Example]:
        """The example with one argument of these names changed, or the first sample of its tensors alone where a size is asked for."""
        call = Call.of(example.call)
        if not names or call is None:
            return
        options = {name: texts for name, texts in self.options.items() if name in names}
        if init := Call.of(example.init):
            namespace = make_namespace(self.module, example)
            for text in other_constructions(init, self.constructor, options, lambda text: value_of(text, namespace)):
                yield replace(example, init=text)
        if names & SIZES:
            yield from self._of_one_sample(example, call)
        optional = [parameter for parameter in self.parameters if parameter.name in names]
        for values in others(call, self.parameters, trial.shape, trial.widths, optional, conditions_asked(self.tree), self.objects):
            yield replace(example, call=text_of(values, self._leading))
        for text in other_constructions(call, self.parameters, options, lambda text: None):
            yield replace(example, call=text)

    def _of_other_form(self, example: Example, usual: Example, trial: Trial) -> Iterator[Example]:
        """The example, which constructs otherwise than the `usual` one, without the call's options, and with inputs of another form: with their last axis
        second or their first two the other way round, as `channel_first` and `batch_first` ask for, or features in the place of token ids. Then also
        without the modules that the constructor is given, which may ask for the usual form."""
        call, init = Call.of(example.call), Call.of(example.init)
        if call is None or init is None or example.init == usual.init or example.call != usual.call:
            return
        texts = call.by_name([parameter.name for parameter in self.parameters])
        without_options = {name: text for name, text in texts.items() if name in self._leading}
        if without_options != texts:
            yield replace(example, call=text_of(without_options, self._leading))
        arguments = arguments_of(self.module, self.name, example, self.parameters)
        namespace = make_namespace(self.module, example)
        settings = init.by_name([parameter.name for parameter in self.constructor])
        plain = text_of(without_modules(settings, lambda text: value_of(text, namespace)), by_position(self.constructor))
        names = changed_names(usual.init, example.init, self.constructor)
        rows = of_other_axes(arguments) if any(settings.get(name) in SWITCH for name in names) else features(arguments, trial.widths)
        for row in rows:
            for constructed in dict.fromkeys((example.init, plain)):
                yield replace(example, init=constructed, call=text_of({**texts, **row}, self._leading))

    def _of_one_sample(self, example: Example, call: Call) -> Iterator[Example]:
        texts = call.by_name([parameter.name for parameter in self.parameters])
        arguments = arguments_of(self.module, self.name, example, self.parameters)
        if alone := first_samples(texts, arguments):
            yield replace(example, call=text_of({**texts, **alone}, self._leading))

    @property
    def _leading(self) -> list[str]:
        return by_position(self.parameters)

    def _other_calls(self, start: Start) -> Iterator[Example]:
        """The example with another call: by its parameters, and by what the files tell apart in them."""
        example, trial, parameters = start.example, start.trial, self.parameters
        call = Call.of(example.call)
        if call is None:
            return
        texts = call.by_name([parameter.name for parameter in parameters])

        def result(values: Mapping[str, str]) -> Any:
            return result_of(self.module, self.name, replace(example, call=text_of(values, self._leading)), parameters)[1]

        arguments = result_of(self.module, self.name, example, parameters)[0]
        forms = chain(of_other_ranks(texts, arguments, self.tree), in_other_containers(texts, self.tree))
        given = others(call, parameters, trial.shape, trial.widths, conditions=conditions_asked(self.tree), objects=self.objects)
        options = chain(given, of_one_sample(texts, arguments, parameters))
        of_kinds = of_other_kinds(texts, parameters, self.kinds)
        batch = trial.shape[0] if trial.shape else 1
        of_methods = given_by_methods(texts, parameters, lambda: build(self.module, self.name, example)[0], batch)
        states = chain(of_methods, fed_back(texts, parameters, arguments, result), refilled(texts, arguments))
        for values in chain(states, forms, options, of_kinds):
            yield replace(example, call=text_of(values, self._leading))
        for text in other_constructions(call, parameters, self.options, lambda text: None):
            yield replace(example, call=text)

    def _constructed_otherwise(self, start: Start) -> Iterator[Example]:
        """The example with another constructor call, by what the files tell apart, and with arguments of other kinds."""
        example, parameters = start.example, self.constructor
        call = Call.of(example.init)
        if call is None or not isinstance(self.unit, type):
            return
        namespace = make_namespace(self.module, example)
        for init in other_constructions(call, parameters, self.options, lambda text: value_of(text, namespace)):
            yield replace(example, init=init)
        leading = by_position(parameters)
        texts = call.by_name([parameter.name for parameter in parameters])
        kinds = chain(of_other_kinds(texts, parameters, self.kinds), in_other_brackets(texts, self.kinds))
        for values in chain(
            kinds, of_other_lengths(texts, self.tree), self._given(texts, start.trial), self._of_relatives(texts, namespace)
        ):
            yield replace(example, init=text_of(values, leading))
        yield from self._of_first_elements(example, texts, leading)

    def _of_relatives(self, texts: Mapping[str, str], namespace: dict[str, Any]) -> Iterator[dict[str, str]]:
        """Constructor arguments with one object of the repository made by another class of its family, and that with other settings."""

        def evaluate(text: str) -> Any:
            return value_of(text, namespace)

        for name, text in texts.items():
            for other in of_relatives(text, evaluate):
                yield {**texts, name: other}
                yield from ({**texts, name: changed} for changed in other_settings(other, self.options, evaluate))

    def _given(self, texts: Mapping[str, str], trial: Trial) -> Iterator[dict[str, str]]:
        """Constructor arguments with one that is None given, as its annotation and its name say, or a size of the input."""
        sizes = [str(size) for size in dict.fromkeys([*(trial.shape or ())[1:]][::-1])]
        counts = indexed(self.tree)
        for parameter in self.constructor:
            if parameter.default is None and texts.get(parameter.name, "None") == "None":
                likely = parameter_texts(parameter.name, annotation_text(parameter.annotation))[:2]
                rows = [f"[{', '.join([size] * counts[parameter.name])}]" for size in sizes if parameter.name in counts]
                for text in dict.fromkeys([*rows, *likely, *sizes, "2", "0.5"]):
                    yield {**texts, parameter.name: text}

    def _of_first_elements(self, example: Example, texts: Mapping[str, str], leading: Sequence[str]) -> Iterator[Example]:
        """Of lists that the constructor and the call take for what the code asks about, the first element alone in both: they belong together. Then one of
        them alone beside a list of one of the other."""
        call, containers = Call.of(example.call), asked_containers(self.tree)
        inits = {name: first for name, text in texts.items() if name in containers and (first := first_element(text))}
        if call is None or not inits:
            return
        texts_of_call = call.by_name([parameter.name for parameter in self.parameters])
        firsts = {name: first for name, text in texts_of_call.items() if (first := first_element(text))}
        alone = {name: first for name, first in firsts.items() if name in containers}
        for constructed, called in ((inits, alone), (inits, _listed(firsts)), (_listed(inits), alone)):
            if called:
                init = text_of({**texts, **constructed}, leading)
                yield replace(example, init=init, call=text_of({**texts_of_call, **called}, self._leading))


def _listed(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: f"[{text}]" for name, text in texts.items()}


def _key(example: Example) -> tuple[str, str]:
    return example.init, example.call
