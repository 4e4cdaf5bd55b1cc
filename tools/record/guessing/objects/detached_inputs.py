"""Functions with gradients of their own that a call hands an input which needs none (`weight.detach()`): of what their `backward` computes for it, no
call of the unit shows anything. Used inside the sandbox."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, in_mode, make_namespace
from migrate_agent.tools.record.guessing.feedback import value_of
from migrate_agent.tools.record.guessing.values import text
from migrate_agent.tools.types import APPLIED, Example


@dataclass
class DetachedInputs:
    """What the calls so far handed to the functions that files below `folder` define, where torch asked for the gradient at some of the inputs.

    `needed` and `lacking` are places of inputs, by function; `given` are the arguments of the first call that lacked one, as source text.
    """

    folder: str
    needed: dict[type, set[int]] = field(default_factory=dict)
    lacking: dict[type, set[int]] = field(default_factory=dict)
    given: dict[type, str | None] = field(default_factory=dict)

    def calls(self) -> Iterator[list[str]]:
        """Name and argument list of a call of each function that has an input at which no call asked for the gradient."""
        for function, numbers in self.lacking.items():
            arguments = self.given[function]
            if arguments is not None and numbers - self.needed[function]:
                yield [f"{APPLIED}{function.__module__}.{function.__name__}", arguments]

    def watch(self, cls: Any, example: Example, *, training: bool) -> None:
        """Note the calls that a unit makes itself in an example, and not another module in it. Raises the errors of the example."""
        namespace = make_namespace(sys.modules[cls.__module__], example)
        if next(_functions(self.folder), None) is None:
            return  # few repositories have such functions, and a large unit takes seconds to construct
        instance = in_mode(construct(cls, example, namespace), training=training)
        args, kwargs = asking(call_arguments(example, namespace))
        with self._watched(instance):
            methods.bound(instance, example.method)(*args, **kwargs)

    @contextmanager
    def _watched(self, instance: Any) -> Iterator[None]:
        functions = list(_functions(self.folder))
        watched_codes = {_code(function): function for function in functions}
        forward_codes = {methods.code_of(function.forward) for function in functions}

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code in watched_codes and _owner(frame.f_back, forward_codes) is instance:
                self._note(watched_codes[frame.f_code], _arguments(frame))

        profiler = sys.getprofile()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(profiler)

    def _note(self, function: type, arguments: list[Any]) -> None:
        context, *behind = arguments
        inputs = behind if methods.takes_context(function) else behind[0]
        if not any(context.needs_input_grad):
            return
        floats = {number for number, tensor in enumerate(inputs) if _moves(tensor)}
        needed = {number for number in floats if context.needs_input_grad[number]}
        self.needed.setdefault(function, set()).update(needed)
        if lacking := floats - needed:
            self.lacking.setdefault(function, set()).update(lacking)
            self.given.setdefault(function, _text(inputs))


def asking(arguments: Any) -> Any:
    """The arguments of a call with tensors that ask for gradients, and may be changed in place."""
    from migrate_agent.tools.harness.torch_side.value_trees import map_tree  # here alone: it imports torch

    return map_tree(lambda leaf: leaf.detach().requires_grad_().clone() if _moves(leaf) else leaf, arguments)


def has_gradient(output: Any) -> bool:
    """Whether torch computes gradients of what a call gave. Raises the errors of `backward`."""
    import torch

    moving = [leaf for leaf in torch.utils._pytree.tree_leaves(output) if _moves(leaf) and leaf.requires_grad]
    if moving:
        torch.autograd.backward([leaf.abs().sum() for leaf in moving])
    return bool(moving)


def _moves(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _functions(folder: str) -> Iterator[Any]:
    """The functions with gradients of their own that files below a folder define."""
    import torch

    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(folder):
            for member in list(vars(module).values()):
                if isinstance(member, type) and issubclass(member, torch.autograd.Function) and member.__module__ == module.__name__:
                    yield member


def _code(function: Any) -> Any:
    """The code that is handed the context and the inputs."""
    called = function.forward if methods.takes_context(function) else function.setup_context
    return methods.code_of(called)


def _arguments(frame: Any) -> list[Any]:
    """The positional arguments of a function that begins."""
    names, variadic, _, local_values = inspect.getargvalues(frame)
    return [*map(local_values.__getitem__, names), *(local_values[variadic] if variadic else ())]


def _owner(frame: Any, codes: Container[Any]) -> Any:
    """The module whose method runs nearest around a function; None inside of another such function, which has no gradients there."""
    import torch

    while frame is not None and frame.f_code not in codes:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            return owner
        frame = frame.f_back
    return None


def _text(inputs: Any) -> str | None:
    """An argument list like these inputs; None where one of them cannot be written."""
    parts = [repr(leaf) if isinstance(leaf, str) else value_of(leaf) for leaf in inputs]
    return None if None in parts else ", ".join(text(part) for part in parts if part is not None)
