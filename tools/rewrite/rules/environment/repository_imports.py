"""Imports of the repository's own files get the mirror's names, wherever they stand."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class RenameRepositoryImports(Rule):
    """Import the mirror: `from pkg.a import B` → `from pkg_jax.a import B`, `from model import GPT` → `from model_jax import GPT`.

    Declines for relative imports: the mirror has the same shape.
    """

    KEEP = ("import os\nfrom math import pi\n",)

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> cst.ImportFrom | None:
        # The mirror's folders lie to each other as the repository's do.
        if updated.relative or updated.module is None:
            return None
        name = cst.Module([]).code_for_node(updated.module)
        mirror = self._mirror(name)
        return updated.with_changes(module=_dotted(mirror)) if mirror else None

    def leave_Import(self, original: cst.Import, updated: cst.Import) -> cst.Import | None:
        names = []
        for alias in updated.names:
            mirror = self._mirror(alias.evaluated_name)
            names.append(alias.with_changes(name=_dotted(mirror)) if mirror else alias)
        return updated.with_changes(names=names)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.Name | None:
        """`import pkg.layers` binds `pkg`: where it is used it is the mirror's package."""
        dotted = self.context.dotted(original)
        if not dotted or dotted != original.value:
            return None
        mirror = self._mirror(dotted)
        return cst.Name(mirror) if mirror and "." not in mirror else None

    def _mirror(self, name: str) -> str:
        repo = self.context.repo
        return repo.mirror(repo.canonical(name, self.context.file.file))


def _dotted(name: str) -> cst.Attribute | cst.Name:
    node = cst.parse_expression(name)
    assert isinstance(node, (cst.Attribute, cst.Name))
    return node
