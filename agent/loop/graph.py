"""The wiring, and nothing else: which node follows which, by what it came to."""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.advance import advance
from migrate_agent.agent.loop.nodes.commit import commit
from migrate_agent.agent.loop.nodes.common import Node
from migrate_agent.agent.loop.nodes.fallback import fallback
from migrate_agent.agent.loop.nodes.fill import fill
from migrate_agent.agent.loop.nodes.plan import plan
from migrate_agent.agent.loop.nodes.programs import programs
from migrate_agent.agent.loop.nodes.record import record
from migrate_agent.agent.loop.nodes.repair import repair
from migrate_agent.agent.loop.nodes.report import report
from migrate_agent.agent.loop.nodes.review import review, undo
from migrate_agent.agent.loop.nodes.rewrite import rewrite
from migrate_agent.agent.loop.nodes.scan import scan
from migrate_agent.agent.loop.nodes.verify import verify
from migrate_agent.agent.runs.state import RunState
from migrate_agent.agent.runs.trace import span

NODES = (scan, plan, record, advance, rewrite, fill, verify, repair, fallback, review, undo, commit, programs, report)

ROUTES: dict[str, dict[str, str]] = {
    "scan": {"scanned": "plan"},
    "plan": {"planned": "record"},
    "record": {"recorded": "advance"},
    "advance": {"more": "rewrite", "done": "programs"},
    "rewrite": {"ready": "verify", "holes": "fill", "settled": "review"},
    "fill": {"proposed": "rewrite", "refused": "fill", "settled": "fallback"},
    "verify": {"passed": "review", "failed": "repair", "settled": "fallback"},
    "repair": {"proposed": "rewrite", "refused": "repair", "settled": "fallback"},
    "fallback": {"proposed": "rewrite", "settled": "review"},
    "review": {
        "accepted": "commit",
        "settled": "advance",
        "proposed": "rewrite",
        "refill": "fill",
        "rework": "repair",
        "asked": "review",
        "undo": "undo",
    },
    "undo": {"passed": "review"},
    "commit": {"settled": "advance"},
    "programs": {"tried": "report"},
    "report": {"reported": END},
}
"""Node → what it came to → the next node."""

WHOLE = ("scan", "plan", "record", "advance", "programs", "report")
"""Nodes that work on no single unit."""

Graph = CompiledStateGraph[Any, Any, Any, Any]


def outcome(state: RunState) -> str:
    """What the last node came to."""
    return state["outcome"]


def traced(node: Node) -> Node:
    """The node within a span that says which unit it worked on, and what it came to."""

    @functools.wraps(node)
    def wrapped(context: Context, state: RunState) -> RunState:
        position = state.get("position", -1)
        unit = context.plan.order[position] if position >= 0 and node.__name__ not in WHOLE else ""
        with span(f"node {node.__name__}", unit=unit, attempt=state.get("attempts", 0)) as attributes:
            update = node(context, state)
            attributes["outcome"] = update.get("outcome", "")
            return update

    return wrapped


def build(context: Context, checkpointer: BaseCheckpointSaver[Any] | None) -> Graph:
    """The graph over this context, checkpointed after every node."""
    graph = StateGraph(RunState)
    for node in NODES:
        graph.add_node(node.__name__, partial(traced(node), context))
        graph.add_conditional_edges(node.__name__, outcome, ROUTES[node.__name__])  # type: ignore[arg-type]
    graph.add_edge(START, "scan")
    return graph.compile(checkpointer=checkpointer)
