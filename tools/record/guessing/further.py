"""The job inside the sandbox: which other calls and constructions of an example that runs reach code that it does not.

Cheapest first, within a time.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods, reach
from migrate_agent.tools.harness.common.example_text import build, call_arguments, import_module, in_mode, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.harness.common.trees import encode, is_collection_class, is_own_class
from migrate_agent.tools.record.guessing.arguments import Call, by_position, first_samples, text_of
from migrate_agent.tools.record.guessing.configs import object_texts, of_relatives
from migrate_agent.tools.record.guessing.distinctions import (
    SWITCH,
    asked_containers,
    compares_ranks,
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
from migrate_agent.tools.record.guessing.trials.own_seconds import WAITING, OwnSeconds
from migrate_agent.tools.record.guessing.trials.trial import MOST_SECONDS, constructor_parameters, leaves, time_limit
from migrate_agent.tools.record.guessing.unlike_calls import MOST as MOST_UNLIKE
from migrate_agent.tools.record.guessing.unlike_calls import with_inferred_call
from migrate_agent.tools.record.session import import_roots
from migrate_agent.tools.types import Example

MOST = 12
"""Further calls of one module."""
MOST_REACHING = 24
"""Further calls of one module that are looked for: of more than `MOST`, those are chosen that reach most together."""
MOST_WIDTHS = 4
"""Sizes of a module's parameters that an optional argument may have."""
MOST_OF_FUNCTION = 6
"""Further calls of one function."""
DEPTH = 2
"""So many arguments are changed more where code refuses what was changed alone."""
ALIKE = 3
"""Values of one argument that end with the same error: no more of them are tried."""
MOST_TOGETHER = 6
"""Changes that are tried together with one that is refused."""
BOOLEAN = re.compile(r"mask|pad|valid|keep")
WHOLE = re.compile(
    r"^(t|time\w*|timesteps?|step\w*|ids?|\w*_ids?|pos\w*|label\w*|target\w*|index|\w*_index|indices|len\w*|\w*_lens?|classes)$"
)
SCALARS = ("1", "0.5", "True")
ONE_NUMBER = "torch.ones(1)"
"""A tensor that may be a condition: those of more numbers may not."""


class Trial(NamedTuple):
    """What a call showed: the places that it ran, the shape of its first tensor, and sizes that only the module's parameters have."""

    ran: frozenset[int]
    shape: Sequence[int] | None
    widths: Sequence[int] = ()


def others(
    call: Call,
    parameters: Sequence[inspect.Parameter],
    shape: Sequence[int] | None,
    widths: Sequence[int] = (),
    changed: Sequence[inspect.Parameter] | None = None,
    conditions: Collection[str] = (),
    objects: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[dict[str, str]]:
    """Other argument lists of a call: each optional argument left out, and each that is None given. `shape` is that of its first tensor [*]. With
    `changed`, of these parameters alone. `conditions` are the arguments that code takes for conditions as they are, and `objects` texts of those that are
    objects of the repository."""
    plain = [parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    values = call.by_name([parameter.name for parameter in plain if parameter.kind is parameter.POSITIONAL_OR_KEYWORD])
    plain = [parameter for parameter in plain if changed is None or parameter in changed]
    for parameter in plain:
        if parameter.default is not parameter.empty and parameter.name in values and values[parameter.name] != repr(parameter.default):
            yield {name: value for name, value in values.items() if name != parameter.name}
    for parameter in plain:
        if isinstance(parameter.default, bool):
            yield {**values, parameter.name: str(not parameter.default)}
    for parameter in plain:
        if parameter.default is None and values.get(parameter.name, "None") == "None":
            tensors = [*([ONE_NUMBER] if shape and parameter.name in conditions else []), *guesses(parameter.name, shape, widths)]
            for text in objects.get(parameter.name, tensors):
                yield {**values, parameter.name: text}


def of_other_ranks(values: Mapping[str, str], arguments: Mapping[str, Any], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code compares how many axes something has: all tensors without their first axis, or with one more, then the first
    tensor alone. `arguments` are what the first of the `values` stand for."""
    import torch

    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    if not tensors or not compares_ranks(tree):
        return
    for axis in ("0", "None"):
        for chosen in dict.fromkeys((tuple(tensors), tuple(tensors[:1]))):
            if axis == "None" or all(arguments[name].ndim > 1 for name in chosen):
                yield {**values, **{name: ast.unparse(ast.parse(f"({values[name]})[{axis}]")) for name in chosen}}


def of_one_sample(
    values: Mapping[str, str], arguments: Mapping[str, Any], parameters: Sequence[inspect.Parameter]
) -> Iterator[dict[str, str]]:
    """Other argument lists with a switch turned and the first sample of all tensors alone, as streaming code and samplers ask for."""
    alone = first_samples(values, arguments)
    for parameter in parameters:
        if alone and isinstance(parameter.default, bool):
            yield {**values, **alone, parameter.name: str(not parameter.default)}


def objects_asked(parameters: Sequence[inspect.Parameter], names: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Parameter → texts that build what its annotation asks for, where that is a plain class of the repository that these names of a file hold."""
    collections = {name for name, value in names.items() if isinstance(value, type) and is_collection_class(value)}
    classes = {name: value for name, value in names.items() if isinstance(value, type) and (is_own_class(value) or name in collections)}
    texts = dict[str, tuple[str, ...]]()
    for parameter in parameters:
        words = re.findall(r"\w+", str(parameter.annotation)) if parameter.annotation is not parameter.empty else []
        chosen = next((name for name in words if name in classes), None)
        if chosen in collections:
            texts[parameter.name] = (f"{chosen}()",)
            continue
        with suppress(TypeError, ValueError):  # a class whose constructor has no signature
            if chosen is not None and (built := object_texts(classes[chosen], chosen, classes)):
                texts[parameter.name] = built
    return texts


def in_other_containers(values: Mapping[str, str], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code asks whether an argument is a list or a tuple: of a list its first element alone, and else a list of one."""
    for name in values:
        if name in asked_containers(tree):
            yield {**values, name: first_element(values[name]) or f"[{values[name]}]"}


def first_element(text: str) -> str:
    """The text of the first element of a list or a tuple; "" of others."""
    literal = ast.parse(text, mode="eval").body
    return ast.unparse(literal.elts[0]) if isinstance(literal, (ast.List, ast.Tuple)) and literal.elts else ""


def guesses(name: str, shape: Sequence[int] | None, widths: Sequence[int] = ()) -> list[str]:
    """Texts of values for an optional argument, likeliest first, by its name and the shape of the first tensor of the call."""
    if not shape:
        return list(SCALARS)
    batch, last = shape[:1], shape[-1:]
    if BOOLEAN.search(name):
        length = shape[1:2] or batch
        square = [*length, *length]
        sizes = [
            shape[:2],
            shape[:-1],
            square,
            [*batch, *batch],
            [*batch, 1, *square],
            [*batch, 1, 1, *length],
            [*batch, *square],
            shape,
            batch,
        ]
        return [f"torch.ones({_size(size)}, dtype=torch.bool)" for size in _different(sizes)]
    if WHOLE.search(name):
        texts = [_size(size) for size in _different([batch, shape[:2], shape[1:2] or batch, shape])]
        # Times need not be whole, and code may divide by them.
        return [*(f"torch.randint(0, 2, {text})" for text in texts), *SCALARS, *(f"torch.rand({text}) + 0.5" for text in texts)]
    sizes = [shape, shape[:-1], last, batch, [*batch, *last], [*shape[:-1], 1]]
    sizes += [size for width in widths for size in ([width], [*batch, width], [*shape[:-1], width])]
    return [*(f"torch.randn({_size(size)})" for size in _different(sizes)), *SCALARS]


def _different(sizes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(size) for size in sizes if size))


def _size(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))}{',' if len(size) == 1 else ''})"


def further_calls(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry. `arguments`: `files` and `parts` as for other jobs, `units`: rows of `module`, `name`, `examples` and `seconds`. Inputs
    `<unit>-<example>` are their tensors. Returns rows of `unit` and `example` (their indices), `init` and `call`: what runs and reaches new code."""
    import torch

    torch.set_num_threads(1)
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = import_roots(root, arguments)
    reach.count(root)
    use_parts(arguments["parts"], root)
    rows = []
    for number, unit in enumerate(arguments["units"]):
        examples = [
            Example("", row["init"], row["call"], row["setup"], tensors=inputs.get(f"{number}-{index}"), method=row.get("method", ""))
            for index, row in enumerate(unit["examples"])
        ]
        # An example that does not run here is told where it is recorded.
        with suppress(Exception, SystemExit):
            files = [(root / path, module_name) for path, module_name, _ in arguments["files"]]
            for index, other in _of_unit(unit["module"], unit["name"], examples, OwnSeconds(unit["seconds"]), root, files):
                rows.append({"unit": number, "example": index, "init": other.init, "call": other.call})
    return rows


def _of_unit(
    module_name: str, name: str, examples: Sequence[Example], time: OwnSeconds, root: Path, files: Sequence[tuple[Path, str]]
) -> Iterator[tuple[int, Example]]:
    """The number of an example and a call: of the examples those that run what earlier ones do not, then other calls that do."""
    module = import_module(module_name)
    search = Search(module, name, time, root, examples[0].method if examples else "", files)
    starts = []
    for index, example in enumerate(examples):
        trial = _trial(module, name, example)
        starts.append(Start(index, example, trial))
        if search.adds(trial):
            yield index, example
    further = list[Start]()
    with suppress(Exception, SystemExit):  # what was reached before an error counts
        further.extend(search.beyond(starts))
    for start in reaching_most(further, frozenset().union(*(start.trial.ran for start in starts)), search.most):
        yield start.number, start.example


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
        return _unit(self.module, self.name)

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
            result: Trial | frozenset[str] = _trial(self.module, self.name, example)
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
            for text in other_constructions(init, self.constructor, options, lambda text: _value(text, namespace)):
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
        arguments = _arguments(self.module, self.name, example, self.parameters)
        namespace = make_namespace(self.module, example)
        settings = init.by_name([parameter.name for parameter in self.constructor])
        plain = text_of(without_modules(settings, lambda text: _value(text, namespace)), by_position(self.constructor))
        names = changed_names(usual.init, example.init, self.constructor)
        rows = of_other_axes(arguments) if any(settings.get(name) in SWITCH for name in names) else features(arguments, trial.widths)
        for row in rows:
            for constructed in dict.fromkeys((example.init, plain)):
                yield replace(example, init=constructed, call=text_of({**texts, **row}, self._leading))

    def _of_one_sample(self, example: Example, call: Call) -> Iterator[Example]:
        texts = call.by_name([parameter.name for parameter in self.parameters])
        arguments = _arguments(self.module, self.name, example, self.parameters)
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
            return _result(self.module, self.name, replace(example, call=text_of(values, self._leading)), parameters)[1]

        arguments = _result(self.module, self.name, example, parameters)[0]
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
        for init in other_constructions(call, parameters, self.options, lambda text: _value(text, namespace)):
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
            return _value(text, namespace)

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


def changed_names(one: str, other: str, parameters: Sequence[inspect.Parameter]) -> set[str]:
    """The parameters whose text differs between two argument lists, and names of arguments inside of these."""
    names = [parameter.name for parameter in parameters]
    before, after = (call.by_name(names) if (call := Call.of(text)) else {} for text in (one, other))
    different = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return different | {word for name in different for word in re.findall(r"(\w+)=", after.get(name, ""))}


def _arguments(module: Any, name: str, example: Example, parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """What the first arguments of an example's call stand for, by name; nothing where they cannot be made."""
    try:
        args = call_arguments(example, make_namespace(module, example))[0]
    except Exception:  # its values depend on what only a whole run makes
        return {}
    return dict(zip([parameter.name for parameter in parameters], args, strict=False))


def _value(text: str, namespace: dict[str, Any]) -> Any:
    """What a name stands for in the example, or None."""
    try:
        return eval(text, namespace)
    except Exception:  # it may be known while the example runs alone
        return None


def _result(module: Any, name: str, example: Example, parameters: Sequence[inspect.Parameter]) -> tuple[dict[str, Any], Any]:
    """The arguments of an example by name, as the call leaves them, and what it gives in evaluation mode. Raises the errors of the original."""
    import torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS), torch.no_grad():
        instance, args, kwargs = build(module, name, example)
        result = methods.bound(in_mode(instance, training=False), example.method)(*args, **kwargs)
    return dict(zip([parameter.name for parameter in parameters], args, strict=False)) | kwargs, result


def _unit(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _trial(module: Any, name: str, example: Example) -> Trial:
    """What an example runs, its constructor too. Raises the errors of the original."""
    import numpy
    import torch

    from migrate_agent.tools.harness.torch_side.module import is_leaf  # here alone: it imports torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS, WAITING):
        reach.take()
        instance, args, kwargs = build(module, name, example)
        tensors = [value for value in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        result = methods.bound(in_mode(instance, training=False), example.method)(*args, **kwargs)
        ran = reach.take()
        encode(result, [], is_leaf)  # raises on what cannot be compared
        every = leaves(result)
        output_tensors = [value for value in every if isinstance(value, torch.Tensor)]
        # A metric reads numbers out of the tensors that it is given.
        kinds = (int, float, numpy.number, numpy.ndarray)
        numbers = [value for value in every if isinstance(value, kinds) and tensors and not isinstance(_unit(module, name), type)]
        if not (output_tensors or numbers) or any(
            value.is_floating_point() and not bool(torch.isfinite(value).all()) for value in output_tensors
        ):
            raise ValueError("it gives no finite tensor")
    shape = list(tensors[0].shape) if tensors else None
    sizes = [size for value in instance.parameters() for size in value.shape] if isinstance(instance, torch.nn.Module) else []
    widths = [size for size in dict.fromkeys(sizes) if size > 1 and size not in (shape or ())]
    return Trial(ran, shape, widths[:MOST_WIDTHS])
