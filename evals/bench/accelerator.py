"""A step of the GPT of `examples/gpt` on an accelerator, torch eager beside our mirrors of it.

`python -m migrate_agent.evals.bench.accelerator draft FOLDER` lets the rules draft the model in the styles close and plain, and with stacked layers.
`python -m migrate_agent.evals.bench.accelerator time FOLDER [--layers 12] …` goes to the machine with the accelerator: it needs the folder, torch, JAX and
Flax, and nothing else of ours but `tools/weights.py`. Each variant runs in a process of its own, with the same weights and tokens, all sizes those of
GPT-2 by default. A step is the loss and all gradients; seconds are those of the clock, the median of 20 steps. Float32 products are exact on both sides,
unless `--fast` lets both use the accelerator's faster ones.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

GPT = Path(__file__).parents[2] / "examples" / "gpt"
UNIT = "model.py:GPT"
VARIANTS = ("torch", "close", "plain", "scanned")
STEPS = 20


def draft(folder: Path) -> None:
    """Write the original to `folder/torch`, and the model's drafts to a folder for each other variant."""
    from migrate_agent.agent.config.config import load_config
    from migrate_agent.agent.loop.exercising.exercise import Exercise
    from migrate_agent.agent.loop.judging import lay_out
    from migrate_agent.agent.loop.wiring import services
    from migrate_agent.agent.runs.recordings import examples_of
    from migrate_agent.tools.types import Recording

    (folder / "torch").mkdir(parents=True, exist_ok=True)
    shutil.copy(GPT / "model.py", folder / "torch" / "model.py")
    called, config = services(lambda text: None), load_config(GPT)
    inventory = called.scanned(GPT, config)
    with contextlib.closing(called.open_sandbox("process", "cpu")) as sandbox:
        recording = Exercise(called, config, inventory, sandbox, folder / "recorded").run_given(Recording())
    variants: dict[str, dict[str, Any]] = {"close": {"style": "close"}, "plain": {}, "scanned": {"scan_layers": True}}
    for name, changes in variants.items():
        composed = called.compose(replace(inventory, **changes), recording.observations, [UNIT], {}, examples_of(recording, UNIT))
        lay_out(folder / name, composed.files)


def batch(options: argparse.Namespace) -> np.ndarray[Any, Any]:
    """Tokens and targets, (2, batch, length)."""
    return np.random.default_rng(0).integers(0, options.vocabulary, (2, options.batch, options.length)).astype(np.int32)


def configuration(module: Any, options: argparse.Namespace) -> Any:
    """The model's configuration, dropout off: it would be drawn differently."""
    sizes = {"n_layer": options.layers, "n_head": options.heads, "n_embd": options.width}
    return module.GPTConfig(vocab_size=options.vocabulary, block_size=options.length, dropout=0.0, **sizes)


def timed(call: Callable[[], float]) -> dict[str, Any]:
    """Seconds of the first step, with compilation, the median of the later ones, and the loss."""
    began = time.perf_counter()
    loss = call()
    first = time.perf_counter() - began
    seconds = []
    for _ in range(STEPS):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    step = statistics.median(seconds)
    return {"first_s": round(first - step, 2), "step_ms": round(1000 * step, 2), "loss": loss}


def torch_step(options: argparse.Namespace) -> dict[str, Any]:
    """The original in eager mode; writes its weights where no variant did."""
    import torch
    from safetensors.torch import save_file

    module: Any = importlib.import_module("model")
    torch.set_float32_matmul_precision("high" if options.fast else "highest")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = module.GPT(configuration(module, options))
    save_file({name: value.clone() for name, value in model.state_dict().items()}, options.folder / "weights.safetensors")
    model = model.to(device)
    x, y = (torch.from_numpy(part).long().to(device) for part in batch(options))

    def step() -> float:
        model.zero_grad()
        loss = model(x, y)[1]
        loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
        return float(loss.detach())

    return {"device": torch.cuda.get_device_name() if device == "cuda" else device, "version": torch.__version__, **timed(step)}


def jax_step(options: argparse.Namespace) -> dict[str, Any]:
    """A mirror under `nnx.jit`, with the original's weights."""
    import jax
    from flax import nnx
    from safetensors.numpy import load_file

    from migrate_agent.tools.weights import load_state_dict

    module: Any = importlib.import_module("model_jax")
    configured: Any = jax.config
    configured.update("jax_default_matmul_precision", "tensorfloat32" if options.fast else "highest")
    model = module.GPT(configuration(module, options), rngs=nnx.Rngs(0))
    load_state_dict(model, load_file(options.folder / "weights.safetensors"))
    x, y = (jax.device_put(part) for part in batch(options))
    compiled = nnx.jit(nnx.value_and_grad(lambda model, x, y: model(x, y)[1]))
    ready: Any = jax.block_until_ready
    return {
        "device": jax.devices()[0].device_kind,
        "version": jax.__version__,
        **timed(lambda: float(ready(compiled(model, x, y))[0])),
    }


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of all variants, each from a process of its own, torch first."""
    rows = []
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    for variant in VARIANTS:
        command = [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--variant", variant]
        process = subprocess.run(command, capture_output=True, text=True, env=environment)
        lines = (process.stdout if process.returncode == 0 else process.stderr).strip().splitlines() or ["no output"]
        rows.append({"variant": variant, **(json.loads(lines[-1]) if process.returncode == 0 else {"error": lines[-1]})})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Draft, or time and print one JSON row for each variant."""
    parser = argparse.ArgumentParser(description="A step of the GPT of examples/gpt on an accelerator, beside torch.")
    parser.add_argument("verb", choices=("draft", "time"))
    parser.add_argument("folder", type=Path)
    for name, default in {"layers": 12, "heads": 12, "width": 768, "length": 1024, "batch": 8, "vocabulary": 50304}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--fast", action="store_true", help="products as fast as the accelerator can (TensorFloat-32)")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.verb == "draft":
        draft(options.folder)
    elif options.variant:
        sys.path.insert(0, str(options.folder / options.variant))
        print(json.dumps(torch_step(options) if options.variant == "torch" else jax_step(options)))
    else:
        measured(options)


if __name__ == "__main__":
    main()
