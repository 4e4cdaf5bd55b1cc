"""Names that NumPy and Python have removed, by the names that they have now."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrate_agent.tools.removed_names import ABCS, BUILTINS, RENAMED
from migrate_agent.tools.rewrite.rules.rule import Rule


class RenewNames(Rule):
    """Write names that are gone as they are called now: `np.float` → `float`, `np.product` → `np.prod`, `from collections import Mapping` →
    `from collections.abc import Mapping`.

    Declines for all names that are left.
    """

    KEEP = (
        "import numpy as np\nfrom collections import OrderedDict, deque\n\ndef f(x):\n    return np.prod(x.float), np.float64(2), OrderedDict, deque\n",
    )
    CHANGE = (
        (
            "import numpy as np\n\ndef f(n):\n    return np.arange(n, dtype=np.float) / np.product([n, 2]), np.Inf, np.zeros(n, np.int)\n",
            "import numpy as np\n\n\ndef f(n):\n    return np.arange(n, dtype=float) / np.prod([n, 2]), np.inf, np.zeros(n, int)\n",
        ),
        (
            "import collections\nfrom collections import Iterable, OrderedDict\n\ndef f(x):\n"
            "    return isinstance(x, Iterable) and not isinstance(x, collections.Mapping), OrderedDict\n",
            "import collections\nfrom collections import OrderedDict\nfrom collections.abc import Iterable\n\n\ndef f(x):\n"
            "    return isinstance(x, Iterable) and not isinstance(x, collections.abc.Mapping), OrderedDict\n",
        ),
        (
            "from collections import Sequence as Items\n\ndef f(x):\n    return isinstance(x, Items)\n",
            "from collections.abc import Sequence as Items\n\n\ndef f(x):\n    return isinstance(x, Items)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        module, _, name = self.context.dotted(original).rpartition(".")
        if name != original.attr.value:
            return None
        if module == "numpy" and name in BUILTINS:
            return cst.Name(BUILTINS[name])
        if module == "numpy" and name in RENAMED:
            return updated.with_changes(attr=cst.Name(RENAMED[name]))
        if module == "collections" and name in ABCS:
            return updated.with_changes(value=cst.Attribute(updated.value, cst.Name("abc")))
        return None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine] | None:
        match updated.body:
            case [cst.ImportFrom(relative=[], module=cst.Name("collections"), names=[*aliases])]:
                moved = [alias for alias in aliases if alias.evaluated_name in ABCS]
                left = [alias for alias in aliases if alias.evaluated_name not in ABCS]
            case _:
                return None
        if not moved:
            return None
        of_abc = cst.SimpleStatementLine([cst.ImportFrom(cst.Attribute(cst.Name("collections"), cst.Name("abc")), _listed(moved))])
        if not left:
            return of_abc.with_changes(leading_lines=updated.leading_lines)
        statement = updated.body[0]
        return cst.FlattenSentinel([updated.with_changes(body=[statement.with_changes(names=_listed(left))]), of_abc])


def _listed(aliases: Sequence[cst.ImportAlias]) -> list[cst.ImportAlias]:
    """The names of one import, without the comma after the last one."""
    return [*aliases[:-1], aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
