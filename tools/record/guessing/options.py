"""What the parameters of one class may take: of its constructor and of its call, likeliest first."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common.methods import main_method
from migrate_agent.tools.record.guessing.assigned import CONFIG_CLASS
from migrate_agent.tools.record.guessing.call_sites import LARGEST, Program, call_sites, notebooks
from migrate_agent.tools.record.guessing.choices import choices
from migrate_agent.tools.record.guessing.configs import (
    accessed,
    attributes_read,
    constructions,
    filled_in,
    items_read,
    module_attributes,
    norms_beside,
    object_texts,
    object_values,
    space,
    takes,
    tensor_texts,
    words_of_field,
)
from migrate_agent.tools.record.guessing.documented import documented_rank, documented_tensor
from migrate_agent.tools.record.guessing.factories import made_by_factories
from migrate_agent.tools.record.guessing.feedback import FIRST_STATES, STATE, states_of_methods
from migrate_agent.tools.record.guessing.functions import (
    FUNCTION_TEXTS,
    IMAGE_LABELS,
    IMAGE_SCORES,
    SCORES,
    called_parameters,
    shown_values,
    takes_labels,
    usual_starts,
    words,
)
from migrate_agent.tools.record.guessing.lists import MOST_ITEMS, list_text
from migrate_agent.tools.record.guessing.objects.called_parts import Use, fits, results_of, use_of, without_options
from migrate_agent.tools.record.guessing.objects.image_settings import with_images_of_settings
from migrate_agent.tools.record.guessing.objects.instantiated import instantiable, is_instantiated
from migrate_agent.tools.record.guessing.objects.layer_rows import layer_rows
from migrate_agent.tools.record.guessing.objects.named_classes import objects_of_named_classes, spaces_of
from migrate_agent.tools.record.guessing.objects.object_reads import object_inputs
from migrate_agent.tools.record.guessing.objects.own_files import file_texts
from migrate_agent.tools.record.guessing.objects.own_items import (
    TENSORS,
    attributes_of_items,
    listed_class,
    lists_of,
    mapped_class,
    names_held,
    other_numbers,
    reads_by_variable,
    several_texts,
)
from migrate_agent.tools.record.guessing.objects.taken_apart import taken_apart
from migrate_agent.tools.record.guessing.ranks import Ranks, lengths_within, ranked, ranks_of
from migrate_agent.tools.record.guessing.roles import is_power, roles
from migrate_agent.tools.record.guessing.rows import (
    ARRAYS,
    CONFIGS,
    DEVICES,
    EMPTY,
    FEATURES,
    INTEGERS,
    LISTS,
    NUMBERS,
    OPTIONAL,
    POOL,
    annotation_text,
    call_values,
    image_input,
    main_inputs,
    nested_texts,
    parameter_texts,
    says_little,
    widths,
)
from migrate_agent.tools.record.guessing.settings import Settings, as_value, covering, deep, exact, narrowed, settings_of
from migrate_agent.tools.record.guessing.tensor_uses import (
    embeds_others,
    least_items,
    unpacked,
    used_as_arrays,
    used_as_lists,
    used_as_numbers,
    used_as_options,
    used_as_places,
    used_as_sizes,
    used_as_tensors,
)
from migrate_agent.tools.record.guessing.trials.numbers_asked import negative_fields
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Trial, constructor_parameters, required
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, tensors
from migrate_agent.tools.record.guessing.values import Sequence as Items
from migrate_agent.tools.record.guessing.values import text as value_text

SOUGHT = (
    (r"iterable|len\(\)|subscriptable|unpack|multiply sequence|can't multiply|Sequence|tuple|list", ("(", "[")),
    (r"not callable|is not a Module|has no attribute|must be a (class|type)|NoneType", ("torch.", "[torch")),
)
"""Errors → how the texts begin that they ask for."""
OF_NUMBERS = re.compile(r"'(int|float)' object is not (subscriptable|iterable)|cannot unpack non-iterable (int|float)")
"""What Python says of a list of numbers where lists of lists are taken apart."""
MOST_SETTINGS = 6
MOST_WRAPPED = 4
"""Classes of the repository that are tried for one parameter."""
MOST_NESTED = 3
"""How deep parts of parts are made of classes of the repository: an encoder of layers of attention of a kernel."""
LAYER_NORM = "torch.nn.LayerNorm"
LENGTHS = re.compile(r"(.*_)?(len|length)s?")
"""Names of tensors that say how long each sequence is."""
SQUARE = "2"
"""Of a number that something is raised to, such as `p`, which is a rate of dropout elsewhere."""
SIZES = ("8", "2", "1", "4", "16")
"""Of a number that sizes are computed from."""
SIZE_TUPLES = ("(4, 4)", "(8, 8)", "(16, 16)", "(2, 8)")
ALIKE = 4
"""Letters at the front of a parameter's name that the name of a class may share: `normalizer`, `ConditionalNorm`."""
MOST_OF = 0.6
"""Share of the names that code reads of a configuration which a table must have: others are added at run time."""


class Options:
    """What to try for one class. `files` are those of the repository as (path, module); configuration files lie below `root`."""

    def __init__(self, trial: Trial, files: Sequence[tuple[Path, str]], root: Path | None = None) -> None:
        self.trial, self._root = trial, root
        self.init = {parameter.name: parameter for parameter in trial.init_parameters}
        self.call = {parameter.name: parameter for parameter in trial.call_parameters}
        self._mains: tuple[Tensor, ...] = ()
        self._values: dict[str, Any] = {}
        """What the constructor was given, as far as it is literal."""
        self._files = files
        self._depth = 0
        """Of parts within each other that another class is handed; 0 of the class itself."""
        self._of_objects: dict[str, tuple[Fields, ...]] = {}
        self._classes: dict[str, Any] = {name: value for name, value in vars(trial.module).items() if isinstance(value, type)}

    @cached_property
    def _tables(self) -> list[Settings]:
        # Installed packages say nothing of what the repository runs with, and to read them all takes seconds.
        root = self._root
        return settings_of(root, [path for path, _ in self._files if path.is_relative_to(root)]) if root else []

    @property
    def classes(self) -> dict[str, Any]:
        """The repository's own classes by the names that texts have for them."""
        return {name: cls for name, cls in self._classes.items() if self._own_class(name)}

    @cached_property
    def called(self) -> Callable[..., Any] | None:
        """What is called."""
        return self.trial.function or getattr(self.trial.cls, self.trial.method or main_method(self.trial.cls), None)

    @property
    def _code(self) -> Any:
        """What reads the parameters of the call: the class, or the function that is called in its place."""
        return self.trial.function or self.trial.cls

    @cached_property
    def _tensors(self) -> frozenset[str]:
        """Parameters of the call that its code uses as tensors."""
        return used_as_tensors(self.called)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        """Parameters of the call that its code uses as numbers."""
        return used_as_numbers(self.called) - self._tensors

    @cached_property
    def _options_of_torch(self) -> dict[str, tuple[str, ...]]:
        """Texts of the parameters of the call that its code hands to options of torch's functions."""
        return used_as_options(self.called)

    @cached_property
    def _size_tuples(self) -> frozenset[str]:
        """Parameters of the call that its code uses as sizes in a tuple."""
        return used_as_sizes(self.called) - self._tensors

    @cached_property
    def _lists(self) -> frozenset[str]:
        """Parameters of the call that its code uses as lists of tensors."""
        return used_as_lists(self.called) - self._tensors

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The parameters of the call that its code uses as NumPy's arrays."""
        return used_as_arrays(self.called)

    @cached_property
    def _settings(self) -> dict[str, str]:
        """What the repository itself runs with, by name."""
        return narrowed(self._tables)

    def starts(self) -> Iterator[Attempt]:
        """First attempts: what names and annotations suggest, what the repository itself constructs (that first where it makes objects for it), and
        what its settings say."""
        needed = {parameter.name: self._init_domain(parameter.name)[0] for parameter in required(self.trial.init_parameters)}
        starts: list[Mapping[str, Value]] = [*self.of_objects, *self._of_several(), {}, *self.constructions]
        for values in chain(starts, self._of_factories(), islice(self._from_settings(list(needed)), MOST_SETTINGS)):
            yield Attempt(tuple({**needed, **values}.items()))

    @cached_property
    def of_objects(self) -> list[dict[str, str]]:
        """Those arguments of the repository's own constructions that make objects for the class, in the order of the starts, which they are first of."""
        needed = [parameter.name for parameter in required(self.trial.init_parameters)]
        return [site for site in self.constructions if any("(" in site.get(name, "") for name in needed)]

    @cached_property
    def constructions(self) -> list[dict[str, str]]:
        """Arguments that the repository itself constructs the class with: small settings first."""
        return [*self._sites(self._settings), *self._sites(exact(self._tables))]

    def _of_several(self) -> Iterator[Mapping[str, Value]]:
        """Arguments for a constructor that takes as many as there are: `Parallel(*branches)`."""
        for parameter in (item for item in self.init.values() if item.kind is item.VAR_POSITIONAL):
            annotation = annotation_text(parameter.annotation)
            own = object_texts(self._classes[annotation], annotation, self._classes)[:1] if self._own_class(annotation) else ()
            yield from ({parameter.name: Items(row, "()")} for row in ([own * 2] if own else several_texts(self.trial.cls, annotation)))

    def _sites(self, settings: Mapping[str, str]) -> list[dict[str, str]]:
        """Arguments of the places that construct the class, with these settings where they read settings."""
        shown = notebooks(self._root) if self._root else []
        files = {**dict(self._files), **dict.fromkeys(shown, "")}
        program, names = Program(files, settings, self.trial.setups), vars(self.trial.module)
        return call_sites(files, self.trial.cls.__name__, self.trial.init_parameters, names, program)

    @cached_property
    def depths(self) -> dict[str, int]:
        """Settings that were made small because they say how often something is repeated → what the repository has."""
        return deep(self._tables)

    def sites(self, settings: Mapping[str, int]) -> list[dict[str, str]]:
        """Arguments of the repository's constructions of the class, with these in place of the small settings."""
        return self._sites({**self._settings, **{name: str(value) for name, value in settings.items()}})

    def _of_factories(self) -> Iterator[Mapping[str, Value]]:
        """Arguments that factories of the repository construct the class with."""
        if self._root is not None and self.trial.function is None:
            yield from made_by_factories(self.trial, self._root, self.texts_of)

    def _from_settings(self, needed: Sequence[str]) -> Iterator[dict[str, Value]]:
        """Parameter → value, by tables of the repository's settings: those that have all required parameters, or all that the code reads of
        the one that holds a configuration."""
        for table in covering(self._tables, needed):
            yield {name: as_value(table[name]) for name in self.init if name in table and not self._tables_of_objects(name)}
        for name in needed:
            if not self._tables_of_objects(name) and CONFIGS.fullmatch(name) and (fields := accessed(self.trial.cls, name)) is not None:
                for table in covering(self._tables, [key for key, _ in fields.items], MOST_OF):
                    items = tuple((key, as_value(table[key], fields.form) if key in table else value) for key, value in fields.items)
                    yield {name: Fields(items, fields.form)}

    def of_class(self, cls: type) -> Options:
        """The options of another class, of which this one has an instance made."""
        trial = Trial(cls, sys.modules[cls.__module__], [str(self._root)] if self._root else [])
        trial.setups = self.trial.setups
        inner = Options(trial, self._files, self._root)
        inner._tables = self._tables
        return inner

    def _tables_of_objects(self, name: str) -> tuple[Fields, ...]:
        """Configurations for a parameter of which the constructor has an object made."""
        if self.trial.function is not None or self._root is None or not is_instantiated(self.trial.cls, name):
            return ()
        if name not in self._of_objects:
            own = {f"{cls.__module__}.{cls.__name__}": cls for other, cls in self._classes.items() if self._own_class(other)}
            own = {dotted: cls for dotted, cls in own.items() if cls is not self.trial.cls}
            tables = instantiable(name, self._tables, own, self.loaded, lambda cls: lambda item: self.of_class(cls).init_values(item)[0])
            self._of_objects[name] = tuple(tables)
        return self._of_objects[name]

    def loaded(self, dotted: str) -> type | None:
        """The class of the repository that a dotted name stands for."""
        module, _, name = dotted.rpartition(".")
        if module not in {other for _, other in self._files}:
            return None
        try:
            cls = getattr(importlib.import_module(module), name)
        except (Exception, SystemExit):
            return None
        return cls if isinstance(cls, type) and cls is not self.trial.cls else None

    def first_calls(self, instance: Any, attempt: Attempt) -> Iterator[tuple[tuple[str, Value], ...]]:
        """Arguments of the first calls of the instance that an attempt constructs."""
        self._values = self._values_of(attempt)
        told = documented_tensor(self.trial.cls, next(iter(self.call), ""), 2, self._values)
        images = (*image_input(self._values), *([told] if told is not None else []))
        mains = self._ordered_mains(main_inputs(instance), embeds_others(self.called, instance, next(iter(self.call), "")))
        self._mains = tuple(dict.fromkeys([*images, *with_images_of_settings(self._tables, mains)]))
        needed = required(self.trial.call_parameters)
        # A state that other methods made is read by a call without inputs too: `forward(self, x=None)`.
        left_out = not needed and bool(self.trial.earlier)
        needed = [p for p in self.trial.call_parameters if p.default is None][:1] if left_out else needed
        if self.trial.function is not None:
            yield from self._calls_of_function(needed)
        elif takes_labels(instance, self.called):
            yield from self._labelled(needed)
        variadic = [p for p in self.trial.call_parameters if p.kind is p.VAR_POSITIONAL]
        for main in self._mains:
            if not needed:
                yield ((variadic[0].name, Items((main,))),) if variadic else ()
                if not variadic:
                    return
                continue
            yield tuple((parameter.name, self._call_domain(parameter, main, index)[0]) for index, parameter in enumerate(needed))
        yield from ((),) if left_out and needed else ()

    def _values_of(self, attempt: Attempt) -> dict[str, Any]:
        """The values of the constructor's parameters, as far as they are literals."""
        values = {name: parameter.default for name, parameter in self.init.items()}
        for name, text in attempt.init:
            with contextlib.suppress(ValueError, SyntaxError, TypeError):
                values[name] = ast.literal_eval(text) if isinstance(text, str) else EMPTY
        return values

    def _labelled(self, needed: Sequence[inspect.Parameter]) -> Iterator[tuple[tuple[str, Value], ...]]:
        """Calls of a loss with scores and labels: of rows, and of images."""
        for start in (*usual_starts(needed), *usual_starts(needed, IMAGE_SCORES, IMAGE_LABELS)):
            values = {item.name: self._call_domain(item, SCORES, index)[0] for index, item in enumerate(needed)}
            yield tuple({**values, **start}.items())

    def _calls_of_function(self, needed: Sequence[inspect.Parameter]) -> Iterator[tuple[tuple[str, Value], ...]]:
        """First calls of a function: with labels, and with what the repository itself gives it."""
        names = vars(self.trial.module)
        shown = shown_values([path for path, _ in self._files], self.trial.function, self.trial.call_parameters, names)
        for start in (*usual_starts(needed), *shown[:2]):
            values = {item.name: self._call_domain(item, SCORES, index)[0] for index, item in enumerate(needed)}
            yield tuple({**values, **start}.items())

    def _ordered_mains(self, mains: Sequence[Tensor], integers_last: bool) -> tuple[Tensor, ...]:
        """Integers first where the first parameter's name says so; the ranks that the documentation names, and the code asks for, first."""
        first = next(iter(self.call), "")
        rank, ranks = documented_rank(self.trial.cls, first), self._ranks(first)
        if mains and not any(ranks.fit(tensor.shape) for tensor in mains):
            mains = (*ranked(ranks, mains[0]), *mains)
        integer = bool(INTEGERS.fullmatch(first.lower())) and not any(tensor.kind == "integer" for tensor in mains[:1])
        of_rank = [(rank != 0 and len(tensor.shape) != rank, not ranks.fit(tensor.shape)) for tensor in mains]
        integers = [tensor.kind == "integer" for tensor in mains]
        key = [(*misfits, integer and not one, integers_last and one) for misfits, one in zip(of_rank, integers, strict=True)]
        return tuple(mains[at] for at in sorted(range(len(mains)), key=lambda at: key[at]))

    def _call_domain(self, parameter: inspect.Parameter, main: Tensor, index: int) -> tuple[Value, ...]:
        annotation = annotation_text(parameter.annotation)
        if ARRAYS.fullmatch(OPTIONAL.sub(r"\1", annotation)):
            return (*((replace(main, kind="array"),) if not index else ()), *call_values(parameter.name, annotation, main))
        if self.called is not None and (texts := words(self.called, parameter)):
            return texts
        if self.called is not None and parameter.name in called_parameters(self.called):
            return FUNCTION_TEXTS
        if options := self._options_of_torch.get(parameter.name):
            return options
        if index and (states := self._first_states(parameter.name, main)):
            return (*states, *call_values(parameter.name, annotation, main))
        fields = accessed(self._code, parameter.name, self._settings) if annotation != "Tensor" else None
        if isinstance(fields, Fields) and fields.form == "dict":
            items: tuple[tuple[str, Value], ...] = tuple((name, call_values(name, "", main)[0]) for name, _ in fields.items)
            return (Fields(items, "dict"),)
        if isinstance(fields, Fields) and CONFIGS.fullmatch(parameter.name):
            return (fields,)
        if (
            annotation in self._classes
            and not annotation.endswith("Tensor")
            and not issubclass(self._classes[annotation], (int, float, str))
        ):
            return object_values(self._classes[annotation], annotation, self._classes, main)
        objects = self._objects_read(parameter.name, main) if annotation == "" else ()
        if objects := (*objects, *(self.objects_of(parameter.name, main) if not annotation.endswith("Tensor") else ())):
            return objects
        if (annotation == "" and reads_by_variable(self.called, parameter.name)) or TENSORS.fullmatch(mapped_class(annotation)):
            return tuple(Fields(tuple((key, main) for key in keys)) for keys in names_held(self.trial.instance) or (("a", "b"),))
        values = call_values(parameter.name, annotation, main)
        if index == 0 and isinstance(values[0], Tensor):
            values = (main, *values)
        ranks = self._ranks(parameter.name)
        if ranks.lengths:
            values = (*lengths_within(main, ranks.columns), *values)
        documented = documented_tensor(self.trial.cls, parameter.name, main.shape[0] if main.shape else 2, self._values) if index else None
        if documented is not None and ranks.fit(documented.shape):
            return tuple(dict.fromkeys((documented, *values)))
        if isinstance(values[0], Tensor) and not ranks.fit(values[0].shape):
            values = (*ranked(ranks, replace(main, kind=values[0].kind, high=values[0].high)), *values)
        elif ranks.exact and values[0] == "None":
            # A state may be left out, where the code can do without.
            values = (values[0], *ranked(ranks, main), *values[1:])
        by_use = (_of_rank(value, ranks, main) for value in self._by_use(parameter.name, main, values))
        return tuple(dict.fromkeys((*by_use, *values))) if not annotation else values

    def _first_states(self, name: str, main: Tensor) -> tuple[Value, ...]:
        """States as methods of the instance make them for as many samples as the main tensor has along either of its first axes: `init_hidden(batch_size)`."""
        instance = self.trial.instance
        if instance is None or self.trial.function is not None or not STATE.fullmatch(name.lower()):
            return ()
        batches = dict.fromkeys(main.shape[:2])
        rows = (states_of_methods(lambda: instance, batch, FIRST_STATES) for batch in batches)
        try:
            return tuple(dict.fromkeys(chain.from_iterable(rows)))
        except Exception:  # the methods of the user's class cannot be looked at
            return ()

    def _objects_read(self, name: str, main: Tensor) -> tuple[Value, ...]:
        """Objects of the repository's classes that have all the attributes which the code reads of a parameter of the call; modules are no arguments."""
        plain = self._plain_classes(attributes_read(self._code, name))
        return tuple(value for other in plain for value in object_values(self._classes[other], other, self._classes, main))

    def objects_of(self, name: str, main: Tensor) -> tuple[Value, ...]:
        """Plain objects, or lists of them, with the attributes that the code reads of a parameter of the call."""
        return object_inputs(self.called, self.trial.instance, name, main)

    def _plain_classes(self, attributes: frozenset[str]) -> list[str]:
        """Classes of the repository that have all of these attributes and are no modules; those that others are made of come last."""
        import torch

        plain = [name for name in self._with_members(attributes) if not issubclass(self._classes[name], torch.nn.Module)]
        bases = {base for name in plain for base in self._classes[name].__mro__[1:]}
        return sorted(plain, key=lambda name: self._classes[name] in bases)[:MOST_WRAPPED]

    def _ranks(self, name: str) -> Ranks:
        """The rank of an argument by what the code does with it."""
        return ranks_of(self.called, self.trial.instance, name)

    def _by_use(self, name: str, main: Tensor, values: Sequence[Value]) -> Iterator[Value]:
        """What a parameter without an annotation takes by what the code does with it."""
        if name in self._numbers:
            yield from SIZES
        elif name in self._size_tuples:
            yield from SIZE_TUPLES
        elif parts := unpacked(self.called, name):
            yield from taken_apart(parts, main, self.trial.instance, _part)
        elif name in self._lists:
            counts = dict.fromkeys(max(count, least_items(self.called, name)) for count in (2, 3))
            yield from (Items((main,) * count, "[]") for count in counts)
        elif main.kind != "integer" and main.shape and name in used_as_places(self.called, self.trial.instance):
            yield from (Tensor(main.shape[:1], "integer"), Tensor(main.shape[:2], "integer"))
        elif main.shape and name in self._tensors and LENGTHS.fullmatch(name.lower()):
            yield Tensor(main.shape[:1], "integer")
        elif main.kind == "integer" and FEATURES.fullmatch(name.lower()):
            yield from (Tensor((*main.shape, width)) for width in widths(self.trial.instance))
        elif name in self._tensors and isinstance(values[0], str) and values[0] != "None" and not DEVICES.fullmatch(name.lower()):
            yield main

    def call_values(self, name: str, attempt: Attempt) -> tuple[Value, ...]:
        """All that a parameter of the call may take, beside the first tensor that the attempt has."""
        first = next((tensor for _, value in attempt.call or () for tensor in tensors(value)), None)
        main = first or (self._mains[0] if self._mains else Tensor((2, 16, 64)))
        index = list(self.call).index(name)
        mains = self._mains if index == 0 else (main,)
        sizes = widths(self.trial.instance) if index else ()
        beside = [Tensor((*leading, width)) for leading in dict.fromkeys((main.shape[:1], main.shape[:2])) for width in sizes]
        beside += [Tensor((main.shape[-2],) * 2)] if index and len(main.shape) > 2 else []  # of a graph: between its nodes
        return tuple(dict.fromkeys([*self._call_domain(self.call[name], main, index), *beside, *mains, Items((main, main), "[]"), "None"]))

    def texts_of(self, name: str) -> tuple[str, ...]:
        """Texts for a name alone, such as a field of a configuration: the repository's own settings first."""
        own = [repr(table[name]) for table in self._tables if name in table and not isinstance(table[name], dict)]
        return tuple(dict.fromkeys([*filter(None, [self._settings.get(name)]), *own[:MOST_SETTINGS], *parameter_texts(name, "")]))

    def files_for(self, name: str) -> Iterator[str]:
        """Files of the repository for a parameter that takes a path, by their places below the folder that the unit is imported from."""
        if self._root is not None:
            yield from file_texts(self._import_root, name, self._tables)

    @property
    def _import_root(self) -> Path:
        """The folder that the unit's file is imported from."""
        file, depth = getattr(self.trial.module, "__file__", None), self.trial.module.__name__.count(".")
        assert self._root is not None
        return Path(file).resolve().parents[depth + (Path(file).name == "__init__.py")] if file else self._root

    def fields_of(self, name: str) -> Fields | None:
        """What the class reads of a parameter of its constructor by name."""
        return accessed(self.trial.cls, name, self._settings)

    def words_of(self, name: str, field: str) -> tuple[str, ...]:
        """The words that a field of a configuration may be, by what the code compares it with."""
        return words_of_field(self.trial.cls, name, field)

    def words_of_init(self, name: str) -> tuple[str, ...]:
        """The words that a parameter of the constructor may be, by what its code compares it with."""
        return tuple(text for text in choices(self.trial.cls, self.init[name]) if text[:1] in "'\"")

    def words_in_call(self, name: str) -> tuple[str, ...]:
        """The words that a parameter of the call may be, by what its code compares it with, and as its name suggests."""
        parameter = self.call[name]
        compared = [text for text in (choices(self.called, parameter) if self.called is not None else ()) if text[:1] in "'\""]
        return tuple(dict.fromkeys([*compared, *parameter_texts(name, "str")]))

    def numbers_of(self, attempt: Attempt) -> dict[str, int | float]:
        """The numbers among the constructor's arguments and defaults, by name."""
        values = self._values_of(attempt)
        return {name: value for name, value in values.items() if type(value) in (int, float)}

    def is_integer(self, name: str, attempt: Attempt) -> bool:
        """Whether a parameter of the constructor takes an integer."""
        value = dict(attempt.init).get(name)
        default = self.init[name].default
        return (isinstance(value, str) and value.isdigit()) or (value is None and type(default) is int)

    def init_values(self, name: str, error: str = "") -> tuple[Value, ...]:
        """All that a parameter of the constructor may take; what the error asks for first."""
        values: list[Value] = [
            *self._init_domain(name),
            *(POOL if annotation_text(self.init[name].annotation) not in ("bool", "str") else ()),
        ]
        if annotation_text(self.init[name].annotation) in NUMBERS:
            values = [value for value in values if not isinstance(value, str) or re.fullmatch(r"[\d.e-]+", value)]
        if (use := self._use(name)) is not None and use.arguments > 1 and not use.listed:
            values = [*without_options(tuple(values), use)]
        sought = next((starts for pattern, starts in SOUGHT if re.search(pattern, error)), ())
        fits = [value for value in values if isinstance(value, str) and sought and value.startswith(sought)]
        nested = [text for count in (2, 3) for text in nested_texts(["int"] * count)] if OF_NUMBERS.search(error) else []
        return tuple(dict.fromkeys([*fits, *nested, *values]))

    def _init_domain(self, name: str) -> tuple[Value, ...]:
        parameter = self.init[name]
        annotation = annotation_text(parameter.annotation).strip("'\"")
        words = () if annotation in ("bool", *NUMBERS) else choices(self.trial.cls, parameter)
        by_class = (*objects_of_named_classes(self.trial.cls, name), *spaces_of(self.trial.cls, name, annotation))
        objects = by_class or self._objects(parameter, annotation)
        texts = self._texts(name, annotation)
        constructed = (*tensor_texts(self.trial.cls, name), *self._own_factories(name)) if not annotation else ()
        # Of a table that the code takes as an array of NumPy, what its name says comes before any other: that of a graph is square.
        arrays = [text for text in texts if text.endswith(".numpy()")] if any(text.endswith(".numpy()") for text in constructed) else []
        unsaid = not annotation or annotation.endswith("Module")
        return (
            *self._tables_of_objects(name),
            *(self._called_parts(name) if unsaid else ()),
            *arrays,
            *(layer_rows(self.trial.cls, name) if not annotation else ()),
            *constructed,
            *objects,
            *words,
            *(self._plain_part(name) if unsaid else ()),
            *texts,
            *(self._own_modules(name) if any("torch.nn.Identity()" in text for text in texts) else ()),
        ) or ("64",)

    def _texts(self, name: str, annotation: str) -> tuple[str, ...]:
        """What a name suggests; of one that says little, what torch's layers take where the constructor hands it to them."""
        own = parameter_texts(name, annotation)
        if not annotation and self.trial.function is None and is_power(self.trial.cls, name):
            own = (SQUARE, *own)
        if LAYER_NORM in own and (beside := norms_beside(self.trial.cls)):
            own = tuple(dict.fromkeys([*beside, *own]))
        if not annotation and self.trial.function is None and (count := items_read(self.trial.cls, name)):
            lists = [text for text in own if text[:1] in ("[", "(")]
            item = next((text for text in own if text.isdigit()), "64")
            own = tuple(dict.fromkeys([*(lists if count == 2 else ()), f"[{', '.join([item] * min(count, MOST_ITEMS))}]", *lists, *own]))
        if self.trial.function is None and (not annotation or LISTS.fullmatch(annotation)) and (taken := list_text(self.trial.cls, name)):
            own = tuple(dict.fromkeys([taken, *own]))
        if annotation not in ("", "int") or self.trial.function is not None or not says_little(name):
            return own
        named = [role for role in roles(self.trial.cls, name) if not says_little(role)]
        return tuple(dict.fromkeys([*(text for role in named for text in parameter_texts(role, annotation)), *own]))

    def _own_factories(self, name: str) -> tuple[str, ...]:
        """Module classes of the file that the constructor can call as it calls this parameter; those first whose names are alike."""
        import torch

        calls = list(constructions(self.trial.cls, name))
        fitting = [
            other
            for other, cls in self._classes.items()
            if issubclass(cls, torch.nn.Module)
            and self._own_class(other)
            and cls is not self.trial.cls
            and all(takes(cls, call) for call in calls)
        ]
        fitting.sort(key=lambda other: name.lower()[:ALIKE] not in other.lower())
        return tuple(fitting[:MOST_WRAPPED]) if calls else ()

    def _use(self, name: str) -> Use | None:
        """How the class calls a part that it is handed."""
        return use_of(self.trial.cls, name) if self.trial.function is None else None

    def _called_parts(self, name: str) -> tuple[str, ...]:
        """Modules of the repository for a parameter that the class calls with several arguments, those first that give as many values, and whose
        constructors take what this one takes: of the same width."""
        import torch

        use = self._use(name)
        if use is None or use.arguments < 2:
            return ()
        sources: dict[str, bool] = {}
        self._find_classes(lambda other, source: sources.setdefault(other, fits(source, other, use)))
        own = inspect.getsource(self.trial.module)
        fitting = [
            other
            for other, cls in self._classes.items()
            if self._own_class(other)
            and issubclass(cls, torch.nn.Module)
            and cls is not self.trial.cls
            and (sources.get(other) or fits(own, other, use))
        ]

        def shared(other: str) -> int:
            return len({item.name for item in constructor_parameters(self._classes[other])} & set(self.init))

        fitting.sort(key=lambda other: (use.results not in results_of(self._classes[other]), -shared(other)))
        made = [self._made_text(other) for other in fitting[:MOST_WRAPPED]]
        return tuple(f"[{text}, {text}]" if use.listed else text for text in made)

    def _plain_part(self, name: str) -> tuple[str, ...]:
        """A module for a parameter that the class calls with one argument, and whose name does not say so."""
        use = self._use(name)
        return (
            ("torch.nn.Identity()",)
            if use is not None and use.arguments == 1 and not (use.results or use.listed) and says_little(name)
            else ()
        )

    def _made_text(self, name: str) -> str:
        """The text that makes an instance of a class with what its own constructor takes first."""
        cls = self._classes[name]
        inner = self.of_class(cls)
        needed = required(inner.trial.init_parameters)
        if self._depth == MOST_NESTED or not needed:
            return object_texts(cls, name, self._classes, 1)[0]
        inner._depth = self._depth + 1
        return f"{name}({', '.join(f'{item.name}={value_text(inner.init_values(item.name)[0])}' for item in needed)})"

    def _own_modules(self, name: str) -> tuple[str, ...]:
        """Modules of the file for a parameter that takes a module: the one that the parameter is named after first."""
        import torch

        plain = name.lower().replace("_", "")
        own = [
            n for n, cls in self._classes.items() if issubclass(cls, torch.nn.Module) and self._own_class(n) and cls is not self.trial.cls
        ]
        own.sort(key=lambda other: other.lower().lstrip("_") != plain)
        return tuple(text for other in own[:4] for text in object_texts(self._classes[other], other, self._classes, 1))

    def _objects(self, parameter: inspect.Parameter, annotation: str) -> tuple[Value, ...]:
        """Objects of the repository's classes, and objects with the names that the code reads of the parameter."""
        bare = re.sub(r"\s*\|\s*None|Optional\[(.*)\]", r"\1", annotation)
        if self._own_class(bare):
            return object_texts(self._classes[bare], bare, self._classes)
        if listed := self._listed(parameter.name, bare):
            return listed
        if annotation and not CONFIGS.fullmatch(parameter.name):
            return ()
        fields = accessed(self.trial.cls, parameter.name, self._settings)
        named = [name for name in self._classes if name.lower() == parameter.name.lower().replace("_", "") and self._own_class(name)]
        if named:
            return object_texts(self._classes[named[0]], named[0], self._classes)
        if not CONFIGS.fullmatch(parameter.name):
            attributes = module_attributes(self.trial.cls, parameter.name)
            if attributes and (texts := self._wrapped(attributes)):
                return texts
            if not annotation and (plain := self._plain_classes(attributes_read(self.trial.cls, parameter.name))):
                return tuple(text for name in plain for text in object_texts(self._classes[name], name, self._classes, 1))
            if not annotation and (described := space(self.trial.cls, parameter.name)) is not None:
                return (described,)
            return (fields,) if fields is not None and len(fields.items) > 1 else ()
        self._find_configs()
        names = {name for name, _ in fields.items} if fields else set()
        fitting = [
            name
            for name, value in self._classes.items()
            if self._own_class(name) and CONFIG_CLASS.fullmatch(name) and names <= members(value)
        ]
        objects = [text for name in fitting[:3] for text in object_texts(self._classes[name], name, self._classes)]
        return (*objects, *(filled_in(fields, self.trial.cls, parameter.name) if fields else (Fields((), "namespace"),)))

    def _listed(self, name: str, annotation: str) -> tuple[str, ...]:
        """Lists of objects of the repository's classes: those that the annotation names, or of which the constructor reads what it reads of items."""
        class_name = listed_class(annotation) or mapped_class(annotation)
        if annotation:
            self._find_classes(lambda other, _: other == class_name)
            fitting = [class_name] if self._own_class(class_name) else []
        else:
            fitting = self._with_members(attributes_of_items(self.trial.cls, name))
        texts = [text for other in fitting[:MOST_WRAPPED] for text in object_texts(self._classes[other], other, self._classes)[:1]]
        return lists_of(texts, as_dictionary=bool(mapped_class(annotation)))

    def _with_members(self, attributes: frozenset[str]) -> list[str]:
        """Classes of the repository that have all of these attributes."""
        if not attributes:
            return []
        self._find_classes(lambda name, source: all(re.search(rf"\b{attribute}\b", source) for attribute in attributes))
        return [
            name
            for name, cls in self._classes.items()
            if self._own_class(name) and cls is not self.trial.cls and attributes <= members(cls)
        ]

    def other_numbers(self, text: str) -> Iterator[str]:
        """A text that builds objects of the repository's classes, with other numbers in them."""
        return other_numbers(text, self._classes)

    def sizes_without_default(self, name: str) -> tuple[str, ...]:
        """The fields of a class of the repository whose defaults are negative integers, which stand for no size."""
        return negative_fields(self._classes.get(name))

    def _own_class(self, name: str) -> bool:
        cls = self._classes.get(name)
        return cls is not None and cls.__module__.partition(".")[0] in {module.partition(".")[0] for _, module in self._files}

    def _wrapped(self, attributes: frozenset[str]) -> tuple[Value, ...]:
        """Modules of the repository of which the code reads these attributes, those that the documentation names first."""
        import torch

        fitting = [name for name in self._with_members(attributes) if issubclass(self._classes[name], torch.nn.Module)]
        text = f"{self.trial.cls.__doc__}\n{inspect.getdoc(vars(self.trial.cls).get('__init__'))}"
        fitting.sort(key=lambda name: re.search(rf"\b{name}\b", text) is None)
        return tuple(text for name in fitting[:MOST_WRAPPED] for text in object_texts(self._classes[name], name, self._classes, 1))

    def _find_configs(self) -> None:
        """Classes of other files whose names say that they are configurations."""
        self._find_classes(lambda name, source: CONFIG_CLASS.fullmatch(name) is not None)

    def _find_classes(self, is_sought: Callable[[str, str], bool]) -> None:
        """Import classes of other files, by their names and the text of the file."""
        for path, module in self._files:
            source = path.read_text(encoding="utf-8-sig", errors="replace") if path.is_file() and path.stat().st_size < LARGEST else ""
            for match in re.finditer(r"^class (\w+)", source, re.M):
                if match[1] not in self._classes and is_sought(match[1], source):
                    try:
                        cls = getattr(importlib.import_module(module), match[1])
                    except (Exception, SystemExit):
                        continue
                    self._classes[match[1]] = cls
                    self.trial.setups[match[1]] = f"from {module} import {match[1]}"


def _part(name: str, main: Tensor) -> Value:
    """What a part of an input is by its name."""
    return Tensor(main.shape, "bool") if "mask" in name.lower() else call_values(name, "", main)[0]


def members(cls: type) -> set[str]:
    """Names that instances of a class have, as far as its signature, annotations and body tell."""
    own = {name for base in cls.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return own
    return own | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def _of_rank(value: Value, ranks: Ranks, main: Tensor) -> Value:
    """The value; one of the rank that the code asks for where it is a tensor of another one."""
    if not isinstance(value, Tensor) or ranks.fit(value.shape):
        return value
    return next(ranked(ranks, replace(main, kind=value.kind, high=value.high)), value)


__all__ = ["EMPTY", "Options", "members"]
