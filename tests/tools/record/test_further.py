"""Further calls: what is proposed, and which of it is kept."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record.further import further_examples
from migrate_agent.tools.record.guessing.arguments import Call
from migrate_agent.tools.record.guessing.beyond.other_calls import guesses, others
from migrate_agent.tools.record.guessing.beyond.search import Start, reaching_most
from migrate_agent.tools.record.guessing.beyond.trial import Trial
from migrate_agent.tools.record.guessing.distinctions import distinctions, other_constructions
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Inventory, Limits, Recording, Unit


def forward(x: object, mask: object = None, scale: object = 2.0, *, causal: bool = False) -> None: ...


PARAMETERS = list(inspect.signature(forward).parameters.values())


def test_optional_arguments_are_left_out_turned_and_given() -> None:
    call = Call.of("torch.ones(2, 3), scale=0.5")
    assert call is not None
    rows = list(others(call, PARAMETERS, [2, 3]))
    assert rows[0] == {"x": "torch.ones(2, 3)"}
    assert rows[1] == {"x": "torch.ones(2, 3)", "scale": "0.5", "causal": "True"}
    assert all(row["mask"].endswith("dtype=torch.bool)") for row in rows[2:])


def test_a_spread_call_is_left_alone() -> None:
    assert Call.of("*parts, x=1") is None
    assert Call.of("x, **more") is None


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("key_padding_mask", "torch.ones((2, 5), dtype=torch.bool)"),
        ("timesteps", "torch.randint(0, 2, (2,))"),
        ("context", "torch.randn((2, 5, 8))"),
    ],
)
def test_values_follow_names_and_the_first_tensor(name: str, first: str) -> None:
    assert guesses(name, [2, 5, 8])[0] == first


def test_without_a_tensor_there_are_numbers() -> None:
    assert guesses("context", None) == ["1", "0.5", "True"]


def further(inventory: Inventory, unit: Unit, examples: Sequence[Example]) -> list[Example]:
    """The further examples of a unit; those given must come first, where they reach something."""
    with ProcessSandbox() as sandbox:
        found = further_examples(inventory, [(unit, examples)], Recording(), sandbox, Limits())
    given = [example for example in found if example in examples]
    assert found[: len(given)] == given
    return found[len(given) :]


MODEL = """
import torch
from torch import nn
class M(nn.Module):
    def forward(self, x, mask=None, unused=None):
        if mask is not None:
            x = x.masked_fill(~mask[:, :, None], 0.0)
        return x * 2
"""


def test_a_call_that_reaches_more_is_found(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    inventory = scan(tmp_path)
    unit = inventory.unit("model.py:M")
    examples = [Example(unit.id, "", "torch.randn(2, 3, 4)")]
    found = further(inventory, unit, examples)
    assert [example.call for example in found] == ["torch.randn(2, 3, 4), mask=torch.ones((2, 3), dtype=torch.bool)"]


PAIRED = """
import torch
from torch import nn
class M(nn.Module):
    def forward(self, x, labels=None, mask=None, rate=0.5, scale=None):
        if labels is not None and mask is not None:
            raise ValueError("labels or mask")
        elif labels is not None:
            mask = labels[:, None] == labels
        else:
            mask = mask.to(x.dtype)
            assert mask.shape == (len(x), len(x))
        y = (x.flatten(1) @ x.flatten(1).T) * mask
        if rate:
            y = y * rate
        else:
            y = y + 1
        if scale:
            y = scale.expand_as(y) * y
        return y
"""


@pytest.mark.parametrize(
    "call",
    [
        "torch.randn(4, 2, 8), mask=torch.ones((4, 4), dtype=torch.bool)",
        "torch.randn(4, 2, 8), labels=torch.tensor([0, 1, 1, 2]), rate=0.0",
        "torch.randn(4, 2, 8), labels=torch.tensor([0, 1, 1, 2]), scale=torch.ones(1)",
    ],
)
def test_options_that_exclude_each_other_and_conditions_are_reached(call: str, paired: list[str]) -> None:
    assert call in paired


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The further calls of a module whose labels exclude its mask."""
    folder = tmp_path_factory.mktemp("paired")
    (folder / "model.py").write_text(PAIRED)
    inventory = scan(folder)
    unit = inventory.unit("model.py:M")
    examples = [Example(unit.id, "", "torch.randn(4, 2, 8), torch.tensor([0, 1, 1, 2])")]
    return [example.call for example in further(inventory, unit, examples)]


SETTINGS = """
import torch
from dataclasses import dataclass
from torch import nn
@dataclass
class Config:
    width: int = 4
    act: str = "relu"
    bias: bool = True
    norm: str = "none"
class M(nn.Module):
    def __init__(self, config, depth=1, gate=False):
        super().__init__()
        self.gate = gate
        self.act = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.act]()
        self.layers = nn.ModuleList([nn.Linear(config.width, config.width, bias=config.bias) for _ in range(depth)])
        if config.norm in ("layer", "group"):
            self.norm = nn.LayerNorm(config.width) if config.norm == "layer" else nn.GroupNorm(1, config.width)
        else:
            self.norm = None
    def forward(self, x):
        for layer in self.layers:
            y = self.act(layer(x))
            if self.gate:
                y = y * x.sigmoid()
            x = y
        if self.norm is not None:
            x = self.norm(x)
        return x
"""


def test_what_code_tells_apart() -> None:
    found = distinctions(ast.parse(SETTINGS))
    assert found["act"] == ("'relu'", "'tanh'")
    assert set(found["norm"]) >= {"'layer'", "'group'"}
    assert found["gate"] == ("True", "False")


def test_a_constructor_is_called_otherwise_one_value_at_a_time() -> None:
    call = Call.of("Config(4), depth=2")
    namespace: dict[str, Any] = {}
    exec(SETTINGS, namespace)
    parameters = list(inspect.signature(namespace["M"].__init__).parameters.values())[1:]
    assert call is not None
    rows = list(other_constructions(call, parameters, distinctions(ast.parse(SETTINGS)), namespace.__getitem__))
    assert rows[0] == "Config(4), depth=2, gate=True"
    assert {"Config(width=4, act='tanh'), depth=2", "Config(width=4, norm='layer'), depth=2"} <= set(rows)


def test_objects_of_classes_known_by_name_become_those_of_other_classes() -> None:
    call = Call.of("4, type('Box', (), {'n': 2})()")
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("width", "space")]
    tree = ast.parse("size = 2 if space.__class__.__name__ == 'Box' else 3 if type(space).__name__ == 'Cube' else 4")
    assert call is not None
    rows = set(other_constructions(call, parameters, distinctions(tree), lambda text: None))
    assert rows >= {"4, type('Cube', (), {'n': 2})()"} and not any("'Box'" in row for row in rows)


def test_a_construction_that_reaches_more_is_found(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SETTINGS)
    inventory = scan(tmp_path)
    unit = inventory.unit("model.py:M")
    examples = [Example(unit.id, "Config()", "torch.randn(2, 4)", "from model import Config")]
    found = further(inventory, unit, examples)
    assert [(example.init, example.call) for example in found] == [
        ("Config(), gate=True", "torch.randn(2, 4)"),
        ("Config(norm='layer')", "torch.randn(2, 4)"),
        ("Config(norm='group')", "torch.randn(2, 4)"),
    ]


FUNCTION = """
import torch
def loss(x: torch.Tensor, mask=None, reduction="mean"):
    if mask is not None:
        x = x * mask
    if reduction == "mean":
        return x.mean()
    elif reduction == "sum":
        return x.sum()
    return x
"""


def test_calls_of_functions_that_reach_more_are_found(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(FUNCTION + "\ndef test_loss():\n    loss(torch.ones(2))\n")
    inventory = scan(tmp_path)
    unit = inventory.unit("loss.py:loss")
    examples = [Example(unit.id, "", "torch.randn(2, 3)")]
    found = further(inventory, unit, examples)
    assert [example.call for example in found] == [
        "torch.randn(2, 3), mask=torch.ones((2, 3), dtype=torch.bool)",
        "torch.randn(2, 3), reduction='sum'",
        "torch.randn(2, 3), reduction='none'",
    ]


NUMBERS = """
import torch
def moved(x: torch.Tensor, amount, share):
    if share == 1:
        return x
    if share == 0.0:
        return torch.zeros_like(x)
    if amount < 0:
        return x[..., :amount] * share
    return x[..., amount:] * share
def test_moved():
    moved(torch.ones(2, 3), 1, 0.5)
"""


def test_numbers_that_code_compares_with_are_tried_where_every_argument_is_needed(tmp_path: Path) -> None:
    (tmp_path / "moves.py").write_text(NUMBERS)
    inventory = scan(tmp_path)
    unit = inventory.unit("moves.py:moved")
    examples = [Example(unit.id, "", "torch.randn(2, 3), 1, 0.75")]
    found = further(inventory, unit, examples)
    assert [example.call for example in found] == ["torch.randn(2, 3), -1, 0.75", "torch.randn(2, 3), 1, 1.0", "torch.randn(2, 3), 1, 0.0"]


COMPARED = [
    ("x == 3", ("3",)),
    ("x != -1", ("-1",)),
    ("x == 0.5", ("0.5",)),
    ("x < 0", ("0", "-1", "0.5", "1")),
    ("1 <= x", ("1", "0", "1.5", "2")),
    ("x in (1, 'a', None)", ("1", "'a'", "None")),
    ("x is None", ("None",)),
    ("1\ndef exists(v): return v is not None\nz = exists(a.x)", ("None",)),
]


@pytest.mark.parametrize(("test", "texts"), COMPARED)
def test_what_a_comparison_tells_apart(test: str, texts: tuple[str, ...]) -> None:
    assert distinctions(ast.parse(f"y = {test}"))["x"] == texts


STATES = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 8)
    def forward(self, x, kv_cache=None, use_cache=False):
        k, v = self.kv(x).chunk(2, dim=-1)
        if kv_cache is not None:
            k = torch.cat([kv_cache[0], k], 1)
            v = torch.cat([kv_cache[1], v], 1)
        y = (x @ k.transpose(1, 2)).softmax(-1) @ v
        return (y, (k, v)) if use_cache else y
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
    def forward(self, x, hidden=None):
        if hidden is None:
            hidden = x.new_zeros(x.shape[0], 4)
        else:
            assert x.shape[1] == 1, "one step"
            hidden = hidden["h"] * 2
        for t in range(x.shape[1]):
            hidden = self.cell(x[:, t], hidden)
        return {"y": hidden, "state": {"h": hidden}}
class Averages(nn.Module):
    def forward(self, x, past=None):
        y = x.exp().cumsum(1)
        if past is not None:
            y = (y.log() + past.log()).exp()
        return y, y[:, -1:]
"""


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("Averages", ["torch.randn(2, 3, 4), past=torch.rand(2, 1, 4)"]),
        ("Attention", ["torch.randn(2, 3, 4), use_cache=True, kv_cache=(torch.randn(2, 3, 4), torch.randn(2, 3, 4))"]),
        ("Steps", ["torch.randn(2, 1, 4), hidden={'h': torch.randn(2, 4)}"]),
    ],
)
def test_the_state_of_a_call_is_handed_to_another(name: str, calls: list[str], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(STATES)
    inventory = scan(tmp_path)
    unit = inventory.unit(f"model.py:{name}")
    found = further(inventory, unit, [Example(unit.id, "", "torch.randn(2, 3, 4)")])
    assert [example.call for example in found] == calls


RANKS = """
from collections.abc import Iterable
import torch
from torch import nn
class Sums(nn.Module):
    def forward(self, x, scale=None):
        is_batched = x.dim() == 3
        if not is_batched:
            x = x.unsqueeze(0)
            if scale is not None:
                x = x * scale.unsqueeze(0)
        y = x.cumsum(1)
        return y if is_batched else y[0]
class Joined(nn.Module):
    def forward(self, parts):
        if not isinstance(parts, (list, tuple)):
            parts = [parts]
        return torch.cat(list(parts), 1)
class Conditioned(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        if not isinstance(sizes, Iterable):
            sizes = [sizes]
        self.sizes, self.fc = sizes, nn.Linear(sum(sizes), 4)
    def forward(self, x, parts):
        for part, size in zip(parts, self.sizes):
            assert part.shape[1] == size
        return x + self.fc(torch.cat(parts, 1))
class Streamed(nn.Module):
    def forward(self, x, streaming=False):
        if streaming:
            if x.shape[0] != 1:
                raise ValueError("one stream")
            x = x * 2
        return x
class Modulated(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(3, hidden), nn.Linear(hidden, 3)
    def forward(self, x, modulation=None):
        x = self.up(x)
        if modulation is not None:
            x *= modulation[None]
        return self.down(x)
"""


@pytest.mark.parametrize(
    ("name", "init", "call", "calls"),
    [
        ("Sums", "", "torch.randn(2, 5, 4)", ["torch.randn(2, 5, 4)[0]", "torch.randn(2, 5, 4)[0], scale=torch.randn((5, 4))"]),
        ("Joined", "", "[torch.randn(2, 5), torch.randn(2, 3)]", ["torch.randn(2, 5)"]),
        (
            "Conditioned",
            "[3, 2]",
            "torch.randn(2, 4), [torch.randn(2, 3), torch.randn(2, 2)]",
            ["torch.randn(2, 4), [torch.randn(2, 3)]"],
        ),
        ("Streamed", "", "torch.randn(2, 3)", ["torch.randn(2, 3)[:1], streaming=True"]),
        ("Modulated", "7", "torch.randn(2, 3)", ["torch.randn(2, 3), modulation=torch.randn((7,))"]),
    ],
)
def test_ranks_containers_and_widths_of_parameters(name: str, init: str, call: str, calls: list[str], tmp_path: Path) -> None:
    """What a further call leaves unreached may lie behind one change more."""
    (tmp_path / "model.py").write_text(RANKS)
    inventory = scan(tmp_path)
    unit = inventory.unit(f"model.py:{name}")
    assert [example.call for example in further(inventory, unit, [Example(unit.id, init, call)])] == calls


TOGETHER = """
import torch
from torch import nn
ACTIVATIONS = dict(relu=nn.ReLU, tanh=nn.Tanh)
def norm_of(kind, width):
    if kind == "layer":
        return nn.LayerNorm(width)
    return nn.Identity()
class Causal(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.causal = causal
    def forward(self, x, streaming=False):
        if streaming:
            if not self.causal:
                raise ValueError("causal only")
            if x.shape[0] != 1:
                raise ValueError("one stream")
            return x * 2
        return x
class Named(nn.Module):
    def __init__(self, act="relu", norm="none"):
        super().__init__()
        if isinstance(act, str):
            self.act = ACTIVATIONS[act]()
        else:
            self.act = act()
        self.norm = norm_of(kind=norm, width=4)
    def forward(self, x):
        return self.norm(self.act(x))
class Wired(nn.Module):
    def __init__(self, widths=None, out=None):
        super().__init__()
        if isinstance(widths, int):
            widths = [widths]
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in widths or [1]])
        if out is not None:
            self.head = nn.Linear(4, out)
        else:
            self.head = None
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(x)
def exists(value):
    return value is not None
class Gated(nn.Module):
    def __init__(self, *, width, gate=False):
        super().__init__()
        self.line, self.gate = nn.Linear(width, width), gate
    def forward(self, x):
        y = self.line(x)
        if self.gate:
            y = y.sigmoid() * x
        return y
class Pooled(nn.Module):
    def __init__(self, width, branch, channel_first=False):
        super().__init__()
        self.score, self.branch, self.channel_first = nn.Linear(width, 1), branch, channel_first
    def forward(self, x):
        x = self.branch(x)
        if self.channel_first:
            x = x.transpose(1, 2)
        return (x * self.score(x).softmax(1)).sum(1)
class Embedded(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.embeds = exists(tokens)
        if self.embeds:
            self.table = nn.Embedding(tokens, width)
        self.line = nn.Linear(width, width)
    def forward(self, x):
        if not self.embeds:
            return self.line(x)
        return self.line(self.table(x))
class Stored(nn.Module):
    def __init__(self, width, form="each"):
        super().__init__()
        if form == "each":
            self.rates = nn.Parameter(torch.ones(width))
        else:
            self.rates = nn.Parameter(torch.ones(1))
    def forward(self, x, length=None):
        y = x[..., None] * self.rates
        if length is not None:
            table = torch.zeros(len(x), 4)
            table[:length] = y.squeeze(-1) if y.shape[-1] == 1 else y
            return table
        return y
class Placed(nn.Module):
    def __init__(self, size=None):
        super().__init__()
        if size is not None:
            height, width = size
            self.table = nn.Parameter(torch.zeros(height * width // width, width))
        else:
            self.table = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return x + self.table
class Conditioned(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        if not isinstance(sizes, (list, tuple)):
            sizes = [sizes]
        self.layers = nn.ModuleList([nn.Linear(size, 3) for size in sizes])
    def forward(self, x, cond):
        if not isinstance(cond, (list, tuple)):
            cond = [cond]
        for layer, one in zip(self.layers, cond, strict=True):
            x = x + layer(one)
        return x
"""


@pytest.mark.parametrize(
    ("name", "init", "call", "rows"),
    [
        ("Causal", "", "torch.randn(2, 4)", [("causal=True", "torch.randn(2, 4)[:1], streaming=True")]),
        ("Named", "", "torch.randn(2, 4)", [("norm='layer'", "torch.randn(2, 4)"), ("act=torch.nn.Tanh", "torch.randn(2, 4)")]),
        ("Wired", "", "torch.randn(2, 4)", [("widths=2", "torch.randn(2, 4)"), ("out=64", "torch.randn(2, 4)")]),
        ("Gated", "width=4", "torch.randn(2, 4)", [("width=4, gate=True", "torch.randn(2, 4)")]),
        (
            "Pooled",
            "4, torch.nn.LayerNorm(4)",
            "torch.randn(2, 3, 4)",
            [("4, torch.nn.Identity(), channel_first=True", "torch.randn(2, 4, 3)")],
        ),
        ("Embedded", "9, 4", "torch.randint(0, 9, (2, 3))", [("None, 4", "torch.randn(2, 3, 4)")]),
        ("Stored", "4", "torch.randn(3), length=3", [("4", "torch.randn(3)"), ("4, form='none'", "torch.randn(3)")]),
        ("Placed", "", "torch.randn(4, 4)", [("size=[4, 4]", "torch.randn(4, 4)")]),
        (
            "Conditioned",
            "[2, 5]",
            "torch.randn(2, 3), [torch.randn(2, 2), torch.randn(2, 5)]",
            [("2", "torch.randn(2, 3), torch.randn(2, 2)")],
        ),
    ],
)
def test_what_has_to_change_together(name: str, init: str, call: str, rows: list[tuple[str, str]], tmp_path: Path) -> None:
    """What code asks before it refuses, arguments of other kinds, names under which arguments are handed on."""
    (tmp_path / "model.py").write_text(TOGETHER)
    inventory = scan(tmp_path)
    unit = inventory.unit(f"model.py:{name}")
    assert [(example.init, example.call) for example in further(inventory, unit, [Example(unit.id, init, call)])] == rows


STREAMED = """
import torch
from torch import nn
from typing import Optional

class Cache:
    def __init__(self, parts=None):
        self.parts = [] if parts is None else parts

    def last(self, usual):
        return self.parts[-1] if self.parts else usual

    def append(self, part):
        self.parts.append(part)

class Streamed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, streaming: bool = False, cache: Optional[Cache] = None):
        if streaming:
            if x.shape[0] != 1:
                raise ValueError(f"streaming takes one sample, not {x.shape[0]}")
            if cache is not None:
                x = x + cache.last(0.0)
                cache.append(x)
        return self.fc(x)
"""


def test_an_object_of_the_repository_is_made_for_an_argument_that_asks_for_one(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(STREAMED)
    inventory = scan(tmp_path)
    unit = inventory.unit("net.py:Streamed")
    rows = [example.call for example in further(inventory, unit, [Example(unit.id, "", "torch.randn(2, 4)")])]
    assert rows == [
        "torch.randn(2, 4)[:1], streaming=True",
        "torch.randn(2, 4), cache=Cache()",
        "torch.randn(2, 4)[:1], streaming=True, cache=Cache()",
        "torch.randn(2, 4)[:1], streaming=True, cache=Cache(parts=[torch.randn(1, 4)])",
    ]


@pytest.mark.parametrize(("most", "chosen"), [(3, [0, 1, 2]), (2, [0, 2]), (1, [2])])
def test_of_too_many_calls_those_that_reach_most_together_are_chosen(most: int, chosen: list[int]) -> None:
    reached = ({0, 1, 2}, {0, 3}, {0, 3, 4, 5})
    starts = [Start(number, Example("", "", str(number)), Trial(frozenset(ran), None)) for number, ran in enumerate(reached)]
    assert [start.number for start in reaching_most(starts, frozenset({0}), most)] == chosen


def test_examples_that_reach_something_come_first(tmp_path: Path) -> None:
    """Only so many examples of a unit are verified."""
    (tmp_path / "model.py").write_text(MODEL)
    inventory = scan(tmp_path)
    unit = inventory.unit("model.py:M")
    calls = ("torch.randn(2, 3, 4)", "torch.randn(3, 3, 4)", "torch.randn(2, 3, 4), torch.ones(2, 3).bool()")
    examples = [Example(unit.id, "", call) for call in calls]
    with ProcessSandbox() as sandbox:
        found = further_examples(inventory, [(unit, examples)], Recording(), sandbox, Limits())
    assert found == [examples[0], examples[2]]
