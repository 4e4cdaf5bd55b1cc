"""Guesses how the public methods of a module are called that no example calls: by what its examples and its other methods give."""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import pickle
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import methods, reach
from migrate_agent.tools.harness.common.budgets import MAX_METHODS
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, import_module, in_mode, load_unit, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.harness.common.trees import CONSUMED, Unencodable, encode
from migrate_agent.tools.record.guessing.arguments import Call, first_samples, text_of
from migrate_agent.tools.record.guessing.choices import choices
from migrate_agent.tools.record.guessing.distinctions import distinctions, other_values
from migrate_agent.tools.record.guessing.earlier_calls import Missing, missing_state, step_text, steps
from migrate_agent.tools.record.guessing.feedback import value_of
from migrate_agent.tools.record.guessing.objects.detached_inputs import DetachedInputs, asking, has_gradient
from migrate_agent.tools.record.guessing.objects.held_objects import methods_after
from migrate_agent.tools.record.guessing.objects.syntax_calls import keys_of, other_values_of
from migrate_agent.tools.record.guessing.rows import annotation_text, call_values
from migrate_agent.tools.record.guessing.trials.own_seconds import WAITING, OwnSeconds
from migrate_agent.tools.record.guessing.trials.trial import MOST_SECONDS, leaves, required, time_limit
from migrate_agent.tools.record.guessing.trials.unset_memory import unset_memory_is_nan, with_nan
from migrate_agent.tools.record.guessing.values import Tensor, tensors, text
from migrate_agent.tools.record.session import import_roots
from migrate_agent.tools.types import Example

MOST_TRIALS = 48
"""Calls of one method that are tried."""
MOST_VALUES = 6
"""Values that are tried of one argument."""
LONGEST, MOST_LITERALS = 2000, 3
"""Letters of the text of a literal that one method gives and another takes, and how many of these are tried."""
LARGEST_NUMBER, MOST_NUMBERS = 256, 4
"""The largest number that an object keeps which is tried as an argument of its methods, and how many of them are."""
MOST_PARTS = 2
"""Lists and the like that methods gave, which others may take."""
COUNTS = re.compile(r"n|k|count|steps?|length|size|(n|num|max|min|top)_.*|.*_(len(gth)?|steps|size|tokens|samples|count)|samples|seq_?len")
CONTAINER = re.compile(r"list|tuple|dict|Sequence|Iterable|Mapping", re.I)
"""Annotations of what may be a list, a tuple or a dictionary."""
SHARES = re.compile(r"(.*_)?(temperature|scale|weight|share|alpha|beta|t|p|rate|eps|lam(bda)?|ratio|std|sigma)")
OUTSIDE = re.compile(r"(.*_)?(path|file(name)?|dir(ectory)?|folder|url|checkpoint|ckpt|writer|logger|optimizer|dataloader|loader)")
"""Arguments that reach out of the program: nothing is tried for them."""


def guess_methods(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `parts`, `files`, `examples` (texts, each with another constructor call), `known` (examples of methods
    that need no others), `seconds`. Inputs `tensors<i>`, `known<i>`.

    Returns `calls`, rows of an example's index, method and argument list; and `errors`, by method the error of the call that was tried last.
    """
    import torch

    torch.set_num_threads(1)
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = import_roots(root, arguments)
    reach.count(root)
    use_parts(arguments["parts"], root)
    examples = _examples(arguments["examples"], inputs, "tensors")
    examples_of_methods = _examples(arguments["known"], inputs, "known")
    module, cls = import_module(arguments["module"]), load_unit(arguments["module"], arguments["name"])
    time = OwnSeconds(arguments["seconds"])
    searches = (Methods(cls, example, make_namespace(module, example), time, root, known=examples_of_methods) for example in examples)
    return _of_all(searches, frozenset(example.method for example in examples_of_methods))


def _examples(rows: Sequence[Mapping[str, str]], inputs: Mapping[str, Path], tensors: str) -> list[Example]:
    return [
        Example("", row["init"], row["call"], row["setup"], tensors=inputs.get(f"{tensors}{index}"), method=row["method"])
        for index, row in enumerate(rows)
    ]


def _of_all(searches: Iterator[Methods], exercised: frozenset[str]) -> dict[str, Any]:
    """Calls of all methods on the first example's instance; then on those of the others what did not run on it, and what reaches more."""
    first = next(searches)
    found = first.run(exercised)
    calls, errors = [[0, *row] for row in found["calls"]], found["errors"]
    texts = {name: [call for other, call in found["calls"] if other == name] for name, _ in found["calls"]}
    silent = {name for name, call in found["calls"] if not first.says(name, call)}
    own_places = first.own_places()
    by_method: dict[str, frozenset[int]] = {}
    for name, call in found["calls"]:
        by_method[name] = by_method.get(name, frozenset()) | (first._reached(name, call) or frozenset())
    places = own_places.union(*by_method.values())
    for number, search in enumerate(searches, 1):
        try:
            for name, call, reached in search.elsewhere(texts, {*errors, *silent}, places):
                if name in silent and not search.says(name, call):
                    continue
                silent.discard(name)
                calls.append([number, name, call])
                by_method[name] = by_method.get(name, frozenset()) | reached
                places, errors = places | reached, {other: error for other, error in errors.items() if other != name}
        except Exception:
            continue  # what cannot be constructed here is told where it is recorded
    order = most_reaching(by_method, own_places)
    return {"calls": sorted(calls, key=lambda row: order.index(row[1])) if order else calls, "errors": errors}


def most_reaching(by_method: Mapping[str, frozenset[int]], covered: frozenset[int]) -> list[str]:
    """Of more methods than are compared: in which order they run most together beyond these places. None where all are compared."""
    rest, order = dict(by_method), list[str]()
    while rest and len(by_method) > MAX_METHODS:
        best = max(rest, key=lambda name: len(rest[name] - covered))
        covered |= rest.pop(best)
        order.append(best)
    return order


@dataclass
class Methods:
    """The search for calls of one class. `given` are texts of the example's own arguments, `shapes` tensors that calls gave, and `parts` texts of the lists,
    tuples and dictionaries of tensors that methods gave, the last in front: a state that another method takes."""

    cls: Any
    example: Example
    namespace: Mapping[str, Any]
    time: OwnSeconds
    root: Path
    given: dict[str, str] = field(default_factory=dict)
    shapes: list[Tensor] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    ran: dict[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    """Method and argument list → the places that the call ran, the constructor's too."""
    before: tuple[str, str] = ("", "")
    """A method that is called on each instance first, and the dictionary of its arguments."""
    missing: dict[str, Missing] = field(default_factory=dict)
    """Method → what it read that another one sets."""
    known: Sequence[Example] = ()
    """Examples of methods that need no others."""

    def run(self, exercised: frozenset[str]) -> dict[str, Any]:
        """Calls of all methods but the `exercised`, and those that the constructor runs; a method may take what another one gave."""
        import torch

        members = methods.public_methods(self.cls, torch.nn.Module)
        inside = methods.called_in(members, self._instance)
        waiting = [name for name in members if name not in exercised | inside]
        calls: list[list[str]] = []
        self._look_at_call()
        for _ in range(2):
            for name in list(waiting):
                call = self._call_of(name)
                if call is not None:
                    calls += [[name, one] for one in (call, *self._calls_with_options(name, call))]
                    waiting.remove(name)
        calls += self._after_others(waiting)
        calls += self._again(exercised)
        calls += ([name, ""] for name in members if name in inside - exercised and self._resets(name))
        calls += self._of_helpers(exercised)
        calls += self._of_syntax(exercised)
        calls += ([name, self.example.call] for name, _ in self._of_objects(exercised, self.own_places()))
        calls += self._of_functions(calls)
        return {"calls": calls, "errors": {name: self.errors.get(name, "nothing could be tried") for name in waiting}}

    def _after_others(self, waiting: list[str]) -> Iterator[list[str]]:
        """Calls of those methods that read what another one sets, after that; they wait no longer."""
        for name, missing in [(name, self.missing[name]) for name in waiting if name in self.missing]:
            instance = self._instance()
            for step in steps(instance, missing, name):
                given = step_text(instance, step, {"": self.shapes[0]} if self.shapes else {})
                ready = replace(self, before=(step.name, given), errors={}, missing={})
                calls = [call for call in [ready._call_of(name)] if call is not None]
                if calls and not self.time.spent:
                    calls += ready._calls_with_options(name, calls[0])
                whole = methods.THEN.join([step.name, name])
                if reached := [row for call in calls if self._reached(*(row := (whole, joined(given, call)))) is not None]:
                    waiting.remove(name)
                    yield from ([*row] for row in reached)
                    break

    def _again(self, exercised: Collection[str]) -> Iterator[list[str]]:
        """The example's call twice, where it comes after other methods: the second one reads what the first one left."""
        earlier, last = methods.steps(self.example.method)
        own = Call.of(self.example.call)
        if not earlier or own is None:
            return
        names = [item.name for item in list(inspect.signature(methods.unbound(self.cls, last)).parameters.values())[1:]]
        given = dict(zip(names, own.positional[len(earlier) :], strict=False)) | dict(own.named)
        arguments = f"dict({', '.join(f'{parameter}={value}' for parameter, value in given.items())})"
        after = text_of(given, names[: len(own.positional) - len(earlier)])
        name = methods.THEN.join([*self.example.method.split(methods.THEN), last or methods.CALLS[0]])
        call = joined(*own.positional[: len(earlier)], arguments, after)
        if name not in exercised and self._runs(name, call):
            yield [name, call]

    def says(self, name: str, call: str) -> bool:
        """Whether a call of a method gives something, or changes what the module holds: an initialisation may change nothing where weights are computed."""
        try:
            with time_limit(MOST_SECONDS, WAITING):
                args, kwargs = call_arguments(Example("", "", call), self.namespace)
                instance = self._instance()
                before = _snapshot(instance)
                return methods.bound(instance, name)(*args, **kwargs) is not None or _snapshot(instance) != before
        except Exception:  # what it says is seen where it is recorded
            return True

    def own_places(self) -> frozenset[int]:
        """The places that the example's own call runs, the constructor's too."""
        reach.take()
        self._called_once()
        return reach.take()

    def elsewhere(
        self, texts: Mapping[str, Sequence[str]], missing: Collection[str], places: frozenset[int]
    ) -> Iterator[tuple[str, str, frozenset[int]]]:
        """Method, argument list and the places that it runs, of those methods that are `missing` a call, or run something beyond these places and the
        example's own. `texts` are argument lists that ran on another instance."""
        import torch

        places |= self.own_places()
        members = methods.public_methods(self.cls, torch.nn.Module)
        inside = methods.called_in(members, self._instance)
        self._look_at_call()
        for name in [name for name in members if name not in inside]:
            if self.time.spent:
                return
            calls = [call for call in texts.get(name, ()) if self._reached(name, call) is not None]
            for call in calls or filter(None, [self._call_of(name)]):
                reached = self._reached(name, call) or frozenset()
                if name in missing or not reached <= places:
                    places |= reached
                    yield name, call, reached
                    for longer in self._calls_with_options(name, call):
                        reached = self._reached(name, longer) or frozenset()
                        if not reached <= places:
                            places |= reached
                            yield name, longer, reached
                    break
        for name, reached in self._of_objects(frozenset(), places):
            places |= reached
            yield name, self.example.call, reached
        for name, call in chain(self._of_helpers(frozenset()), self._of_syntax(frozenset())):
            reached = self._reached(name, call) or frozenset()
            if not reached <= places:
                places |= reached
                yield name, call, reached

    def _resets(self, name: str) -> bool:
        """Whether a method that the constructor runs gives nothing when it is called after a call without arguments, and changes what the module holds: users
        call it to begin anew. One that leaves memory unset is not called alone.
        """
        function = methods.unbound(self.cls, name)
        if methods.is_property(self.cls, name) or required(list(inspect.signature(function).parameters.values())[1:]):
            return False
        try:
            with time_limit(MOST_SECONDS, WAITING):
                instance = self._called_once()
                before, of_nan = _snapshot(instance), with_nan(instance)
                with unset_memory_is_nan():
                    result, after = methods.bound(instance, name)(), _snapshot(instance)
        except Exception:  # what cannot be called later is called by the constructor alone
            return False
        names = [[key for key in part if key in instance.state_dict()] for part in (before, after)]
        return result is None and names[0] == names[1] and before != after and with_nan(instance) <= of_nan

    def _of_helpers(self, exercised: frozenset[str]) -> Iterator[list[str]]:
        """Calls of the methods of plain objects that the instance keeps, such as its configuration: of those that leave the object as it was. One that
        the constructor or the call runs was compared with these."""
        import torch

        helpers = methods.helpers(self._instance(), torch.nn.Module, str(self.root))
        different = {id(helper): attribute for attribute, helper in reversed(helpers.items())}
        for attribute in [attribute for attribute in helpers if attribute in different.values()]:
            helper = helpers[attribute]
            syntax = methods.further_methods(type(helper), object)
            members = methods.public_methods(type(helper), object)
            members |= {member: function for member, function in syntax.items() if not member.endswith(methods.SETTER)}
            inside = methods.called_in(members, self._called_once)
            open_members = [name for name in members if name not in inside and f"{attribute}.{name}" not in exercised]
            literals = self._literals_of(attribute, type(helper), members)
            for member in open_members:
                yield from ([f"{attribute}.{member}", call] for call in self._calls_of_helper(attribute, helper, member, literals))

    def _of_syntax(self, exercised: Collection[str]) -> Iterator[list[str]]:
        """Calls of setters of properties, and of what Python's own syntax calls, which neither the constructor nor the call runs: the first that runs, and
        those that reach more."""
        import torch

        members = methods.further_methods(self.cls, torch.nn.Module)
        inside = methods.called_in(members, self._called_once)
        for name in [name for name in members if name not in {*exercised, *inside}]:
            yield from ([name, call] for call in self._reaching(name, self._values_of_syntax(name)))

    def _values_of_syntax(self, name: str) -> Iterator[str]:
        """Likely argument lists of a setter, or of a method that syntax calls."""
        function = methods.unbound(self.cls, name)
        needed = required(list(inspect.signature(function).parameters.values())[1:])
        if not name.endswith(methods.SETTER):
            yield from keys_of(self._instance(), len(needed))
            return
        with suppress(Exception), time_limit(MOST_SECONDS, WAITING):  # a property that cannot be read yet may still be set
            yield from other_values_of(getattr(self._called_once(), name.removesuffix(methods.SETTER)))
        for parameter in needed[:1]:
            yield from self._values(function, parameter)[:MOST_VALUES]

    def _reaching(self, name: str, calls: Iterable[str]) -> Iterator[str]:
        """The first of some argument lists with which a method runs, and those that reach more."""
        covered: frozenset[int] | None = None
        for call in islice(dict.fromkeys(calls), MOST_TRIALS):
            if self.time.spent:
                return
            reached = self._reached(name, call)
            if reached is not None and (covered is None or not reached <= covered):
                covered = reached | (covered or frozenset())
                yield call

    def _of_objects(self, exercised: Collection[str], covered: frozenset[int]) -> Iterator[tuple[str, frozenset[int]]]:
        """Methods of the objects that the call is handed or gives which run something beyond these places, after the call; and what they run."""
        import torch

        if self.example.method or hasattr(self.cls, "described"):
            return
        args, kwargs = call_arguments(self.example, self.namespace)
        with torch.no_grad(), time_limit(MOST_SECONDS, WAITING):
            result = self._instance()(*args, **kwargs)
        names = [parameter.name for parameter in list(inspect.signature(methods.unbound(self.cls, "")).parameters.values())[1:]]
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        for name in methods_after(arguments, result, torch.nn.Module, str(self.root)):
            reached = self._reached(name, self.example.call) if name not in exercised and not self.time.spent else None
            if reached is not None and not reached <= covered:
                covered |= reached
                yield name, reached

    def _of_functions(self, calls: Sequence[Sequence[str]]) -> Iterator[list[str]]:
        """Calls of functions with gradients of their own that ask for these at all inputs, of those which calls of the unit hand an input detached."""
        inputs = DetachedInputs(str(self.root))
        own_examples = [replace(self.example, method=name, call=call) for name, call in calls]
        for example in (self.example, *own_examples, *self.known):
            for training in (False, True) if not self.time.spent else ():
                with suppress(Exception), time_limit(MOST_SECONDS, WAITING):  # what runs in one mode alone, or not on copies, shows nothing
                    inputs.watch(self.cls, example, training=training)
        for name, call in inputs.calls():
            if all(example.method != name for example in self.known) and self._runs(name, call):
                with suppress(Exception), time_limit(MOST_SECONDS, WAITING):  # a `backward` that raises has nothing to compare
                    args, _ = asking(call_arguments(Example("", "", call), self.namespace))
                    if has_gradient(methods.bound(None, name)(*args)):
                        yield [name, call]

    def _called_once(self) -> Any:
        """An instance whose own call was made."""
        import torch

        args, kwargs = call_arguments(self.example, self.namespace)
        instance = self._instance()
        with torch.no_grad(), time_limit(MOST_SECONDS, WAITING):
            methods.bound(instance, self.example.method)(*args, **kwargs)
        return instance

    def _literals_of(self, attribute: str, cls: type, members: Collection[str]) -> list[str]:
        """Texts of the dictionaries and lists of plain values that members give which need no arguments, as `get_config` does: another one may take
        them, as `from_config` does."""
        texts = list[str]()
        for member in members:
            if self.time.spent or (not methods.is_property(cls, member) and _needed(cls, member)):
                continue
            try:
                with time_limit(MOST_SECONDS, WAITING):
                    result = methods.bound(getattr(self._instance(), attribute), member)()
                if (
                    isinstance(result, (dict, list))
                    and result
                    and ast.literal_eval(repr(result)) == result
                    and len(repr(result)) <= LONGEST
                ):
                    texts.append(repr(result))
            except Exception:  # what it gives cannot be written down, or it does not run
                continue
        return sorted(dict.fromkeys(texts), key=lambda literal: not literal.startswith("{"))[:MOST_LITERALS]

    def _calls_of_helper(self, attribute: str, helper: Any, member: str, literals: Sequence[str]) -> Iterator[str]:
        """The first argument list of numbers, or of one of these literals, with which the method runs, leaves its object as it was and gives what can
        be compared; then those that reach more."""
        name, cls = f"{attribute}.{member}", type(helper)
        needed = [] if methods.is_property(cls, member) else _needed(cls, member)
        if len(needed) > 2 or any(OUTSIDE.fullmatch(parameter.name) for parameter in needed):
            return
        if member in methods.PROTOCOLS:
            keys = keys_of(helper, len(needed))
            yield from self._reaching(name, (call for call in keys if self._keeps_state(attribute, member, call)))
            return
        larger = _own_numbers(getattr(self._instance(), attribute)) if len(needed) == 1 else []
        numbers = itertools.product(("1", "0", "2", "0.5", "8", *larger), repeat=len(needed))
        covered: frozenset[int] | None = None
        for values in chain(numbers, [(literal,) for literal in literals] if len(needed) == 1 else []):
            call = ", ".join(values)
            if self.time.spent:
                return
            reached = self._reached(name, call) if self._keeps_state(attribute, member, call) else None
            if reached is not None and (covered is None or not reached <= covered):
                covered = reached | (covered or frozenset())
                yield call

    def _keeps_state(self, attribute: str, member: str, call: str) -> bool:
        """Whether the call leaves the object as it was, and gives the same again."""
        try:
            with time_limit(MOST_SECONDS, WAITING):
                helper = getattr(self._instance(), attribute)
                before = pickle.dumps(vars(helper))
                args, kwargs = call_arguments(Example("", "", call), self.namespace)
                results = [pickle.dumps(written_out(methods.bound(helper, member)(*args, **kwargs))) for _ in range(2)]
                return before == pickle.dumps(vars(helper)) and results[0] == results[1]
        except Exception:  # what does not run, or holds what cannot be written down, is tried no further
            return False

    def _instance(self) -> Any:
        instance = in_mode(construct(self.cls, self.example, self.namespace), training=False)
        name, given = self.before
        if name:
            args, _ = call_arguments(Example("", "", given), self.namespace)
            methods.bound(instance, name)(**args[0])
        return instance

    def _look_at_call(self) -> None:
        """Note the example's arguments by name, their tensors, and what the call gives."""
        import torch

        parsed = ast.parse(f"f({self.example.call}\n)", mode="eval").body
        names = [
            parameter.name for parameter in list(inspect.signature(methods.unbound(self.cls, self.example.method)).parameters.values())[1:]
        ]
        if isinstance(parsed, ast.Call) and not any(isinstance(node, ast.Starred) for node in parsed.args):
            self.given |= {name: ast.unparse(node) for name, node in zip(names, parsed.args, strict=False)}
            self.given |= {keyword.arg: ast.unparse(keyword.value) for keyword in parsed.keywords if keyword.arg}
        args, kwargs = call_arguments(self.example, self.namespace)
        self._note((args, kwargs))
        with torch.no_grad(), time_limit(MOST_SECONDS, WAITING):
            self._note(methods.bound(self._instance(), self.example.method)(*args, **kwargs))

    def _note(self, value: Any) -> None:
        import torch

        for leaf in leaves(value):
            if isinstance(leaf, torch.Tensor):
                tensor = _like(leaf)
                self.shapes += [] if tensor in self.shapes else [tensor]

    def _call_of(self, name: str) -> str | None:
        """The first argument list with which the method runs and gives what can be compared; None where there is none."""
        if methods.is_property(self.cls, name):
            return "" if self._runs(name, "") else None
        function = methods.declared(self.cls, name)
        needed = required(list(inspect.signature(function).parameters.values())[1:])
        if any(OUTSIDE.fullmatch(parameter.name) for parameter in needed):
            self.errors[name] = "it takes what lies outside of the program"
            return None
        for call in (*self._handed_through(function), *([] if needed else self._of_any_number(function))):
            if self._runs(name, call):
                return call
        for values in islice(self._rows(function, needed), MOST_TRIALS):
            call = ", ".join(
                value if p.kind is not p.KEYWORD_ONLY else f"{p.name}={value}" for p, value in zip(needed, values, strict=True)
            )
            if self._runs(name, call):
                return call
            if self.time.spent:
                break
        return None if needed else self._with_one_option(name, function)

    def _with_one_option(self, name: str, function: Any) -> str | None:
        """The first option of `None` that a method which runs with none of them runs with: `sample(self, count=None, noise=None)`."""
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.default is not None or OUTSIDE.fullmatch(parameter.name):
                continue
            for value in self._values(function, parameter)[:MOST_VALUES]:
                if self.time.spent:
                    return None
                if self._runs(name, call := f"{parameter.name}={value}"):
                    return call
        return None

    def _handed_through(self, function: Any) -> Iterator[str]:
        """Of a method that takes any arguments, as one that hands them to the call does: those of the call, and of their first sample alone."""
        parameters = list(inspect.signature(function).parameters.values())[1:]
        if {parameter.kind for parameter in parameters} != {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            return
        yield self.example.call
        names = [
            parameter.name for parameter in list(inspect.signature(methods.unbound(self.cls, self.example.method)).parameters.values())[1:]
        ]
        arguments = dict(zip(names, call_arguments(self.example, self.namespace)[0], strict=False))
        if alone := first_samples(self.given, arguments):
            required = [name for name in names if name in arguments]
            yield text_of({**self.given, **alone}, required)

    def _of_any_number(self, function: Any) -> Iterator[str]:
        """Of a method that takes any number of arguments: sizes, and what the call itself takes first."""
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in inspect.signature(function).parameters.values()):
            first = next(iter(self.given.values()), "")
            yield from ("2, 3", "3", *([first, f"{first}, {first}"] if first else []))

    def _calls_with_options(self, name: str, call: str) -> Iterator[str]:
        """The call with all optional arguments that reach more together; and calls on inputs of another form with one that it does not run with."""
        if methods.is_property(self.cls, name):
            return
        longer = self._with_options(name, call)
        if longer is not None:
            yield longer
        function = methods.declared(self.cls, name)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        covered = (self._reached(name, call) or frozenset()).union(self.ran[name, longer] if longer is not None else ())
        distinguished, needed = _distinguished(function), required(parameters)
        for parameter in parameters if needed else ():
            # An axis that tensors of the usual form do not have.
            for value in other_values(parameter, distinguished)[:MOST_VALUES] if parameter.default is not parameter.empty else ():
                for inputs in self._alike(function, needed) if self._reached(name, f"{call}, {parameter.name}={value}") is None else ():
                    reached = self._reached(name, other := f"{inputs}, {parameter.name}={value}")
                    if reached is not None and not reached <= covered:
                        covered |= reached
                        yield other
                        break

    def _alike(self, function: Any, needed: Sequence[inspect.Parameter]) -> Iterator[str]:
        """Argument lists in which all arguments are tensors of one form, those with heads and with most axes first."""
        domains = [self._values(function, parameter) for parameter in needed]
        tensors = sorted(dict.fromkeys((*map(_with_heads, self.shapes), *self.shapes)), key=lambda tensor: -len(tensor.shape))
        for value in (
            [*map(text, tensors)][:MOST_VALUES] if all(any(one.startswith("torch.") for one in domain) for domain in domains) else ()
        ):
            if self.time.spent:
                return
            yield ", ".join(value if one.kind is not one.KEYWORD_ONLY else f"{one.name}={value}" for one in needed)

    def _with_options(self, name: str, call: str) -> str | None:
        """The call with those optional arguments that reach more code together; None where none does."""
        function, given = methods.declared(self.cls, name), ""
        covered = self._reached(name, call) or frozenset()
        distinguished = _distinguished(function)
        parameters = inspect.signature(function).parameters.values()
        # An option of a method that takes any number of arguments may be one value for each.
        several = [f"({call})"] if "," in call and any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters) else []
        for parameter in parameters:
            if parameter.default is parameter.empty or OUTSIDE.fullmatch(parameter.name):
                continue
            texts = other_values(parameter, distinguished)
            if parameter.default is None:
                texts += [*several, *self._values(function, parameter)]
            for value in texts[:MOST_VALUES]:
                if self.time.spent:
                    break
                longer = f"{given}, {parameter.name}={value}"
                more = self._reached(name, f"{call}{longer}".removeprefix(", "))
                if more is not None and not more <= covered:
                    covered, given = covered | more, longer
                    break
        return f"{call}{given}".removeprefix(", ") if given else None

    def _reached(self, name: str, call: str) -> frozenset[int] | None:
        """The places of the repository that a call of a method runs; None where it does not run."""
        return self.ran[name, call] if self._runs(name, call) else None

    def _rows(self, function: Any, needed: Sequence[inspect.Parameter]) -> Iterator[tuple[str, ...]]:
        """Values of all arguments together, those in front that hold the likeliest ones."""
        domains = [self._values(function, parameter)[:MOST_VALUES] for parameter in needed]
        ranks = itertools.product(*(range(len(domain)) for domain in domains))
        for row in sorted(islice(ranks, 4096), key=sum):
            yield tuple(domain[rank] for domain, rank in zip(domains, row, strict=True))

    def _values(self, function: Any, parameter: inspect.Parameter) -> list[str]:
        name, annotation = parameter.name, annotation_text(parameter.annotation)
        main = self.shapes[0] if self.shapes else Tensor((2, 16))
        same = [self.given[name]] if name in self.given else []
        words = list(choices(function, parameter))
        numbers = {"int": ["2", "3", "1"], "float": ["0.5", "2.0"], "bool": ["True", "False"]}.get(annotation, [])
        if not annotation and not same:
            numbers = ["2", "3", "1"] if COUNTS.fullmatch(name) else ["0.5"] if SHARES.fullmatch(name) else []
        with_heads = [_with_heads(tensor) for tensor in self.shapes[-1:] if len(tensor.shape) == 2]
        shaped = [text(value) for value in (*self.shapes, *with_heads, *call_values(name, annotation, main))]
        first = next(iter(self.given.values()), "")
        parts = self.parts[:MOST_PARTS] if not annotation or CONTAINER.search(annotation) else []
        # What the call itself takes first is likelier than random numbers of its shape: it lies in the right range.
        likely = [*same, *words, *numbers, *([first] if first and not numbers else []), *parts]
        return list(dict.fromkeys([*likely, *shaped, "3", "0.5"]))

    def _runs(self, name: str, call: str) -> bool:
        """Whether the method runs with these arguments and gives what has a counterpart on the other side."""
        import torch

        from migrate_agent.tools.harness.torch_side.module import is_leaf  # here alone: it imports torch

        instance = None
        try:
            with time_limit(MOST_SECONDS, WAITING):
                torch.manual_seed(0)
                reach.take()
                args, kwargs = call_arguments(Example("", "", call), self.namespace)
                instance = self._instance()
                result = methods.bound(instance, name)(*args, **kwargs)
                self.ran[name, call] = reach.take()
            encode(result, [], is_leaf)
        except Unencodable as error:
            self.errors[name] = f"it gives {error}"
            return False
        except Exception as error:
            self.errors[name] = f"{type(error).__name__}: {error}"[:300]
            if (absent := missing_state(error, instance)) is not None:
                self.missing[name] = absent
            return False
        self._note(result)
        self._note_parts(result)
        return True

    def _note_parts(self, result: Any) -> None:
        """Note what a method gave as one value, where it is a list, a tuple or a dictionary with tensors in it."""
        value = value_of(result) if isinstance(result, (list, tuple, dict)) else None
        if value is not None and any(tensors(value)) and len(part := text(value)) <= LONGEST:
            self.parts = [part, *(other for other in self.parts if other != part)]


def joined(*parts: str) -> str:
    """One argument list of several."""
    return ", ".join(part for part in parts if part)


def written_out(result: Any) -> Any:
    """What a call gives; of what is gone through once, a list of what it holds."""
    return list(result) if isinstance(result, CONSUMED) else result


def _like(leaf: Any) -> Tensor:
    """Random numbers of a tensor's kind and shape."""
    import torch

    whole = not leaf.is_floating_point() and not leaf.is_complex()
    high = max(int(leaf.max()) + 1, 2) if whole and leaf.numel() and leaf.dtype != torch.bool else 8
    kind = "bool" if leaf.dtype == torch.bool else "integer" if whole else "complex" if leaf.is_complex() else "normal"
    return Tensor(tuple(leaf.shape), kind, high)  # type: ignore[arg-type]


def _with_heads(tensor: Tensor) -> Tensor:
    """A batch of samples with several heads, of a matrix; any other tensor itself."""
    return Tensor((2, *tensor.shape[:-1], 3, tensor.shape[-1])) if len(tensor.shape) == 2 else tensor


def _own_numbers(helper: Any) -> list[str]:
    """Texts of whole numbers that a plain object keeps, beyond the least: what is compared with them may be as large."""
    values = [value for value in vars(helper).values() if type(value) is int and 2 < value <= LARGEST_NUMBER]
    return [str(value) for value in dict.fromkeys(values)][:MOST_NUMBERS]


def _needed(cls: type, member: str) -> list[inspect.Parameter]:
    """The parameters that a method of an object must be given."""
    return required(list(inspect.signature(methods.unbound(cls, member)).parameters.values())[1:])


def _distinguished(function: Any) -> Mapping[str, Sequence[str]]:
    """What the text of a function tells apart in its arguments; nothing where there is no text."""
    try:
        return distinctions(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError):
        return {}


def _snapshot(module: Any) -> dict[str, str]:
    """Name → text, of the state of a module and of what plain attributes hold."""
    from migrate_agent.tools.harness.torch_side.held_values import held_values  # here alone: it imports torch

    values = {**module.state_dict(), **held_values(module)}
    return {name: _text_of(value) for name, value in values.items()}


def _text_of(value: Any) -> str:
    """A text that differs where a value does: of a large one, a digest of its numbers."""
    if not hasattr(value, "tolist"):
        return repr(value)
    try:
        numbers: Any = hashlib.blake2b(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
    except (AttributeError, TypeError, RuntimeError):  # NumPy's own, or of a dtype or layout that NumPy has not
        numbers = value.tolist()
    return repr((getattr(value, "shape", None), str(getattr(value, "dtype", "")), numbers))
