"""The example repositories run with torch as they are, and their `migrate.toml` exercises all that they define."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent.config.config import load_config

EXAMPLES = Path(__file__).parents[2] / "examples"

RUN_EXAMPLES = """
import importlib, json, sys, torch
torch.manual_seed(0)
ran, shapes = set(), []
hook = lambda module, arguments, output: ran.add(type(module).__module__ + "." + type(module).__qualname__)
torch.nn.modules.module.register_module_forward_hook(hook)
for example in json.load(sys.stdin):
    file, name = example["module"].split(":")
    home = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    names = {"torch": torch, **vars(home)}
    exec(example["setup"], names)
    module = eval(f"{name}({example['init']})", names)
    called = getattr(module, example["method"]) if example["method"] else module
    output = eval(f"_called({example['call']})", names | {"_called": called})
    output = output if isinstance(output, tuple) else (output,)
    assert all(leaf.isfinite().all() for leaf in output if leaf is not None)
    shapes.append([None if leaf is None else list(leaf.shape) for leaf in output])
print(json.dumps({"ran": sorted(ran), "shapes": shapes}))
"""


def python(folder: Path, *arguments: str, text: str = "") -> str:
    """Standard output of a Python process in `folder`. Warnings are errors there too."""
    command = [sys.executable, "-B", "-W", "error", *arguments]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_examples(name: str) -> dict[str, Any]:
    folder = EXAMPLES / name
    tables = [table.model_dump(include={"module", "setup", "init", "call", "method"}) for table in load_config(folder).example]
    result: dict[str, Any] = json.loads(python(folder, "-c", RUN_EXAMPLES, text=json.dumps(tables)))
    return result


GPT = ["Block", "CausalSelfAttention", "GPT", "LayerNorm", "MLP"]
LAYERS = ["ConvBN", "DropPath", "LayerScale", "Mlp"]
RESNET = ["BasicBlock", "Bottleneck", "ResNet"]
VIT = ["Attention", "PatchEmbed", "TransformerBlock", "VisionTransformer"]


@pytest.mark.parametrize(
    ("name", "classes", "shapes"),
    [
        ("gpt", {"model": GPT}, [[[2, 32, 128], None], [[2, 32, 128], []], [[2, 7]], [[2, 11]]]),
        (
            "vision",
            {"vision.layers": LAYERS, "vision.resnet": RESNET, "vision.vit": VIT},
            [[[3, 7]], [[2, 5]], [[2, 5]], [[2, 5]], [[3, 7]], [[2, 7]], [[2, 1]], [[2, 24]]],
        ),
    ],
)
def test_examples_exercise_every_class(name: str, classes: dict[str, list[str]], shapes: list[Any]) -> None:
    result = run_examples(name)
    own = [qualified for qualified in result["ran"] if not qualified.startswith("torch.")]
    assert own == sorted(f"{module}.{cls}" for module, names in classes.items() for cls in names)
    assert result["shapes"] == shapes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "arguments", "last"),
    [
        ("gpt", ["--n-layer", "1", "--n-embd", "16", "--block-size", "16"], ""),
        ("vision", ["--model", "resnet10"], "accuracy"),
        ("vision", ["--model", "resnet_bottleneck"], "accuracy"),
        ("vision", ["--model", "vit_micro", "--drop-path", "0.1"], "accuracy"),
    ],
)
def test_training_script_runs(folder: str, arguments: list[str], last: str) -> None:
    lines = python(EXAMPLES / folder, "train.py", "--steps", "2", *arguments).splitlines()
    assert any("step" in line and "loss" in line for line in lines)
    assert last in lines[-1]
