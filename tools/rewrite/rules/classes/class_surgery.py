"""Bases and classes that are set while the program runs."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

SET = frozenset({"__bases__", "__class__"})


class RefuseClassSurgery(Rule):
    """Refuse classes that change while the program runs: `self.__class__ = Other`, `cls.__bases__ = (Mixin, *cls.__bases__)` → holes.

    NNX builds what it knows of a class when that is made. Declines for reads. Decorators that do just this
    stand in the header of the class already (`analysis/mixins.py`).
    """

    KEEP = ("def f(x):\n    return x.__class__.__bases__\n",)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> None:
        if original.attr.value in SET and isinstance(self.context.parent(), cst.AssignTarget) and self.context.file.names_torch:
            self.context.hole(
                original, f"{original.attr.value} is set while the program runs: write it in the header of the class", "class"
            )
