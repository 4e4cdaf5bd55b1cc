"""Writes PyTorch's module samples (`module_db`) as source: a small class around each construction and call."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch

from migrate_agent.evals.operators.op_source import Unspelled, Writer

FACTORY = ("device", "dtype")


@dataclass(frozen=True)
class Sample:
    """One construction and call. `tensors` are the arguments of the class (`t0, …`), `inputs` those of the call (`x0, …`)."""

    module: str
    training: bool
    construction: str
    call: str
    tensors: tuple[torch.Tensor, ...]
    inputs: tuple[torch.Tensor, ...]

    @property
    def names(self) -> dict[str, torch.Tensor]:
        """Name → tensor, of both."""
        return {f"t{i}": value for i, value in enumerate(self.tensors)} | {f"x{i}": value for i, value in enumerate(self.inputs)}

    @property
    def title(self) -> str:
        """The sample in one line."""
        return f"{self.construction}({self.call}), {'train' if self.training else 'eval'}"

    def text(self, name: str) -> str:
        """The class under this name."""
        constructor = "".join(f", t{index}" for index in range(len(self.tensors)))
        arguments = "".join(f", x{index}" for index in range(len(self.inputs)))
        return (
            f"class {name}(torch.nn.Module):\n    def __init__(self{constructor}):\n        super().__init__()\n"
            f"        self.layer = {self.construction}\n\n    def forward(self{arguments}):\n        return self.layer({self.call})\n"
        )


def samples(info: Any, limit: int | None) -> Iterator[Sample | Unspelled]:
    """The entry's samples in float64, in training mode and in evaluation mode; at most `limit` in all (None: all)."""
    for training in (True, False):
        with _constructions() as built, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=training)
        step = 1 if limit is None else max(1, -(-len(inputs) * 2 // limit))
        for item in inputs[::step]:
            try:
                yield _sample(info.module_cls, item, training, built)
            except Unspelled as error:
                yield error


def _sample(cls: type, item: Any, training: bool, built: Mapping[Any, str]) -> Sample:
    constructor, call = _ModuleWriter("t", built), _ModuleWriter("x", built)
    keywords = {key: value for key, value in item.constructor_input.kwargs.items() if key not in FACTORY}
    construction = f"torch.nn.{cls.__name__}({constructor.arguments(item.constructor_input.args, keywords)})"
    text = call.arguments(item.forward_input.args, item.forward_input.kwargs)
    return Sample(cls.__name__, training, construction, text, tuple(constructor.tensors), tuple(call.tensors))


class _ModuleWriter(Writer):
    """Knows functions of torch, and modules that were seen being built."""

    def __init__(self, letter: str, built: Mapping[Any, str]) -> None:
        super().__init__(letter)
        self.built = built

    def arguments(self, args: Any, kwargs: Mapping[str, Any]) -> str:
        """What stands between the parentheses."""
        return ", ".join([*map(self.write, args), *(f"{key}={self.write(value)}" for key, value in kwargs.items())])

    def other(self, value: Any) -> str:
        name = getattr(value, "__name__", "")
        if callable(value) and getattr(torch.nn.functional, name, None) is value:
            return f"torch.nn.functional.{name}"
        if callable(value) and name and getattr(torch, name, None) is value:
            return f"torch.{name}"
        if isinstance(value, torch.nn.Module) and value in self.built:
            return self.built[value]
        if dataclasses.is_dataclass(value) and getattr(torch.nn, type(value).__name__, None) is type(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return f"torch.nn.{type(value).__name__}({self.arguments((), fields)})"
        return super().other(value)


@contextmanager
def _constructions() -> Iterator[Mapping[Any, str]]:
    """While this lasts, each module of `torch.nn` that is built is noted with the source of its construction."""
    built: Any = weakref.WeakKeyDictionary()
    classes = [
        cls for cls in vars(torch.nn).values() if inspect.isclass(cls) and issubclass(cls, torch.nn.Module) and "__init__" in vars(cls)
    ]
    originals = {cls: cls.__init__ for cls in classes}
    modules: list[Any] = []  # the dictionary holds no module alive

    def noting(cls: type, original: Any) -> Any:
        @functools.wraps(original)
        def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if type(self) is cls:
                modules.append(self)
                keywords = {key: value for key, value in kwargs.items() if key not in FACTORY}
                with suppress(Unspelled):
                    built[self] = f"torch.nn.{cls.__name__}({_ModuleWriter('t', built).arguments(args, keywords)})"

        return constructor

    for cls, original in originals.items():
        setattr(cls, "__init__", noting(cls, original))  # noqa: B010  (mypy knows classes' constructors as methods)
    try:
        yield built
    finally:
        for cls, original in originals.items():
            setattr(cls, "__init__", original)  # noqa: B010
