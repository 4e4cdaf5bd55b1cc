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
from migrate_agent.tools.types import Example


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
        for function, places in self.lacking.items():
            given = self.given[function]
            if given is not None and places - self.needed[function]:
                yield [f"{methods.APPLIED}{function.__module__}.{function.__name__}", given]

    def watch(self, cls: Any, example: Example, *, training: bool) -> None:
        """Note the calls that a unit makes itself in an example, and not another module in it. Raises the errors of the example."""
        namespace = make_namespace(sys.modules[cls.__module__], example)
        instance = in_mode(construct(cls, example, namespace), training=training)
        args, kwargs = asking(call_arguments(example, namespace))
        with self._watched(instance):
            methods.bound(instance, example.method)(*args, **kwargs)

    @contextmanager
    def _watched(self, instance: Any) -> Iterator[None]:
        codes = {_code(function): function for function in _functions(self.folder)}

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code in codes and _owner(frame.f_back, codes) is instance:
                self._note(codes[frame.f_code], _arguments(frame))

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _note(self, function: type, arguments: list[Any]) -> None:
        import torch

        context, *given = arguments
        inputs = given if methods.takes_context(function) else given[0]
        asked = context.needs_input_grad
        if not any(asked):
            return
        floats = [
            place for place, part in enumerate(inputs) if isinstance(part, torch.Tensor) and (part.is_floating_point() or part.is_complex())
        ]
        lacking = {place for place in floats if not asked[place]}
        self.needed.setdefault(function, set()).update(place for place in floats if asked[place])
        if lacking:
            self.lacking.setdefault(function, set()).update(lacking)
            self.given.setdefault(function, _text(inputs))


def asking(arguments: Any) -> Any:
    """The arguments of a call with tensors that ask for gradients, and may be changed in place."""
    import torch

    from migrate_agent.tools.harness.torch_side.value_trees import map_tree  # here alone: it imports torch

    def ask(part: Any) -> Any:
        moves = isinstance(part, torch.Tensor) and (part.is_floating_point() or part.is_complex())
        return part.detach().requires_grad_().clone() if moves else part

    return map_tree(ask, arguments)


def has_gradient(result: Any) -> bool:
    """Whether torch computes gradients of what a call gave. Raises the errors of `backward`."""
    import torch

    moving = [part for part in torch.utils._pytree.tree_leaves(result) if isinstance(part, torch.Tensor) and part.requires_grad]
    if moving:
        torch.autograd.backward([part.abs().sum() for part in moving])
    return bool(moving)


def _functions(folder: str) -> Iterator[type]:
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
    names, more, _, values = inspect.getargvalues(frame)
    return [*(values[name] for name in names), *(values[more] if more else ())]


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
    values = [repr(part) if isinstance(part, str) else value_of(part) for part in inputs]
    return None if None in values else ", ".join(text(part) for part in values if part is not None)
