"""Whole recordings, in a real sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common.example_text import load_tensors
from migrate_agent.tools.record import load_recording, record
from migrate_agent.tools.record.apart import observe_apart
from migrate_agent.tools.record.store import save_recording
from migrate_agent.tools.types import Example, Job, Limits, Observed, Recording, Run, Span

CONFIG = """
    from dataclasses import dataclass

    @dataclass
    class Config:
        dim: int = 8
        heads: int = 2
"""
PARTS = """
    import copy
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Attention(nn.Module):
        def __init__(self, config):
            super().__init__()
            config.dim *= 2          # must not show in the recording
            config.dim //= 2
            self.qkv = nn.Linear(config.dim, 3 * config.dim)

        def forward(self, x, *, mask=None):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    class Residual(nn.Module):
        def __init__(self, fn):
            super().__init__()
            self.fn = fn

        def forward(self, x, **kwargs):
            return x + self.fn(x, **kwargs)

    class Special(Residual):
        def __init__(self, fn, scale=2.0):
            super().__init__(fn)
            self.scale = scale

        def forward(self, x, **kwargs):
            if x.sum() > 1e9:
                x = x - 1
            return super().forward(x * self.scale, **kwargs)

    class Hooked(nn.Module):
        def __init__(self, act=lambda t: t.relu()):
            super().__init__()
            self.act = act

        def forward(self, tensors):
            return {"out": self.act(tensors["a"]) + tensors["b"][0]}

    class Stack(nn.Module):
        def __init__(self, layer, count):
            super().__init__()
            self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(count)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
"""
MODEL = """
    import torch
    from torch import nn
    from pkg.config import Config
    from pkg.parts import Attention, Hooked, Residual, Special, Stack

    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.a = Residual(Attention(config))
            self.b = Special(nn.Sequential(nn.Linear(config.dim, config.dim), nn.GELU()))
            self.c = Hooked()
            self.d = Hooked(lambda t: t + 1)
            self.e = Stack(Special(nn.Linear(config.dim, config.dim), scale=0.5), 2)

        def forward(self, x, mask=None):
            x = self.b(self.a(x, mask=mask))
            x = self.c({"a": x, "b": [x, None]})["out"]
            return self.e(self.d({"a": x, "b": (x,)})["out"])
"""
FILES = {"pkg/__init__.py": "", "pkg/config.py": CONFIG, "pkg/parts.py": PARTS, "pkg/model.py": MODEL}
EXAMPLE = Example("pkg/model.py:Model", "Config()", "torch.randn(2, 3, 8), mask=torch.ones(3, 3).bool()")


def of(recording: Recording, unit: str) -> list[Example]:
    return [example for example in recording.examples if example.unit == unit]


@pytest.fixture
def recording(repository: Any, sandbox: Sandbox, tmp_path: Path) -> Recording:
    return record(repository(FILES), [EXAMPLE], sandbox, tmp_path / "recording")


def test_nested_modules_are_recorded_as_source_text(recording: Recording) -> None:
    assert dict(recording.errors) == {}
    assert recording.examples[0] == EXAMPLE
    texts = {(example.unit.rpartition(":")[2], example.init, example.call, example.setup) for example in recording.examples[1:]}
    imported = "from pkg.config import Config"
    tensor, mask = '_tensors["call0"]', '_tensors["call1"]'
    assert texts == {
        ("Attention", "Config()", f"{tensor}, mask={mask}", imported),
        ("Residual", "Attention(Config())", f"{tensor}, mask={mask}", imported),
        ("Special", "torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())", tensor, ""),
        ("Special", "torch.nn.Linear(8, 8), scale=0.5", tensor, ""),
        ("Hooked", "", f"{{'a': {tensor}, 'b': [{tensor}, None]}}", ""),
        ("Stack", "Special(torch.nn.Linear(8, 8), scale=0.5), 2", tensor, ""),
    }
    assert {example.origin for example in recording.examples[1:]} == {"recording"}


def test_recorded_tensors_are_those_of_the_call(recording: Recording) -> None:
    tensors = load_tensors(of(recording, "pkg/parts.py:Attention")[0].tensors)
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()} == {
        "call0": ((2, 3, 8), torch.float32),
        "call1": ((3, 3), torch.bool),
    }


def test_lines_that_did_not_run_were_not_observed(recording: Recording) -> None:
    lines = {span.line for span in recording.observations["pkg/parts.py"]}
    source = PARTS.split("\n")
    assert source.index("                x = x - 1") + 1 not in lines
    assert source.index("            if x.sum() > 1e9:") + 1 in lines


def test_a_recording_is_stored_and_loaded(recording: Recording, tmp_path: Path) -> None:
    assert load_recording(tmp_path / "recording") == recording
    moved = save_recording(recording, tmp_path / "elsewhere")
    assert load_recording(tmp_path / "elsewhere") == moved
    assert {example.tensors.parent for example in moved.examples if example.tensors} == {tmp_path / "elsewhere"}


BAD_FILES = {
    "not json": "{",
    "another version": json.dumps({"version": 2}),
    "no examples": json.dumps({"version": 1, "observations": {}, "errors": {}}),
    "path that leads out": json.dumps(
        {
            "version": 1,
            "observations": {},
            "errors": {},
            "examples": [{"unit": "a:B", "init": "", "call": "", "setup": "", "tensors": "../secret.safetensors"}],
        }
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_is_no_recording_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.safetensors").write_bytes(b"")
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "recording.json").write_text(BAD_FILES[name])
    with pytest.raises(ValueError, match="is no recording"):
        load_recording(folder)


def net(body: str, top: str = "") -> str:
    return f"import torch\nfrom torch import nn\n{top}\nclass Net(nn.Module):\n    def forward(self, x):\n        {body}\n"


FAILURES = {
    "import of a missing package": (
        net("return not_there_at_all.f(x)", "import not_there_at_all"),
        "ModuleNotFoundError: No module named 'not_there_at_all' (net.py:3)",
    ),
    "import that raises": (
        net("return x + X", "X = int('no GPU here')"),
        "ValueError: invalid literal for int() with base 10: 'no GPU here' (net.py:3)",
    ),
    "call that raises": (net("return x.missing"), "AttributeError: 'Tensor' object has no attribute 'missing' (net.py:6)"),
    "exit": (net("return x + X", "import sys; X = sys.exit(3)"), "SystemExit: 3 (net.py:3)"),
    "message of many lines": (net("raise ValueError('one\\n  two')"), "ValueError: one two (net.py:6)"),
    "syntax error": ("import torch\nfrom torch import nn\nclass Net(nn.Module:\n    pass\n", "SyntaxError: invalid syntax"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_one_line_with_its_place_and_stops_no_other(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, message = FAILURES[name]
    inventory = repository({"good.py": net("return x + 1"), "net.py": net("return x")})
    (inventory.root / "net.py").write_text(source)
    examples = [Example("net.py:Net", "", "torch.zeros(2)"), Example("good.py:Net", "", "torch.zeros(2)")]
    found = record(inventory, examples, sandbox, tmp_path / "out")
    assert list(found.errors) == ["net.py:Net"]
    assert found.errors["net.py:Net"].startswith(message)
    assert found.examples == (examples[1],)
    assert Observed(("tensor",), ((2,),), ("float32",), whole=True) in found.observations["good.py"].values()


TEXT_ERRORS = {
    "unknown name": (Example("net.py:Net", "", "undefined"), "NameError: name 'undefined' is not defined"),
    "constructor": (Example("net.py:Net", "3", "torch.zeros(2)"), "TypeError"),
    "setup": (Example("net.py:Net", "", "1", setup="import not_there_at_all"), "ModuleNotFoundError"),
}


@pytest.mark.parametrize("name", TEXT_ERRORS)
def test_an_example_that_raises_says_why(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    example, message = TEXT_ERRORS[name]
    found = record(repository({"net.py": net("return x")}), [example], sandbox, tmp_path / "out")
    assert found.errors["net.py:Net"].startswith(message)
    assert found.examples == ()


DYING = {
    "never ends": ("while True: pass", "longer than 6 s", 6.0),
    "crashes": ("import os; os._exit(7)", "7", 60.0),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name == "never ends" else []) for name in DYING])  # it waits
def test_an_example_that_takes_the_job_down_costs_the_others_nothing(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    body, message, seconds = DYING[name]
    inventory = repository({"good.py": net("return x + 1"), "net.py": net(body)})
    examples = [Example("net.py:Net", "", "torch.zeros(2)"), Example("good.py:Net", "", "torch.zeros(2)")]
    found = record(inventory, examples, sandbox, tmp_path / "out", Limits(seconds=seconds))
    assert list(found.errors) == ["net.py:Net"]
    assert message in found.errors["net.py:Net"]
    assert found.examples == (examples[1],)


def test_a_package_whose_init_fails_does_not_stop_its_files(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "from pkg import broken", "pkg/broken.py": "import not_there_at_all", "pkg/net.py": net("return x")}
    example = Example("pkg/net.py:Net", "", "torch.zeros(2)")
    assert record(repository(files), [example], sandbox, tmp_path / "out").examples == (example,)


def test_an_absent_package_stops_no_class_that_does_not_need_it(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    file = f"import torch\nfrom not_there_at_all import mel\n{net('return x + 1')}\n\nclass Mel(torch.nn.Module):\n"
    file += "    def forward(self, x):\n        return mel(x)\n"
    examples = [Example(f"net.py:{name}", "", "torch.zeros(2)") for name in ("Net", "Mel")]
    found = record(repository({"net.py": file}), examples, sandbox, tmp_path / "out")
    assert found.examples == (examples[0],)
    assert list(found.errors) == ["net.py:Mel"]
    assert "not_there_at_all" in found.errors["net.py:Mel"]


def test_a_folder_that_is_imported_in_two_ways(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    """Most files say `from models.parts import …`, one says `from parts import …`; another project has its own `parts`."""
    inner = "import torch\n\nclass Inner(torch.nn.Module):\n    def forward(self, x):\n        return x * {}\n"
    files = {"models/parts.py": inner.format(2), "old/net.py": "from parts import Inner\n", "old/parts.py": inner.format(3)}
    files |= {f"models/{name}.py": f"from models.parts import Inner\n{net('return Inner()(x)')}" for name in ("first", "second", "third")}
    files["models/net.py"] = f"from parts import Inner\n{net('return Inner()(x)')}"
    found = record(repository(files), [Example("models/net.py:Net", "", "torch.ones(2)")], sandbox, tmp_path / "out")
    assert found.errors == {}
    assert [example.unit for example in found.examples] == ["models/net.py:Net", "models/parts.py:Inner"]


def test_files_under_src_are_imported_from_there(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    files = {"src/pkg/__init__.py": "", "src/pkg/inner.py": net("return x * 2"), "src/pkg/net.py": "from pkg.inner import Net as Inner\n"}
    files["src/pkg/net.py"] += net("return Inner()(x)")
    found = record(repository(files, "src"), [Example("src/pkg/net.py:Net", "", "torch.zeros(2)")], sandbox, tmp_path / "out")
    assert [example.unit for example in found.examples] == ["src/pkg/net.py:Net", "src/pkg/inner.py:Net"]


def test_samples_are_bounded_and_new_structures_come_first(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        class Inner(nn.Module):
            def __init__(self, size=1):
                super().__init__()
            def forward(self, x, y=None):
                return x
        class Net(nn.Module):
            def forward(self, x):
                inner = Inner()
                for size in range(1, 9):
                    inner(x[:size])
                inner(x, x)
                for size in range(9):
                    Inner(size)(x)
                return x
    """
    found = record(repository({"net.py": source}), [Example("net.py:Net", "", "torch.zeros(8)")], sandbox, tmp_path / "out")
    inner = of(found, "net.py:Inner")
    calls = [load_tensors(example.tensors)["call0"].shape[0] for example in inner if example.init == ""]
    assert calls == [1, 2, 8]
    assert {example.init for example in inner} == {"", "0", "1"}


def test_what_is_too_large_is_left_out_with_the_reason(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = net("return Inner()(x)").replace("class Net", "class Inner(nn.Module):\n    def forward(self, x): return x\nclass Net")
    found = record(
        repository({"net.py": source}), [Example("net.py:Net", "", "torch.zeros(2**20)")], sandbox, tmp_path / "out", max_bytes=2**20
    )
    assert of(found, "net.py:Inner") == []
    assert found.inside == {"net.py:Inner": "its calls hold more than 1 MiB of tensors"}


def test_a_call_that_is_handed_a_module_is_judged_where_it_is_made(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        class Inner(nn.Module):
            def forward(self, x, layers):
                return layers[0](x)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.fc = Inner(), nn.Linear(8, 8)
            def forward(self, x):
                return self.inner(x, [self.fc])
    """
    found = record(repository({"net.py": source}), [Example("net.py:Net", "", "torch.zeros(8)")], sandbox, tmp_path / "out")
    assert of(found, "net.py:Inner") == []
    assert found.inside["net.py:Inner"].startswith("its call holds a module")


def test_a_derived_example_that_does_not_run_again_is_dropped(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        class Inner(nn.Module):
            def forward(self, x):
                return self.given(x)
        class Net(nn.Module):
            def forward(self, x):
                inner = Inner()
                inner.given = torch.relu
                return inner(x)
    """
    found = record(repository({"net.py": source}), [Example("net.py:Net", "", "torch.zeros(8)")], sandbox, tmp_path / "out")
    assert of(found, "net.py:Inner") == []
    assert "does not run: AttributeError: 'Inner' object has no attribute 'given'" in found.inside["net.py:Inner"]


def test_custom_gradients_are_observed_too(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x
            @staticmethod
            def backward(ctx, grad):
                return grad + grad
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(3))
            def forward(self, x):
                return Double.apply(x * self.scale)
    """
    found = record(repository({"net.py": source}), [Example("net.py:Net", "", "torch.zeros(3)")], sandbox, tmp_path / "out")
    seen = found.observations["net.py"]
    assert seen[Span(10, 15, 10, 26)].kinds == ("tensor",)
    assert seen[Span(16, 15, 16, 27)].kinds == ("method:net.Double.apply",)


def test_given_tensors_reach_the_example(recording: Recording, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    example = of(recording, "pkg/parts.py:Attention")[0]
    found = record(repository(FILES), [example], sandbox, tmp_path / "again")
    assert found.errors == {}
    assert replace(found.examples[0], tensors=None) == replace(example, tensors=None)


class Forged:
    """A sandbox whose job claims what it likes."""

    name = "forged"

    def __init__(self, output: Path, result: Any) -> None:
        self._run = Run("ok", output, result)

    def run(self, job: Job) -> Run:
        return self._run

    def release(self, run: Run) -> None: ...

    def close(self) -> None: ...


def forge(output: Path, rows: Sequence[dict[str, Any]]) -> None:
    output.mkdir()
    (output / "recording.json").write_text(json.dumps({"version": 1, "examples": rows, "observations": {}, "errors": {}}))


def test_a_link_in_the_output_is_refused(repository: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    forge(tmp_path / "run", [{"unit": "net.py:Net", "init": "", "call": "", "setup": "", "tensors": "a.safetensors"}])
    (tmp_path / "run" / "a.safetensors").symlink_to(tmp_path / "secret")
    found = record(
        repository({"net.py": net("return x")}), [Example("net.py:Net", "", "1")], Forged(tmp_path / "run", {"ran": "x"}), tmp_path / "out"
    )
    assert "no file of the recording" in found.errors["net.py:Net"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["recording.json"]


def test_examples_are_observed_apart(repository: Any, sandbox: Sandbox) -> None:
    net = """
        from torch import nn

        class Net(nn.Module):
            def forward(self, x, double=False):
                if double:
                    x = x * 2
                return x
        """
    inventory = repository({"net.py": net})
    calls = ["torch.randn(2, 3)", "torch.randn(2, 3), double=True", "torch.randn(2, 3), triple=True", "torch.randn(4)"]
    apart = observe_apart(inventory, [Example("net.py:Net", "", call) for call in calls], sandbox, Limits())
    reached = [one and 7 in {span.line for span in one["net.py"]} for one in apart]
    assert reached == [False, True, None, False]
    assert apart[3] is not None and {shape for seen in apart[3]["net.py"].values() for shape in seen.shapes} == {(4,)}
