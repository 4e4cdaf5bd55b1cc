"""Groups of parameters that a function of the repository makes: they are written out where the optimizer is constructed.

optimizer = torch.optim.AdamW(param_groups(model, 0.1), lr=1e-3)

becomes, where the function gives two groups, and the recorded run had what has fewer than two axes in the second one,

optimizer = torch.optim.AdamW([
    {"params": [p for n, p in model.named_parameters() if not (p.dim() < 2)], "weight_decay": 0.1},
    {"params": [p for n, p in model.named_parameters() if p.dim() < 2], "weight_decay": 0.0}], lr=1e-3)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrate_agent.tools.programs.rewrite.method_optimizers import (
    Inlined,
    RecordedOptimizer,
    arguments_of,
    entries_of,
    group_texts,
    listed,
    names_in,
    parameter_rule,
)
from migrate_agent.tools.programs.rewrite.moved_prints import printed_lines


def grouped(call: str, sources: Sequence[str], recorded: Sequence[RecordedOptimizer], torch: str) -> Inlined | None:
    """What stands in place of `torch.optim.X(function(model), …)`; `None` where the function is of another form, or leaves parameters out.

    `sources` are texts of the repository's files, `torch` the script's own name of it.
    """
    tree = ast.parse(call, mode="eval").body
    maker = tree.args[0] if isinstance(tree, ast.Call) and tree.args else None
    if not isinstance(tree, ast.Call) or not isinstance(maker, ast.Call) or not isinstance(maker.func, ast.Name):
        return None
    functions = [node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    functions = [node for node in functions if node.name == maker.func.id]
    matching = [row for row in recorded if len(row.groups) == 2 and frozenset().union(*row.groups) == row.axes.keys()]
    if len(functions) != 1 or len(matching) != 1:
        return None
    (function,) = functions
    groups = _groups(function)
    names = [argument.arg for argument in function.args.args]
    values = arguments_of(maker, names)
    if values is None or len(groups) != 2 or not all(set(group) == {"params", "weight_decay"} for group in groups):
        return None
    values = {**dict(zip(names[::-1], function.args.defaults[::-1], strict=False)), **values}
    modules = [name for name in names if f"{name}.named_parameters()" in ast.unparse(function)]
    rule = parameter_rule(matching[0], 1)
    if len(modules) != 1 or modules[0] not in values or not rule:
        return None
    receiver = ast.unparse(values[modules[0]])
    rest = [ast.unparse(argument) for argument in tree.args[1:]] + [ast.unparse(keyword) for keyword in tree.keywords]
    listing = ", ".join(group_texts(receiver, rule, [group["weight_decay"] for group in groups], values))
    text = f"{ast.unparse(tree.func)}({', '.join([f'[{listing}]', *rest])})"
    # What the function computes by itself is not known at the call.
    outside = [
        name for value in (*values.values(), *tree.args[1:], *(keyword.value for keyword in tree.keywords)) for name in names_in(value)
    ]
    visible = {receiver.partition(".")[0], torch, "p", "n", "set", *names_in(tree.func), *outside}
    if not set(names_in(ast.parse(text, mode="eval"))) <= visible:
        return None
    return Inlined(text, tuple(printed_lines(function, values, receiver, True)))


def _groups(function: ast.FunctionDef) -> list[dict[str, ast.expr]]:
    """The entries of the groups that a function gives back; none where it ends in several ways."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    return [dict(entries_of(element)) for element in listed(function, returned[0])] if len(returned) == 1 else []
