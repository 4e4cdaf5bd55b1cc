"""Rewrites one file: a single pass of all rules over its libcst tree, guided by the facts about its expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate_agent.tools.rewrite.analysis.class_facts import class_facts
from migrate_agent.tools.rewrite.analysis.exercised import Exercised
from migrate_agent.tools.rewrite.analysis.facts import Facts
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo, is_jax
from migrate_agent.tools.rewrite.analysis.scopes import Scopes
from migrate_agent.tools.rewrite.rules.context import Context, Host
from migrate_agent.tools.rewrite.rules.order import ORDER, TRACED_ONLY
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Hole, Span

RULE_ERROR = "rule-error"
"""The code of a hole where a rule raised: an error of ours."""


class _Pass(cst.CSTTransformer):
    """Calls the rules on each node as it is left, with the stack of its original ancestors."""

    def __init__(self, context: Context, rules: Iterable[Rule]) -> None:
        super().__init__()
        self.context = context
        self.rules = list(rules)
        self.handlers: dict[type, list[Callable[..., Any]]] = {}
        self.visitors: dict[type, list[Callable[..., Any]]] = {}
        self.saved: list[list[cst.FunctionDef]] = []

    def _handlers(self, kind: type, prefix: str, table: dict[type, list[Callable[..., Any]]]) -> list[Callable[..., Any]]:
        if kind not in table:
            table[kind] = [method for rule in self.rules if (method := getattr(rule, f"{prefix}_{kind.__name__}", None))]
        return table[kind]

    def on_visit(self, node: cst.CSTNode) -> bool:
        context = self.context
        context.stack.append(node)
        if isinstance(node, cst.ClassDef):
            context.path.append(node.name.value)
            context.classes.append(context.file.classes.get(".".join(context.path)))
            # A class inside a function starts anew: `self` of its methods is not that of the function around.
            context.functions, saved = [], context.functions
            self.saved.append(saved)
        elif isinstance(node, cst.FunctionDef):
            context.path.append(node.name.value)
            context.functions.append(node)
        for visitor in self._handlers(type(node), "visit", self.visitors):
            self._apply(visitor, node)
        # Names inside an import statement are no uses of them.
        return not isinstance(node, (cst.Import, cst.ImportFrom))

    def _apply(self, handler: Callable[..., Any], node: cst.CSTNode, *updated: Any) -> Any:
        """What a handler of a rule gives. Where it falls over, a hole that names the rule, and nothing."""
        try:
            return handler(node, *updated)
        except Exception as error:
            rule = type(handler.__self__).__name__  # type: ignore[attr-defined]
            self.context.hole(node, f"the rule {rule} ended with {type(error).__name__}: {_text_of(error)}", RULE_ERROR)
            return None

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        context = self.context
        context.stack.pop()
        result, replaced = updated_node, False
        for handler in self._handlers(type(original_node), "leave", self.handlers):
            # Later rules would take the new call for one of the source. `CHECKS` change nothing.
            if replaced and handler.__name__ not in handler.__self__.CHECKS:  # type: ignore[attr-defined]
                continue
            if context.at_host and type(handler.__self__) in TRACED_ONLY:  # type: ignore[attr-defined]
                continue
            changed = self._apply(handler, original_node, result)
            if isinstance(changed, cst.RemovalSentinel):
                context.drop_holes(original_node)
            if changed is not None:
                replaced = (
                    isinstance(original_node, cst.Call)
                    or type(changed) is not type(original_node)
                    or _is_written_elsewhere(result, changed)
                )
                result = changed
        if (
            isinstance(original_node, cst.Attribute)
            and not isinstance(result, cst.BaseAssignTargetExpression)
            and context.unpacked_into(original_node)
        ):
            context.hole(original_node, "what a value is unpacked into here is no place of its own in the rewrite")
            result = updated_node
        if any(_cannot_be_bound(target) for target in _targets(result)):
            context.hole(original_node, "what is written to here is no place of its own in the rewrite")
            result = original_node
        if isinstance(result, cst.SimpleStatementLine) and not result.body:
            result = cst.RemoveFromParent()
        if _loses_parentheses(original_node, result) and context.stack and _touches(context.stack[-1]):
            result = result.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        if isinstance(original_node, cst.ClassDef):
            context.path.pop()
            context.classes.pop()
            context.functions = self.saved.pop()
        elif isinstance(original_node, cst.FunctionDef):
            context.path.pop()
            context.functions.pop()
        return result


KEYWORDS = (
    *(cst.If, cst.While, cst.Return, cst.Assert, cst.For, cst.Raise, cst.Del, cst.Yield, cst.Await, cst.IfExp, cst.CompFor, cst.CompIf),
    *(cst.UnaryOperation, cst.BooleanOperation, cst.ComparisonTarget, cst.Comparison),
)
"""Nodes with keywords that parentheses may follow, or precede, without a space."""


def _loses_parentheses(original: cst.CSTNode, result: Any) -> bool:
    return isinstance(original, cst.BaseExpression) and isinstance(result, cst.BaseExpression) and bool(original.lpar) and not result.lpar


def _touches(parent: cst.CSTNode) -> bool:
    """Whether a keyword of this node stands beside an expression without a space: `if(x):`, `not(x)`."""
    if not isinstance(parent, KEYWORDS):
        return False
    operator = getattr(parent, "operator", None)
    parts = [getattr(node, field.name) for node in (parent, operator) if isinstance(node, cst.CSTNode) for field in fields(node)]
    return any(isinstance(part, cst.SimpleWhitespace) and not part.value for part in parts)


def _targets(statement: Any) -> Iterable[cst.CSTNode]:
    """What a statement binds, writes to or deletes."""
    match statement:
        case cst.Assign(targets=targets):
            return [target.target for target in targets]
        case cst.AugAssign(target=target) | cst.Del(target=cst.Tuple() as target):
            return [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
        case cst.Del(target=target):
            return [target]
    return ()


def _is_written_elsewhere(before: Any, after: Any) -> bool:
    """Whether a rule gave an assignment another target: a second one would write what the first has computed for its own."""
    if not (isinstance(before, cst.Assign) and isinstance(after, cst.Assign)):
        return False
    return len(before.targets) != len(after.targets) or not all(map(cst.CSTNode.deep_equals, before.targets, after.targets))


def _cannot_be_bound(target: cst.CSTNode) -> bool:
    constant = isinstance(target, cst.Name) and target.value in ("None", "True", "False")
    return constant or not isinstance(target, cst.BaseAssignTargetExpression)


@dataclass(frozen=True)
class Rewritten:
    """A file after the rules: its top-level statements (same count and order as in the source), holes and what it uses."""

    body: tuple[tuple[cst.BaseStatement, ...], ...]
    header: cst.Module
    holes: tuple[Hole, ...]
    notes: tuple[str, ...]
    vendored: frozenset[str]
    qualified: frozenset[str]
    spans: tuple[Span, ...]
    dead: Mapping[str, str]


def rewrite_file(
    repo: Repo,
    file: FileModel,
    facts: Facts,
    randomness: Randomness,
    observed_lines: frozenset[int] = frozenset(),
    exercised: Exercised | None = None,
    host: Host | None = None,
) -> Rewritten:
    """Apply all rules to a file. Never raises for what the file contains: what no rule knows becomes a hole."""
    wrapper = MetadataWrapper(cst.parse_module(file.text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    rewrites = not is_jax(file)
    facts_by_class = class_facts(repo, file, facts, randomness) if rewrites else {}
    context = Context(repo, file, facts, randomness, positions, Scopes(file), facts_by_class, observed_lines, exercised, host)
    walker = _Pass(context, [rule(context) for rule in ORDER] if rewrites else [])
    body: list[tuple[cst.BaseStatement, ...]] = []
    context.stack.append(wrapper.module)
    for statement in wrapper.module.body:
        result = statement.visit(walker)
        if isinstance(result, cst.FlattenSentinel):
            body.append(tuple(result))
        elif isinstance(result, cst.RemovalSentinel):
            body.append(())
        else:
            body.append((result,))
    spans = tuple(context.span(statement) for statement in wrapper.module.body)
    return Rewritten(
        tuple(body),
        wrapper.module,
        tuple(context.holes),
        tuple(context.notes),
        frozenset(context.vendored),
        frozenset(context.qualified),
        spans,
        context.dead,
    )


def _text_of(error: Exception) -> str:
    """What an error says; that of a parser may fail itself, where there was no text to parse."""
    try:
        return str(error)
    except Exception:
        return "it has no text"
