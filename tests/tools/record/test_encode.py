"""Values become source text that evaluates to equal values."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import functools
import math
import pathlib
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from migrate_agent.tools.record.capture import Capture
from migrate_agent.tools.record.encode import Encoder, NotEncodable


class Color(enum.Enum):
    RED = "red"


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Pair(NamedTuple):
    left: Any
    right: int = 2


@dataclasses.dataclass
class Config:
    dim: int
    heads: int = 4
    layers: list[int] = dataclasses.field(default_factory=lambda: [1, 2])
    inner: Config | None = None
    head_dim: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.head_dim = self.dim // self.heads


class Plain:
    def __init__(self, width: int, depth: int = 2) -> None:
        self.width, self.depth = width, depth
        self.area = width * depth


class Renamed:
    def __init__(self, width_or_file: Any = 2, depth: int = 4) -> None:
        if isinstance(width_or_file, str):
            raise ValueError(width_or_file)
        self.width = width_or_file
        self.depth = depth


class OpenEnded:
    def __init__(self, **options: Any) -> None:
        self.rate = 0.1
        self.__dict__.update(options)


class Computed:
    def __init__(self, text: str) -> None:
        self.length = len(text)


class Outer:
    class Inner:
        pass


def double(x: Any) -> Any:
    return 2 * x


def local_function() -> Callable[[], int]:
    return lambda: 1


NAMES = dict(globals())

TEXTS: dict[str, tuple[Any, str]] = {
    "int": (3, "3"),
    "negative": (-3, "-3"),
    "float": (1e-5, "1e-05"),
    "infinity": (-math.inf, 'float("-inf")'),
    "bool": (True, "True"),
    "none": (None, "None"),
    "string": ("it's\n", '"it\'s\\n"'),
    "bytes": (b"\x00a", "b'\\x00a'"),
    "complex": (1 - 2j, "complex(1.0, -2.0)"),
    "slice": (slice(1, None, 2), "slice(1, None, 2)"),
    "ellipsis": (..., "..."),
    "range": (range(1, 7, 2), "range(1, 7, 2)"),
    "list": ([1, [2.0, "x"]], "[1, [2.0, 'x']]"),
    "tuples": (((1,), (), (1, 2)), "((1,), (), (1, 2))"),
    "dict": ({"a": 1, (1, 2): None}, "{'a': 1, (1, 2): None}"),
    "sets": ([{2, 1}, set(), frozenset({1}), frozenset()], "[{1, 2}, set(), frozenset({1}), frozenset()]"),
    "size": (torch.Size([1, 2]), "torch.Size([1, 2])"),
    "dtype": (torch.bfloat16, "torch.bfloat16"),
    "device": (torch.device("cpu"), 'torch.device("cpu")'),
    "layouts": ([torch.strided, torch.channels_last], "[torch.strided, torch.channels_last]"),
    "enum": ([Color.RED, Flags.A], "[Color.RED, Flags.A]"),
    "flags": (Flags.A | Flags.B, "Flags(3)"),
    "named tuple": (Pair(1, 3), "Pair(left=1, right=3)"),
    "ordered dict": (collections.OrderedDict(a=1), "collections.OrderedDict({'a': 1})"),
    "default dict": (collections.defaultdict(list, {1: [2]}), "collections.defaultdict(list, {1: [2]})"),
    "path": (pathlib.PurePosixPath("a/b"), "pathlib.PurePosixPath('a/b')"),
    "numpy scalar": (np.float32(0.5), "numpy.float32(0.5)"),
    "class": (Config, "Config"),
    "nested class": (Outer.Inner, "Outer.Inner"),
    "function": (double, "double"),
    "builtins": ([len, int, ValueError], "[len, int, ValueError]"),
    "torch classes and functions": (
        [torch.nn.Linear, torch.nn.functional.gelu, torch.relu, torch.Tensor, torch.nn.init.xavier_uniform_],
        "[torch.nn.Linear, torch.nn.functional.gelu, torch.relu, torch.Tensor, torch.nn.init.xavier_uniform_]",
    ),
    "dataclass": (Config(8), "Config(dim=8)"),
    "nested dataclass": (Config(8, 2, [3], Config(4)), "Config(dim=8, heads=2, layers=[3], inner=Config(dim=4))"),
    "namespace": (argparse.Namespace(lr=0.1, wd=None), "Namespace(lr=0.1, wd=None)"),
    "simple namespace": (types.SimpleNamespace(a=[1]), "SimpleNamespace(a=[1])"),
    "plain object": (Plain(3, 4), "Plain(width=3, depth=4)"),
    "plain object with defaults": (Plain(3), "Plain(width=3)"),
    "plain object that renames": (Renamed(3, 5), "Renamed(width_or_file=3, depth=5)"),
    "open-ended object": (OpenEnded(rate=0.2, size=3), "OpenEnded(rate=0.2, size=3)"),
}


def test_the_version_of_torch_is_text() -> None:
    assert Encoder({}).value(torch.__version__) == repr(str(torch.__version__))


def evaluate(encoder: Encoder, text: str, namespace: Mapping[str, Any]) -> Any:
    names = {**namespace, "torch": torch, "_tensors": encoder.tensors}
    exec("\n".join(encoder.setup), names)
    return eval(text, names)


def state(value: Any) -> Any:
    return (type(value), vars(value)) if hasattr(value, "__dict__") and type(value) in (Plain, Renamed, OpenEnded) else value


@pytest.mark.parametrize("name", TEXTS)
def test_value_to_text_and_back(name: str) -> None:
    value, text = TEXTS[name]
    encoder = Encoder(NAMES)
    assert encoder.value(value) == text
    again = evaluate(encoder, text, NAMES)
    assert state(again) == state(value)
    assert type(again) is type(value)


def test_nan_and_partial_round_trip() -> None:
    encoder = Encoder(NAMES)
    text = encoder.value((math.nan, functools.partial(torch.nn.LayerNorm, eps=1e-6)))
    nan, partial = evaluate(encoder, text, NAMES)
    assert math.isnan(nan)
    assert (partial.func, partial.keywords) == (torch.nn.LayerNorm, {"eps": 1e-6})
    assert text == '(float("nan"), functools.partial(torch.nn.LayerNorm, eps=1e-06))'


REFUSED: dict[str, tuple[Any, str]] = {
    "lambda": (lambda: 1, "a local function or class"),
    "closure": (local_function(), "a local function or class"),
    "object that computes": (Computed("abc"), "no constructor call"),
    "generator": ((n for n in "ab"), "a value of builtins.generator"),
    "random state": (torch.Generator(), "a value of torch"),
    "meta tensor": (torch.empty(2, device="meta"), "without data"),
    "object array": (np.array([object()]), "numpy array"),
    "config that holds a lambda": (OpenEnded(act=lambda: 1), "whose act is function"),
    "long text": (list(range(20_000)), "too long"),
    "bound method": (Plain(1).__init__, "cannot be imported"),  # type: ignore[misc]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_text_is_refused_with_the_reason(name: str) -> None:
    value, reason = REFUSED[name]
    with pytest.raises(NotEncodable, match=reason):
        Encoder(NAMES).value(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotEncodable, match="too deeply"):
        Encoder(NAMES).value(loop)


DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_go_to_slots(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    value = (torch.randn(shape, dtype=torch.complex64) * 3).real.to(dtype) if not dtype.is_complex else torch.randn(shape, dtype=dtype)
    encoder = Encoder({}, "call")
    again = evaluate(encoder, encoder.value([value, value]), {})
    assert len(encoder.tensors) == (2 if dtype.is_complex else 1)
    assert again[0].dtype == dtype
    assert torch.equal(again[0], value)


def test_a_slot_holds_what_the_tensor_was_then() -> None:
    value = torch.zeros(4)[::2]
    encoder = Encoder({})
    text = encoder.value({"x": value})
    value += 1
    assert text == "{'x': _tensors[\"t0\"]}"
    assert torch.equal(encoder.tensors["t0"], torch.zeros(2))


def test_names_that_the_file_lacks_are_imported() -> None:
    encoder = Encoder({})
    assert encoder.value([Config, collections.Counter]) == "[Config, Counter]"
    assert list(encoder.setup) == [f"from {__name__} import Config", "from collections import Counter"]


def test_a_name_that_means_something_else_in_the_file_is_imported_under_another() -> None:
    encoder = Encoder({"Config": int, "len": max})
    assert encoder.value(Config(8)) == "Config_(dim=8)"
    assert list(encoder.setup) == [f"from {__name__} import Config as Config_"]
    assert encoder.value(len) == "len_"


def example(x: int, act: Any = local_function, *, flag: bool = False, **rest: Any) -> None: ...


def test_arguments_keep_the_callers_form() -> None:
    assert Encoder(NAMES).arguments(example, (1, len), {"flag": True, "more": "a"}) == "1, len, flag=True, more='a'"


def test_an_argument_without_text_is_left_out_where_it_is_the_default() -> None:
    default = lambda x: x  # noqa: E731

    def call(a: int, act: Any = default, b: int = 0) -> None: ...

    assert Encoder(NAMES).arguments(call, (1, default, 3), {}) == "1, b=3"
    assert Encoder(NAMES).arguments(call, (1,), {"act": default, "b": 2}) == "1, b=2"
    with pytest.raises(NotEncodable):
        Encoder(NAMES).arguments(call, (1, lambda x: x), {})


class Block(torch.nn.Module):
    """Must stand at module level: its construction is named in texts."""

    def __init__(self, dim: int, inner: torch.nn.Module) -> None:
        super().__init__()
        self.fc, self.inner = torch.nn.Linear(dim, dim), inner


MODULES: dict[str, tuple[Callable[[Capture], torch.nn.Module], str]] = {
    "layer": (lambda c: built(c, torch.nn.Linear, 3, 4, bias=False), "torch.nn.Linear(3, 4, bias=False)"),
    "sequential": (
        lambda c: torch.nn.Sequential(built(c, torch.nn.Linear, 3, 4), built(c, torch.nn.GELU)),
        "torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU())",
    ),
    "list": (lambda c: torch.nn.ModuleList([built(c, torch.nn.ReLU)]), "torch.nn.ModuleList([torch.nn.ReLU()])"),
    "dict": (lambda c: torch.nn.ModuleDict({"a": built(c, torch.nn.ReLU)}), "torch.nn.ModuleDict({'a': torch.nn.ReLU()})"),
    "user's own": (
        lambda c: built(c, Block, 4, built(c, Block, 4, built(c, torch.nn.Identity))),
        "Block(4, Block(4, torch.nn.Identity()))",
    ),
}


def built(capture: Capture, cls: type, *args: Any, **kwargs: Any) -> Any:
    """Construct as the watched process does, without patching torch in this one."""
    import sys

    module = cls(*args, **kwargs)
    capture._constructed(cls, module, args, kwargs, sys._getframe())
    return module


@pytest.mark.parametrize("name", MODULES)
def test_modules_become_the_texts_of_their_constructions(name: str) -> None:
    make, text = MODULES[name]
    capture = Capture(lambda cls: "")
    module = make(capture)
    encoder = Encoder(NAMES, lookup=capture.construction)
    assert encoder.value(module) == text
    again = evaluate(encoder, text, NAMES)
    assert repr(again) == repr(module)


def test_a_module_that_is_passed_twice_or_was_not_seen_is_refused() -> None:
    capture = Capture(lambda cls: "")
    module = built(capture, torch.nn.ReLU)
    with pytest.raises(NotEncodable, match="passed twice"):
        Encoder(NAMES, lookup=capture.construction).value([module, module])
    with pytest.raises(NotEncodable, match="was not seen"):
        Encoder(NAMES).value(torch.nn.ReLU())
