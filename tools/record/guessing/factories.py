"""What the repository's own factories construct a class with: `Net.from_name("b0")`, `def net_b0(width=1.0): return Net(blocks(width))`.

The arguments of such a call are computed, so that its text does not show them: the factory is run, up to the constructor.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from migrate_agent.tools.record.encode import Encoder, NotEncodable
from migrate_agent.tools.record.guessing.choices import choices, nodes_of
from migrate_agent.tools.record.guessing.trials.trial import VARIADIC, Trial, parameters, required, time_limit

MOST_FACTORIES = 4
MOST_CALLS = 3
"""Argument lists that one factory is run with."""
MOST_SECONDS = 2.0
EFFECTS = re.compile(r"pretrain|load|download|checkpoint|restore|save|main|train|test|eval", re.I)
"""Names of functions that do more than construct."""
CONSTRUCTOR = "__init__"


class _Constructed(BaseException):
    """Ends a factory where it constructs the class. No `except Exception` of the factory may take it."""

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self.arguments = (tuple(args), dict(kwargs))


def made_by_factories(trial: Trial, root: Path, texts: Callable[[str], Sequence[str]]) -> Iterator[dict[str, str]]:
    """Parameter → text for each call of the constructor that a factory comes to. `texts` are those that a parameter may take by its name.

    Imports that the texts need are added to the setups of the trial.
    """
    for factory in islice(_factories(trial.cls, trial.module, root), MOST_FACTORIES):
        for arguments in islice(_argument_lists(factory, texts), MOST_CALLS):
            arrived = _run(trial.cls, factory, arguments)
            row = _encoded(trial, arrived) if arrived is not None else {}
            if row:
                yield row


def _factories(cls: type, module: ModuleType, root: Path) -> Iterator[Callable[..., Any]]:
    """Class methods and static methods of the class, then functions of the repository's files that are imported, that construct it."""
    for name, member in vars(cls).items():
        if (
            isinstance(member, (classmethod, staticmethod))
            and not EFFECTS.search(name)
            and _constructs(member.__func__, (cls.__name__, "cls"))
        ):
            yield getattr(cls, name)
    files = [other for other in tuple(sys.modules.values()) if other is not module and _lies_in(other, root)]
    for other in (module, *files):
        for name, value in tuple(vars(other).items()):
            own = inspect.isfunction(value) and value.__module__ == other.__name__ and not EFFECTS.search(name)
            if own and vars(other).get(cls.__name__) is cls and _constructs(value, (cls.__name__,)):
                yield value


def _lies_in(module: ModuleType, root: Path) -> bool:
    path = getattr(module, "__file__", None)
    return bool(path) and Path(str(path)).resolve().is_relative_to(root.resolve())


def _constructs(function: Any, names: Sequence[str]) -> bool:
    """Whether a function calls one of these names with an argument that it computes: calls with literals are read from their text."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and not all(map(_is_literal, node.args))
        for node in nodes_of(function)
    )


def _is_literal(node: ast.expr) -> bool:
    return all(isinstance(part, (ast.Constant, ast.List, ast.Tuple, ast.Load, ast.UnaryOp, ast.USub)) for part in ast.walk(node))


def _argument_lists(factory: Callable[..., Any], texts: Callable[[str], Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Arguments for the parameters that a factory must be given: words that its code knows, or what names suggest."""
    needed = required(parameters(factory))
    domains = [choices(inspect.unwrap(getattr(factory, "__func__", factory)), item) or texts(item.name)[:MOST_CALLS] for item in needed]
    names: dict[str, Any] = getattr(getattr(factory, "__func__", factory), "__globals__", {})
    for at in range(max([len(domain) for domain in domains] or [1])):
        row = {}
        for item, domain in zip(needed, domains, strict=True):
            try:
                row[item.name] = eval(domain[min(at, len(domain) - 1)], dict(names))  # texts of our own, over the repository's names
            except Exception:
                return
        yield row


def _run(cls: type, factory: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """What the factory gives the constructor; `None` where it does not come to that."""
    try:
        with _stopped(cls), time_limit(MOST_SECONDS):
            factory(**arguments)
    except _Constructed as end:
        return end.arguments
    except (Exception, SystemExit):
        return None
    return None


@contextmanager
def _stopped(cls: type) -> Iterator[None]:
    """The constructor of the class, but not of a subclass, ends the factory in here."""
    own, constructor = vars(cls).get(CONSTRUCTOR), getattr(cls, CONSTRUCTOR)

    def stop(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            raise _Constructed(args, kwargs)
        constructor(self, *args, **kwargs)

    setattr(cls, CONSTRUCTOR, stop)
    try:
        yield
    finally:
        if own is None:
            delattr(cls, CONSTRUCTOR)
        else:
            setattr(cls, CONSTRUCTOR, own)


def _encoded(trial: Trial, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> dict[str, str]:
    """The arguments as texts by parameter; nothing where one has none, or holds a tensor."""
    args, kwargs = arguments
    encoder = Encoder(vars(trial.module))
    try:
        bound = inspect.signature(trial.cls).bind(*args, **kwargs)
        row = {
            name: encoder.value(value) for name, value in bound.arguments.items() if bound.signature.parameters[name].kind not in VARIADIC
        }
    except (NotEncodable, TypeError, ValueError):
        return {}
    if encoder.tensors or len(row) < len(bound.arguments):
        return {}
    for line in encoder.setup:
        trial.setups[line.split()[-1]] = line
    return row
