"""What every submodule of the original got and gave in one scenario. Run inside the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.verify import arrays
from migrate_agent.tools.verify.sampling import Array
from migrate_agent.tools.verify.torch_unit import Original, to_numpy


def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: inputs and outputs of every submodule in one scenario, in the order in which their calls end. Writes `captured.safetensors`."""
    texts, scenario = arguments["example"], arguments["scenario"]
    original = Original(arguments["module"], arguments["name"], texts, inputs.get("tensors"))
    given = arrays.load(inputs["given"] / f"inputs/{scenario['name']}.safetensors")
    state = arrays.load(inputs["given"] / f"states/{scenario['state']}.safetensors")
    records, found = original_records(original, state, [given[f"in/{index}"] for index in range(len(original.leaves))], scenario["mode"])
    arrays.save(output / "captured.safetensors", found)
    return records


def original_records(
    original: Original, state: Mapping[str, Array], values: Sequence[Array], mode: str
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Run once with hooks on every submodule."""
    records: list[dict[str, Any]] = []
    found: dict[str, Array] = {}
    template = original.exact

    def hook(path: str) -> Callable[..., None]:
        def note(module: Any, args: Any, kwargs: Any, result: Any) -> None:
            number = len(records)
            ins, outs = flat_tensors((args, kwargs)), flat_tensors(result)
            found.update({f"{number}/in/{i}": to_numpy(value) for i, value in enumerate(ins)})
            found.update({f"{number}/out/{i}": to_numpy(value) for i, value in enumerate(outs)})
            records.append({"path": path, "type": type(module).__name__, "inputs": len(ins), "outputs": len(outs)})

        return note

    handles = [module.register_forward_hook(hook(path), with_kwargs=True) for path, module in template.named_modules()]
    try:
        original.run(state, values, mode)
    finally:
        for handle in handles:
            handle.remove()
    return records, found


def flat_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers, in order."""
    return [item for item in torch.utils._pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]
