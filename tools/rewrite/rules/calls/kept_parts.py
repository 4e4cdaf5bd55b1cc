"""Parts of an array that are handed on as a whole: torch gives them as a tuple, most of `jnp`'s functions as a list."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.context import Context

PARTS = m.OneOf(m.Name("split"), m.Name("array_split"), m.Name("hsplit"), m.Name("vsplit"), m.Name("dsplit"), m.Name("meshgrid"))
LISTING = m.Call(func=m.Attribute(m.Name("jnp"), PARTS))
"""Calls that give a list."""


def lists_parts(node: cst.BaseExpression) -> bool:
    """Whether a rewritten call gives its parts as a list."""
    return m.matches(node, LISTING)


def is_kept_whole(context: Context, call: cst.Call) -> bool:
    """Whether what an original call gives leaves the function, or stays in an attribute, as the one object that it is: it is not taken apart here."""
    match context.parent():
        case cst.Return() | cst.Lambda() | cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute())]):
            return True
        case cst.Element() | cst.DictElement() if not isinstance(context.parent(2), cst.Subscript):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            function = next((one for one in reversed(context.stack) if isinstance(one, cst.FunctionDef)), None)
            returned = m.Name(name) | m.Tuple(elements=[m.ZeroOrMore(), m.Element(m.Name(name)), m.ZeroOrMore()])
            return function is not None and bool(m.findall(function, m.Return(value=returned)))
    return False
