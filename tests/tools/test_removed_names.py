"""Names that NumPy, Python and PyTorch have removed stand for what they stood for, in the original's process alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from migrate_agent.tools.removed_names import ABCS, RENAMED

USES = [
    "import numpy as np; assert np.float is float and np.arange(2, dtype=np.int).dtype == np.int64",
    "import numpy as np; assert np.product([2, 3]) == 6 and np.Inf == np.inf and np.bool is np.bool_",
    "from collections import Iterable, OrderedDict; assert isinstance([], Iterable) and OrderedDict",
    "import torch; from torch._six import inf, string_classes, container_abcs; assert inf > 1 and isinstance({}, container_abcs.Mapping)",
]


@pytest.mark.parametrize("source", USES)
def test_old_names_are_there_once_restored(source: str) -> None:
    start = "from migrate_agent.tools.removed_names import restore; restore()"
    assert subprocess.run([sys.executable, "-c", f"{start}\n{source}"], check=False).returncode == 0


def test_what_names_are_renamed_to_exists() -> None:
    import collections.abc

    assert [name for name in RENAMED.values() if not hasattr(np, name)] == []
    assert [name for name in ABCS if not hasattr(collections.abc, name)] == []


def test_nothing_that_is_left_is_replaced() -> None:
    source = "import numpy as np; kept = np.bool; from migrate_agent.tools.removed_names import restore; restore(); assert np.bool is kept"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0
