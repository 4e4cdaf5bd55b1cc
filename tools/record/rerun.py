"""Runs a recorded example again from its source texts, after another method where its call reads what that sets."""

from __future__ import annotations

import time
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
from migrate_agent.tools.record.smaller import SLOW, Tensors, TimedCall, smaller
from migrate_agent.tools.types import Example

SEED = 0


def rerun(module_name: str, example: Example) -> Example:
    """Build and call a recorded example once, and give it; or what calls another method first, where the call reads what that sets; or one on smaller
    tensors, where the call takes long.

    Raises the error of the user's code.
    """
    run = _Run(module_name, example)
    try:
        trial = run.call()
    except Exception as error:
        absent = missing_state(error, run.instance) if methods.THEN not in example.method else None
        for step in steps(run.instance, absent, example.method) if absent is not None else ():
            with suppress(Exception):  # what the recorded call itself ran into says more
                after = _after(run, step)
                _Run(module_name, after).call()
                return after
        raise
    return _on_less(module_name, example, trial)


def _on_less(module_name: str, example: Example, whole: TimedCall) -> Example:
    """The example on smaller tensors, in a file of their own, where its call takes long and they do as well."""
    if whole.seconds <= SLOW or example.tensors is None:
        return example
    from safetensors.torch import save_file

    def run(tensors: Tensors) -> TimedCall | None:
        try:
            return _Run(module_name, example, tensors).call()
        except Exception:  # whatever the user's code makes of tensors that it was not called with
            return None

    tensors = load_tensors(example.tensors)
    kept = smaller(example.call, tensors, whole, run)
    if kept is tensors:
        return example
    path = example.tensors.with_name(f"{example.tensors.stem}-less.safetensors")
    save_file(dict(kept), path)
    return replace(example, tensors=path)


class _Run:
    """An example, built. Raises the errors of its import, its setup and its constructor."""

    def __init__(self, module_name: str, example: Example, tensors: Tensors | None = None) -> None:
        import torch

        self.example, module = example, import_module(module_name)
        torch.manual_seed(SEED)
        self.namespace = make_namespace(module, example, load_tensors(example.tensors) if tensors is None else tensors)
        unit = load_unit(module.__name__, example.unit.partition(":")[2], example.init)
        self.instance: Any = construct(unit, example, self.namespace)

    def call(self) -> TimedCall:
        import torch

        args, kwargs = call_arguments(self.example, self.namespace)
        began = time.process_time()
        with torch.set_grad_enabled(asks_gradients(type(self.instance))):
            result = methods.bound(self.instance, self.example.method)(*args, **kwargs)
        leaves = torch.utils._pytree.tree_leaves(result)
        return TimedCall(time.process_time() - began, tuple(leaf.ndim for leaf in leaves if isinstance(leaf, torch.Tensor)))


def _after(run: _Run, step: Step) -> Example:
    """The example with another method called first, for as many samples as its first tensor has."""
    import torch

    leaves = torch.utils._pytree.tree_leaves(call_arguments(run.example, run.namespace))
    shapes = [tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    given = step_text(run.instance, step, {"": Tensor(shapes[0])} if shapes else {})
    name = methods.THEN.join([step.name, run.example.method or methods.CALLS[0]])
    return replace(run.example, method=name, call=", ".join([given, *([run.example.call] if run.example.call else [])]))
