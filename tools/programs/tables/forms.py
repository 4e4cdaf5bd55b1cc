"""Pieces that the texts of several optimizers share."""

from __future__ import annotations

import ast

from migrate_agent.tools.programs.tables.arguments import Argument, Arguments
from migrate_agent.tools.rewrite.tables.registry import Refuse


def chain(*parts: str) -> str:
    """The transforms one after the other; empty ones are left out."""
    texts = [part for part in parts if part]
    return texts[0] if len(texts) == 1 else f"optax.chain({', '.join(texts)})"


def maximize(arguments: Arguments) -> str:
    """The transform that turns the gradient round, or nothing."""
    argument = arguments["maximize"]
    if argument.known:
        return "optax.scale(-1.0)" if argument.value else ""
    return f"optax.scale(-1.0 if {argument.text} else 1.0)"


def decay(argument: Argument) -> str:
    """The transform that adds decayed weights to the gradient, or nothing."""
    return "" if argument.is_default(0) else f"optax.add_decayed_weights({argument.text})"


def before(arguments: Arguments) -> str:
    """What torch does to a gradient before it enters the moments: turn it round, then add the decayed weights."""
    # The order counts: torch decays also where it climbs.
    parts = [part for part in (maximize(arguments), decay(arguments["weight_decay"])) if part]
    return ", ".join(parts)


def rate(arguments: Arguments) -> str:
    """The last transform of a chain."""
    return f"optax.scale_by_learning_rate({arguments['lr'].text})"


def flag(arguments: Arguments, name: str) -> bool:
    """The value of an argument that decides the form. Raises `Refuse` where it is not known before the program runs."""
    argument = arguments[name]
    if not argument.known:
        raise Refuse(f"the form depends on {name}={argument.text}, whose value is not known: record the program")
    return bool(argument.value)


def moments(arguments: Arguments) -> str:
    """The arguments of the Adam family."""
    betas = arguments["betas"]
    return f"b1={betas.element(0).text}, b2={betas.element(1).text}, eps={arguments['eps'].text}"


def operand(text: str) -> str:
    """The text as one operand of a product or a power: in parentheses where it is an expression of several."""
    node = ast.parse(text, mode="eval").body
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.List, ast.Tuple, ast.Dict))
    return text if plain else f"({text})"
