"""Parameter groups: one optimizer for each, and the rule that says of which group a parameter is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from migrate_agent.tools.programs.tables.registry import Text, resolve
from migrate_agent.tools.rewrite.tables.registry import Refuse

FROZEN = "frozen"
"""The label of parameters that no update may touch: those without `requires_grad`, in no group, or never given a gradient."""


@dataclass(frozen=True)
class Group:
    """A label, the parameters under it by their dotted NNX names (`layers.0.kernel`), and the text of their optimizer."""

    label: str
    parameters: frozenset[str]
    optimizer: Text


def partition(groups: Sequence[Group], axes: Mapping[str, int]) -> Text:
    """The text of an optimizer for several groups. `axes` holds every parameter of the model, and how many axes it has.

    Parameters of no group are frozen: torch neither moves nor decays a parameter whose gradient is `None`. Raises `Refuse` where one parameter is
    in two groups, or in none of the model.
    """
    members = [name for group in groups for name in group.parameters]
    if len(members) != len(set(members)):
        raise Refuse("a parameter is in two groups")
    if unknown := sorted(set(members) - set(axes)):
        raise Refuse(f"the optimizer has parameters that the model has not: {', '.join(unknown)}")
    rest = frozenset(axes) - set(members)
    if len(groups) == 1 and not rest:
        return groups[0].optimizer
    everyone = [*groups, Group(FROZEN, rest, Text("optax.set_to_zero()"))] if rest else list(groups)
    transforms = ", ".join(f'"{group.label}": {group.optimizer.code}' for group in everyone)
    labels = resolve(f"vendored.label_parameters(lambda name, p: {_rule(everyone, axes)})")
    helpers = labels.helpers.union(*(group.optimizer.helpers for group in everyone))
    return Text(f"optax.partition({{{transforms}}}, {labels.code})", helpers)


def _rule(groups: Sequence[Group], axes: Mapping[str, int]) -> str:
    """The expression over `name` and `p` that gives the label: the largest group is what remains."""
    *special, rest = sorted(groups, key=lambda group: len(group.parameters))
    text, others = "", dict(axes)
    for group in special:
        text += f'"{group.label}" if {_condition(group.parameters, others)} else '
        others = {name: count for name, count in others.items() if name not in group.parameters}
    return f'{text}"{rest.label}"'


def _condition(chosen: Set[str], axes: Mapping[str, int]) -> str:
    """The shortest condition that holds for these parameters and for no others of the model."""
    others = set(axes) - chosen
    for bound in sorted(set(axes.values())):
        if {name for name, count in axes.items() if count < bound} == chosen:
            return f"p.ndim < {bound}"
        if {name for name, count in axes.items() if count >= bound} == chosen:
            return f"p.ndim >= {bound}"
    prefixes = _shortest({name: name.split(".") for name in chosen}, others)
    if prefixes and len(prefixes) <= 3:
        return f"name.startswith({_alternatives(prefixes)})"
    last = {f".{name.rpartition('.')[2]}" for name in chosen}
    if not any(f".{name}".endswith(tuple(last)) for name in others):
        return f"name.endswith({_alternatives(sorted(last))})"
    return f"name in {{{', '.join(_quoted(name) for name in sorted(chosen))}}}"


def _shortest(paths: Mapping[str, list[str]], others: Set[str]) -> list[str]:
    """Prefixes, each ending at a dot, that cover the chosen names and none of the others; none where a name has no such prefix."""
    prefixes: set[str] = set()
    for parts in paths.values():
        candidates = [".".join(parts[:depth]) + "." for depth in range(1, len(parts))]
        free = [prefix for prefix in candidates if not any(name.startswith(prefix) for name in others)]
        if not free:
            return []
        prefixes.add(free[0])
    return sorted(prefixes)


def _alternatives(texts: Sequence[str]) -> str:
    quoted = [_quoted(text) for text in texts]
    return quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"


def _quoted(text: str) -> str:
    """A string literal in double quotes, as formatters write it."""
    return f'"{text}"'
