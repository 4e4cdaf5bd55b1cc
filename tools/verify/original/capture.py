"""Captures inputs and outputs of every submodule of the original in one scenario, or the gradients there. Runs inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.module import Original, dtype_name, flushing, to_numpy
from migrate_agent.tools.harness.torch_side.value_trees import map_tree
from migrate_agent.tools.verify.contract.scenario import Request, Role


@flushing()
def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: a row for each call of a submodule, in the order in which they end. Writes `captured.safetensors`.

    `kind` is `values` (inputs and outputs in float64), `native` (the same in their own dtypes) or `gradients` (of the loss, by the float inputs
    and outputs of each call).
    """
    texts, scenario, kind = arguments["example"], Request.from_json(arguments["scenario"]), arguments["how"]
    original = Original.of_job(arguments, texts, inputs.get("tensors"), int(arguments["seed"]))
    stored = tensor_files.load(inputs["given"] / f"inputs/{scenario.name}.safetensors")
    state = tensor_files.load(inputs["given"] / f"states/{scenario.state}.safetensors")
    recorder = Recorder(kind == "gradients")
    template = original.native if kind == "native" else original.exact
    handles = [handle for path, module in template.named_modules() for handle in recorder.watch(path, module)]
    targets = {int(key[7:]): value for key, value in stored.items() if key.startswith("target/")}
    values = [stored[f"in/{index}"] for index in range(len(original.leaves))]
    before = [stored[f"before/{index}"] for index in range(len(original.leaves))] if scenario.before else None
    drawing, trained = scenario.drawing, scenario.role == Role.AGAIN_TRAINED
    try:
        goals = targets if kind == "gradients" else None
        how_run: dict[str, Any] = {"native": kind == "native", "targets": goals, "drawing": drawing, "trained": trained}
        how_run |= {"conditions": scenario.conditions, "dtypes": scenario.leaf_dtypes}
        original.run(state, values, scenario.mode, before=before, **how_run)
    finally:
        for handle in handles:
            handle.remove()
    tensor_files.save(output / "captured.safetensors", recorder.results())
    return recorder.rows


class Recorder:
    """Hooks that record inputs and outputs, or add zeros to them whose gradients are read afterwards."""

    def __init__(self, gradients: bool) -> None:
        self.gradients = gradients
        self.rows: list[dict[str, Any]] = []
        self.found: dict[str, Any] = {}
        self.given: list[Any] = []

    def watch(self, path: str, module: torch.nn.Module) -> list[Any]:
        """Hook a module; returns the handles."""

        def before(module: Any, args: Any, kwargs: Any) -> Any:
            shifted, noted = self._noted((args, kwargs))
            self.given.append(noted)
            return shifted if self.gradients else None

        def after(module: Any, args: Any, kwargs: Any, result: Any) -> Any:
            ins, number = self.given.pop(), len(self.rows)
            shifted, outs = self._noted(result)
            self.found |= {f"{number}/in/{index}": value for index, value in enumerate(ins)}
            self.found |= {f"{number}/out/{index}": value for index, value in enumerate(outs)}
            row = {"path": path, "type": type(module).__name__, "inputs": len(ins), "outputs": len(outs)}
            self.rows.append({**row, "dtypes": [dtype_name(item) for item in outs]})
            return shifted if self.gradients else None

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after, with_kwargs=True, prepend=True),
        ]

    def _noted(self, tree: Any) -> tuple[Any, list[Any]]:
        """The tree (with zeros added to its floats, for gradients), and the recorded tensors: copies, or these zeros."""
        tensors: list[Any] = []

        def note(item: Any) -> Any:
            if not isinstance(item, torch.Tensor) or (self.gradients and not (item.is_floating_point() or item.is_complex())):
                return item
            if not self.gradients:
                # A copy, because a later operation may change the tensor in place.
                tensors.append(item.detach().clone())
                return item
            tensors.append(torch.zeros_like(item, requires_grad=True))
            return item + tensors[-1]

        return map_tree(note, tree), tensors

    def results(self) -> dict[str, Array]:
        """The recorded arrays by call (`0/in/0`), or their gradients."""
        if not self.gradients:
            return {key: to_numpy(value) for key, value in self.found.items()}
        return {key: to_numpy(value.grad if value.grad is not None else torch.zeros_like(value)) for key, value in self.found.items()}
