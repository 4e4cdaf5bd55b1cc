"""Names that rewritten code may use although no statement of the file defines them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

CANONICAL: Mapping[str, str] = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
    "nnx": "from flax import nnx",
    "np": "import numpy as np",
    "optax": "import optax",
    "einops": "import einops",
    "math": "import math",
    "collections": "import collections",
    "dataclasses": "import dataclasses",
    "functools": "import functools",
    "partial": "from functools import partial",
    "nullcontext": "from contextlib import nullcontext",
    "operator": "import operator",
    "Any": "from typing import Any",
}
"""Names that rewritten code uses, and the import that binds each."""
TORCH = ("torch", "torchaudio")
KNOWN = frozenset(dir(builtins)) | {
    "__name__",
    "__file__",
    "__class__",
    "__qualname__",
    "__module__",
    "__doc__",
    "__path__",
    "__annotations__",
}
