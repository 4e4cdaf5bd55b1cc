"""The jobs that turn a training checkpoint of torch into one of the rewrite: each side runs its script up to the first optimizer step."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.judge.contract import StopProgramError, Trace
from migrate_agent.tools.programs.judge.running import program_folder, run_script
from migrate_agent.tools.removed_names import restore

CHECKPOINT = "checkpoint"
READ = "read_checkpoint"
"""The helper by which a rewrite reads checkpoints."""


def constructed_optimizers(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job on the side of the original: the class of each optimizer, and torch's names of its parameters by group."""
    from migrate_agent.tools.programs.judge.devices import everything_on_cpu
    from migrate_agent.tools.programs.observe import end_after, watch_groups

    with program_folder(output, arguments) as script:
        everything_on_cpu()
        restore()
        end_after(1)
        rows = watch_groups()
        run_script(script, Trace(0, ()))
    return {"optimizers": rows}


def converted_checkpoint(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job on the side of the rewrite: write what its `read_checkpoint` reads to `output`. Gives `{}`, or an `error`.

    `inputs` are the tree and the tensors of `torch_side.read`, `arguments["optimizers"]` the rows of `constructed_optimizers`.
    """
    from safetensors.numpy import load_file

    from migrate_agent.tools.programs.torch_checkpoint import value_of

    tree = value_of(json.loads(inputs["tree"].read_text(encoding="utf-8")), load_file(inputs["tensors"]))
    with program_folder(output, arguments) as script:
        module = _helpers_of(script.read_text(encoding="utf-8-sig"))
        if not module:
            return {"error": f"{arguments['command'][0]} reads no checkpoint"}
        helpers = importlib.import_module(module)
        write = helpers.write_checkpoint
        port = _Port(tree, arguments["optimizers"], helpers)
        try:
            run_script(script, Trace(0, ()))
        except ValueError as error:
            return {"error": str(error)}
        if not port.states:
            return {"error": "with these options the script loads nothing of a checkpoint: give it those that it goes on with"}
    # Outside of the program's folder, where the program itself may not write.
    write(port.converted(tree), output / CHECKPOINT)
    return {}


def _helpers_of(text: str) -> str:
    """The module that a script imports `read_checkpoint` from."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return next((node.module or "" for node in imports if any(alias.name == READ for alias in node.names)), "")


class _Port:
    """Hooks into the helpers of a rewrite: what it loads from torch's tree is converted, and kept as the rewrite itself saves it."""

    def __init__(self, tree: Any, optimizers: Sequence[Mapping[str, Any]], helpers: Any) -> None:
        from flax import nnx

        self.rows, self.helpers = optimizers, helpers
        self.states: dict[int, Any] = {}
        self._made: list[tuple[Any, Any]] = []
        self._state_of = helpers.object_state
        helpers.read_checkpoint = lambda path: tree
        helpers.load_object_state = self._load
        self._watch(nnx.Optimizer)
        for schedule in {one for one in vars(helpers).values() if isinstance(one, type) and hasattr(one, "load_state_dict")}:
            self._watch_schedule(schedule)

    def _watch(self, optimizer: Any) -> None:
        construct = optimizer.__init__

        def __init__(constructed: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            construct(constructed, model, *args, **kwargs)
            self._made.append((constructed, model))

        def update(*args: Any, **kwargs: Any) -> None:
            raise StopProgramError

        optimizer.__init__, optimizer.update = __init__, update

    def _watch_schedule(self, schedule: Any) -> None:
        own = schedule.load_state_dict

        def load_state_dict(constructed: Any, state: Any) -> None:
            own(constructed, host_state(state, tuple(constructed.last_lrs)) if "_last_lr" in state else state)
            self.states[id(state)] = constructed.state_dict()

        schedule.load_state_dict = load_state_dict

    def _load(self, item: Any, state: Any) -> None:
        """Put torch's state into a module, an optimizer or a schedule."""
        from flax import nnx

        from migrate_agent.tools.weights import load_state_dict

        if isinstance(item, nnx.Optimizer):
            self._load_optimizer(item, state)
        elif isinstance(item, nnx.Module):
            load_state_dict(item, {name: np.asarray(value) for name, value in state.items()})
        else:
            item.load_state_dict(state)
            return
        self.states[id(state)] = self._state_of(item)

    def _load_optimizer(self, item: Any, state: Any) -> None:
        from migrate_agent.tools.programs.optimizer_state import OptimizerStateError, load_optimizer
        from migrate_agent.tools.programs.vendored.host_schedules import hyperparameters, set_hyperparameter

        number = next(i for i, (constructed, _) in enumerate(self._made) if constructed is item)
        if number >= len(self.rows):
            raise OptimizerStateError(f"the original has no optimizer number {number + 1}")
        row = self.rows[number]
        # Before its first step an optimizer has no state; plain SGD never has one.
        updates = 0 if not state["state"] and row["class"] != "SGD" else None
        load_optimizer(item, self._made[number][1], f"torch.optim.{row['class']}", state, row["groups"], updates)
        rates = {group["lr"] for group in state["param_groups"]}
        with suppress(ValueError):
            # Rates that are part of the transform are no state.
            hyperparameters(item)
            if len(rates) > 1:
                raise OptimizerStateError("groups with rates of their own that the program sets have no rule")
            set_hyperparameter(item, rates.pop())

    def converted(self, tree: Any) -> Any:
        """The tree with the rewrite's own states in place of those that it loaded."""
        if id(tree) in self.states:
            return self.states[id(tree)]
        if isinstance(tree, Mapping):
            return {key: self.converted(value) for key, value in tree.items()}
        return [self.converted(value) for value in tree] if isinstance(tree, list) else tree


def host_state(state: Mapping[str, Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """The state of a scheduler of torch as the helpers load it; groups without a label of their own have the first one's rate."""
    from migrate_agent.tools.programs.torch_checkpoint import host_schedule

    cut = {name: state[name][: len(labels)] for name in ("_last_lr", "base_lrs") if name in state}
    return host_schedule({**state, **cut}, labels)
