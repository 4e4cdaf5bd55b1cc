"""Every public method and property of the original was compared, runs as a part of what was compared, or is a stub that raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.parsed_source import dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST_NAMES = 6


def judge(results: Results) -> Verdict | None:
    """`unverified` where one was not compared; told and passed where the check `reach` sees to what no call ran. Does not apply without methods."""
    surface = results.described().get("methods") or {}
    names = surface.get("names", ())
    if not names:
        return None
    answered = (results.called(scenario) for scenario, _ in results.answers() if not results.may_be_stub(scenario))
    compared = {step for example in answered for step in steps_of(example.method)} | _redrawing(results)
    inside = {*surface["constructing"], *surface["calling"]} - compared
    rest = [name for name in names if name not in compared | inside]
    stubs = [name for name in rest if name in set(_stubs(results))]
    left = [name for name in rest if name not in stubs]
    if results.port is not None and (uncalled := results.exact["spec"].get("uncalled")) is not None:
        # A port in another form need not have the methods.
        own = [name for name in left if name in uncalled]
        lacking = ", ".join(name for name in left if name not in own)
        why = (
            f'no example calls {", ".join(own)}: add one to migrate.toml with method = "{own[0]}"'
            if own
            else lacking and f"the port does not have {lacking}"
        )
        return Verdict("spec", "methods", "unverified" if own else "pass", float(len(own)), 0.0, why)
    if left and not results.unreached:
        listed = ", ".join(left[:MOST_NAMES]) + (f" and {len(left) - MOST_NAMES} more" if len(left) > MOST_NAMES else "")
        why = f'no example calls {listed}: add one to migrate.toml with method = "{left[0]}"'
        return Verdict("spec", "methods", "unverified", float(len(left)), 0.0, why)
    parts = (("compared", sorted(compared)), ("run as a part of that", sorted(inside & {*names})), ("no example calls", [*stubs, *left]))
    return Verdict("spec", "methods", "pass", 0.0, 0.0, "; ".join(f"{what}: {', '.join(listed)}" for what, listed in parts if listed))


def steps_of(method: str) -> list[str]:
    """The methods that an example calls, one after the other, without the module's own call."""
    earlier, last = methods.steps(method)
    return [step for step in (*earlier, last) if step]


def _redrawing(results: Results) -> set[str]:
    """Methods that draw the state anew, of which the check `initialisation` compares what they leave."""
    examples = (results.examples[item["index"]] for item in results.expected.examples if "state" in item.get("inits", ()))
    return {example.method for example in examples if not results.may_be_stub_of(results.examples.index(example))}


def _stubs(results: Results) -> Iterator[str]:
    """Names of the methods of the rewrite's class, or of one that it derives from, that raise before they do anything else."""
    classes = {node.name: node for source in results.sources for node in source.tree.body if isinstance(node, ast.ClassDef)}
    classes |= {
        node.name: node
        for source in results.sources
        if source.path == results.unit.target
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    }
    overridden, waiting = set[str](), [results.unit.name.rpartition(".")[2]]
    while waiting:
        node = classes.pop(waiting.pop(0), None)
        methods = [part for part in node.body if isinstance(part, Function)] if node is not None else []
        yield from (part.name for part in methods if part.name not in overridden and _raises(part))
        overridden |= {part.name for part in methods}
        waiting += [dotted(base).rpartition(".")[2] for base in node.bases] if node is not None else []


def _raises(function: Function) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return bool(body) and isinstance(body[0], ast.Raise)


CHECK = Check("spec", "methods", judge)
