"""The comments at the top of a file: its licence, its origin, its subject."""

from __future__ import annotations

import re

import libcst as cst

DIRECTIVE = re.compile(r"#!|#\s*(type|mypy|pyright|pyre|pytype|flake8|ruff|pylint|isort|noqa)\b\s*(:|-|=|$)")
"""Comments for a shell or a checker, which hold for the original text only."""


def heading(module: cst.Module, keeps_first: bool) -> str:
    """The comments above the first statement, without directives for tools.

    Comments directly above a definition belong to it. They are dropped where the target file does
    not hold the first statement (`keeps_first` is false).
    """
    lines = [line.comment.value if line.comment else "" for line in module.header]
    if not keeps_first and module.body and _defines(module.body[0]):
        # Up to the first empty line: what stands above it is about the file.
        while lines and lines[-1]:
            lines.pop()
    text = "\n".join(line for line in lines if not DIRECTIVE.match(line))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def _defines(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    """Whether it is a function, a class or an assignment."""
    if isinstance(statement, cst.SimpleStatementLine):
        return any(isinstance(small, cst.Assign | cst.AnnAssign | cst.AugAssign) for small in statement.body)
    return isinstance(statement, cst.FunctionDef | cst.ClassDef)
