"""Optimizers that a method of the repository constructs, with groups of parameters: the construction moves to where the method is called.

optimizer = model.configure_optimizers(0.1, 1e-3)

becomes, where the method ends in `torch.optim.AdamW(groups, lr=learning_rate)` and the recorded run had biases and norms in its second group,

optimizer = torch.optim.AdamW([
    {"params": [p for n, p in model.named_parameters() if not {"bias", "ln_1"} & set(n.split("."))], "weight_decay": 0.1},
    {"params": [p for n, p in model.named_parameters() if {"bias", "ln_1"} & set(n.split("."))], "weight_decay": 0.0}], lr=1e-3)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from migrate_agent.tools.programs.rewrite.moved_prints import printed_lines
from migrate_agent.tools.programs.rewrite.names import Imports


@dataclass(frozen=True)
class RecordedOptimizer:
    """An optimizer of a recorded run: the names of the parameters of each group, and how many axes each parameter of the module has."""

    groups: tuple[frozenset[str], ...]
    axes: Mapping[str, int]


@dataclass(frozen=True)
class Inlined:
    """The construction that stands in place of a method's call, and the lines before it that print what the method prints."""

    text: str
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Construction:
    """The call of a class of torch.optim in a method, the entries of its groups beside the parameters, and the method's parameters."""

    method: ast.FunctionDef
    dotted: str
    call: ast.Call
    groups: tuple[Mapping[str, ast.expr], ...]
    parameters: tuple[str, ...]


def inlined(
    call: str, receiver: str, method: str, sources: Sequence[str], recorded: Sequence[RecordedOptimizer], torch: str
) -> Inlined | None:
    """What stands in place of `receiver.method(…)`; `None` where the construction is of another form.

    `sources` are texts of the repository's files, `torch` the script's own name of it.
    """
    constructions = [one for text in sources for one in _constructions(text, method)]
    matching = [row for row in recorded if len(row.groups) == 2]
    if len(constructions) != 1 or len(matching) != 1 or len(constructions[0].groups) != 2:
        return None
    construction = constructions[0]
    values = arguments_of(ast.parse(call, mode="eval").body, construction.parameters)
    rule = parameter_rule(matching[0], 1) if values is not None else ""
    if values is None or not rule:
        return None
    groups = group_texts(receiver, rule, [group["weight_decay"] for group in construction.groups], values)
    named = [f"{k.arg}={_text(k.value, values)}" for k in construction.call.keywords if k.arg is not None and k.arg != "params"]
    text = f"{torch}.optim.{construction.dotted}([{', '.join(groups)}], {', '.join(named)})"
    # What the method computes by itself is not known at the call.
    visible = {receiver.partition(".")[0], torch, "p", "n", "set", *(name for value in values.values() for name in names_in(value))}
    if not set(names_in(ast.parse(text, mode="eval"))) <= visible:
        return None
    whole = frozenset().union(*matching[0].groups) == matching[0].axes.keys()
    return Inlined(text, tuple(printed_lines(construction.method, values, receiver, whole)))


def group_texts(receiver: str, rule: str, decays: Sequence[ast.expr], values: Mapping[str, ast.expr]) -> list[str]:
    """The texts of two groups of a module's parameters, with these weight decays: the second are those for which `rule` holds."""
    return [
        f'{{"params": [p for n, p in {receiver}.named_parameters() if {condition}], "weight_decay": {_text(decay, values)}}}'
        for condition, decay in zip((f"not ({rule})", rule), decays, strict=True)
    ]


def _constructions(text: str, method: str) -> Iterator[_Construction]:
    imports = Imports(text)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef) or node.name != method:
            continue
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and _dotted(one.func, imports).startswith("torch.optim.")]
        if len(calls) == 1 and (calls[0].args or any(k.arg == "params" for k in calls[0].keywords)):
            first = calls[0].args[0] if calls[0].args else next(k.value for k in calls[0].keywords if k.arg == "params")
            groups = tuple(entries_of(element) for element in listed(node, first))
            if all(set(group) == {"params", "weight_decay"} for group in groups):
                names = tuple(argument.arg for argument in node.args.args[1:])
                yield _Construction(node, _dotted(calls[0].func, imports).rpartition(".")[2], calls[0], groups, names)


def _dotted(node: ast.expr, imports: Imports) -> str:
    root, _, rest = ast.unparse(node).partition(".")
    return ".".join(filter(None, (imports.dotted.get(root, ""), rest))) if root in imports.dotted else ""


def listed(function: ast.FunctionDef, node: ast.expr) -> list[ast.expr]:
    """The elements of a list that stands here or that the function gives a name once."""
    if isinstance(node, ast.Name):
        values = [s.value for s in ast.walk(function) if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == node.id]
        node = values[0] if len(values) == 1 else node
    return node.elts if isinstance(node, ast.List) else []


def entries_of(node: ast.expr) -> Mapping[str, ast.expr]:
    """The entries of a dictionary that is written out."""
    if not isinstance(node, ast.Dict):
        return {}
    rows = zip(node.keys, node.values, strict=True)
    return {key.value: value for key, value in rows if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def arguments_of(call: ast.expr, parameters: Sequence[str]) -> dict[str, ast.expr] | None:
    """What a call gives each of these parameters; `None` where it unpacks something."""
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    return dict(zip(parameters, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg is not None}


def _text(node: ast.expr, values: Mapping[str, ast.expr]) -> str:
    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return values.get(name.id, name)

    return ast.unparse(Put().visit(ast.parse(ast.unparse(node), mode="eval")))


def names_in(node: ast.AST) -> list[str]:
    """All names in a piece of code."""
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def parameter_rule(row: RecordedOptimizer, number: int) -> str:
    """A condition on `n` and `p` that holds for the parameters of one group and for no others, or "": by rank, or by parts of names."""
    chosen, others = row.groups[number], frozenset(row.axes) - row.groups[number]
    for bound in sorted(set(row.axes.values())):
        if {name for name, count in row.axes.items() if count < bound} == chosen:
            return f"p.dim() < {bound}"
    # A layer's number says nothing of other sizes of the model.
    parts = {part for name in chosen for part in name.split(".") if not part.isdecimal()}
    own = {part for part in parts if not any(part in name.split(".") for name in others)}
    covering = _fewest(chosen, own)
    return f"{{{', '.join(map(_quoted, sorted(covering)))}}} & set(n.split('.'))" if covering else ""


def _fewest(names: Set[str], parts: Set[str]) -> set[str]:
    """Few parts of which each name has one, the most common first; none where a name has none."""
    left, result = set(names), set()
    while left:
        best = max(sorted(parts), key=lambda part: sum(part in name.split(".") for name in left), default="")
        covered = {name for name in left if best in name.split(".")}
        if not covered:
            return set()
        result.add(best)
        left -= covered
    return result


def _quoted(text: str) -> str:
    return f'"{text}"'
