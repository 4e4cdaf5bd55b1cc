"""What `[rewrite] scan_layers` gives for the GPT of `examples/gpt`: `python -m migrate_agent.evals.bench.scan_layers [--layers 12 48]`.

The rules draft the model both ways. For each number of layers, a process of its own constructs the drafted model, and compiles and times one step of loss
and gradients, on the CPU, the two in turn. Both are given the weights of one state dictionary, and the losses are compared. Seconds are the processor's, of all
threads together; a step is the fastest of ten.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.loop.exercising.exercise import Exercise
from migrate_agent.agent.loop.judging import lay_out
from migrate_agent.agent.loop.wiring import services
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.evals.bench.measure import report
from migrate_agent.tools.types import Recording

GPT = Path(__file__).parents[2] / "examples" / "gpt"
UNIT = "model.py:GPT"
CONFIGURATION = {"n_head": 4, "n_embd": 128, "vocab_size": 256, "block_size": 64}
BATCH = (4, 64)
STEPS = 10


def draft(folder: Path) -> dict[bool, Path]:
    """The model's draft without and with stacked layers, in folders below `folder`."""
    called, config = services(lambda text: None), load_config(GPT)
    inventory = called.scanned(GPT, config)
    with contextlib.closing(called.open_sandbox("process", "cpu")) as sandbox:
        recording = Exercise(called, config, inventory, sandbox, folder / "recorded").run_given(Recording())
    drafts = {}
    for scanned in (False, True):
        configured = replace(inventory, scan_layers=scanned)
        files = called.compose(configured, recording.observations, [UNIT], {}, examples_of(recording, UNIT)).files
        drafts[scanned] = lay_out(folder / ("scanned" if scanned else "listed"), files)
    return drafts


def timed(mirror: Path, layers: int, state: Path) -> dict[str, Any]:
    """Processor seconds to construct the drafted model, to compile a step, and of a step, and its loss. The first call writes the weights, later ones read them."""
    sys.path.insert(0, str(mirror))
    import numpy as np
    from flax import nnx
    from safetensors.numpy import load_file, save_file

    from migrate_agent.tools.weights import load_state_dict, state_dict

    ready: Any = importlib.import_module("jax").block_until_ready
    module: Any = importlib.import_module("model_jax")
    began = time.process_time()
    model = module.GPT(module.GPTConfig(n_layer=layers, **CONFIGURATION), rngs=nnx.Rngs(0))
    constructing = time.process_time() - began
    if state.exists():
        load_state_dict(model, load_file(state))
    else:
        save_file({name: value.copy() for name, value in state_dict(model).items()}, state)
    tokens = np.random.default_rng(0).integers(0, CONFIGURATION["vocab_size"], (2, *BATCH))
    step = nnx.jit(nnx.value_and_grad(lambda model, x, y: model(x, y)[1]))
    began = time.process_time()
    loss = ready(step(model, *tokens))[0]
    compiled = time.process_time() - began
    seconds = []
    for _ in range(STEPS):
        began = time.process_time()
        ready(step(model, *tokens))
        seconds.append(time.process_time() - began)
    return {
        "construct_s": round(constructing, 1),
        "compile_s": round(compiled - min(seconds), 1),
        "step_ms": round(1000 * min(seconds), 1),
        "loss": float(loss),
    }


def main() -> None:
    """Draft, measure each way in a process of its own, print and store."""
    parser = argparse.ArgumentParser(description="What stacked layers give for the GPT of examples/gpt.")
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 48])
    parser.add_argument("--time", nargs=3, metavar=("MIRROR", "LAYERS", "STATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        mirror, layers, state = options.time
        print(json.dumps(timed(Path(mirror), int(layers), Path(state))))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="scan-layers-") as scratch:
        drafts = draft(Path(scratch))
        for layers in options.layers:
            for scanned, mirror in drafts.items():
                state = Path(scratch) / f"{layers}.safetensors"
                command = [sys.executable, "-m", __spec__.name, "--time", str(mirror), str(layers), str(state)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                rows.append({"layers": layers, "scan_layers": scanned, **json.loads(output.splitlines()[-1])})
                print(rows[-1], flush=True)
    report("scan_layers", rows)


if __name__ == "__main__":
    main()
