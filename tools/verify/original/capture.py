"""What every submodule of the original got and gave in one scenario, or the gradients there. Run inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import TRAINED, Drawing
from migrate_agent.tools.harness.torch_side.module import Original, dtype_name, flushing, to_numpy


@flushing()
def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: a row for each call of a submodule, in the order in which they end. Writes `captured.safetensors`.

    `how` is `values` (inputs and outputs in float64), `native` (the same in their own dtypes) or `gradients` (of the loss, by the float inputs
    and outputs of each call).
    """
    texts, scenario, how = arguments["example"], arguments["scenario"], arguments["how"]
    original = Original(arguments["module"], arguments["name"], texts, inputs.get("tensors"), int(arguments["seed"]))
    given = tensor_files.load(inputs["given"] / f"inputs/{scenario['name']}.safetensors")
    state = tensor_files.load(inputs["given"] / f"states/{scenario['state']}.safetensors")
    recorder = Recorder(how == "gradients")
    template = original.native if how == "native" else original.exact
    handles = [handle for path, module in template.named_modules() for handle in recorder.watch(path, module)]
    targets = {int(key[7:]): value for key, value in given.items() if key.startswith("target/")}
    values = [given[f"in/{index}"] for index in range(len(original.leaves))]
    before = [given[f"before/{index}"] for index in range(len(original.leaves))] if "before/0" in given else None
    drawing, trained = Drawing.of(scenario["drawing"]), scenario["role"] == TRAINED
    try:
        goals = targets if how == "gradients" else None
        how_run: dict[str, Any] = {"native": how == "native", "targets": goals, "drawing": drawing, "trained": trained}
        original.run(state, values, scenario["mode"], before=before, **how_run)
    finally:
        for handle in handles:
            handle.remove()
    tensor_files.save(output / "captured.safetensors", recorder.results())
    return recorder.rows


class Recorder:
    """Hooks that note inputs and outputs, or add zeros to them whose gradients are looked at afterwards."""

    def __init__(self, gradients: bool) -> None:
        self.gradients = gradients
        self.rows: list[dict[str, Any]] = []
        self.found: dict[str, Any] = {}
        self.given: list[Any] = []

    def watch(self, path: str, module: torch.nn.Module) -> list[Any]:
        """Hook a module; gives the handles."""

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
        """The tree (its floats with zeros added, for gradients) and what is kept of it: copies, or these zeros."""
        kept: list[Any] = []

        def note(item: Any) -> Any:
            if not isinstance(item, torch.Tensor) or (self.gradients and not (item.is_floating_point() or item.is_complex())):
                return item
            if not self.gradients:
                kept.append(item.detach().clone())
                return item
            kept.append(torch.zeros_like(item, requires_grad=True))
            return item + kept[-1]

        return torch.utils._pytree.tree_map(note, tree), kept

    def results(self) -> dict[str, Array]:
        """The arrays by call."""
        if not self.gradients:
            return {key: to_numpy(value) for key, value in self.found.items()}
        return {key: to_numpy(value.grad if value.grad is not None else torch.zeros_like(value)) for key, value in self.found.items()}
