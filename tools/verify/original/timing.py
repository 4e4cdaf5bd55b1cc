"""Times the original's step, eager and compiled, in its own dtypes. Runs inside the sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from migrate_agent.tools.harness.common import tensor_files, trees
from migrate_agent.tools.harness.common.stopwatch import median_seconds
from migrate_agent.tools.harness.torch_side.module import Original, is_leaf, loss
from migrate_agent.tools.verify.contract.scenario import Request


def timing(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, float]:
    """Job entry: median seconds of a forward pass, with the backward pass where the scenario has gradients."""
    scenario, folder = Request.from_json(arguments["scenario"]), inputs["given"]
    original = Original.of_job(arguments, arguments["example"], inputs.get("tensors"))
    state = tensor_files.load(folder / f"states/{scenario.state}.safetensors")
    stored = tensor_files.load(folder / f"inputs/{scenario.name}.safetensors")
    values = [stored[f"in/{index}"] for index in range(len(original.leaves))]
    targets = {int(key[7:]): value for key, value in stored.items() if key.startswith("target/")}
    module = original.module(state, scenario.mode, native=True)

    def step(call: Callable[..., Any]) -> Callable[[], None]:
        _, args, kwargs, _ = original.arguments(values, native=True)

        def once() -> None:
            with torch.set_grad_enabled(scenario.gradient):
                outputs: list[Any] = []
                trees.encode(call(*args, **kwargs), outputs, is_leaf)
                value = loss(outputs, targets)
                if value.requires_grad:
                    torch.autograd.backward(value)
            # Otherwise gradients would accumulate, which costs an addition for each parameter.
            module.zero_grad(set_to_none=True)

        return once

    seconds = {"torch_eager": median_seconds(step(module))}
    if arguments["compile"]:
        os.environ.pop("TORCHDYNAMO_DISABLE", None)  # what is judged runs without it
        torch._dynamo.config.disable = False
        seconds["torch_compile"] = median_seconds(step(torch.compile(module)))
    return seconds
