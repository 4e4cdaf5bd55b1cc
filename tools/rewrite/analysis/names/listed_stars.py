"""Stars of Python's own modules and of NumPy as the names that a file reads: `from abc import *` → `from abc import ABCMeta, abstractmethod`.

The text is changed before it is parsed, on the line of the import alone: what was observed is known by its place in the file.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
from collections.abc import Collection

STAR = re.compile(r"^(?P<head>from[ \t]+(?P<module>[A-Za-z_][\w.]*)[ \t]+import[ \t]+)\*(?P<tail>[ \t]*(#.*)?)$", re.M)
TALKATIVE = frozenset({"this", "antigravity", "idlelib", "turtle", "turtledemo", "tkinter", "test"})
"""Modules that do something when they are imported, or need what may be absent."""
LIBRARIES = frozenset(sys.stdlib_module_names) - TALKATIVE | {"numpy"}


def listed_stars(text: str, own_modules: Collection[str]) -> str:
    """The text with such stars as lists of names. `own_modules` are the first and last names of the repository's modules, which go before those of Python."""
    if STAR.search(text) is None:
        return text
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    stars = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    known = [not node.level and _first(node.module or "") in LIBRARIES.difference(own_modules) for node in stars]
    # What another star binds afterwards wins.
    lines = {node.lineno for at, node in enumerate(stars) if all(known[at:])}
    reads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def listed(match: re.Match[str]) -> str:
        if text.count("\n", 0, match.start()) + 1 not in lines:
            return match[0]
        names = sorted(reads & _exported(match["module"]))
        return f"{match['head']}{', '.join(names)}{match['tail']}" if names else match[0]

    return STAR.sub(listed, text)


def _first(module: str) -> str:
    return module.partition(".")[0]


def _exported(name: str) -> frozenset[str]:
    """What the star of an installed module binds, but Python's own builtins that it gives again."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return frozenset()
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    return frozenset(name for name in names if getattr(builtins, name, None) is not getattr(module, name, None))
