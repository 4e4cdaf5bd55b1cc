"""Which definitions of a port are the project's own helpers, copied beside it."""

from __future__ import annotations

import ast

from migrate_agent.tools.verify.evidence.counted_file import counted_file


def is_copied(name: str, text: str) -> bool:
    """Whether a file defines a name as the project's own helper of that name, which has tests of its own."""
    from migrate_agent.tools.closure import canonical
    from migrate_agent.tools.rewrite.tables.helpers import symbols

    symbol = symbols().get(name)
    nodes = [node for node in counted_file(text).tree.body if getattr(node, "name", "") == name] if symbol else []
    if symbol is None or not nodes:
        return False
    return canonical(nodes[-1]) == canonical(ast.parse(symbol.text).body[-1]) or is_specialised(name, text)


def is_specialised(name: str, text: str) -> bool:
    """Whether a file defines a name as the project's own helper of that name, reduced to some calls of it."""
    from migrate_agent.tools.closure import canonical
    from migrate_agent.tools.rewrite.specialise import made_alike

    nodes = [node for node in ast.parse(text).body if getattr(node, "name", "") == name]
    alike = made_alike(text).get(name) if len(nodes) == 1 else None
    return alike is not None and canonical(nodes[0]) == canonical(ast.parse(alike).body[-1])
