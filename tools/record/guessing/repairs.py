"""What to try after a trial that failed: the nearest mends first, then everything that the parameters may take."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, product

from migrate_agent.tools.record.guessing.adapt import adapted_shape
from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.objects.called_fields import called_fields
from migrate_agent.tools.record.guessing.objects.instantiated import TARGET
from migrate_agent.tools.record.guessing.objects.own_files import NO_PATH
from migrate_agent.tools.record.guessing.objects.own_items import names_held
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.refused import conditions, fitting
from migrate_agent.tools.record.guessing.rows import GENERIC
from migrate_agent.tools.record.guessing.sizes.made_tensors import arrays_in_constructor
from migrate_agent.tools.record.guessing.switches import other_branches
from migrate_agent.tools.record.guessing.trials.demands import demands
from migrate_agent.tools.record.guessing.trials.features_asked import features_asked
from migrate_agent.tools.record.guessing.trials.fewer_numbers import shallower
from migrate_agent.tools.record.guessing.trials.index_vectors import index_vectors
from migrate_agent.tools.record.guessing.trials.joined_inputs import equal_parts, joined_inputs
from migrate_agent.tools.record.guessing.trials.labels_asked import labels_asked
from migrate_agent.tools.record.guessing.trials.looped_lists import looped_lists
from migrate_agent.tools.record.guessing.trials.numbers_asked import other_numbers, without_negative
from migrate_agent.tools.record.guessing.trials.object_inputs import objects_asked, within_objects
from migrate_agent.tools.record.guessing.trials.one_sample import one_sample
from migrate_agent.tools.record.guessing.trials.other_kinds import other_kinds, spelled_words
from migrate_agent.tools.record.guessing.trials.squeezed import squeezed
from migrate_agent.tools.record.guessing.trials.states_asked import states_asked
from migrate_agent.tools.record.guessing.trials.steps_asked import steps_asked
from migrate_agent.tools.record.guessing.trials.trial import NOT_FINITE, Attempt, Outcome, Stage, set_call, set_init
from migrate_agent.tools.record.guessing.trials.unset_names import unset_names
from migrate_agent.tools.record.guessing.trials.wider_tables import wider_tables
from migrate_agent.tools.record.guessing.trials.words_asked import words_asked
from migrate_agent.tools.record.guessing.values import Fields, Kind, Tensor, Value, change_tensors, tensors
from migrate_agent.tools.record.guessing.values import Sequence as Items

LARGE = 64
MANY = 100
"""A number of the constructor from which on it may say how often something is repeated."""
NUMBERS = re.compile(r"[\d\[\](), ]+")
"""A number, or lists of numbers."""
NUMBER_LIST = re.compile(r"[\[(]\d+(, \d+)*,?[\])]")
EQUAL_NUMBERS = re.compile(r"([\[(])(\d+)(?:, \2)*,?[\])]")
LENGTHS = (2, 1, 3, 4)
MOST_WITHIN = 24
"""Mends of the arguments in a configuration."""
SMALL = ("1", "2", "3", "4", "8", "16", "32", "64", "128")
DTYPES: tuple[tuple[str, Kind], ...] = (
    (r"floating point (or|and) complex|does not match weight dtype \(torch\.float", "normal"),
    (r"\b[Bb]ool(ean)?\b|invert", "bool"),
    (r"indices|Long|Int\b|integer|tensors used as indices|Expected.*Byte|dtype int(32|64)", "integer"),
    (r"ComplexFloat|[Cc]omplex", "complex"),
    (r"[Ff]loat|Half|not implemented for|floating", "normal"),
)
"""Messages → the kind of numbers that they may ask for."""


RECURRENT = (
    re.compile(r"input has inconsistent input_size: got (?P<width>\d+),? expected (?P<taken>\d+)"),
    re.compile(r"must be equal to input_size\. Expected (?P<taken>\d+), got (?P<width>\d+)"),
)
"""What recurrent layers say of features that do not fit."""


def repairs(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Attempts that differ from a failed one in what its error speaks of."""
    if message := next(filter(None, (pattern.search(outcome.error) for pattern in RECURRENT)), None):
        # What mends the features of a linear layer mends theirs.
        as_linear = f"mat1 and mat2 shapes cannot be multiplied (1x{message['width']} and {message['taken']}x1)"
        outcome = outcome._replace(error=f"{outcome.error} ({as_linear})")
    if outcome.error.startswith(("TimeoutError", "MemoryError")) or "can't allocate memory" in outcome.error:
        yield from (_with_sizes_of(smaller, attempt, options) for smaller in smaller_models(attempt, options))
        yield from (
            (replace(attempt, call=tuple((name, _of_rank(value, 4, (2, 3), 8)) for name, value in attempt.call or ())),)
            if attempt.call
            else ()
        )
        yield from _few_channels(attempt)
    if outcome.stage is Stage.CONSTRUCT:
        yield from _constructor_repairs(attempt, outcome, options)
    elif attempt.call is not None:
        yield from _call_repairs(attempt, outcome, options)


def _few_channels(attempt: Attempt) -> Iterator[Attempt]:
    """Inputs with three in place of many behind the batch: what goes through all orders of the channels takes long with more."""
    sizes = {tensor.shape[1] for _, value in attempt.call or () for tensor in tensors(value) if len(tensor.shape) == 3}

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(tensor.shape[0], 3, *tensor.shape[2:])) if len(tensor.shape) == 3 else tensor

    if len(sizes) == 1 and max(sizes) > 6:
        yield replace(attempt, call=tuple((name, change_tensors(value, change)) for name, value in attempt.call or ()))


def smaller_models(attempt: Attempt, options: Options) -> Iterator[Attempt]:
    """What takes too long, with a fraction of the sizes that the constructor has by default; first with few repeated parts, with two in each place of a
    list of numbers, and with four in place of one large number that it was given, which may be how often something is repeated."""
    yield from (replace(fewer, call=None) for fewer in islice(shallower(attempt), 1))
    for name, value in attempt.init:
        if isinstance(value, str) and NUMBER_LIST.fullmatch(value) and any(int(number) >= 8 for number in re.findall(r"\d+", value)):
            yield replace(set_init(attempt, name, re.sub(r"\d+", "2", value)), call=None)
    large = [name for name, value in attempt.init if isinstance(value, str) and value.isdigit() and int(value) >= MANY]
    yield from (replace(set_init(attempt, name, "4"), call=None) for name in large)
    sizes = {p.name: p.default for p in options.init.values() if type(p.default) is int and p.default >= 128}
    counts = {p.name: p.default for p in options.init.values() if type(p.default) is int and 3 <= p.default <= 128}
    deep = [name for name in counts if re.search(r"layer|depth|block|step|iter|stage", name)]
    shallow = attempt
    for name in deep:
        shallow = set_init(shallow, name, "2")
    # A model of many layers takes long to construct whatever its sizes are: both first.
    for start, factors in ((shallow, (16, 8)), (attempt, (8, 16, 4))):
        for factor in factors if sizes or start is not attempt else ():
            smaller = start
            for name, size in sizes.items():
                smaller = set_init(smaller, name, str(max(size // factor, 8)))
            yield smaller
    yield from _fewer(attempt)
    yield from (set_init(smaller, name, "2") for name in deep if sizes)


def _with_sizes_of(smaller: Attempt, attempt: Attempt, options: Options) -> Attempt:
    """A smaller model called with inputs that have its sizes where those of the larger one had that one's."""
    before, after = _sizes_by_name(attempt, options), _sizes_by_name(smaller, options)
    changed = {size: after[name] for name, size in before.items() if after.get(name, size) != size}

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(*tensor.shape[:1], *(changed.get(size, size) for size in tensor.shape[1:])))

    call = smaller.call
    return smaller if call is None else replace(smaller, call=tuple((name, change_tensors(value, change)) for name, value in call))


def _fewer(attempt: Attempt) -> Iterator[Attempt]:
    """What takes too long by the numbers that were guessed: with four of everything, then with two of each alone, called anew."""
    guessed = [name for name, value in attempt.init if isinstance(value, str) and value.isdigit() and int(value) >= 8]
    few = replace(attempt, call=None)
    for name in guessed:
        few = set_init(few, name, "4")
    yield from (few,) if guessed else ()
    yield from (replace(set_init(attempt, name, "2"), call=None) for name in guessed)


def interleave(*groups: Iterable[Attempt]) -> Iterator[Attempt]:
    """One of each group in turn: which group holds the mend is not known, and none may keep the others waiting."""
    waiting = [iter(group) for group in groups]
    while waiting:
        for group in tuple(waiting):
            attempt = next(group, None)
            if attempt is None:
                waiting.remove(group)
            else:
                yield attempt


def _constructor_repairs(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    names = [name for name in outcome.place.init if name in options.init] or list(dict(attempt.init))
    yield from unset_names(attempt, outcome, options)
    yield from arrays_in_constructor(attempt, outcome)
    yield from words_asked(attempt, outcome, options.init)
    yield from other_branches(attempt, outcome, options)
    for name in names[:2] if NO_PATH.search(outcome.error) else ():
        yield from (set_init(attempt, name, text) for text in options.files_for(name))
    yield from _within_tables(attempt, outcome, options)
    yield from _missing_fields(attempt, outcome, options)
    yield from called_fields(attempt, outcome)
    yield from lists_in_fields(attempt, outcome)
    yield from _missing_arguments(attempt, outcome, options)
    error = f"{outcome.error} {outcome.place.statement}" if outcome.error.startswith("AssertionError") else outcome.error
    yield from without_negative(attempt, outcome, options.init, options.sizes_without_default)
    yield from _named_words(attempt, outcome, options)
    yield from _asserted(attempt, outcome, options)
    yield from _other_lengths(attempt, outcome)
    ordered = [name for name in names if name in dict(attempt.init)] + [name for name in names if name not in dict(attempt.init)]
    yield from _rounded(attempt, ordered, options, error)
    yield from interleave(*(_with_values(attempt, name, options, error) for name in ordered[:4]), _other_objects(attempt, options))
    for first, second in combinations(ordered[:3], 2):
        for one, other in product(SMALL, SMALL):
            yield set_init(set_init(attempt, first, one), second, other)
    for name in dict(attempt.init):
        for value in options.init_values(name, error):
            yield set_init(attempt, name, value)


def _within_tables(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """A configuration of which an object is made, with other arguments for that: mended as those of a constructor of its own."""
    for name, value in attempt.init:
        cls = (
            options.loaded(ast.literal_eval(str(dict(value.items)[TARGET])))
            if isinstance(value, Fields) and TARGET in dict(value.items)
            else None
        )
        if cls is None:
            continue
        assert isinstance(value, Fields)
        inner = Attempt(tuple(item for item in value.items if item[0] != TARGET))
        failed = outcome._replace(place=outcome.place._replace(init=()))
        for mended in islice(_constructor_repairs(inner, failed, options.of_class(cls)), MOST_WITHIN):
            yield set_init(attempt, name, replace(value, items=(*value.items[:1], *mended.init)))


def _asserted(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Where the constructor refuses a number on purpose: the first ones that it takes."""
    if outcome.error.startswith(("AssertionError", "ValueError", "Exception", "RuntimeError")):
        tests, values = conditions(nodes_of(vars(options.trial.cls).get("__init__"))), options.numbers_of(attempt)
        for name in values:
            for number in islice(fitting(tests, name, values), 2):
                yield set_init(attempt, name, str(number))


def _other_lengths(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where the constructor refuses on purpose what it was given: lists of equal numbers with another number of them, such as one for each axis."""
    if not outcome.error.startswith(("AssertionError", "ValueError", "NotImplementedError", "Exception", "RuntimeError", "TypeError")):
        return
    for name, value in attempt.init:
        items = EQUAL_NUMBERS.fullmatch(value) if isinstance(value, str) and name in outcome.place.init else None
        for length in LENGTHS if items else ():
            assert items
            numbers = ", ".join([items[2]] * length)
            yield set_init(attempt, name, f"({numbers},)" if items[1] == "(" else f"[{numbers}]")


def _rounded(attempt: Attempt, names: Sequence[str], options: Options, error: str) -> Iterator[Attempt]:
    """Where sizes do not fit each other, such as windows of 7 in an image of 64: the nearest power of two in place of a default, odd ones first."""
    if not re.search(r"is invalid for input of size|divisible|must match the size|% ", error):
        return
    defaults = {name: options.init[name].default for name in names if name in options.init and name not in dict(attempt.init)}
    uneven = {name: size for name, size in defaults.items() if type(size) is int and size > 2 and size & (size - 1)}
    for name, size in sorted(uneven.items(), key=lambda pair: pair[1] % 2 == 0):
        yield set_init(attempt, name, str(2 ** round(math.log2(size))))


def _with_values(attempt: Attempt, name: str, options: Options, error: str) -> Iterator[Attempt]:
    """The attempt with each value that one parameter may take. A function: a generator inside another one would see the last name only."""
    for value in options.init_values(name, error):
        yield set_init(attempt, name, value)


def _missing_arguments(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """What a constructor hands on by `**kwargs` and another one misses."""
    match = re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", outcome.error)
    names = re.findall(r"'(\w+)'", match[1]) if match else []
    if names and not set(names) & set(options.init):
        for choice in range(2):
            filled = attempt
            for name in names:
                texts = options.texts_of(name)
                filled = set_init(filled, name, texts[min(choice, len(texts) - 1)])
            yield filled


def _named_words(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Words that an error quotes, as values of the parameters that it, or the statement, names."""
    words = spelled_words(outcome.error)
    if outcome.error.startswith(("ValueError", "AssertionError", "KeyError", "NotImplementedError")):
        said = [name for name in options.init if re.search(rf"\b{re.escape(name)}\b", outcome.error)]
        for name in dict.fromkeys([*said, *(name for name in outcome.place.init[:2] if name in options.init)]):
            for word in words if name not in words else ():
                yield set_init(attempt, name, repr(word))


def _missing_fields(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """A configuration that lacks a name: the name with a value that fits it. Where a number or a word has no such name, a configuration."""
    if re.search("SimpleNamespace' (object )?is not (iterable|a container)", outcome.error):
        parsed = tuple((name, replace(value, form="arguments") if isinstance(value, Fields) else value) for name, value in attempt.init)
        yield replace(attempt, init=parsed)
    # Of a base class that leaves to others what it is asked for, an object that has it.
    for name, text in attempt.init if outcome.error.startswith("NotImplementedError") else ():
        if isinstance(text, str) and text.endswith(")") and (fields := options.fields_of(name)) is not None:
            yield set_init(attempt, name, fields)
    match = re.search(r"has no attribute '(\w+)'|KeyError: '(\w+)'", outcome.error)
    if not match:
        return
    missing = match[1] or match[2]
    for name, value in attempt.init:
        if isinstance(value, Fields):
            for text in options.texts_of(missing)[:3]:
                yield from (set_init(attempt, name, wider) for wider in _with_field(value, missing, text))
        elif isinstance(value, str) and re.search(r"'(int|float|str|Identity)' object has no attribute", outcome.error):
            if (fields := options.fields_of(name)) is not None and missing in dict(fields.items):
                yield set_init(attempt, name, fields)


NO_LIST = re.compile(r"object of type 'int' has no len\(\)|'int' object is not (iterable|subscriptable)|cannot unpack non-iterable int")


def lists_in_fields(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Two numbers in place of one in a configuration of which a list was asked: of all fields that the failed statement names, then of each alone."""
    for name, value in attempt.init if NO_LIST.search(outcome.error) else ():
        if not isinstance(value, Fields):
            continue
        numbers = [field for field, text in value.items if _is_number(text)]
        named = [field for field in numbers if re.search(rf"\b{field}\b", outcome.place.statement)]
        for chosen in dict.fromkeys((*([tuple(named)] if named else []), *((field,) for field in (*named, *numbers)))):
            items = tuple((field, f"[{text}, {text}]" if field in chosen else text) for field, text in value.items)
            yield set_init(attempt, name, replace(value, items=items))


def _is_number(value: Value) -> bool:
    """Whether a value is the text of a whole number."""
    return isinstance(value, str) and value.isdigit()


def _with_field(value: Fields, name: str, text: str) -> Iterator[Fields]:
    """The object with one more name; then each object in it with that."""
    if name not in dict(value.items):
        yield replace(value, items=(*value.items, (name, text)))
    for at, (field_name, inner) in enumerate(value.items):
        for wider in _with_field(inner, name, text) if isinstance(inner, Fields) else ():
            yield replace(value, items=(*value.items[:at], (field_name, wider), *value.items[at + 1 :]))


def _other_words(attempt: Attempt, options: Options) -> Iterator[Attempt]:
    """A configuration with another word that its code tells apart: the default of one option need not fit that of another."""
    for name, value in attempt.init:
        for at, (field, text) in enumerate(value.items if isinstance(value, Fields) else ()):
            for word in options.words_of(name, field) if isinstance(text, str) and text[:1] in "'\"" else ():
                assert isinstance(value, Fields)
                yield set_init(attempt, name, replace(value, items=(*value.items[:at], (field, word), *value.items[at + 1 :])))


def _other_objects(attempt: Attempt, options: Options) -> Iterator[Attempt]:
    """Objects that the constructor was given, built with other numbers."""
    for name, value in attempt.init:
        if isinstance(value, str):
            yield from (set_init(attempt, name, text) for text in options.other_numbers(value))


def _call_repairs(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    call = dict(attempt.call or ())
    names = [name for name in outcome.place.call if name in options.call] or list(options.call)
    present = [name for name in names if name in call]
    suspects = [name for name in outcome.place.init if name in options.init][:4]
    numbers = [str(number) for number in outcome.place.numbers]
    yield from words_asked(attempt, outcome, options.init)
    yield from objects_asked(attempt, outcome, options)
    yield from within_objects(attempt, outcome, options, _call_repairs)
    yield from _result_repairs(attempt, outcome)
    yield from unset_names(attempt, outcome, options)
    yield from other_branches(attempt, outcome, options)
    yield from other_kinds(attempt, outcome, options.words_in_call, names_held(options.trial.instance))
    yield from looped_lists(attempt, outcome, options.called, options.numbers_of(attempt))
    yield from steps_asked(attempt, outcome, options.called)
    yield from index_vectors(attempt, outcome)
    yield from called_fields(attempt, outcome)
    yield from demands(attempt, outcome, options.init)
    yield from _in_place_of_none(attempt, outcome, options)
    yield from states_asked(attempt, outcome)
    yield from wider_tables(attempt, outcome)
    yield from squeezed(attempt, outcome, options.called)
    yield from one_sample(attempt, outcome)
    yield from joined_inputs(attempt, outcome)
    yield from labels_asked(attempt, outcome)
    yield from _tensors_for_numbers(attempt, outcome)
    yield from _of_probabilities(attempt, outcome)
    yield from other_numbers(attempt, outcome)
    whole = replace(attempt, call=tuple((name, _with_channels(value, outcome.error)) for name, value in attempt.call or ()))
    yield from (whole,) if whole != attempt else ()
    yield from within_objects(attempt, outcome, options, _call_repairs, "dict")
    named = [name for name in present if name in (outcome.operation.origins or outcome.place.call)]
    if len(call) > 1:
        if len(named) == 1:
            yield from (set_call(attempt, name, _of_kind(call[name], kind)) for name in named for kind in _kinds(outcome.error))
        # Prediction and target, query and key: what the error says of one holds of the other too.
        for kind in _kinds(outcome.error):
            yield replace(attempt, call=tuple((name, _of_kind(value, kind)) for name, value in attempt.call or ()))
    yield from interleave(
        _left_out(attempt, outcome, options),
        features_asked(attempt, outcome, _sizes_by_name(attempt, options)),
        _other_words(attempt, options),
        _other_objects(attempt, options),
        (set_call(attempt, name, value) for name in present for value in _mended(call[name], outcome)),
        (set_init(attempt, name, value) for name in suspects for value in options.init_values(name, outcome.error)[:12]),
        _same_sizes(attempt, outcome),
        _named_sizes(attempt, outcome, options),
        equal_parts(attempt, outcome),
        (set_init(attempt, name, number) for name in suspects if options.is_integer(name, attempt) for number in numbers),
        (set_call(attempt, name, value) for name in names[:4] for value in (*options.call_values(name, attempt), *GENERIC)),
        (set_call(attempt, name, value) for name in present[:3] for value in _resized(call[name], outcome)),
        _equal_arguments(attempt),
    )
    for name in options.call:
        for value in (*options.call_values(name, attempt), *GENERIC):
            yield set_call(attempt, name, value)


def _left_out(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Where something is None that must not be: arguments that are None where they are left out, those that the failing statement reads first."""
    if "NoneType" not in outcome.error:
        return
    absent = [name for name, item in options.call.items() if item.default is None and name not in dict(attempt.call or ())]
    named = [name for name in absent if name in outcome.place.call]
    for name in dict.fromkeys([*named, *absent]):
        for value in dict.fromkeys((*options.call_values(name, attempt)[:3], *GENERIC[:1], Tensor((2, 1)), Tensor((2, 64)))):
            yield set_call(attempt, name, value)


def _equal_arguments(attempt: Attempt) -> Iterator[Attempt]:
    """All tensors of the call with one shape: of losses, of cells with their state, of queries and keys."""
    inputs = [tensor for _, value in attempt.call or () for tensor in tensors(value)]
    if len(inputs) > 1 or (inputs and len(inputs[0].shape) != 2):
        for shape in dict.fromkeys(
            [inputs[0].shape, (2, inputs[0].shape[-1] if inputs[0].shape else 64), *(tensor.shape for tensor in GENERIC[:5])]
        ):
            yield replace(attempt, call=tuple((name, _reshaped(value, shape)) for name, value in attempt.call or ()))


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return change_tensors(value, lambda tensor: replace(tensor, shape=shape))


def _result_repairs(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where the result is not finite: masks that hide nothing, whatever hiding is; images of which something is left at the lowest resolution;
    inputs that are positive."""
    if outcome.error == NOT_FINITE:
        other: dict[Kind, Kind] = {"bool": "false", "false": "bool"}
        for name, value in attempt.call or ():
            yield set_call(attempt, name, change_tensors(value, lambda t: replace(t, kind=other.get(t.kind, t.kind))))
        for size in (
            (LARGE, 2 * LARGE, 4 * LARGE) if any(len(t.shape) == 4 for _, value in attempt.call or () for t in tensors(value)) else ()
        ):
            yield replace(attempt, call=tuple((name, _of_rank(value, 4, (2, 3), size)) for name, value in attempt.call or ()))
        for name, value in attempt.call or ():
            yield set_call(attempt, name, change_tensors(value, lambda t: replace(t, kind="positive") if t.kind == "normal" else t))


PROBABILITIES = re.compile(
    r"between 0(\.0*)? and 1|within the support|satisfy the constraint \w*(Interval|GreaterThan|Positive|Simplex)"
    r"|[\[(]0(\.0*)?, *1(\.0*)?[\])]|must be (strictly )?positive|non-?negative|positive values|index -\d+ is out of bounds"
)
"""Messages about numbers that leave no doubt which numbers are meant."""


def _of_probabilities(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where numbers between 0 and 1, or positive ones, are asked for: one tensor of the call that has such, then all."""
    if PROBABILITIES.search(outcome.error):
        changed = tuple((name, change_tensors(value, lambda t: replace(t, kind="positive"))) for name, value in attempt.call or ())
        yield from (set_call(attempt, name, value) for name, value in changed if value != dict(attempt.call or ())[name])
        yield replace(attempt, call=changed)


def _in_place_of_none(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """What an argument may be besides None, where that has not what the failed statement reads of it: a mask that is no option."""
    operand = re.search(r"unsupported operand type\(s\) for .*'NoneType'", outcome.error)
    if operand or re.search(r"'NoneType' object (has no attribute|is not (subscriptable|iterable))|(not|got) NoneType", outcome.error):
        absent = [name for name, value in attempt.call or () if value == "None"]
        main = next((tensor for _, value in attempt.call or () for tensor in tensors(value)), None)
        for name in sorted(absent, key=lambda name: name not in outcome.place.call):
            if operand and main is not None:  # one number a sample suits what it is computed with
                yield set_call(attempt, name, replace(main, shape=(*main.shape[:1], 1)))
            yield from (set_call(attempt, name, value) for value in options.call_values(name, attempt) if value != "None")


def _tensors_for_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where a number stands for a tensor: one like the first that the call has, for the arguments that the statement reads, then for all."""
    if not re.search(r"must be Tensor, not (int|float)|'(int|float)' object has no attribute", outcome.error):
        return
    main = next((tensor for _, value in attempt.call or () for tensor in tensors(value)), None)
    numbers = [name for name, value in attempt.call or () if isinstance(value, str) and re.fullmatch(r"[\d.]+", value)]
    read = [name for name in numbers if name in outcome.place.call]
    for names in filter(None, (read, numbers) if main is not None else ()):
        yield replace(attempt, call=tuple((name, main if name in names else value) for name, value in attempt.call or ()))  # type: ignore[misc]


def _mended(value: Value, outcome: Outcome) -> Iterator[Value]:
    """The argument with what the error asks for."""
    if isinstance(value, Tensor) and "unpack" in outcome.error and not re.search(r"shape|size", outcome.place.statement):
        yield from _several(value, outcome.error)
    if isinstance(value, Items):
        for at, item in enumerate(value.items):
            for mended in islice(_mended(item, outcome), 8):
                yield replace(value, items=(*value.items[:at], mended, *value.items[at + 1 :]))
    for kind in _kinds(outcome.error):
        yield _of_kind(value, kind)
    if "index out of range" in outcome.error or "out of bounds" in outcome.error or "IndexError" in outcome.error:
        for high in (8, 4, 2):
            yield change_tensors(value, lambda tensor, high=high: replace(tensor, high=high))  # type: ignore[misc]
    yield change_tensors(value, lambda tensor: replace(tensor, shape=adapted_shape(tensor.shape, outcome.error) or tensor.shape))
    if isinstance(value, Tensor):
        if match := re.search(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", outcome.error):
            if len(value.shape) == 4 and int(match[1]) == value.shape[-1]:  # a vector was wanted, not an image
                yield replace(value, shape=(value.shape[0], int(match[2])))
            yield from (replace(value, shape=shape) for shape in _scaled(value.shape, int(match[2]) / int(match[1])))
        if match := re.search(r"running_mean should contain (\d+) elements not (\d+)", outcome.error):
            # Dimensions were folded into the channels.
            yield from (replace(value, shape=shape) for shape in _each_scaled(value.shape, int(match[1]), int(match[2])))
        if match := re.search(r"expected input\[.*?\] to have (\d+) channels, but got (\d+) channels", outcome.error):
            if int(match[2]) not in value.shape[1:2]:  # dimensions were folded into the channels here too
                yield from (replace(value, shape=shape) for shape in _each_scaled(value.shape, int(match[1]), int(match[2])))
        yield from (replace(value, shape=shape) for shape in _matching_shapes(value.shape, outcome.place.numbers))
        if re.search(
            r"unpack|iterable|has no attribute '(append|copy|items|keys|values)'|must be (tuple|list)|not subscriptable", outcome.error
        ):
            yield from _several(value, outcome.error)


def _with_channels(value: Value, error: str) -> Value:
    """Images with the channels that a layer asks for, into which they were folded: patches of all channels in one vector."""
    match = re.search(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", error)
    actual, expected = map(int, match.groups()) if match else (0, 0)

    def change(tensor: Tensor) -> Tensor:
        shape = tensor.shape
        if len(shape) != 4 or not actual or actual in shape or shape[1] * expected % actual:
            return tensor
        return replace(tensor, shape=_with(shape, 1, shape[1] * expected // actual))

    return change_tensors(value, change)


def _of_kind(value: Value, kind: Kind) -> Value:
    return change_tensors(value, lambda tensor: replace(tensor, kind=kind))


def _several(value: Tensor, error: str) -> Iterator[Value]:
    """As many tensors as are unpacked, the last one perhaps a mask."""
    match = re.search(r"unpack \(expected (\d)", error)
    size = int(match[1]) if match else 2
    points = replace(value, shape=(*value.shape[:2], 3)) if len(value.shape) == 3 else value
    yield Items((value,) * size, "()")
    if size > 1:
        yield Items((value,) * (size - 1) + (Tensor(value.shape[:2], "bool"),), "()")
        yield Items((points, *(value,) * (size - 2), Tensor(value.shape[:2], "bool")), "()")
    yield Items((value,) * size, "[]")


def _kinds(error: str) -> list[Kind]:
    return (
        [kind for pattern, kind in DTYPES if re.search(pattern, error)]
        if re.search(r"dtype|type|index|Index|implemented|omplex|[Bb]ool", error)
        else []
    )


def _matching_shapes(shape: tuple[int, ...], numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """One size that meets the error replaced by another one that does, likeliest first; then products of both."""
    for at in [*reversed(range(1, len(shape))), *range(min(len(shape), 1))]:
        if shape[at] in numbers:
            yield from (_with(shape, at, number) for number in numbers if number != shape[at])
    for at in reversed(range(1, len(shape))):
        if shape[at] not in numbers:
            yield from (_with(shape, at, number) for number in numbers)
    for actual, expected in ((a, b) for a in numbers for b in numbers if a != b):
        if len(shape) >= 3:
            yield from _scaled(shape, expected / actual)


def _with(shape: tuple[int, ...], at: int, size: int) -> tuple[int, ...]:
    return (*shape[:at], size, *shape[at + 1 :])


def _scaled(shape: tuple[int, ...], ratio: float) -> Iterator[tuple[int, ...]]:
    """Shapes whose trailing sizes give `ratio` times as many elements: what is flattened afterwards then has the expected size."""
    if len(shape) >= 4:  # images stay square
        both = tuple(round(size * math.sqrt(ratio)) for size in shape[-2:])
        if all(both) and max(both) <= 512:
            yield (*shape[:-2], *both)
    if len(shape) >= 3 and (last := round(shape[-1] * ratio)) and math.isclose(last, shape[-1] * ratio) and last <= 512:
        yield _with(shape, len(shape) - 1, last)


def _each_scaled(shape: tuple[int, ...], actual: int, expected: int) -> Iterator[tuple[int, ...]]:
    """Shapes with one size other than the first changed so that products with it become what is expected."""
    for at in range(1, len(shape)):
        if shape[at] * expected % actual == 0:
            yield _with(shape, at, shape[at] * expected // actual)


def _same_sizes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """All arguments with one size replaced at once: inputs that must agree with each other, and both with a layer."""
    numbers = outcome.place.numbers
    sizes = {size for _, value in attempt.call or () for tensor in tensors(value) for size in tensor.shape[1:]}
    for actual in sizes & set(numbers):
        for expected in numbers:
            if expected != actual:
                yield replace(attempt, call=tuple((name, _resize(value, actual, expected)) for name, value in attempt.call or ()))


def _given_sizes(attempt: Attempt, options: Options) -> list[int]:
    """Sizes that the constructor was given, or has by default."""
    arguments = dict(attempt.init)
    values = [arguments.get(name, repr(parameter.default)) for name, parameter in options.init.items()]
    sizes = [size for value in values if isinstance(value, str) for size in re.findall(r"\d+", value if NUMBERS.fullmatch(value) else "")]
    return [int(size) for size in sizes if 0 < int(size) <= 512]


def _sizes_by_name(attempt: Attempt, options: Options) -> dict[str, int]:
    """Name of a parameter of the constructor → the size that it has, given or by default."""
    values = {name: dict(attempt.init).get(name, repr(parameter.default)) for name, parameter in options.init.items()}
    return {name: int(value) for name, value in values.items() if isinstance(value, str) and value.isdigit()}


def _named_sizes(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """Arguments with sizes that the constructor was given: those that are joined have one each; sequences their lengths, images their sides."""
    sizes = list(dict.fromkeys(_given_sizes(attempt, options)))
    call = attempt.call or ()
    yield from _joined(attempt, outcome.error, sizes, _sizes_by_name(attempt, options))
    for size in dict.fromkeys([*sizes, 32, 64]):
        for rank, axes in ((3, (1,)), (3, (2,)), (4, (2, 3))):
            if any(len(tensor.shape) == rank for _, value in call for tensor in tensors(value)):
                yield replace(attempt, call=tuple((name, _of_rank(value, rank, axes, size)) for name, value in call))


JOINED = re.compile(r"to have (\d+) channels|cannot be multiplied \(\d+x\d+ and (\d+)x")


def _joined(attempt: Attempt, error: str, sizes: Sequence[int], by_name: Mapping[str, int]) -> Iterator[Attempt]:
    """Two or three inputs whose sizes add up to what a layer wants of them joined: all but one have sizes that the constructor was given.
    Of two, one may be named as its size is: `c` and `c_dim`."""
    match = JOINED.search(error)
    several = [name for name, value in attempt.call or () if isinstance(value, Tensor) and len(value.shape) > 1]
    if match is None or not 2 <= len(several) <= 3:
        return
    whole, axis = int(match[1] or match[2]), 1 if match[1] else -1
    named = {name: size for name in several for parameter, size in by_name.items() if parameter.startswith(f"{name}_") and size < whole}
    for name, size in named.items() if len(several) == 2 else ():
        pairs = {other: size if other == name else whole - size for other in several}
        yield replace(
            attempt, call=tuple((key, _sized(value, axis, pairs[key]) if key in pairs else value) for key, value in attempt.call or ())
        )
    for parts in product(sizes[:5], repeat=len(several) - 1):
        rest = whole - sum(parts)
        for order in ((*parts, rest), (rest, *parts)) if rest > 0 else ():
            pairs = dict(zip(several, order, strict=True))
            yield replace(
                attempt,
                call=tuple((name, _sized(value, axis, pairs[name]) if name in pairs else value) for name, value in attempt.call or ()),
            )


def _sized(value: Value, axis: int, size: int) -> Value:
    return change_tensors(value, lambda tensor: replace(tensor, shape=_with(tensor.shape, axis % len(tensor.shape), size)))


def _of_rank(value: Value, rank: int, axes: Sequence[int], size: int) -> Value:
    """The value with these axes of its tensors of one rank as long as `size`."""

    def change(tensor: Tensor) -> Tensor:
        shape = tuple(size if axis in axes else size_before for axis, size_before in enumerate(tensor.shape))
        return replace(tensor, shape=shape) if len(tensor.shape) == rank else tensor

    return change_tensors(value, change)


def _resize(value: Value, actual: int, expected: int) -> Value:
    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tensor.shape[:1] + tuple(expected if size == actual else size for size in tensor.shape[1:]))

    return change_tensors(value, change)


def _resized(value: Value, outcome: Outcome) -> Iterator[Value]:
    """Other ranks, other spatial sizes, other batches."""
    if not isinstance(value, Tensor) or not value.shape:
        return
    for rank in (3, 4, 2, 5, 1):
        if rank != len(value.shape):
            yield replace(value, shape=(*value.shape[:2], *[16] * (rank - 2))[:rank])
            yield replace(value, shape=(value.shape[0], *[16] * (rank - 2), value.shape[-1])[:rank])
    for size in (1, 4, 8, 16, 28, 32, 64, 128, 224, 256):
        if len(value.shape) >= 4:
            yield replace(value, shape=(*value.shape[:2], *[size] * (len(value.shape) - 2)))
        yield replace(value, shape=(*value.shape[:-1], size))
    for kind in ("integer", "normal", "complex", "positive"):
        if kind != value.kind:
            yield replace(value, kind=kind)
