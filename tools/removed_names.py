"""Names that NumPy, Python and PyTorch have removed, and what they stood for.

Code that was written before says `np.float`, `from collections import Iterable` or `from torch._six import inf`. Its original runs where these
names stand for what they stood for (`restore`), and a rewrite says what they stand for.

Sources: https://numpy.org/doc/stable/release/1.24.0-notes.html, https://numpy.org/doc/stable/numpy_2_0_migration_guide.html,
https://docs.python.org/3/whatsnew/3.10.html#removed, https://github.com/pytorch/pytorch/pull/94709 (torch._six).
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import math
import sys
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

BUILTINS: Mapping[str, str] = MappingProxyType(
    {"float": "float", "int": "int", "object": "object", "complex": "complex", "str": "str", "unicode": "str"}
)
"""A name of NumPy before 1.24 → the type of Python that it was."""
RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "float_": "float64",
        "complex_": "complex128",
        "string_": "bytes_",
        "unicode_": "str_",
        **dict.fromkeys(("Inf", "Infinity", "infty", "PINF"), "inf"),
        **dict.fromkeys(("NaN", "NAN"), "nan"),
        "product": "prod",
        "cumproduct": "cumprod",
        "sometrue": "any",
        "alltrue": "all",
        "row_stack": "vstack",
        "trapz": "trapezoid",
        "round_": "round",
        "mat": "asmatrix",
    }
)
"""A name of NumPy before 2 → the one that is left of the two."""
ABCS = frozenset(
    "Awaitable Callable Collection Container Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping "
    "MutableSequence MutableSet Reversible Sequence Set Sized ValuesView".split()
)
"""What `collections` had before Python 3.10, and `collections.abc` has."""
SIX: Mapping[str, str] = MappingProxyType(
    {"inf": "math.inf", "nan": "math.nan", "string_classes": "(str, bytes)", "int_classes": "int", "container_abcs": "collections.abc"}
)
"""What `torch._six` had before PyTorch 2.0, as an expression."""


def restore() -> None:
    """Give NumPy, `collections` and PyTorch of this process the removed names back, where they lack them: the original may use them."""
    import numpy as np

    for name, kind in BUILTINS.items():
        _restore(np, name, getattr(builtins, kind))
    for name, other in RENAMED.items():
        if hasattr(np, other):
            _restore(np, name, getattr(np, other))
    for name in ABCS:
        _restore(collections, name, getattr(collections.abc, name))
    if "torch._six" not in sys.modules:
        six = ModuleType("torch._six")
        vars(six).update({name: eval(text, {"math": math, "collections": collections}) for name, text in SIX.items()})
        sys.modules["torch._six"] = six


def _restore(module: Any, name: str, value: Any) -> None:
    if name not in vars(module):
        setattr(module, name, value)
