"""Optimizers that scale by the root of past squares (https://pytorch.org/docs/stable/optim.html#algorithms)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments
from migrate_agent.tools.programs.tables.forms import before, chain, flag, rate
from migrate_agent.tools.programs.tables.registry import Optimizer


def _rmsprop(arguments: Arguments) -> str:
    decay, eps, momentum = arguments["alpha"].text, arguments["eps"].text, arguments["momentum"]
    centered = flag(arguments, "centered")
    if momentum.is_default(0):
        option = ", centered=True" if centered else ""
        return chain(before(arguments), f"optax.rmsprop({arguments['lr'].text}, decay={decay}, eps={eps}, eps_in_sqrt=False{option})")
    # `optax.rmsprop` gathers the momentum of steps that are scaled by the rate already, which differs where the rate changes.
    scale = f"optax.scale_by_{'stddev' if centered else 'rms'}(decay={decay}, eps={eps}, eps_in_sqrt=False)"
    return chain(before(arguments), scale, f"optax.trace({momentum.text})", rate(arguments))


def _adagrad(arguments: Arguments) -> str:
    names = ("lr_decay", "initial_accumulator_value", "eps")
    options = ", ".join(f"{name}={arguments[name].text}" for name in names if name == "eps" or not arguments[name].is_default(0))
    return chain(before(arguments), f"vendored.scale_by_adagrad({options})", rate(arguments))


def _adadelta(arguments: Arguments) -> str:
    text = f"optax.adadelta({arguments['lr'].text}, rho={arguments['rho'].text}, eps={arguments['eps'].text})"
    return chain(before(arguments), text)


ROWS = (
    Optimizer(
        "torch.optim.RMSprop",
        "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, *, maximize=False",
        _rmsprop,
        {
            "step": (),
            "square_avg": ("ScaleByRmsState.nu", "ScaleByRStdDevState.nu"),
            "grad_avg": ("ScaleByRStdDevState.mu",),
            "momentum_buffer": ("TraceState.trace",),
        },
        options=(
            "",
            "weight_decay=0.1, momentum=0.9",
            "centered=True",
            "centered=True, momentum=0.9, eps=1e-3",
            "maximize=True, alpha=0.9",
        ),
        momentum="momentum",
        note="optax's default decay is 0.9, with eps inside the root",
    ),
    Optimizer(
        "torch.optim.Adagrad",
        "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, *, maximize=False",
        _adagrad,
        {"step": ("AdagradState.count",), "sum": ("AdagradState.sum",)},
        options=("", "lr_decay=0.1, weight_decay=0.1", "initial_accumulator_value=0.1, eps=1e-3", "maximize=True"),
        note="eps is added outside the root, and the sum begins at 0",
    ),
    Optimizer(
        "torch.optim.Adadelta",
        "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, *, maximize=False",
        _adadelta,
        {"step": (), "square_avg": ("ScaleByAdaDeltaState.e_g",), "acc_delta": ("ScaleByAdaDeltaState.e_x",)},
        options=("", "weight_decay=0.1, rho=0.95", "maximize=True, eps=1e-3"),
    ),
)
