"""Layers that take the size of their input from their first call
(https://docs.pytorch.org/docs/stable/nn.html#lazy-modules-initialization).
"""

from __future__ import annotations

from collections.abc import Mapping

NAMES = ("Linear", *(f"{kind}{n}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm") for n in (1, 2, 3)))

LAZY: Mapping[str, str] = {f"torch.nn.Lazy{name}": f"torch.nn.{name}" for name in NAMES}
"""Lazy layer → what it becomes, whose first argument it does not take: the size that examples
showed stands there instead.
"""
