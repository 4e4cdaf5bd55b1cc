"""The plain form of a script: what has no meaning on one device goes, and updates by hand get an optimizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.hand_updates import hand_updates
from migrate_agent.tools.programs.rewrite.accelerator_branches import AcceleratorBranches
from migrate_agent.tools.programs.rewrite.configured import Construction
from migrate_agent.tools.programs.rewrite.drawn_arguments import DrawnArguments
from migrate_agent.tools.programs.rewrite.episodes.collected import CollectedValues
from migrate_agent.tools.programs.rewrite.episodes.kept_lists import KeptLists
from migrate_agent.tools.programs.rewrite.method_optimizers import Inlined
from migrate_agent.tools.programs.rewrite.named_optimizers import NamedOptimizers
from migrate_agent.tools.programs.rewrite.names import imports_of, name_of, text_of
from migrate_agent.tools.programs.rewrite.normalise import Normalise
from migrate_agent.tools.programs.rewrite.parted_steps import PartedSteps
from migrate_agent.tools.programs.rewrite.passes.built_optimizers import BuiltOptimizers
from migrate_agent.tools.programs.rewrite.passes.host_methods import HostMethods
from migrate_agent.tools.programs.rewrite.passes.host_values import HostValues
from migrate_agent.tools.programs.rewrite.passes.joint_optimizers import JointOptimizers
from migrate_agent.tools.programs.rewrite.passes.lifted_draws import LiftedDraws
from migrate_agent.tools.programs.rewrite.passes.lifted_masks import LiftedMasks
from migrate_agent.tools.programs.rewrite.passes.lifted_tests import LiftedTests
from migrate_agent.tools.programs.rewrite.passes.standard_draws import StandardDraws
from migrate_agent.tools.programs.rewrite.passes.state_loops import StateLoops
from migrate_agent.tools.programs.rewrite.passes.wrapped_optimizers import WrappedOptimizers
from migrate_agent.tools.programs.rewrite.passes.zeroing_functions import ZeroingFunctions
from migrate_agent.tools.programs.rewrite.phases import Phases
from migrate_agent.tools.programs.rewrite.spans import Positions, moved, positions_of, span_of
from migrate_agent.tools.programs.rewrite.taken_branches import TakenBranches
from migrate_agent.tools.types import Observed, Span


@dataclass(frozen=True)
class PlainForm:
    """A script in its plain form, what was observed by where it stands there, and notes."""

    module: cst.Module
    observed: Mapping[Span, Observed]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its text."""
        return text_of(self.module)


def plain_form(
    text: str,
    observed: Mapping[Span, Observed],
    construction: Callable[[cst.Call, str], Inlined | None],
    constructions: Sequence[Construction],
) -> PlainForm:
    """The plain form of a script. `construction` gives what stands for the call of a method which constructs an optimizer, and
    `constructions` are the calls that constructed optimizers and schedulers.
    """
    module = cst.parse_module(text)
    positions = positions_of(module)
    accelerators = AcceleratorBranches(module, positions, observed)
    module, observed = _after(module, accelerators, positions, observed)
    hosts = HostMethods(module, imports_of(module))
    module, observed = _after(module, hosts, positions_of(module), observed)
    module, observed = _with_built_optimizers(module, observed)
    module, observed = _after(module, WrappedOptimizers(module, imports_of(module)), positions_of(module), observed)
    module, observed = _after(module, StateLoops(module), positions_of(module), observed)
    module, observed = _after(module, ZeroingFunctions(module), positions_of(module), observed)
    parted = PartedSteps(module)
    module, observed = _after(module, parted, positions_of(module), observed)
    module, observed = _with_taken_branches(module, observed)
    module, observed = _with_named_optimizers(module, observed)
    module, observed = _with_phases(module, observed)
    module, observed = _with_standard_draws(module, observed)
    text = text_of(module)
    positions = positions_of(module)

    def kinds(node: cst.CSTNode) -> Sequence[str]:
        fact = observed.get(span_of(positions[node])) if node in positions else None
        return fact.kinds if fact is not None else ()

    def constructed(node: cst.CSTNode) -> Sequence[Construction]:
        span = span_of(positions[node])
        return [one for one in dict.fromkeys(constructions) if span.line <= one.line <= span.end_line]

    normalise = Normalise(module, imports_of(module), kinds, construction, constructed)
    new = module.visit(normalise)
    assert isinstance(new, cst.Module)
    facts: Mapping[Span, Observed] = moved(new, normalise.origin, positions, observed)
    plain = cst.parse_module(new.code)
    joint = JointOptimizers(plain, imports_of(plain))
    plain, facts = _after(plain, joint, positions_of(plain), facts)
    spans = positions_of(plain)
    drawn = DrawnArguments(plain, imports_of(plain))
    last, seen = _after(plain, drawn, spans, facts)
    spans = positions_of(last)
    last, seen = _after(last, LiftedDraws(last, imports_of(last), module_names(spans, seen)), spans, seen)
    last, seen = _with_lifted_masks(last, seen)
    last, seen = _with_lifted_tests(last, seen)
    spans = positions_of(last)
    last, seen = _after(last, HostValues(last, module_names(spans, seen)), spans, seen)
    last, seen = _with_collected_values(last, seen)
    return PlainForm(last, seen, tuple(dict.fromkeys([*accelerators.notes, *hosts.notes, *parted.notes, *normalise.notes])))


Pass = (
    AcceleratorBranches
    | HostMethods
    | BuiltOptimizers
    | StateLoops
    | WrappedOptimizers
    | ZeroingFunctions
    | PartedSteps
    | TakenBranches
    | Phases
    | StandardDraws
    | NamedOptimizers
    | JointOptimizers
    | DrawnArguments
    | HostValues
    | LiftedDraws
    | LiftedMasks
    | LiftedTests
    | KeptLists
    | CollectedValues
)
"""A change of a script that tells of each new node which old one it stands for."""
Script = tuple[cst.Module, Mapping[Span, Observed]]
"""A script, and what was observed by where it stands there."""


def _with_built_optimizers(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script with what its functions construct where they are called."""
    positions = positions_of(module)

    def kinds(node: cst.CSTNode) -> Sequence[str]:
        fact = observed.get(span_of(positions[node])) if node in positions else None
        return fact.kinds if fact is not None else ()

    return _after(module, BuiltOptimizers(module, imports_of(module), kinds), positions, observed)


def _with_taken_branches(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script with the branches of its steps that a configuration chose."""
    positions = positions_of(module)
    return _after(module, TakenBranches(module, positions, observed), positions, observed)


def _with_phases(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script with what its steps are computed by beside them."""
    positions = positions_of(module)

    def is_module(node: cst.CSTNode) -> bool:
        fact = observed.get(span_of(positions[node])) if node in positions else None
        return fact is not None and bool(fact.kinds) and all(kind.startswith("module:") for kind in fact.kinds)

    return _after(module, Phases(imports_of(module), is_module), positions, observed)


def _with_standard_draws(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script whose draws are those of standard numbers."""
    positions = positions_of(module)

    def fact(node: cst.CSTNode) -> Observed | None:
        return observed.get(span_of(positions[node])) if node in positions else None

    def kinds(node: cst.CSTNode) -> Sequence[str]:
        seen = fact(node)
        return seen.kinds if seen is not None else ()

    def floats(node: cst.CSTNode) -> bool:
        seen = fact(node)
        return seen is not None and tuple(seen.kinds) == ("tensor",) and tuple(seen.dtypes) == ("float32",)

    return _after(module, StandardDraws(imports_of(module), kinds, floats), positions, observed)


def _with_lifted_masks(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script whose steps are told the places that masks select."""
    positions = positions_of(module)

    def is_mask(node: cst.CSTNode) -> bool:
        fact = observed.get(span_of(positions[node])) if node in positions else None
        return fact is not None and tuple(fact.kinds) == ("tensor",) and tuple(fact.dtypes) == ("bool",)

    return _after(module, LiftedMasks(module, imports_of(module), module_names(positions, observed), is_mask), positions, observed)


def _with_lifted_tests(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script whose steps are told the answers to conditions on Python's numbers."""
    positions = positions_of(module)

    def kinds(node: cst.CSTNode) -> Sequence[str]:
        fact = observed.get(span_of(positions[node])) if node in positions else None
        return fact.kinds if fact is not None else ()

    return _after(module, LiftedTests(module, module_names(positions, observed), kinds), positions, observed)


def _with_collected_values(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script whose losses compute again what calls of a module gave that lie apart."""
    positions = positions_of(module)
    module, observed = _after(module, KeptLists(module, module_names(positions, observed)), positions, observed)
    positions = positions_of(module)
    return _after(module, CollectedValues(module, module_names(positions, observed)), positions, observed)


def _after(
    module: cst.Module,
    change: Pass,
    positions: Positions,
    observed: Mapping[Span, Observed],
) -> Script:
    new = module.visit(change)
    assert isinstance(new, cst.Module)
    text = new.code
    if text == text_of(module):
        # Most passes change nothing of a script, and where everything stands is slow to ask.
        return module, observed
    return cst.parse_module(text), moved(new, change.origin, positions, observed)


def _with_named_optimizers(module: cst.Module, observed: Mapping[Span, Observed]) -> Script:
    """The script with an optimizer for each update that it writes out by hand, and what was observed by where it stands there."""
    text = text_of(module)
    updates = hand_updates(text)
    torch = next((name for name, dotted in imports_of(module).dotted.items() if dotted == "torch"), "")
    if not updates or not torch:
        return module, observed
    positions = positions_of(module)
    return _after(module, NamedOptimizers(updates, torch, lambda node: span_of(positions[node]).line), positions, observed)


def module_names(positions: Mapping[cst.CSTNode, object], observed: Mapping[Span, Observed]) -> frozenset[str]:
    """Names that were seen to hold modules, other than losses of torch, which have no parameters."""
    names = set()
    for node, position in positions.items():
        if not (name := name_of(node)):
            continue
        fact = observed.get(span_of(position))
        if (
            fact is not None
            and fact.kinds
            and all(k.startswith("module:") and not re.match(r"module:torch\..*Loss$", k) for k in fact.kinds)
        ):
            names.add(name)
    return frozenset(names)
