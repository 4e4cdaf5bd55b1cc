"""Stochastic gradient descent, and what is refused or kept on the host (https://pytorch.org/docs/stable/optim.html#algorithms)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments, parse_signature
from migrate_agent.tools.programs.tables.forms import before, chain, rate
from migrate_agent.tools.programs.tables.registry import Function, Optimizer, Refused


def _sgd(arguments: Arguments) -> str:
    lr, momentum, dampening = arguments["lr"].text, arguments["momentum"], arguments["dampening"]
    if momentum.is_default(0):
        return chain(before(arguments), f"optax.sgd({lr})")
    if not dampening.is_default(0):
        return chain(before(arguments), f"vendored.trace_with_dampening({momentum.text}, {dampening.text})", rate(arguments))
    nesterov = arguments["nesterov"]
    option = "" if nesterov.is_default(False) else f", nesterov={nesterov.text}"
    return chain(before(arguments), f"optax.sgd({lr}, momentum={momentum.text}{option})")


def _lbfgs(arguments: Arguments) -> str:
    defaults = parse_signature(LBFGS).parameters
    options = [f"{name}={argument.text}" for name, argument in arguments.items() if argument.text != defaults[name].default]
    return f"vendored.LBFGS({', '.join([arguments['params'].text, *options[1:]])})"


LBFGS = "params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100, line_search_fn=None"
ROWS = (
    Function(
        "torch.optim.LBFGS",
        LBFGS,
        _lbfgs,
        "takes the module; a loop on the host around a compiled closure that gives loss and gradients, since optax's is another algorithm",
    ),
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
