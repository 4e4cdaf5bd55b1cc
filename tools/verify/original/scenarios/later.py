"""What users do with a module after they made it: one part of it in the other mode, other values of attributes. Used inside the sandbox, on the
original's side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.common.conditions import Attribute, Conditions
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.contract.scenario import Mode, Role
from migrate_agent.tools.verify.original.outputs import attempt, elements, finite_share, same
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

DROPS = torch.nn.modules.dropout._DropoutNd
NORMS = (torch.nn.modules.batchnorm._NormBase,)


def set_later(writer: ScenarioWriter) -> None:
    """Add all of these for a unit that is no function."""
    if writer.original.is_function or elements(writer.original) > budgets.CONFIGURATION_ELEMENTS:
        return
    add_modes(writer)
    add_attributes(writer)


def add_modes(writer: ScenarioWriter) -> None:
    """Add calls with one submodule alone in the other mode: a norm that stands still while the rest trains, dropout that drops in evaluation."""
    if writer.texts.get("train") is False:
        return
    for paths, mode in list(_parts(writer.original.native))[: budgets.PART_MODES]:
        label = f"part-modes-{paths[0]}{'-and-others' * (len(paths) > 1)}-{'eval' if mode == 'train' else 'train'}"
        conditions = Conditions(turned=paths)
        add = partial(writer.attempt, label, Role.PART_MODES, 0, writer.values(0), mode=mode, conditions=conditions, runs=1)
        # With gradients where there are some: a port may stop them in this mode alone.
        if not _matters(writer, mode, conditions) or not (add(gradient=True) or add()):
            continue
        for number, beside in enumerate(_alike_parts(writer.original.native, paths[0])):
            together = conditions._replace(beside=beside)
            writer.attempt(f"{label}-beside{number}", Role.PART_MODES, 0, writer.values(0), mode=mode, conditions=together, runs=1)


def _alike_parts(module: torch.nn.Module, path: str) -> list[tuple[str, ...]]:
    """Parts without state that a port may have one part for, with the dropout at this path: dropout of the same kind and rate beside it, and the
    class that holds it, where that drops by its own mode; each alone, all of them, and all such dropout of the module."""
    part = module.get_submodule(path)
    if not isinstance(part, DROPS):
        return []
    named = dict(module.named_modules())
    owner = path.rpartition(".")[0]
    alike = [name for name, other in named.items() if type(other) is type(part) and other.p == part.p and name != path]
    near = [name for name in alike if name.rpartition(".")[0] == owner] + ([owner] if _reads_mode(type(named[owner])) else [])
    groups = [*((name,) for name in near), tuple(near), tuple(alike), tuple(dict.fromkeys((*near, *alike)))]
    return [group for group in dict.fromkeys(groups) if group][: budgets.BESIDE]


def _parts(module: torch.nn.Module) -> Iterator[tuple[tuple[str, ...], Mode]]:
    """Paths, and the mode of the rest: of each kind of submodule with a mode the first, and all norms; norms before dropout."""
    named = [(path, part) for path, part in module.named_modules() if path]
    norms = [(path, part) for path, part in named if isinstance(part, NORMS) and part.track_running_stats]
    drops = [(path, part) for path, part in named if isinstance(part, DROPS) and 0 < part.p < 1]
    own = [(path, part) for path, part in named if _reads_mode(type(part))]
    yield from (((path,), "train") for path, _ in norms[:1])
    yield from (((path,), "train") for path, _ in own[:1])
    yield from (((path,), "eval") for path, _ in drops[:1])
    if len(norms) > 1:
        yield tuple(path for path, _ in norms), "train"


def _reads_mode(cls: type) -> bool:
    """Whether the user's own class looks at its mode."""
    return not cls.__module__.startswith("torch.") and "training" in _names(cls)


def _matters(writer: ScenarioWriter, mode: Mode, conditions: Conditions) -> bool:
    """Whether the original runs with them, and gives or leaves something else than without, its draws included."""
    usual, other = _with(writer, mode, Conditions()), _with(writer, mode, conditions)
    return usual is not None and other is not None and (usual.draws != other.draws or not same(usual, other))


def _with(writer: ScenarioWriter, mode: Mode, conditions: Conditions) -> Result | None:
    return attempt(lambda: writer.original.run(writer.states[0], writer.values(0), mode, conditions=conditions))


def add_attributes(writer: ScenarioWriter) -> None:
    """Add a call with other values of all plain attributes that the user's own classes read as they are called; of some, where it takes no more.
    Those that then have no effect, because another one hides them, follow in a call without it."""
    attributes = list(_attributes(writer.original.native))[: budgets.ATTRIBUTES]
    usual = {mode: result for mode in writer.modes if (result := _with(writer, mode, Conditions())) is not None}
    if not attributes or len(usual) < len(writer.modes):
        return
    accepted = attributes if _moved(writer, usual, attributes) else []
    for attribute in attributes if not accepted else ():
        accepted = [*accepted, attribute] if _moved(writer, usual, [*accepted, attribute]) else accepted
    for call in range(budgets.ATTRIBUTE_CALLS):
        # One program more, of the first mode in which they matter.
        modes = _moved(writer, usual, accepted) if accepted else []
        if not modes:
            return
        conditions = Conditions(attributes=tuple(accepted))
        writer.attempt(
            f"attributes-{modes[0]}{call or ''}", Role.ATTRIBUTES, 0, writer.values(0), mode=modes[0], conditions=conditions, runs=1
        )
        accepted = _hidden(writer, usual, modes[0], accepted)


def _hidden(writer: ScenarioWriter, usual: Mapping[Mode, Result], mode: Mode, attributes: Sequence[Attribute]) -> list[Attribute]:
    """Of attributes that are set together those that matter alone, and do not beside the others; only the first, where each hides all others."""
    together = _with(writer, mode, Conditions(attributes=tuple(attributes)))
    if together is None or len(attributes) < 2:
        return []
    hidden = []
    for attribute in attributes:
        without = _with(writer, mode, Conditions(attributes=tuple(one for one in attributes if one is not attribute)))
        if without is not None and _alike(without, together) and _moved(writer, usual, [attribute]):
            hidden.append(attribute)
    return hidden if len(hidden) < len(attributes) else hidden[:1]


def _alike(one: Result, other: Result) -> bool:
    return one.tree == other.tree and one.draws == other.draws and same(one, other)


def _moved(writer: ScenarioWriter, usual: Mapping[Mode, Result], attributes: Sequence[Attribute]) -> list[Mode]:
    """The modes in which the original gives or leaves something else so; none where it does not run in all, or is less finite."""
    moved: list[Mode] = []
    for mode, before in usual.items():
        result = _with(writer, mode, Conditions(attributes=tuple(attributes)))
        if result is None or finite_share(result) < finite_share(before):
            return []
        moved += [mode] if not _alike(result, before) else []
    return moved


def _attributes(module: torch.nn.Module) -> Iterator[Attribute]:
    """Plain attributes of the user's own classes and their modules that some method of theirs but the constructor names, with another value; of
    equal modules those of the first."""
    seen = set[tuple[type, str]]()
    for path, part in module.named_modules():
        if type(part).__module__.startswith("torch."):
            continue
        names = _names(type(part))
        for name, value in {**_class_attributes(type(part)), **vars(part)}.items():
            if (type(part), name) in seen or name not in names or name == "training" or name.startswith("_"):
                continue
            if (new := _other(value)) is not None:
                seen.add((type(part), name))
                yield Attribute(f"{path}.{name}" if path else name, value, new)


def _class_attributes(cls: type) -> dict[str, Any]:
    return {name: value for base in reversed(_own(cls)) for name, value in vars(base).items()}


def _other(value: Any) -> Any:
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value + 1
    return value / 2 or 0.5 if type(value) is float and math.isfinite(value) else None


def _names(cls: type) -> frozenset[str]:
    """Names in the methods of a class and of the user's own classes that it derives from, but in constructors."""
    methods = (value for base in _own(cls) for name, value in vars(base).items() if name != "__init__")
    codes = (code for method in methods if (code := getattr(getattr(method, "fget", method), "__code__", None)))
    return frozenset(name for code in codes for name in code.co_names)


def _own(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if not base.__module__.startswith(("torch.", "builtins"))]
