"""Stochastic gradient descent, and what is refused or kept on the host (https://pytorch.org/docs/stable/optim.html#algorithms)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments
from migrate_agent.tools.programs.tables.forms import before, chain, rate
from migrate_agent.tools.programs.tables.registry import Optimizer, Refused


def _sgd(arguments: Arguments) -> str:
    lr, momentum, dampening = arguments["lr"].text, arguments["momentum"], arguments["dampening"]
    if momentum.is_default(0):
        return chain(before(arguments), f"optax.sgd({lr})")
    if not dampening.is_default(0):
        return chain(before(arguments), f"vendored.trace_with_dampening({momentum.text}, {dampening.text})", rate(arguments))
    nesterov = arguments["nesterov"]
    option = "" if nesterov.is_default(False) else f", nesterov={nesterov.text}"
    return chain(before(arguments), f"optax.sgd({lr}, momentum={momentum.text}{option})")


ROWS = (
    Optimizer(
        "torch.optim.SGD",
        "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False",
        _sgd,
        {"momentum_buffer": ("TraceState.trace", "DampenedTraceState.trace")},
        options=(
            "",
            "momentum=0.9",
            "momentum=0.9, nesterov=True, weight_decay=0.1",
            "momentum=0.9, dampening=0.5, weight_decay=0.1",
            "dampening=0.5",
            "momentum=0.9, weight_decay=0.1, maximize=True",
        ),
        momentum="momentum",
        note="weight decay is added to the gradient, before the momentum",
    ),
    Refused("torch.optim.SparseAdam", "SparseAdam updates the rows of sparse gradients alone, and JAX has no sparse gradients"),
)
