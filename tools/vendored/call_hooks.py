"""Functions that run around each call of a module: PyTorch's forward hooks.

A module with hooks changes to a subclass of its own class, whose call runs them. They are static: what they read or set is in the module that they are
given, and not in one that they hold.
"""

import functools
from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]


@functools.cache
def hooked_class(cls: type) -> type:
    """The subclass of `cls` whose instances run their hooks before and after each call."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for hook in self.hooks_before:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = cls.__call__(self, *args, **kwargs)
        for hook in self.hooks_after:
            changed = hook(self, args, output)
            output = output if changed is None else changed
        return output

    hooked: Any = type(cls)(cls.__name__, (cls,), {"__call__": call, "__module__": cls.__module__, "__doc__": cls.__doc__})
    hooked.parametrised_slots = (hooked, ())
    subclass: type = hooked
    return subclass


def add_hooks(module: Any, before: tuple[Hook, ...], after: tuple[Hook, ...]) -> None:
    """Let a module run these hooks too, behind those that it has."""
    if not hasattr(module, "hooks_before"):
        module.hooks_before, module.hooks_after = (), ()
        cls: type = type(module)
        object.__setattr__(module, "__class__", hooked_class(cls))
    module.hooks_before, module.hooks_after = (*module.hooks_before, *before), (*module.hooks_after, *after)


def register_forward_pre_hook(module: Any, hook: Hook) -> None:
    """From now on `hook(module, inputs)` runs before each call; what it gives other than None takes the place of the inputs.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_pre_hook
    """
    add_hooks(module, (hook,), ())


def register_forward_hook(module: Any, hook: Hook) -> None:
    """From now on `hook(module, inputs, output)` runs after each call; what it gives other than None takes the place of the output.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """
    add_hooks(module, (), (hook,))
