"""Records how module classes of the repository are constructed and called, as source text and tensors.

Constructions are seen in `nn.Module.__new__`, which runs exactly once for each, outermost, with the arguments as the caller gave them.
Calls are seen in `nn.Module.__call__`. Both only look; a failure to encode becomes a reason, never an error of the user's program.
"""

from __future__ import annotations

import copy
import copyreg
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import partial, wraps
from types import FunctionType
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.record.encode import Construction, Encoder, NotEncodable, is_plain_state
from migrate_agent.tools.record.kinds import base_kind

MAX_INITS = 3
MAX_CALLS = 3
MAX_CONSTRUCTIONS = 100_000
LARGE = 2**20
"""Bytes of tensors above which a smaller call may replace a recorded one."""
UnitOf = Callable[[type], str]
"""Class → id of its unit, or "" where it is none."""


@dataclass(eq=False)
class Sample:
    """One call as source text, with the tensors that the texts refer to."""

    unit: str
    init: str
    call: str
    setup: str
    tensors: Mapping[str, Any]
    key: Any = None
    structure: Any = None
    ran: bool = False
    method: str = ""
    """The method that was called; "" for a call of the module."""

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


@dataclass
class _Init:
    encoder: Encoder
    text: str


@dataclass
class _Record:
    construction: Construction
    alive: Any
    init: _Init | None = None
    reason: str = ""


@dataclass
class _Unit:
    calls: dict[Any, list[Sample]] = field(default_factory=dict)
    reason: str = ""
    methods: dict[str, dict[Any, list[Sample]]] = field(default_factory=dict)

    def of(self, method: str) -> dict[Any, list[Sample]]:
        """The calls of the module, or of this method of it, by `init`."""
        return self.methods.setdefault(method, {}) if method else self.calls

    def all(self) -> list[Sample]:
        """All calls, those of methods last."""
        return [sample for calls in (self.calls, *self.methods.values()) for samples in calls.values() for sample in samples]


def snapshot(value: Any, depth: int = 4) -> Any:
    """A copy of containers and plain configuration objects, so that later changes of the original do not show. The rest is shared."""
    cls = type(value)
    if depth == 0:
        return value
    if cls in (list, tuple, set, frozenset):
        return cls(snapshot(item, depth - 1) for item in value)
    if cls is dict:
        return {key: snapshot(item, depth - 1) for key, item in value.items()}
    if base_kind(cls) or isinstance(value, type) or callable(value) or not (is_dataclass(value) or is_plain_state(value)):
        return value
    twin = copy.copy(value)
    vars(twin).update({name: snapshot(item, depth - 1) for name, item in vars(value).items()})
    return twin


def holds_module(value: Any, depth: int = 4) -> bool:
    """Whether a module stands somewhere in the arguments of a call."""
    import torch

    if isinstance(value, torch.nn.Module):
        return True
    if not depth or not isinstance(value, list | tuple | dict):
        return False
    return any(holds_module(item, depth - 1) for item in (value.values() if isinstance(value, dict) else value))


def call_key(value: Any, shapes: bool = True, depth: int = 6) -> Any:
    """A key that is equal for calls of the same kind: structure, dtypes, small constants, and shapes (or ranks alone)."""
    kind = base_kind(type(value))
    if kind in ("tensor", "parameter", "ndarray"):
        return kind, tuple(value.shape) if shapes else value.ndim, str(value.dtype)
    if depth and isinstance(value, list | tuple):
        return type(value), tuple(call_key(item, shapes, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return type(value), tuple((str(key), call_key(item, shapes, depth - 1)) for key, item in value.items())
    if isinstance(value, bool | str | type(None)):
        return value
    if depth and is_dataclass(value) and not isinstance(value, type):
        return type(value), call_key(vars(value), shapes, depth - 1)
    return type(value)


def replaced_sample(calls: list[Sample], structure: Any, size: int) -> Sample | None:
    """The recorded call that a new one replaces, or `None` where the new one is not recorded.

    A new structure replaces a further shape of another structure; within a structure, a much smaller
    call replaces a large one.
    """
    counts = Counter(sample.structure for sample in calls)
    if not counts[structure]:
        crowded, count = counts.most_common(1)[0]
        return [sample for sample in calls if sample.structure == crowded][-1] if count > 1 else None
    largest = max((sample for sample in calls if sample.structure == structure), key=lambda sample: sample.size)
    return largest if largest.size > LARGE and size * 4 <= largest.size else None


class Capture:
    """Keeps at most three constructions per unit and three kinds of call for each (see `replaced_sample`).

    The tensors of a unit's samples stay within `max_bytes`.
    """

    def __init__(
        self,
        unit_of: UnitOf,
        own: Callable[[str], str] = lambda module: "",
        max_bytes: int = 64 * 2**20,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.active = True
        self.units: dict[str, _Unit] = {}
        self._unit_of = unit_of
        self._own = own
        self._max_bytes = max_bytes
        self._changed = changed
        self._names: dict[type, str] = {}
        self._records: dict[int, _Record] = {}
        self._called: set[int] = set()
        """Modules that a call is inside of: what they call of themselves is no call of their users."""

    def install(self) -> None:
        """Start to watch `torch.nn.Module` in this process, for good."""
        import torch

        module_class: Any = torch.nn.Module
        original = module_class.__call__

        def new(cls: type, *args: Any, **kwargs: Any) -> Any:
            following = super(module_class, cls).__new__  # type: ignore[misc]
            module = following(cls) if following is object.__new__ else following(cls, *args, **kwargs)
            if self.active:
                self._constructed(cls, module, args, kwargs, sys._getframe(1))
            return module

        @wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self._seen(module, "", partial(original, module), args, kwargs, by_name=False)

        module_class.__new__ = new
        module_class.__call__ = call

    def _seen(
        self, module: Any, method: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], by_name: bool = True
    ) -> Any:
        """Make a call, and record it. Raises the errors of the call. `by_name`: of a function of the class, which may be a step of another call."""
        inside = id(module) in self._called
        of_user = not by_name or not (inside or is_constructing(module))
        sample = self.before(module, args, kwargs, method) if self.active and of_user else None
        self._called.add(id(module))
        try:
            result = call(*args, **kwargs)
        finally:
            if not inside:
                self._called.discard(id(module))
        if sample is not None:
            self.after(sample)
        return result

    def _watch(self, cls: type) -> None:
        """Record calls of the public methods of a unit's class from now on, and of `forward` by its own name as calls of the module."""
        import torch

        forward_of: Any = next((base for base in cls.__mro__ if isinstance(vars(base).get("forward"), FunctionType)), None)
        if forward_of is not None:
            forward: Any = vars(forward_of)["forward"]
            if forward_of.__module__.partition(".")[0] != "torch" and not hasattr(forward, "watched"):
                forward_of.forward = self._watched("", forward)
        for name, member in methods.public_methods(cls, torch.nn.Module).items():
            owner = next(base for base in cls.__mro__ if name in vars(base))
            if isinstance(member, FunctionType) and not hasattr(member, "watched"):
                setattr(owner, name, self._watched(name, member))

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def method(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self._seen(module, name, partial(function, module), args, kwargs)

        method.watched = True  # type: ignore[attr-defined]
        return method

    def forget(self, module: Any) -> None:
        """Capture no calls of this instance (it was built from an example that exists already)."""
        self._records.pop(id(module), None)

    def construction(self, module: Any) -> Construction | None:
        """How the instance was constructed, where that was seen."""
        record = self._records.get(id(module))
        return record.construction if record is not None else None

    def samples(self) -> list[Sample]:
        """The calls that ran to their end."""
        return [sample for unit in self.units.values() for sample in unit.all() if sample.ran]

    def reasons(self) -> dict[str, str]:
        """Unit id → why nothing was recorded of it, for units without a recorded call."""
        recorded = {sample.unit for sample in self.samples()}
        return {name: unit.reason for name, unit in self.units.items() if unit.reason and name not in recorded}

    def _constructed(self, cls: type, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: Any) -> None:
        # A program that builds modules without end must not run out of memory because it is
        # watched.
        if len(self._records) > MAX_CONSTRUCTIONS:
            return
        key = id(module)
        try:
            self._unit(cls)
            # `copy.deepcopy` runs no constructor: the copy was constructed as its original was.
            if frame.f_code is copyreg.__newobj__.__code__:  # type: ignore[attr-defined]  # a copy or an unpickled instance
                construction = self.construction(frame.f_back.f_locals.get("x")) if frame.f_back is not None else None
            else:
                construction = Construction(
                    cls, tuple(snapshot(value) for value in args), {name: snapshot(value) for name, value in kwargs.items()}
                )
            if construction is not None:
                # The weak reference removes the record with the module, before its id can be used
                # again.
                self._records[key] = _Record(construction, weakref.ref(module, lambda _: self._records.pop(key, None)))
        except Exception as error:
            self._refuse(cls, f"its constructor's arguments could not be copied ({type(error).__name__}: {error})")

    def _unit(self, cls: type) -> str:
        if cls not in self._names:
            self._names[cls] = self._unit_of(cls)
            if self._names[cls]:
                self._watch(cls)
        return self._names[cls]

    def _refuse(self, cls: type, reason: str) -> None:
        name = self._unit(cls)
        if name:
            self.units.setdefault(name, _Unit()).reason = reason

    def before(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], method: str = "") -> Sample | None:
        """Encode a call before the callee can change its arguments; `None` where it adds nothing new."""
        cls = type(module)
        record = self._records.get(id(module))
        if not self._unit(cls) or record is None:
            return None
        try:
            return self._sample(cls, module, record, args, kwargs, method)
        except NotEncodable as error:
            self._refuse(cls, f"its call holds {error}")
        except Exception as error:
            self._refuse(cls, f"its call could not be recorded ({type(error).__name__}: {error})")
        return None

    def after(self, sample: Sample) -> None:
        """Record a call that ran to its end."""
        calls = self.units.setdefault(sample.unit, _Unit()).of(sample.method).setdefault(sample.init, [])
        if any(other.key == sample.key for other in calls):
            return
        sample.ran = True
        leaving = replaced_sample(calls, sample.structure, sample.size) if len(calls) >= MAX_CALLS else None
        if leaving is not None:
            calls.remove(leaving)
        if len(calls) < MAX_CALLS:
            calls.append(sample)
        if self._changed is not None:
            self._changed()

    def _sample(
        self, cls: type, module: Any, record: _Record, args: tuple[Any, ...], kwargs: Mapping[str, Any], method: str
    ) -> Sample | None:
        init = self._init(cls, record)
        if init is None:
            return None
        if holds_module((args, kwargs)):
            raise NotEncodable("a module, which is no input that both sides can be given")
        unit = self.units.setdefault(self._unit(cls), _Unit())
        key, structure = (tuple(call_key(part, shapes) for part in (args, dict(kwargs))) for shapes in (True, False))
        known = unit.of(method)
        calls = known.get(init.text, [])
        if any(sample.key == key for sample in calls) or (init.text not in known and len(known) >= MAX_INITS):
            return None
        size = tensor_bytes((args, kwargs))
        if len(calls) >= MAX_CALLS and not replaced_sample(calls, structure, size):
            return None
        if size > self._room(unit):
            unit.reason = unit.reason or f"its calls hold more than {self._max_bytes >> 20} MiB of tensors"
            return None
        encoder = Encoder(vars(sys.modules[cls.__module__]), "call", self.construction, init.encoder.taken, self._own)
        text = encoder.arguments(getattr(module, method or "forward"), args, kwargs)
        setup = "\n".join(dict.fromkeys([*init.encoder.setup, *encoder.setup]))
        return Sample(self._unit(cls), init.text, text, setup, {**init.encoder.tensors, **encoder.tensors}, key, structure, method=method)

    def calls_of(self, unit: str) -> Mapping[str, list[Sample]]:
        """The recorded calls of a unit, by `init`."""
        return self.units.setdefault(unit, _Unit()).calls

    def refuse(self, unit: str, reason: str) -> None:
        """Record why a call of a unit was not recorded."""
        self.units.setdefault(unit, _Unit()).reason = reason

    def room(self, unit: str) -> int:
        """Bytes of tensors that calls of the unit may still hold."""
        return self._room(self.units.setdefault(unit, _Unit()))

    def own(self, module: str) -> str:
        """The name under which the repository imports a module of its own, else ""."""
        return self._own(module)

    def _room(self, unit: _Unit) -> int:
        return self._max_bytes - sum(sample.size for sample in unit.all())

    def _init(self, cls: type, record: _Record) -> _Init | None:
        if record.init is None and not record.reason:
            encoder = Encoder(vars(sys.modules[cls.__module__]), "init", self.construction, None, self._own)
            try:
                record.init = _Init(encoder, encoder.arguments(cls, record.construction.args, record.construction.kwargs))
            except NotEncodable as error:
                record.reason = f"its constructor was given {error}"
        if record.reason:
            self._refuse(cls, record.reason)
        return record.init


def is_constructing(module: Any) -> bool:
    """Whether the constructor of this very module is running: what it calls is compared with the initial values."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is module:
            return True
        frame = frame.f_back
    return False


def tensor_bytes(value: Any, depth: int = 6) -> int:
    """Bytes of the tensors in a nest of containers."""
    if base_kind(type(value)) in ("tensor", "parameter"):
        return int(value.numel() * value.element_size())
    if depth and isinstance(value, list | tuple | set):
        return sum(tensor_bytes(item, depth - 1) for item in value)
    if depth and isinstance(value, Mapping):
        return sum(tensor_bytes(item, depth - 1) for item in value.values())
    return 0
