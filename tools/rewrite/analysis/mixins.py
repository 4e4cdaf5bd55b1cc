"""Classes that get a base from a decorator (`cls.__bases__ = (Base,) + …`), which Python refuses
for classes such as `nnx.Module`.
"""

from __future__ import annotations

import ast
import re


def inline_mixin_bases(text: str) -> str:
    """The text of a file with such bases in the class headers and without their decorators. No line
    moves.

    This is done only where decorator and class stand at the top of the same file, each on lines of
    its own.
    """
    # Nearly every file ends here without being parsed a second time.
    if "__bases__" not in text:
        return text
    body = ast.parse(text).body
    bases = {node.name: base for node in body if isinstance(node, ast.FunctionDef) and (base := _added_base(node))}
    lines = text.split("\n")
    for node in body:
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            base = bases.get(decorator.id, "") if isinstance(decorator, ast.Name) else ""
            if base and isinstance(node, ast.ClassDef) and lines[decorator.lineno - 1].strip() == f"@{ast.unparse(decorator)}":
                header = _header(lines[node.lineno - 1], base)
                if header and not any(isinstance(one, ast.Name) and one.id == base for one in node.bases):
                    # The line stays, empty: observations are keyed by line.
                    lines[decorator.lineno - 1], lines[node.lineno - 1] = "", header
    return "\n".join(lines)


def _header(line: str, base: str) -> str:
    """`class M(Other):` → `class M(Base, Other):`; "" where the header is not on one line."""
    match = re.match(r"(class \w+)\s*(\(\s*\)\s*:|\(|:)(.*)", line)
    if match is None:
        return ""
    end = f"({base}, {match[3]}" if match[2] == "(" else f"({base}):{match[3]}"
    return match[1] + end


def _added_base(function: ast.FunctionDef) -> str:
    """The class that a decorator adds before the other bases, where it does nothing else; "" otherwise."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    match body:
        case [
            ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=one), attr="__bases__")],
                value=ast.BinOp(left=ast.Tuple(elts=[ast.Name(id=base)]), op=ast.Add(), right=rest),
            ),
            ast.Return(value=ast.Name(id=other)),
        ] if one == other and [argument.arg for argument in function.args.args] == [one]:
            return base if _is_other_bases(rest, one, base) else ""
    return ""


def _is_other_bases(node: ast.expr, cls: str, base: str) -> bool:
    """Whether this is `cls.__bases__`, or `tuple(b for b in cls.__bases__ if b != Base)`."""
    texts = {f"{cls}.__bases__", f"tuple({cls}.__bases__)"}
    match node:
        case ast.Call(func=ast.Name(id="tuple"), args=[ast.GeneratorExp(elt=ast.Name(id=name), generators=[ast.comprehension() as part])]):
            tests = [{f"{name} != {base}", f"{name} is not {base}"} & {ast.unparse(test)} for test in part.ifs]
            return ast.unparse(part.target) == name and ast.unparse(part.iter) in texts and all(tests)
    return ast.unparse(node) in texts
