"""`try: from torch.x import y … except ImportError: …`: what the source does where torch has no `y` is what it does without torch."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.packages.absent import absent_package
from migrate_agent.tools.rewrite.analysis.repo import AUTOCAST, known_to_torch
from migrate_agent.tools.rewrite.rules.rule import Rule

FAILURES = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})
TORCH = ("torch", "torchaudio")


class TakeImportFallbacks(Rule):
    """Take the fallback of an import that torch alone has: `try: from torch.hub import …` `except ImportError: …` → the body of the `except`.

    So does the import of a file of the repository that needs a package which is not installed, such as kernels
    that were not compiled. A `try` that only imports what has a counterpart is removed, and `y is None` → `False`.
    Declines where there is an `else` or a `finally`.
    """

    KEEP = ("try:\n    import numpy as np\nexcept ImportError:\n    np = None\n",)
    CHANGE = (
        (
            'try:\n    from torch.hub import _get_torch_home\n\n    home = _get_torch_home()\nexcept ImportError:\n    home = "~/.cache"\n',
            'home = "~/.cache"\n',
        ),
        (
            "try:\n    from torch import _assert\nexcept ImportError:\n\n    def _assert(condition, message):\n        assert condition, message\n",
            "def _assert(condition, message):\n    assert condition, message\n",
        ),
        (
            "from torch import nn\n\ntry:\n    from torch.nn import Identity\nexcept ImportError:\n\n    class Identity(nn.Module):\n        pass\n\n\n"
            "def f():\n    return Identity()\n",
            "def f():\n    return Identity()\n",
        ),
        (
            "import torch\n\ntry:\n    import torch.fft as new_fft\nexcept ImportError:\n    new_fft = None\n\n\n"
            "def f(x: torch.Tensor):\n    return torch.rfft(x, 1) if new_fft is None else new_fft.fft2(x)\n",
            "def f(x: jax.Array):\n    return jnp.fft.fft2(x)\n",
        ),
    )

    def leave_Try(self, original: cst.Try, updated: cst.Try) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        handler = next((h for h in updated.handlers if catches_import(h)), None)
        if handler is None or original.finalbody or original.orelse or not isinstance(handler.body, cst.IndentedBlock):
            return None
        failing = self._failing(original.body)
        names = _imported(original.body) | failing | self._casting(original.body)
        # Every import had a counterpart and is gone: nothing is left that may fail.
        if names and not updated.body.body and all(known_to_torch(self.context.file.bindings.get(name, "")) for name in names):
            return cst.RemoveFromParent()
        first, last = self.context.span(original).line, self.context.span(original.handlers[0]).line
        inside = [hole for hole in self.context.holes if first <= hole.span.line < last]
        only_imports = bool(names) and not updated.body.body
        # A hole that none of the imported names made is no sign that the import fails.
        if not only_imports and not failing and not any(hole.text.partition("(")[0].partition(".")[0] in names for hole in inside):
            return None
        end = self.context.span(original).end_line
        handled = next(h for h, new in zip(original.handlers, updated.handlers, strict=True) if new is handler)
        handler_span = self.context.span(handled)
        self.context.holes[:] = [
            hole
            for hole in self.context.holes
            if not first <= hole.span.line <= end or handler_span.line <= hole.span.line <= handler_span.end_line
        ]
        body = list(handler.body.body)
        if not body:
            return cst.RemoveFromParent()
        body[0] = body[0].with_changes(leading_lines=[*updated.leading_lines, *getattr(body[0], "leading_lines", ())])
        return cst.FlattenSentinel(body)

    def _casting(self, suite: cst.BaseSuite) -> set[str]:
        """Other names that a block gives to torch's automatic casting."""
        bindings = self.context.file.bindings
        lines = [statement for statement in suite.body if isinstance(statement, cst.SimpleStatementLine)]
        targets = [small.targets[0].target for line in lines for small in line.body if isinstance(small, cst.Assign)]
        return {target.value for target in targets if isinstance(target, cst.Name) and bindings.get(target.value) in AUTOCAST}

    def _failing(self, suite: cst.BaseSuite) -> set[str]:
        """The names that a block imports from files of the repository whose import fails here."""
        repo, bindings = self.context.repo, self.context.file.bindings
        lines = [statement for statement in suite.body if isinstance(statement, cst.SimpleStatementLine)]
        parts = [small.names for line in lines for small in line.body if isinstance(small, cst.ImportFrom)]
        names = {
            alias.evaluated_alias or alias.evaluated_name
            for aliases in parts
            if not isinstance(aliases, cst.ImportStar)
            for alias in aliases
        }
        files = {name: definition[0] for name in names if (definition := repo.resolve(bindings.get(name, "")))}
        return {name for name, file in files.items() if absent_package(repo, file)}

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        """`y is None` of what a file tries to import from torch, which has it."""
        target = original.comparisons[0]
        if (
            len(original.comparisons) != 1
            or not isinstance(target.operator, (cst.Is, cst.IsNot))
            or not isinstance(original.left, cst.Name)
        ):
            return None
        dotted = self.context.file.bindings.get(original.left.value, "")
        if not m.matches(target.comparator, m.Name("None")) or self.context.dotted(original.left) != dotted or not known_to_torch(dotted):
            return None
        return cst.Name(str(isinstance(target.operator, cst.IsNot)))


def catches_import(handler: cst.ExceptHandler) -> bool:
    """Whether a missing import ends here."""
    kinds = [e.value for e in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, cst.Name) and kind.value in FAILURES) for kind in kinds)


def _imported(suite: cst.BaseSuite) -> set[str]:
    """The names that a block binds by importing from torch."""
    names: set[str] = set()
    for statement in suite.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and small.module and not small.relative and not isinstance(small.names, cst.ImportStar):
                module = cst.Module([]).code_for_node(small.module)
                if module.partition(".")[0] in TORCH:
                    names |= {alias.evaluated_alias or alias.evaluated_name for alias in small.names}
            elif isinstance(small, cst.Import):
                aliases = [alias for alias in small.names if alias.evaluated_name.partition(".")[0] in TORCH]
                names |= {alias.evaluated_alias or alias.evaluated_name.partition(".")[0] for alias in aliases}
    return names
