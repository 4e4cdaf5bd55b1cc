"""One trial of a guess: build the unit, call it, and say how far it came."""

from __future__ import annotations

import ast
import inspect
import os
import re
import signal
import sys
import textwrap
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from types import FrameType
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, in_mode, make_namespace
from migrate_agent.tools.harness.common.function_module import function_module
from migrate_agent.tools.harness.common.trees import distribution_names
from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.earlier_calls import Missing, Step, missing_state, step_text, steps
from migrate_agent.tools.record.guessing.functions import called_parameters
from migrate_agent.tools.record.guessing.trials.keyword_reads import is_name, parameters_read
from migrate_agent.tools.record.guessing.trials.origins import MANY_NORMALISED, Operation, Origins
from migrate_agent.tools.record.guessing.trials.own_seconds import WAITING
from migrate_agent.tools.record.guessing.trials.place import Place, causes, place_of
from migrate_agent.tools.record.guessing.trials.quick_initialisers import quick_initialisers
from migrate_agent.tools.record.guessing.trials.unset_memory import set_memory
from migrate_agent.tools.record.guessing.values import Sequence as Items
from migrate_agent.tools.record.guessing.values import Value, text
from migrate_agent.tools.types import Example

NOT_FINITE = "the result is not finite"
NO_TENSOR = "it gives no tensor"
NO_RETURN = "its `{}` has no `return` with a value, so that it gives None"
MOST_SECONDS = 4.0
"""Of one trial, in this process; `WAITING` times as long by the clock. A guess that takes longer is none that a verifier could repeat."""
Arguments = tuple[tuple[str, Value], ...]
EMPTY = inspect.Parameter.empty
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Attempt:
    """Values for parameters of the constructor and, once it has run, of the call."""

    init: Arguments
    call: Arguments | None = None


def set_init(attempt: Attempt, name: str, value: Value) -> Attempt:
    """The attempt with another argument of the constructor."""
    return replace(attempt, init=_set(attempt.init, name, value))


def set_call(attempt: Attempt, name: str, value: Value) -> Attempt:
    """The attempt with another argument of the call."""
    return replace(attempt, call=_set(attempt.call or (), name, value))


def _set(arguments: Arguments, name: str, value: Value) -> Arguments:
    if any(other == name for other, _ in arguments):
        return tuple((other, value if other == name else argument) for other, argument in arguments)
    return (*arguments, (name, value))


class Stage(IntEnum):
    """How far a trial came."""

    CONSTRUCT = 0
    CONSTRUCTED = 1
    CALL = 2
    RESULT = 3
    EVALUATION_ONLY = 4
    DONE = 5


class Outcome(NamedTuple):
    """What came of a trial. `progress` grows with how far it came before it failed (`Trial._progress`)."""

    stage: Stage
    progress: int = 0
    error: str = ""
    place: Place = Place()
    hopeless: bool = False
    """Whether no other value can mend it: an abstract class, a forward that is not implemented."""
    operation: Operation = Operation()
    """What the call ran last before it failed."""
    downloads: bool = False
    """Whether weights were asked for that are not here (`torch_side/downloads.py`)."""
    missing: Missing | None = None
    """What the call read that another method sets."""
    reshapes: bool = False
    """Whether the call gave parameters other shapes: those of its own input."""
    fewest_normalised: int = MANY_NORMALISED
    """The fewest numbers that a normalisation took a mean and a variance of, up to `MANY_NORMALISED`."""
    operations: int = 0
    """Of torch, that ran in training mode."""
    parameters: int = 0
    """How many numbers the module's parameters have."""

    def reaches(self, other: Outcome) -> bool:
        """Whether what ran shows as much of the code as this other run."""
        return self.progress >= other.progress and self.fewest_normalised >= other.fewest_normalised


def arguments_text(arguments: Arguments, parameters: Sequence[inspect.Parameter]) -> str:
    """The argument list: required ones by position, others by name."""
    values, keyword = dict(arguments), False
    parts: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            items = values.get(parameter.name)
            parts += map(text, items.items) if isinstance(items, Items) else []
            continue
        if parameter.name not in values:
            keyword = True
            continue
        keyword = keyword or parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not EMPTY
        parts.append(f"{parameter.name}={text(values[parameter.name])}" if keyword else text(values[parameter.name]))
    known = {parameter.name for parameter in parameters}
    return ", ".join([*parts, *(f"{name}={text(value)}" for name, value in arguments if name not in known)])


@contextmanager
def time_limit(seconds: float, waiting: float = 1) -> Iterator[None]:
    """Raise `TimeoutError` in code that computes longer, or takes `waiting` times as long by the clock.

    Without effect where signals cannot be set (another thread).
    """
    of_process = ((signal.SIGPROF, signal.ITIMER_PROF, seconds),) if waiting > 1 else ()
    timers = (*of_process, (signal.SIGALRM, signal.ITIMER_REAL, waiting * seconds))

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it ran longer than {seconds:g} seconds")

    try:
        before = [signal.signal(number, stop) for number, _, _ in timers]
    except ValueError:
        yield
        return
    for _, timer, most in timers:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


class Trial:
    """Runs attempts on one class: its instances are called, or this method of theirs, after the `earlier` ones, whose parameters are read off `instance`.
    `own` are the folders of the user's code."""

    def __init__(
        self, cls: type, module: Any, own: Sequence[str], method: str = "", earlier: Sequence[Step] = (), instance: Any = None
    ) -> None:
        self.function: Any = getattr(cls, "function", None)
        callables = called_parameters(self.function) if self.function else ()
        self.cls, self.module = function_module(self.function, callables) if self.function else cls, module
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in own)
        named = [item.replace(kind=item.KEYWORD_ONLY) for item in parameters(self.function) if item.name in callables]
        self.init_parameters = named if self.function else constructor_parameters(cls)
        self.method, self.earlier, self._described = method, earlier, instance
        called = methods.unbound(self.cls, method) if hasattr(self.cls, method or "forward") else None
        self.call_parameters = parameters(called)[1:] if called else []
        self.instance: Any = None
        self.setups = {"types": "import types", "argparse": "import argparse"}
        """Names that texts may hold and the unit's file lacks → the line that imports them."""
        self._places: set[tuple[Any, int]] = set()
        self._origins = Origins()

    def example(self, attempt: Attempt) -> Example:
        """The attempt as an example."""
        init = arguments_text(attempt.init, self.init_parameters)
        call = arguments_text(attempt.call, self.call_parameters) if attempt.call is not None else ""
        if self.earlier and attempt.call is not None:
            call = ", ".join([*(step_text(self._described, step, dict(attempt.call)) for step in self.earlier), *([call] if call else [])])
        words = re.findall(r"\w+", f"{init} {call}")
        lines = [line for name, line in self.setups.items() if name in words and not hasattr(self.module, name)]
        return Example("", init, call, "\n".join(lines), origin="inference", method=self.whole_method)

    @property
    def whole_method(self) -> str:
        """The methods that are called, one after the other."""
        return methods.THEN.join([*(step.name for step in self.earlier), self.method or methods.CALLS[0]]) if self.earlier else self.method

    def run(self, attempt: Attempt) -> Outcome:
        """Construct and, where the attempt has a call, call in evaluation and training mode."""
        from migrate_agent.tools.harness.torch_side.downloads import downloads

        before = downloads()
        outcome = self._run(attempt)
        return outcome._replace(downloads=downloads() > before)

    def _run(self, attempt: Attempt) -> Outcome:
        import torch

        example = self.example(attempt)
        self._places, self.instance, stage = set(), None, Stage.CONSTRUCT
        self._origins.begin({})
        try:
            with time_limit(MOST_SECONDS, WAITING):
                # Outside of the counting: code that names a GPU is spared it by a mode that is entered here for good.
                namespace = make_namespace(self.module, example)
                with self._counted():
                    torch.manual_seed(0)
                    with quick_initialisers():
                        self.instance = construct(self._constructed, example, namespace)
                    set_memory(self.instance)
                    if attempt.call is None:
                        return Outcome(Stage.CONSTRUCTED)
                    stage = Stage.CALL
                    return self._modes(example, namespace)
        except MemoryError:
            self.instance = None  # what is left of it would fail the trials after it, and reading where it failed takes memory
            return Outcome(stage, 0, "MemoryError: it takes too much memory")
        except Exception as error:
            return self._failure(stage, error)

    def _constructed(self, *args: Any, **kwargs: Any) -> Any:
        """An instance of the unit; what the making of its arguments came through is no progress."""
        self._places.clear()
        return self.cls(*args, **kwargs)

    def _failure(self, stage: Stage, error: BaseException) -> Outcome:
        place, operation = place_of(error, self.cls, self.function), Operation()
        *_, error = causes(error)
        if stage is not Stage.CONSTRUCT:
            # What the operation was given says more than what the statement reads: a statement of the caller names all arguments of a part.
            operation = self._origins.failed
            place = place._replace(call=tuple(dict.fromkeys([*operation.origins, *place.call])))
        # One with a message, or under a condition, speaks of a value that it was given.
        of_a_value = (stage is Stage.CONSTRUCT and bool(str(error))) or _is_conditional(error)
        abstract = (isinstance(error, NotImplementedError) and not of_a_value) or "abstract class" in str(error)
        hopeless = abstract and (stage is Stage.CONSTRUCT or not self._places) and not self._of_an_argument(error)
        missing = isinstance(error, NotImplementedError) and "is missing the required" in str(error)
        progress = self._progress(place.line)
        text_of_error = f"{type(error).__name__}: {error}"
        return Outcome(stage, progress, text_of_error, place, hopeless or missing, operation, missing=self._missing(stage, error))

    def _missing(self, stage: Stage, error: BaseException) -> Missing | None:
        """What the call read that another method sets."""
        absent = missing_state(error, self.instance) if stage is Stage.CALL and self.function is None else None
        return absent if absent is not None and steps(self.instance, absent, self.method) else None

    def _of_an_argument(self, error: BaseException) -> bool:
        """Whether a method of another object raised: a base of the class that the unit should be given, for one."""
        frame = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
        owner = frame.f_locals.get("self")
        return owner is not None and not isinstance(owner, self.cls)

    def _progress(self, line: int = 0) -> int:
        """How far a trial came: the places that used tensors, then the line of the class that failed, then the operations: a part that is called
        twice has the same places."""
        return (len(self._places) * 10_000 + min(line, 9_999)) * 10_000 + min(self._origins.operations, 9_999)

    def has_shapes(self, attempt: Attempt) -> bool:
        """Whether an attempt can be constructed without numbers, on torch's meta device."""
        import torch

        example = replace(self.example(attempt), call="")
        try:
            with time_limit(MOST_SECONDS, WAITING):
                namespace = make_namespace(self.module, example)
                with torch.device("meta"):
                    construct(self.cls, example, namespace)
        except Exception:  # whatever the user's constructor raises where its tensors hold nothing
            return False
        return True

    def _modes(self, example: Example, namespace: Mapping[str, Any]) -> Outcome:
        import torch

        reshapes = False
        for training in (False, True):
            torch.manual_seed(0)
            args, kwargs = call_arguments(example, namespace)
            instance = in_mode(construct(self.cls, example, namespace) if training else self.instance, training=training)
            set_memory(instance)
            shapes = _shapes(instance)
            self._origins.begin(self._by_name(args[len(self.earlier) :], kwargs))
            try:
                result = methods.bound(instance, self.whole_method)(*args, **kwargs)
            except Exception as error:
                if not training:
                    raise
                return self._failure(Stage.EVALUATION_ONLY, error)
            reshapes = reshapes or any(shapes.get(name, shape) != shape for name, shape in _shapes(instance).items())
            tensors = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
            # A function may give infinities on purpose: the scores of a mask.
            is_number: Any = torch.isfinite if self.function is None else lambda tensor: ~torch.isnan(tensor)
            if not tensors and self._gives_numbers(result, (args, kwargs)):
                continue
            if result is None and self.function is None and _returns_nothing(methods.unbound(self.cls, self.method)):
                return Outcome(Stage.RESULT, self._progress(), NO_RETURN.format(self.method or "forward"), hopeless=True)
            if not tensors or not all(bool(is_number(tensor).all()) for tensor in tensors if tensor.numel() and not tensor.is_meta):
                return Outcome(Stage.RESULT, self._progress(), NOT_FINITE if tensors else NO_TENSOR)
        origins = self._origins
        return Outcome(
            Stage.DONE,
            len(self._places),
            reshapes=reshapes,
            fewest_normalised=origins.fewest_normalised,
            operations=origins.operations,
            parameters=_elements(self.instance),
        )

    def _by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the names of their parameters."""
        positional = [item.name for item in self.call_parameters if item.kind not in (*VARIADIC, item.KEYWORD_ONLY)]
        return {**dict(zip(positional, args, strict=False)), **kwargs}

    def _gives_numbers(self, result: Any, arguments: Any) -> bool:
        """Whether a function read finite numbers, or NumPy's arrays of them, out of the tensors that it was given, as metrics do."""
        import numpy
        import torch

        kinds = (int, float, numpy.integer, numpy.floating, numpy.ndarray)
        numbers = [leaf for leaf in leaves(result) if isinstance(leaf, kinds) and not isinstance(leaf, bool)]
        tensors = [leaf for leaf in leaves(arguments) if isinstance(leaf, torch.Tensor)]
        if self.function is None or not (tensors and numbers and self._origins.used):
            return False
        return all(numpy.asarray(number).dtype.kind in "iuf" and bool(numpy.isfinite(number).all()) for number in numbers)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count the places of the user's code that call functions of torch, and follow what they are given."""
        from torch.overrides import TorchFunctionMode

        trial = self

        class Count(TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                trial._count(sys._getframe(1))
                return trial._origins.follow(func, args, kwargs or {})

        with Count():
            yield

    def _count(self, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._own):
                self._places.add((frame.f_code, frame.f_lineno))
                return
            frame = frame.f_back


def _shapes(instance: Any) -> dict[str, Any]:
    """The shapes of a module's parameters; lazy ones have none yet."""
    import torch

    named = instance.named_parameters() if isinstance(instance, torch.nn.Module) else ()
    return {name: parameter.shape for name, parameter in named if not torch.nn.parameter.is_lazy(parameter)}


def _elements(instance: Any) -> int:
    """How many numbers the parameters of a module have; lazy ones count nothing."""
    import torch

    named = instance.parameters() if isinstance(instance, torch.nn.Module) else ()
    return sum(one.numel() for one in named if not torch.nn.parameter.is_lazy(one))


def _returns_nothing(function: Any) -> bool:
    """Whether the source of a function is known and gives no value anywhere."""
    nodes = nodes_of(function)
    gives = (node for node in nodes if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Lambda)))
    return bool(nodes) and not any(not isinstance(node, ast.Return) or node.value is not None for node in gives)


def leaves(result: Any) -> list[Any]:
    """The leaves of what a module gave, the fields of dataclasses and what makes a distribution among them."""
    import dataclasses

    import torch

    tensors: list[Any] = []
    for leaf in torch.utils._pytree.tree_leaves(result):
        is_data = dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)
        names = [field.name for field in dataclasses.fields(leaf)] if is_data else distribution_names(type(leaf))
        tensors += [part for name in names for part in leaves(getattr(leaf, name))] if names else [leaf]
    return tensors


def parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters of a function or class; none where they cannot be read."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return []


def constructor_parameters(cls: type) -> list[inspect.Parameter]:
    """The parameters of a constructor, and those that it hands on to its bases by `**kwargs`."""
    signature, owner = parameters(cls), cls
    for base in cls.__mro__[1:-1]:
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature) or base.__module__ == "torch.nn.modules.module":
            break
        variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in signature)
        names = {parameter.name for parameter in signature} | _set_for_base(owner, base)
        more = [parameter for parameter in parameters(base) if parameter.name not in names] if "__init__" in vars(base) else []
        own = [parameter for parameter in signature if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]
        by_name = [parameter if parameter.kind in VARIADIC else parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in more]
        if "__init__" in vars(base):
            signature, owner = [*own, *(more if variadic and not own else by_name)], base
    return _with_those_of_parts(cls, signature)


def _set_for_base(cls: type, base: type) -> set[str]:
    """The parameters of the base's constructor that a class's own sets itself: `super().__init__([2, 2], Block, **kwargs)`."""
    taken = [parameter.name for parameter in parameters(base) if parameter.kind not in (*VARIADIC, parameter.KEYWORD_ONLY)]
    given: set[str] = set()
    for node in nodes_of(vars(cls).get("__init__")):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="__init__"), args=args, keywords=keywords):
                positional = args[0 if isinstance(owner, ast.Call) else 1 :]  # `Base.__init__(self, …)` names the instance
                before = next((at for at, one in enumerate(positional) if isinstance(one, ast.Starred)), len(positional))
                given |= {*taken[:before], *(one.arg for one in keywords if one.arg)}
    return given


def _with_those_of_parts(cls: type, signature: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters of a constructor, with those of the classes that it constructs from all that it takes, `self.stream = Stream(*args, **kwargs)`,
    and with those that it reads by their names."""
    keywords = next((parameter for parameter in signature if parameter.kind is parameter.VAR_KEYWORD), None)
    if keywords is None:
        return signature
    own = [parameter for parameter in signature if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]
    names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    parts: dict[str, inspect.Parameter] = {}
    written: set[str] = set()
    for node in nodes_of(vars(cls).get("__init__")):
        if isinstance(node, ast.Call) and any(is_name(one.value, keywords.name) for one in node.keywords if one.arg is None):
            called = value_of_name(node.func, names)
            if inspect.isclass(called) and not called.__module__.startswith("torch."):
                taken = [one for one in parameters(called) if one.kind not in VARIADIC]
                plain = next((at for at, one in enumerate(node.args) if isinstance(one, ast.Starred)), len(node.args))
                written |= {one.arg for one in node.keywords if one.arg} | {one.name for one in taken[:plain]}
                parts |= {one.name: one for one in taken}
    parts = {one.name: one for one in parameters_read(cls, keywords.name)} | {
        name: one for name, one in parts.items() if name not in written
    }
    by_name = [one.replace(kind=one.KEYWORD_ONLY) for one in parts.values() if one.name not in {mine.name for mine in own}]
    return [*own, *by_name] if by_name else signature


def required(function_parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Those without a default."""
    return [p for p in function_parameters if p.default is EMPTY and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _is_conditional(error: BaseException) -> bool:
    """Whether the statement that raised stands under a condition of its function."""
    frame, line = [*traceback.walk_tb(error.__traceback__)][-1]
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return False
    branches = [statement for node in ast.walk(tree) if isinstance(node, ast.If) for statement in (*node.body, *node.orelse)]
    return any(isinstance(statement, ast.Raise) and statement.lineno == line - first + 1 for statement in branches)
