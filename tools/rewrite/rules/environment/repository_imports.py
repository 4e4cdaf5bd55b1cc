"""Imports of the repository's own files get the mirror's names, wherever they stand."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.canonical_names import TORCH


class RenameRepositoryImports(Rule):
    """Import the mirror: `from pkg.a import B` → `from pkg_jax.a import B`, `from model import GPT` → `from model_jax import GPT`.

    What of torch a file hands on is not imported from there, since nothing of torch is left. Otherwise declines for relative imports: the
    mirror has the same shape.
    """

    KEEP = ("import os\nfrom math import pi\n",)

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> cst.ImportFrom | cst.RemovalSentinel | None:
        if not isinstance(updated.names, cst.ImportStar):
            aliases = [alias for alias in updated.names if not self._is_of_torch(updated, alias)]
            if not aliases:
                return cst.RemoveFromParent()
            if len(aliases) < len(updated.names):
                updated = updated.with_changes(names=[*aliases[:-1], aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        # The mirror's folders lie to each other as the repository's do.
        if updated.relative or updated.module is None:
            return updated
        name = cst.Module([]).code_for_node(updated.module)
        mirror = self._mirror(name)
        return updated.with_changes(module=_dotted(mirror)) if mirror else updated

    def leave_Import(self, original: cst.Import, updated: cst.Import) -> cst.Import | None:
        names = []
        for alias in updated.names:
            mirror = self._mirror(alias.evaluated_name)
            renamed = alias.with_changes(name=_dotted(mirror)) if mirror else alias
            # A file that is imported by its own name may lie in a package: `import network` binds `network`, `import src_jax.network` does not.
            if "." in mirror and "." not in alias.evaluated_name and alias.asname is None:
                renamed = renamed.with_changes(asname=cst.AsName(cst.Name(alias.evaluated_name)))
            names.append(renamed)
        return updated.with_changes(names=names)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.Name | None:
        """`import pkg.layers` binds `pkg`: where it is used it is the mirror's package."""
        dotted = self.context.dotted(original)
        if not dotted or dotted != original.value:
            return None
        mirror = self._mirror(dotted)
        return cst.Name(mirror) if mirror and "." not in mirror else None

    def _is_of_torch(self, statement: cst.ImportFrom, alias: cst.ImportAlias) -> bool:
        """Whether a file of the repository hands a name of torch on, as `from torch import Tensor` there does."""
        module = cst.Module([]).code_for_node(statement.module) if statement.module else ""
        of_repository = bool(statement.relative) or bool(self._mirror(module))
        name = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else alias.evaluated_name
        return of_repository and self.context.file.bindings.get(name, "").partition(".")[0] in TORCH

    def _mirror(self, name: str) -> str:
        repo = self.context.repo
        return repo.mirror(repo.canonical(name, self.context.file.file))


def _dotted(name: str) -> cst.Attribute | cst.Name:
    node = cst.parse_expression(name)
    assert isinstance(node, (cst.Attribute, cst.Name))
    return node
