"""`migrate-agent weights` on real modules: names, layouts, wrappers, and back; what does not fit is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors.numpy import load_file, save_file

from migrate_agent.agent.commands.weights import WeightsOptions, weights
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.wiring import services
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.sandbox import open_sandbox
from migrate_agent.tests.agent.repositories import git
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = "GPTConfig(n_layer=2, n_head=2, n_embd=16, vocab_size=32, block_size=8)"
TOML = (
    f'[run]\nsandbox = "process"\n[[example]]\nmodule = "model.py:GPT"\ninit = "{SMALL}"\ncall = "torch.zeros(1, 4, dtype=torch.int64)"\n'
)
BUILD = {
    "model.py:GPT": f"from model import *\nmodel = GPT({SMALL})",
    "net.py:Net": "from net import *\nmodel = Net(4)",
}
NET = """from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, groups=1), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))
"""


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two models and the mirrors that the rules write, not verified."""
    root = tmp_path_factory.mktemp("weights") / "repo"
    root.mkdir()
    shutil.copy(EXAMPLES / "gpt" / "model.py", root)
    (root / "net.py").write_text(NET)
    (root / "other.py").write_text(NET.replace("Net", "Other"))
    (root / "migrate.toml").write_text(TOML)
    git(root, "init", "-q")
    git(root, "add", "-A")
    inventory = scan(root)
    examples = [
        Example("model.py:GPT", SMALL, "torch.zeros(1, 4, dtype=torch.int64)"),
        Example("net.py:Net", "4", "torch.zeros(1, 3, 8, 8)"),
    ]
    sandbox = open_sandbox("process", warn=lambda text: None)
    recorded = record(inventory, examples, sandbox, root.parent / "recorded")
    sandbox.close()
    assert not recorded.errors
    for path, text in compose(inventory, recorded.observations, list(BUILD), {}, examples).files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", "-A")
    return root


@pytest.fixture(scope="module")
def states(repo: Path) -> Mapping[str, dict[str, torch.Tensor]]:
    """The state dictionaries of the two originals, random in every entry."""
    found = {}
    for unit, code in BUILD.items():
        tell = "import json; print(json.dumps({k: (list(v.shape), str(v.dtype)) for k, v in model.state_dict().items()}))"
        done = subprocess.run([sys.executable, "-c", f"{code}\n{tell}"], cwd=repo, capture_output=True, text=True, check=True)
        generator = torch.Generator().manual_seed(0)
        shapes = json.loads(done.stdout)
        found[unit] = {
            name: torch.randn(shape, generator=generator) if "float" in dtype else torch.full(shape, 7, dtype=torch.int64)
            for name, (shape, dtype) in shapes.items()
        }
    found["model.py:GPT"]["lm_head.weight"] = found["model.py:GPT"]["transformer.wte.weight"]
    return found


@pytest.fixture(scope="module")
def convert(repo: Path) -> Iterator[Callable[..., int]]:
    """The command, over one sandbox and one scan."""
    sandbox = open_sandbox("process", warn=lambda text: None)

    class Kept:
        name = sandbox.name
        run = staticmethod(sandbox.run)
        release = staticmethod(sandbox.release)
        close = staticmethod(lambda: None)

    inventory = scan(repo)
    real = replace(services(lambda text: None), open_sandbox=lambda kind, device: Kept(), scan=lambda root: inventory)

    def run(unit: str, checkpoint: Path, **asked: Any) -> int:
        asked.setdefault("init", None if unit == GPT else "4")
        return weights(repo, unit, checkpoint, WeightsOptions(**asked), real, Progress())

    yield run
    sandbox.close()


@pytest.mark.parametrize("unit", BUILD)
def test_there_and_back_is_exact(unit: str, states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path) -> None:
    state = states[unit]
    torch.save(state, tmp_path / "model.pt")
    assert convert(unit, tmp_path / "model.pt", output=tmp_path / "port.safetensors") == 0
    assert convert(unit, tmp_path / "port.safetensors", to="torch", output=tmp_path / "back.pth") == 0
    back = torch.load(tmp_path / "back.pth", weights_only=True)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], value.to(back[name].dtype)) for name, value in state.items())
    pointers = {back[name].data_ptr() for name in back}
    assert len(pointers) == len(load_file(tmp_path / "port.safetensors"))


COMPARE = """
import numpy
from migrate_agent.tools.weights import state_dict
from safetensors.numpy import load_file as read
want, have = read(sys.argv[1] + "/state.safetensors"), state_dict(model)
assert want.keys() == have.keys()
print(sum(numpy.array_equal(want[k], have[k]) for k in want), "equal")
"""

GPT = "model.py:GPT"


def test_what_is_printed_loads_it(
    repo: Path, states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(states[GPT], tmp_path / "model.pt")
    assert convert(GPT, tmp_path / "model.pt", output=tmp_path / "port.safetensors") == 0
    shown = capsys.readouterr().out
    snippet = (
        shown[shown.index("from flax import nnx") :].replace("GPT(...,", f"GPT({SMALL},").replace("import GPT", "import GPT, GPTConfig")
    )
    safetensors.torch.save_file({name: value.clone() for name, value in states[GPT].items()}, tmp_path / "state.safetensors")
    code = f"import sys; sys.modules['torch'] = None\n{snippet}\n{COMPARE}"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=repo, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"{len(states[GPT])} equal", done.stderr


Saved = Callable[[Mapping[str, torch.Tensor]], Any]
WRAPPERS: dict[str, tuple[Saved, str]] = {
    "state_dict": (
        lambda s: {"epoch": 3, "state_dict": dict(s), "optimizer": {"state": {0: {"m": torch.ones(2)}}}},
        "taken from `state_dict`",
    ),
    "compiled inside": (lambda s: {"model": {f"module._orig_mod.{k}": v for k, v in s.items()}}, "prefix `module.` taken off names"),
    "ties left out": (lambda s: {k: v for k, v in s.items() if k != "lm_head.weight"}, "tied"),
}


@pytest.mark.parametrize("case", WRAPPERS)
def test_wrappers_are_recognised_and_said(
    case: str, states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, said = WRAPPERS[case]
    torch.save(saved(states[GPT]), tmp_path / "model.ckpt")
    assert convert(GPT, tmp_path / "model.ckpt", check=True) == 0
    assert said in capsys.readouterr().out
    assert not list(Path().glob("model_jax.safetensors"))


def test_shards_and_half_precision(states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path) -> None:
    state = {name: value.bfloat16() for name, value in states[GPT].items() if name != "lm_head.weight"}
    names = sorted(state)
    for number, part in enumerate((names[:5], names[5:])):
        safetensors.torch.save_file({name: state[name] for name in part}, tmp_path / f"model-{number}.safetensors")
    index = {"weight_map": {name: f"model-{int(name not in names[:5])}.safetensors" for name in names}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert convert(GPT, tmp_path, output=tmp_path / "out.safetensors") == 0
    found = safetensors.torch.load_file(tmp_path / "out.safetensors")
    assert {value.dtype for value in found.values()} == {torch.bfloat16}
    assert torch.equal(found["transformer.h.0.mlp.c_fc.kernel"], state["transformer.h.0.mlp.c_fc.weight"].T)


def test_what_does_not_fit_is_named_and_not_written(
    states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = dict(states[GPT])
    del state["transformer.ln_f.weight"]
    state["transformer.wpe.weight"] = torch.zeros(9, 16)
    state["transformer.h.0.attn.old"] = torch.zeros(1)
    torch.save(state, tmp_path / "model.pt")
    assert convert(GPT, tmp_path / "model.pt", output=tmp_path / "out.safetensors") == 1
    assert not (tmp_path / "out.safetensors").exists()
    lines = capsys.readouterr().out.splitlines()
    assert next(line.split() for line in lines if "missing" in line)[0] == "transformer.ln_f.weight"
    assert any("transformer.wpe.weight" in line and "(9, 16)" in line and "another shape" in line for line in lines)
    assert any("transformer.h.0.attn.old" in line and "extra" in line for line in lines)
    assert any("1 missing, 1 of another shape, 1 extra" in line for line in lines)
    assert any("--init" in line for line in lines)


def test_what_is_ignored_may_be_left_over(states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path) -> None:
    torch.save({**states[GPT], "transformer.h.0.attn.old": torch.zeros(1)}, tmp_path / "model.pt")
    assert convert(GPT, tmp_path / "model.pt", check=True) == 1
    assert convert(GPT, tmp_path / "model.pt", check=True, ignore=("*.attn.old",)) == 0


def test_another_size_is_built_as_told(states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path) -> None:
    state = {name: value for name, value in states[GPT].items() if ".h.1." not in name}
    torch.save(state, tmp_path / "model.pt")
    assert convert(GPT, tmp_path / "model.pt", check=True) == 1
    assert convert(GPT, tmp_path / "model.pt", check=True, init=SMALL.replace("n_layer=2", "n_layer=1")) == 0


class Config:
    """Something that a pickle would have to import."""


def _cut(path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])


def _cut_torch(state: Mapping[str, torch.Tensor], path: Path) -> None:
    torch.save(dict(state), path)
    _cut(path, 5000)


def _cut_safetensors(state: Mapping[str, torch.Tensor], path: Path) -> None:
    save_file({"a": np.ones(9)}, path)
    _cut(path, -8)


def _tied_apart(state: Mapping[str, torch.Tensor], path: Path) -> None:
    torch.save({**state, "lm_head.weight": torch.zeros(32, 16)}, path)


BAD: dict[str, tuple[Callable[[Mapping[str, torch.Tensor], Path], object], Mapping[str, Any], str]] = {
    "absent": (lambda s, p: None, {}, "is not there"),
    "empty": (lambda s, p: p.write_bytes(b""), {}, "is empty"),
    "text": (lambda s, p: p.write_text("no checkpoint"), {}, "torch cannot load it|holds other things"),
    "cut": (_cut_torch, {}, "torch cannot load it"),
    "cut safetensors": (
        _cut_safetensors,
        {},
        "no safetensors file, or is broken",
    ),
    "objects": (lambda s, p: torch.save({"args": Config(), "model": dict(s)}, p), {}, r"holds other things than tensors \(.*Config\)"),
    "one tensor": (lambda s, p: torch.save(torch.ones(2), p), {}, "it holds one tensor"),
    "no tensors": (lambda s, p: torch.save({"a": 1}, p), {}, "no dictionary of tensors"),
    "a script": (lambda s, p: torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), str(p)), {}, "TorchScript"),
    "ties apart": (_tied_apart, {}, "are one tied variable in the port, but differ"),
    "output": (lambda s, p: torch.save(dict(s), p), {"output": Path("no/where.safetensors")}, "its folder is not there"),
    "format": (lambda s, p: torch.save(dict(s), p), {"output": Path("x.pt")}, "written as .safetensors"),
    "arguments": (lambda s, p: torch.save(dict(s), p), {"init": "GPTConfig(n_layer='x')"}, "cannot be built with"),
}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case: str, states: Mapping[str, Any], convert: Callable[..., int], tmp_path: Path) -> None:
    write, asked, words = BAD[case]
    write(states[GPT], tmp_path / "model.pt")
    with pytest.raises(UsageError, match=words) as error:
        convert(GPT, tmp_path / "model.pt", **{"output": tmp_path / "out.safetensors", **asked})
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.safetensors").exists()


def test_without_a_port_or_an_example(convert: Callable[..., int], repo: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"say it with --init"):
        convert("net.py:Net", tmp_path / "x.pt", init=None)
    with pytest.raises(UsageError, match=r"other_jax.py is not there: migrate other.py:Other first"):
        convert("other.py:Other", tmp_path / "x.pt", init="")
