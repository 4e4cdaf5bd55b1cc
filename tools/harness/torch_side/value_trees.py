"""Values in containers, one at a time. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """What `function` makes of every value in nested containers, in containers of the same kinds.

    A `torch.Size` is one value. In torch's own `tree_map` it becomes a tuple, of which `x.new(…)` makes data in place of a shape.
    """
    return tree_map(function, tree, is_leaf=lambda value: isinstance(value, torch.Size))
