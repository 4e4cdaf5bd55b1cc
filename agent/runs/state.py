"""What the graph remembers between nodes: small and plain. Everything big lies as files in the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict


class RunState(TypedDict, total=False):
    """The checkpointed state. A unit is named by its position in the plan, and its folder follows from that."""

    position: int
    """Position of the unit at work in `Plan.order`; -1 before the first."""
    outcome: str
    """What the last node came to; `graph.ROUTES` says where that leads."""
    attempts: int
    """Proposals made for the unit at work."""
    calls: int
    input_tokens: int
    output_tokens: int
    """Model calls and tokens spent on it."""
    cost: float
    """US dollars spent on it."""
    model_seconds: float
    """Seconds waited for the model's answers."""
    proposer: str
    """Who wrote the latest proposal (`agent.model.interface.Proposer`)."""
    name: str
    """Of the model, or the deterministic repair, that the latest proposal is from."""
    seconds: float
    """Time spent on it, in the nodes before this one."""
    started: float
    """When the present node started, by the monotonic clock; for the node alone, never checkpointed."""
    granted: int
    """Attempts beyond the budget that the user granted by a retry."""
    standing: str
    """What the unit had come to when the user asked a question: `passed` or `settled`."""
    head: str
    """The last commit made on the branch (or the base)."""
    commits: int
    """How many were made."""


@dataclass(frozen=True)
class NearestGuess:
    """A guessed example that came furthest of those that were tried, and the error that it ended with. No texts where the search itself broke."""

    init: str
    call: str
    setup: str
    error: str
    method: str = ""
    is_tried: bool = True
    """Whether there is a guess at all."""


@dataclass(frozen=True)
class Plan:
    """Which units are tried, in which order (ids, leaf first), and which are not, with the reason."""

    order: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    cycles: tuple[tuple[str, ...], ...] = ()
    """Units whose rewrites name each other, in their order: such are committed together."""
    failed_examples: Mapping[str, str] = field(default_factory=dict)
    """Units with an example that was given for them and does not run → the error."""
    guesses: Mapping[str, NearestGuess] = field(default_factory=dict)
    """Units for which no guessed example ran → the one that came furthest."""

    def cycle(self, identifier: str) -> tuple[str, ...]:
        """The cycle that a unit is in; empty where it is in none."""
        return next((cycle for cycle in self.cycles if identifier in cycle), ())


@dataclass(frozen=True)
class Settings:
    """What a run was started with; a resumed run uses the same."""

    id: str
    root: str
    base: str
    """The commit that is migrated."""
    branch: str
    time: int
    """Seconds since the epoch of the base commit: our commits are dated from it, so that the same run gives the same commits."""
    author: str
    email: str
    modules: tuple[str, ...] = ()
    interactive: bool = False
    sandbox: str = "auto"
    device: Literal["cpu", "gpu"] = "cpu"
    jobs: int = 1
    """Units that are verified at the same time; with a cluster, 0 for as many as it has processors."""
    cluster: str = ""
    """The address of the Ray cluster that verifies units; "" for this machine."""
    report: str = ""
    llm: bool = True
    rules: bool = True
    """Whether the rules write classes; without them, the model is asked for each."""
    model: str = ""
    """Models with commas between them; "" for none."""
    base_url: str = ""
    replay: str = ""
    """A saved trajectory that answers in the model's place."""
    ensemble: bool = False
    fallback: Literal["", "torchax"] = ""
    """What becomes of units that cannot be rewritten."""
    explore: bool = False
    """Whether the repository's tests and scripts are run for examples."""
    max_attempts: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    """The run's bounds, where the command line gave them."""
