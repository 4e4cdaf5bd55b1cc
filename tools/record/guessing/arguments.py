"""Argument lists as text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple


class Call(NamedTuple):
    """The argument list of a call, by position and by name."""

    positional: tuple[str, ...]
    named: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, text: str) -> Call | None:
        """From its text; None where it spreads a list or a dictionary."""
        node = ast.parse(f"_({text}\n)", mode="eval").body
        assert isinstance(node, ast.Call)
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
            return None
        named = tuple((str(keyword.arg), ast.unparse(keyword.value)) for keyword in node.keywords)
        return cls(tuple(map(ast.unparse, node.args)), named)

    def by_name(self, names: Sequence[str]) -> dict[str, str]:
        """Parameter → text, of parameters in this order."""
        return dict(zip(names, self.positional, strict=False)) | dict(self.named)


def text_of(values: Mapping[str, str], leading: Sequence[str]) -> str:
    """The argument list: the `leading` parameters (`by_position`) as far as they stand together by position, others by name."""
    first = list(takewhile(values.__contains__, leading))
    return ", ".join([*(values[name] for name in first), *(f"{name}={text}" for name, text in values.items() if name not in first)])


def by_position(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """The names of the parameters that must be given and may be given by position."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty and parameter.kind in places]


def first_samples(values: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The first sample of each tensor of a call that has several, by argument."""
    import torch

    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[0] > 1]
    return {name: ast.unparse(ast.parse(f"({values[name]})[:1]")) for name in tensors if name in values}
