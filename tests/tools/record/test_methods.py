"""Calls of methods: those of an outer module are recorded, and those that nothing calls are guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.guessing.method_calls import most_reaching
from migrate_agent.tools.record.infer import infer_methods
from migrate_agent.tools.types import Example

SOURCE = """
import torch
from torch import nn

class Coder(nn.Module):
    width = 4

    def __init__(self, latent):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, latent), nn.Linear(latent, 4)
        self.start()

    def start(self):
        nn.init.zeros_(self.inner.bias)

    def encode(self, x):
        return self.inner(x)

    def decode(self, z):
        return self.outer(z)

    def forward(self, x):
        return self.decode(self.encode(x))

    def sample(self, n, temperature=1.0):
        return self.decode(torch.randn(n, self.inner.out_features) * temperature)

    def trained(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def save(self, path):
        torch.save(self.state_dict(), path)

    @property
    def latent(self):
        return self.inner.out_features

    @staticmethod
    def clip(x, mode="soft"):
        return torch.tanh(x) if mode == "soft" else x.clamp(-1, 1)

class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.coder = Coder(3)

    def forward(self, x):
        return self.coder.encode(x) + self.coder.encode(x[:1])
"""


def test_calls_of_methods_from_outside_are_recorded(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": SOURCE})
    recording = record(inventory, [Example("net.py:Both", "", "torch.randn(2, 4)")], sandbox, tmp_path / "recording")
    calls = [(example.init, example.method, example.call) for example in recording.examples if example.unit == "net.py:Coder"]
    assert calls == [("3", "encode", '_tensors["call0"]')] * 2


RESETS = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.allocate()
        self.reset()

    def allocate(self):
        self.scale = nn.Parameter(torch.Tensor(4))

    def reset(self):
        self.scale.data.fill_(2.0)

    def forward(self, x):
        with torch.no_grad():
            self.scale.add_(1)
        return x * self.scale
"""


def test_a_method_of_the_constructor_that_leaves_memory_unset_is_not_called_alone(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": RESETS})
    calls, _ = infer_methods(inventory, [Example("net.py:Scaled", "", "torch.randn(2, 4)")], [], sandbox)
    assert [call.method for call in calls] == ["reset"]


@pytest.mark.slow
def test_methods_that_nothing_calls_are_guessed(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": SOURCE})
    calls, errors = infer_methods(inventory, [Example("net.py:Coder", "3", "torch.randn(2, 4)")], [], sandbox)
    assert {call.method: call.call for call in calls} == {
        "encode": "torch.randn(2, 4)",
        "decode": "torch.randn(2, 3)",
        "sample": "2",
        "latent": "",
        "clip": "torch.randn(2, 4)",
    }
    assert errors.keys() == {"trained", "save"}
    assert {call.origin for call in calls} == {"inference"}


OPTIONS = """
import torch
from torch import nn

def in_evaluation(function):
    def inner(model, *args, **kwargs):
        return function(model.eval(), *args, **kwargs)
    return inner

class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        return self.head(x)

    def scores(self, x, top_k=None, sort=False, unused=None):
        y = self(x)
        if top_k is not None:
            y = y.topk(top_k).values
        if sort:
            y = y.sort(-1).values
        return y

    @torch.no_grad()
    @in_evaluation
    def best(self, x, count, temperature=1.0, mode="all"):
        y = self(x)
        if temperature == 0:
            return y.argmax(-1)
        return y.topk(count).values

    def draw(self, count=None, noise=None):
        noise = torch.randn(count, 4) if noise is None else noise
        return self(noise)

    def along(self, x, y, axis=None):
        axis = -2 if axis is None else axis
        size = x.shape[axis]
        z = torch.arange(size)
        if axis == -3:
            z = z[:, None, None]
        return x * 2 + y * z.sum()

    def grid(self, *sizes, starts=None):
        starts = (0,) * len(sizes) if starts is None else starts
        if starts[0]:
            assert len(starts) == len(sizes)
        return torch.stack([torch.ones(sizes).cumsum(axis) + start for axis, start in enumerate(starts)])
"""


def test_options_of_methods_that_reach_more_are_given_together(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": OPTIONS})
    calls, _ = infer_methods(inventory, [Example("net.py:Sampler", "", "torch.randn(2, 4)")], [], sandbox)
    assert [(call.method, call.call) for call in calls] == [
        ("scores", "torch.randn(2, 4)"),
        ("scores", "torch.randn(2, 4), top_k=2, sort=True"),
        ("best", "torch.randn(2, 4), 2"),
        ("best", "torch.randn(2, 4), 2, temperature=0.0"),
        ("draw", "count=2"),
        ("draw", "count=2, noise=torch.randn(2, 4)"),
        ("along", "torch.randn(2, 4), torch.randn(2, 4)"),
        ("along", "torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4), axis=-3"),
        ("grid", "2, 3"),
        ("grid", "2, 3, starts=(2, 3)"),
    ]


ANEW = """
import torch
from torch import nn

class Anew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.calls = nn.Parameter(torch.empty(4, 4)), 0
        self.reset_parameters()
        self.rewind()
        self.build(2)
        self.check()

    def reset_parameters(self):
        self.weight.data.uniform_(-1, 1)

    def rewind(self):
        self.calls = 0

    def build(self, size):
        self.more = nn.Parameter(torch.ones(size))

    def check(self):
        assert self.weight.numel()

    def forward(self, x):
        self.calls += 1
        return x @ self.weight
"""


def test_methods_of_a_constructor_that_begin_anew_are_called_later(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": ANEW})
    calls, _ = infer_methods(inventory, [Example("net.py:Anew", "", "torch.randn(2, 4)")], [], sandbox)
    assert [(call.method, call.call) for call in calls] == [("reset_parameters", ""), ("rewind", "")]


COMPUTED = """
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

class Computed(nn.Module):
    def __init__(self, d, normed=True):
        super().__init__()
        fc = nn.Linear(d, d)
        self.fc = weight_norm(fc) if normed else fc

    def init_weights(self):
        self.fc.weight.data.normal_(0.0, 0.5)

    def forward(self, x):
        return self.fc(x)
"""


def test_a_method_that_changes_nothing_is_called_on_another_instance(repository: Any, sandbox: Sandbox) -> None:
    """The weight that is computed from others is a new tensor each time."""
    inventory = repository({"net.py": COMPUTED})
    examples = [Example("net.py:Computed", init, "torch.randn(2, 4)") for init in ("4", "4, normed=True", "4, normed=False")]
    calls, _ = infer_methods(inventory, examples, [], sandbox)
    assert [(call.init, call.method) for call in calls] == [("4", "init_weights"), ("4, normed=False", "init_weights")]


HELPERS = """
import torch
from torch import nn

class Wiring:
    def __init__(self, units):
        self.units, self.links, self.asked = units, [(0, 1)], 0

    @property
    def size(self):
        return self.units * 2

    def layer(self, number):
        return list(range(self.units))[number:]

    def add(self, link):
        self.links.append(link)
        return len(self.links)

    def graph(self):
        return Wiring(3)

    def used(self):
        return self.units

class M(nn.Module):
    def __init__(self, wiring):
        super().__init__()
        self.wiring = wiring
        self.fc = nn.Linear(4, wiring.used())

    def forward(self, x):
        return self.fc(x)
"""


def test_methods_of_plain_objects_that_change_nothing_are_called(repository: Any, sandbox: Sandbox) -> None:
    """Not what changes its object, or runs in the constructor."""
    inventory = repository({"net.py": HELPERS})
    calls, _ = infer_methods(inventory, [Example("net.py:M", "Wiring(5)", "torch.randn(2, 4)")], [], sandbox)
    assert {call.method: call.call for call in calls} == {"wiring.size": "", "wiring.layer": "1", "wiring.graph": ""}


SETTINGS = """
import torch
from torch import nn

class Settings:
    def __init__(self, units, wide=False):
        self.units, self.wide = units, wide

    def get_config(self):
        return {"units": self.units, "wide": self.wide}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def kind(self, unit):
        if unit < self.units:
            return "inner"
        return "outer"

    def bounds(self, low, high=None):
        return low, high or self.units

class M(nn.Module):
    def __init__(self, units):
        super().__init__()
        if isinstance(units, Settings):
            self.settings = self.same = units
            units = units.units
        self.fc = nn.Linear(4, units)

    def forward(self, x):
        return self.fc(x)
"""


def test_methods_of_an_object_take_what_others_give_and_reach_branches(repository: Any, sandbox: Sandbox) -> None:
    """On an instance of a later construction too, where the first keeps no object; what two attributes hold is called by one of them."""
    inventory = repository({"net.py": SETTINGS})
    examples = [Example("net.py:M", init, "torch.randn(2, 4)") for init in ("3", "Settings(3)")]
    for chosen in (examples, examples[1:]):
        calls, _ = infer_methods(inventory, chosen, [], sandbox)
        assert [(call.init, call.method, call.call) for call in calls] == [
            ("Settings(3)", "settings.get_config", ""),
            ("Settings(3)", "settings.from_config", "{'units': 3, 'wide': False}"),
            ("Settings(3)", "settings.kind", "1"),
            ("Settings(3)", "settings.kind", "8"),
            ("Settings(3)", "settings.bounds", "1"),
        ]


SWITCHED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, d, scaled=False):
        super().__init__()
        self.fc, self.scaled = nn.Linear(d, d), scaled

    def forward(self, x):
        return self.fc(x)

    def scale(self, x):
        assert self.scaled
        return x * self.fc.bias

    def both(self, x):
        y = self(x)
        if self.scaled:
            y = self.scale(y)
        return y

    def plain(self, x):
        return -self.fc(x)

    def grid(self, *sizes):
        return torch.stack(torch.meshgrid(*map(torch.arange, sizes), indexing="ij"))
"""


@pytest.mark.ci
def test_methods_are_called_on_instances_of_other_constructions(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": SWITCHED})
    examples = [Example("net.py:Scaled", init, "torch.randn(2, 4)") for init in ("4", "4, scaled=True")]
    calls, errors = infer_methods(inventory, examples, [], sandbox)
    assert [(call.init, call.method) for call in calls] == [
        ("4", "both"),
        ("4", "plain"),
        ("4", "grid"),
        ("4, scaled=True", "scale"),
        ("4, scaled=True", "both"),
    ]
    assert [call.call for call in calls if call.method == "grid"] == ["2, 3"]
    assert not errors
    assert infer_methods(inventory, examples[:1], [], sandbox)[1].keys() == {"scale"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"a": {1}, "b": {2, 3}}, []),
        ({**{f"p{n}": {n} for n in range(12)}, "long": {1, 20, 21}, "inside": {20}}, ["long", "p0"]),
        ({**{f"p{n}": {99} for n in range(12)}, "long": {20}}, ["long", "p0"]),
    ],
)
def test_of_many_methods_those_come_first_that_run_most(rows: dict[str, set[int]], expected: list[str]) -> None:
    order = most_reaching({name: frozenset(places) for name, places in rows.items()}, frozenset({99}))
    assert order[: len(expected)] == expected
    assert not order or sorted(order) == sorted(rows)


HANDED = """
from typing import Optional

import torch
from torch import nn

class Cache:
    def __init__(self, steps=None):
        self.steps = iter(steps) if steps is not None else None
        self.out = []

    def __iter__(self):
        return self

    def __next__(self):
        return None if self.steps is None else next(self.steps)

    def following(self):
        return self.__next__()

    def append(self, x):
        self.out.append(x)

    def step(self):
        self.steps = iter(self.out)
        self.out = []

class Posterior:
    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale

    def mode(self):
        return self.mean * 1.0

    def __len__(self):
        return self.mean.shape[0]

    @property
    def entropy(self):
        return self.scale.log().sum(-1)

    def log_prob(self, x):
        return -((x - self.mean) / self.scale) ** 2

class Pad(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.register_buffer("kept", torch.zeros(1, d))

    @property
    def buffer(self):
        return self.kept

    @buffer.setter
    def buffer(self, value):
        self.kept = value * 1.0

    def forward(self, x, cache: Optional[Cache] = None):
        y = self.fc(x) + self.kept
        if cache is not None:
            before = cache.following()
            if before is not None:
                y = y + before
            cache.append(y)
        return y

class Coder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.sizes = [d, d]

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.sizes[index]
        return self.sizes[index] * 2

    def forward(self, x):
        y = self.fc(x)
        return Posterior(y, torch.nn.functional.softplus(y) + 1.0), y
"""


@pytest.mark.parametrize(
    ("unit", "calls", "expected"),
    [
        (
            "Pad",
            ["torch.randn(2, 4)", "torch.randn(2, 4), cache=Cache()"],
            {
                "buffer": [""],
                "buffer=": ["torch.rand(1, 4)"],
                **{key: ["torch.randn(2, 4), cache=Cache()"] for key in ("cache:step", "cache:__iter__")},
            },
        ),
        (
            "Coder",
            ["torch.randn(2, 4)"],
            {
                "__len__": [""],
                "__getitem__": ["0", "slice(0, 2)"],
                **{key: ["torch.randn(2, 4)"] for key in (":0.mode", ":0.entropy", ":0.__len__")},
            },
        ),
    ],
)
def test_setters_syntax_and_methods_of_what_calls_are_handed_and_give(
    repository: Any, sandbox: Sandbox, unit: str, calls: list[str], expected: dict[str, list[str]]
) -> None:
    inventory = repository({"net.py": HANDED})
    found, _ = infer_methods(inventory, [Example(f"net.py:{unit}", "4", call) for call in calls], [], sandbox)
    by_method: dict[str, list[str]] = {}
    for call in found:
        by_method.setdefault(call.method, []).append(call.call)
    assert by_method == expected
