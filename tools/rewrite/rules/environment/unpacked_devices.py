"""Devices among the values of a tuple assignment."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.unpacking import drop_elements, matching_index, star_flags
from migrate_agent.tools.rewrite.rules.environment.devices import is_device
from migrate_agent.tools.rewrite.rules.rule import Rule


class DropUnpackedDevices(Rule):
    """Remove devices from tuple assignments: `b, device = x.shape[0], x.device` → `b = x.shape[0]`.

    Declines for a device inside what a star collects, and where no target would be left.
    """

    KEEP = ("def f(x, y):\n    n, name = y[0], x.name\n    return n, name\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    b, device = x.shape[0], x.device\n    return torch.arange(b, device=device)\n",
            "def f(x: jax.Array):\n    b = x.shape[0]\n    return jnp.arange(b)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    b, *axis, device = *x.shape, x.device\n    return torch.ones(axis, device=device) * b\n",
            "def f(x: jax.Array):\n    b, *axis = x.shape\n    return jnp.ones(axis) * b\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    b, n, device = x.shape[0], y.shape[-1], x.device\n"
            "    return torch.arange(n, device=device) * b\n",
            "def f(x: jax.Array, y: jax.Array):\n    b, n = x.shape[0], y.shape[-1]\n    return jnp.arange(n) * b\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, w: torch.Tensor):\n        super().__init__()\n"
            "        self.a, n, device = None, d, w.device\n        self.a = nn.Parameter(torch.ones(n, device=device))\n",
            "class M(nnx.Module):\n    def __init__(self, d, w: jax.Array, *, rngs: nnx.Rngs):\n"
            "        self.a, n = nnx.data(None), d\n        self.a = nnx.Param(jnp.ones(n))\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        source, target, value = original.value, updated.targets[0].target, updated.value
        if len(original.targets) > 1 or not all(isinstance(part, cst.Tuple) for part in (source, target, value)):
            return None
        assert isinstance(source, cst.Tuple) and isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple)
        devices = [i for i, element in enumerate(source.elements) if is_device(self.context.observed(element.value))]
        if not devices or len(source.elements) != len(value.elements):
            return None
        starred = star_flags(target), star_flags(value)
        partners = [matching_index(*starred, i) for i in devices]
        targets = [index for index in partners if index is not None and isinstance(target.elements[index].value, cst.Name)]
        # A device inside what a star collects cannot be taken out alone, and an assignment needs a target.
        if len(targets) < len(partners) or len(targets) == len(target.elements):
            return None
        return drop_elements(updated, targets, devices)
