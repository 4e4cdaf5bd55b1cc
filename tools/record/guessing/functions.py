"""What the parameters of a function take: those that it calls are modules or functions, and labels are integers beside scores."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.tools.record.guessing.call_sites import call_sites
from migrate_agent.tools.record.guessing.choices import choices, nodes_of
from migrate_agent.tools.record.guessing.rows import EMPTY, TARGETS
from migrate_agent.tools.record.guessing.values import Tensor, Value

SCORES = Tensor((4, 10))
LABELS = Tensor((4,), "integer", 10)
IMAGE_SCORES = Tensor((2, 4, 16, 16))
IMAGE_LABELS = Tensor((2, 16, 16), "integer", 4)
TABLE = Tensor((16,))
PLACES = Tensor((4,), "integer", 16)
FUNCTION_TEXTS = ("torch.tanh",)
"""What a parameter takes that is called: a function that changes no shape, and has a counterpart (`trees.FUNCTIONS`)."""


def called_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters that a function's code calls, in the order of its signature."""
    function = inspect.unwrap(function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return ()
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return tuple(name for name, item in inspect.signature(function).parameters.items() if name in called and item.default is EMPTY)


def takes_labels(instance: Any, called: Callable[..., Any] | None) -> bool:
    """Whether a module computes a loss of classes."""
    if any(type(layer).__name__ in ("CrossEntropyLoss", "NLLLoss") for layer in instance.modules()):
        return True
    return any(isinstance(node, ast.Attribute) and node.attr in ("cross_entropy", "nll_loss") for node in nodes_of(called))


def usual_starts(needed: Sequence[inspect.Parameter], scores: Tensor = SCORES, classes: Tensor = LABELS) -> Iterator[Mapping[str, Value]]:
    """Scores of classes with their labels, and a table with places in it, for a function whose parameters are called like these."""
    labels = [item.name for item in needed if TARGETS.fullmatch(item.name.lower())]
    index_names = [item.name for item in needed[1:] if re.fullmatch(r"ts?|timesteps?|idx|index|indices", item.name.lower())]
    if index_names:
        yield {needed[0].name: TABLE} | dict.fromkeys(index_names, PLACES)
    if labels and len(needed) > 1:
        yield dict.fromkeys(labels, classes) | ({needed[0].name: scores} if needed[0].name not in labels else {needed[1].name: scores})


def shown_values(
    files: Collection[Path], function: Callable[..., Any], parameters: Sequence[inspect.Parameter], scope: Collection[str]
) -> list[Mapping[str, str]]:
    """Literal arguments of the repository's own calls of a function, by parameter."""
    sites = call_sites(files, function.__name__, list(parameters), scope)
    return [literal for site in sites if (literal := {name: text for name, text in site.items() if _is_literal(text)})]


def _is_literal(text: str) -> bool:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    # Sizes of real runs would make a slow example.
    return not re.search(r"\d{5,}", text) and value is not None


def words(function: Callable[..., Any], parameter: inspect.Parameter) -> tuple[str, ...]:
    """The strings that a function compares a required parameter with."""
    return choices(function, parameter) if parameter.default is EMPTY else ()
