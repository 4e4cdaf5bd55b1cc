"""Options of torch functions that a name stands for: what is called is JAX's function, with its own names of options."""

from __future__ import annotations

import importlib
import inspect
from functools import cache

import libcst as cst

from migrate_agent.tools.rewrite.rules.calls.torch_references import ReplaceTorchReferences
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse, ops

NAMES = {"dim": "axis", "keepdim": "keepdims", "input": "a"}
"""What JAX calls an option of torch's reductions."""
MODULES = {"jnp": "jax.numpy", "jax.nn": "jax.nn"}


class RenameHandedOptions(Rule):
    """Rename options where a name stands for a torch function: with `op=torch.sum`, `op(x, dim=1, keepdim=True)` → `op(x, axis=1, keepdims=True)`.

    Declines where what the name stands for was not seen, or is no function of JAX that has these options.
    """

    KEEP = ("def f(x, op):\n    return op(x, dim=1)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    op = torch.sum\n    return op(x, dim=1, keepdim=True) + x.mean(dim=1, keepdim=True)\n",
            "def f(x: jax.Array):\n    op = jnp.sum\n    return op(x, axis=1, keepdims=True) + jnp.mean(x, axis=1, keepdims=True)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        given = [argument.keyword.value for argument in original.args if argument.keyword is not None]
        fact = self.context.observed(original.func)
        if not set(given) & NAMES.keys() or self.context.dotted(original.func) or fact is None or not fact.kinds:
            return None
        if not isinstance(original.func, (cst.Name, cst.Attribute)) or any(argument.star == "**" for argument in original.args):
            return None
        renamed = {name: NAMES.get(name, name) for name in given}
        if not all(self._takes(kind, set(renamed.values())) for kind in fact.kinds):
            return None
        arguments = [
            argument.with_changes(keyword=cst.Name(renamed[argument.keyword.value])) if argument.keyword else argument
            for argument in updated.args
        ]
        return updated.with_changes(args=arguments)

    def _takes(self, kind: str, options: set[str]) -> bool:
        """Whether what stands for a torch function in the mirror is a function of JAX with these options."""
        dotted = kind.removeprefix("function:")
        if not kind.startswith("function:torch.") or dotted not in ops():
            return False
        try:
            value = ReplaceTorchReferences(self.context).value(dotted)
        except Refuse:
            return False
        return options <= _options(cst.Module([]).code_for_node(value))


@cache
def _options(text: str) -> frozenset[str]:
    """The names of the arguments of a function of JAX; none for any other text."""
    module, _, name = text.rpartition(".")
    function = getattr(importlib.import_module(MODULES[module]), name, None) if module in MODULES else None
    return frozenset(inspect.signature(function).parameters) if callable(function) else frozenset()
