"""Optimizers and schedules that a configuration names: the class and the options of the recorded run are written out, and any others refused.

optimizer = getattr(torch.optim, cfg["name"])(model.parameters(), **cfg["optim"])

becomes, where the recorded run constructed `NAdam` with one option,

if cfg["name"] != "NAdam" or set(cfg["optim"]) != {"lr"}:
    raise NotImplementedError("rewritten for NAdam with lr: migrate again for others")
optimizer = torch.optim.NAdam(model.parameters(), lr=cfg["optim"]["lr"])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import Imports, code

NAMESPACES = ("torch.optim", "torch.optim.lr_scheduler")


@dataclass(frozen=True)
class Construction:
    """An optimizer or a scheduler that a recorded run constructed: the line of the script, the name of its class, and the keywords of the call."""

    line: int
    name: str
    keywords: tuple[str, ...]


@dataclass(frozen=True)
class Configured:
    """A call with class and options written out, the conditions under which it is another one, and what it is written for."""

    call: cst.Call
    others: tuple[str, ...]
    kind: str

    def guard(self) -> cst.BaseStatement:
        """The statement that refuses other configurations."""
        text = f'raise NotImplementedError("rewritten for {self.kind}: migrate again for others")'
        return cst.parse_statement(f"if {' or '.join(self.others)}:\n    {text}\n")


def configured(call: cst.Call, imports: Imports, constructions: Sequence[Construction]) -> Configured | None:
    """The call as the recorded run made it; `None` for one that names class and options itself. `constructions` are those of its lines."""
    chosen = _choice(call.func, imports)
    stars = [argument for argument in call.args if argument.star == "**"]
    plain = imports.of(call.func)
    if (chosen is None and not (stars and plain.rpartition(".")[0] in NAMESPACES)) or len(stars) > 1 or len(constructions) != 1:
        return None
    (construction,) = constructions
    others: list[str] = []
    function, name = call.func, construction.name
    if chosen is not None:
        namespace, key = chosen
        others.append(f'{key} != "{name}"')
        function = cst.parse_expression(f"{namespace}.{name}")
    arguments = [argument.with_changes(comma=cst.MaybeSentinel.DEFAULT) for argument in call.args if argument.star != "**"]
    options: list[str] = []
    for star in stars:
        mapping = star.value
        if not _is_plain(mapping):
            return None
        options = [one for one in construction.keywords if one not in {code(a.keyword) for a in arguments if a.keyword is not None}]
        quoted = ", ".join(f'"{one}"' for one in options)
        others.append(f"set({code(mapping)}) != {{{quoted}}}" if options else code(mapping))
        values = ", ".join(f'{one}={code(mapping)}["{one}"]' for one in options)
        arguments += cst.ensure_type(cst.parse_expression(f"f({values})"), cst.Call).args
    kind = name + (f" with {', '.join(options)}" if options else "")
    return Configured(call.with_changes(func=function, args=arguments), tuple(others), kind)


def _choice(function: cst.BaseExpression, imports: Imports) -> tuple[str, str] | None:
    """Module and name of `getattr(torch.optim, name)`, as texts."""
    if not isinstance(function, cst.Call) or code(function.func) != "getattr" or len(function.args) != 2:
        return None
    module, name = (argument.value for argument in function.args)
    return (code(module), code(name)) if imports.of(module) in NAMESPACES else None


def _is_plain(node: cst.BaseExpression) -> bool:
    """Whether an expression is a name, its attributes and its items under constant keys, so that it may stand in several places."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice
            if len(node.slice) != 1 or not isinstance(index, cst.Index) or not isinstance(index.value, (cst.SimpleString, cst.Integer)):
                return False
        node = node.value
    return isinstance(node, cst.Name)
