"""Expressions that list the parameters of several modules: `[*a.parameters(), *b.parameters()]`, `itertools.chain(…)`, groups with options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from migrate_agent.tools.programs.rewrite.groups import chosen_parameters
from migrate_agent.tools.programs.rewrite.names import code, name_of

CHAINS = ("itertools.chain", "chain")
Part = tuple[cst.BaseExpression | None, tuple[tuple[str, cst.BaseExpression], ...]]
"""An expression of parameters and the options that a group gives them; `None` for what is of no such form."""


def parameter_parts(node: cst.BaseExpression, lists: Mapping[str, cst.BaseExpression]) -> Iterator[Part]:
    """What an expression of parameters is made of, in order; `lists` are names for such expressions."""
    if name_of(node) in lists:
        yield from parameter_parts(lists[name_of(node)], lists)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from [*parameter_parts(node.left, lists), *parameter_parts(node.right, lists)]
    elif isinstance(node, cst.Call) and code(node.func) in (*CHAINS, "list", "tuple"):
        for argument in node.args:
            plain = not argument.star and argument.keyword is None
            yield from parameter_parts(argument.value, lists) if plain else [(None, ())]
    elif isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield from _element(element, lists)
    else:
        yield node, ()


def _element(element: cst.BaseElement, lists: Mapping[str, cst.BaseExpression]) -> Iterator[Part]:
    """`*model.parameters()` and `{"params": model.parameters(), "lr": 1e-3}` of a list."""
    if isinstance(element, cst.StarredElement):
        yield from parameter_parts(element.value, lists)
        return
    entries = element.value.elements if isinstance(element.value, cst.Dict) else ()
    named = {code(e.key).strip("\"'"): e.value for e in entries if isinstance(e, cst.DictElement)}
    if "params" not in named or len(named) != len(entries):
        yield None, ()
        return
    parameters = named.pop("params")
    for expression, _ in parameter_parts(parameters, lists):
        yield expression, tuple(named.items())


def listed_modules(node: cst.BaseExpression) -> list[str] | None:
    """The modules all of whose parameters that take gradients an expression lists, in order; `None` for an expression of another form."""
    parts = [chosen_parameters(part) if part is not None and not options else None for part, options in parameter_parts(node, {})]
    return [part[0] for part in parts if part is not None] if all(part is not None and not part[1] for part in parts) else None
