"""Runs a recorded example again from its source texts, after another method where its call reads what that sets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.example_text import (
    call_arguments,
    construct,
    import_module,
    load_tensors,
    load_unit,
    make_namespace,
)
from migrate_agent.tools.harness.common.inner_gradients import asks_gradients
from migrate_agent.tools.record.guessing.earlier_calls import Step, missing_state, step_text, steps
from migrate_agent.tools.record.guessing.values import Tensor
from migrate_agent.tools.types import Example

SEED = 0


def rerun(module_name: str, example: Example) -> Example:
    """Build and call a recorded example once, and give it; or what calls another method first, where the call reads what that sets.

    Raises the error of the user's code.
    """
    run = _Run(module_name, example)
    try:
        run.call()
    except Exception as error:
        absent = missing_state(error, run.instance) if methods.THEN not in example.method else None
        for step in steps(run.instance, absent, example.method) if absent is not None else ():
            with suppress(Exception):  # what the recorded call itself ran into says more
                after = _after(run, step)
                _Run(module_name, after).call()
                return after
        raise
    return example


class _Run:
    """An example, built. Raises the errors of its import, its setup and its constructor."""

    def __init__(self, module_name: str, example: Example) -> None:
        import torch

        self.example, module = example, import_module(module_name)
        torch.manual_seed(SEED)
        self.namespace = make_namespace(module, example, load_tensors(example.tensors))
        unit = load_unit(module.__name__, example.unit.partition(":")[2], example.init)
        self.instance: Any = construct(unit, example, self.namespace)

    def call(self) -> None:
        import torch

        args, kwargs = call_arguments(self.example, self.namespace)
        with torch.set_grad_enabled(asks_gradients(type(self.instance))):
            methods.bound(self.instance, self.example.method)(*args, **kwargs)


def _after(run: _Run, step: Step) -> Example:
    """The example with another method called first, for as many samples as its first tensor has."""
    import torch

    leaves = torch.utils._pytree.tree_leaves(call_arguments(run.example, run.namespace))
    shapes = [tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    given = step_text(run.instance, step, {"": Tensor(shapes[0])} if shapes else {})
    name = methods.THEN.join([step.name, run.example.method or methods.CALLS[0]])
    return replace(run.example, method=name, call=", ".join([given, *([run.example.call] if run.example.call else [])]))
