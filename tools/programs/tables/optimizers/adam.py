"""Adam and the optimizers that are built like it (https://pytorch.org/docs/stable/optim.html#algorithms)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments
from migrate_agent.tools.programs.tables.forms import before, chain, decay, flag, maximize, moments, rate
from migrate_agent.tools.programs.tables.registry import Optimizer

ADAM_SLOTS = {
    "step": ("ScaleByAdamState.count", "AmsgradState.count"),
    "exp_avg": ("ScaleByAdamState.mu", "AmsgradState.mu"),
    "exp_avg_sq": ("ScaleByAdamState.nu", "AmsgradState.nu"),
    "max_exp_avg_sq": ("AmsgradState.nu_max",),
}


def _adam(arguments: Arguments) -> str:
    if flag(arguments, "decoupled_weight_decay"):
        return _adamw(arguments)
    if flag(arguments, "amsgrad"):
        return chain(before(arguments), f"vendored.scale_by_amsgrad({moments(arguments)})", rate(arguments))
    return chain(before(arguments), f"optax.adam({arguments['lr'].text}, {moments(arguments)})")


def _adamw(arguments: Arguments) -> str:
    weight_decay = arguments["weight_decay"]
    if flag(arguments, "amsgrad"):
        return chain(maximize(arguments), f"vendored.scale_by_amsgrad({moments(arguments)})", decay(weight_decay), rate(arguments))
    text = f"optax.adamw({arguments['lr'].text}, {moments(arguments)}, weight_decay={weight_decay.text})"
    return chain(maximize(arguments), text)


def _adamax(arguments: Arguments) -> str:
    return chain(before(arguments), f"optax.adamax({arguments['lr'].text}, {moments(arguments)})")


def _decayed(arguments: Arguments, transform: str) -> str:
    """A transform with the decay before it, or after it where it is decoupled."""
    if flag(arguments, "decoupled_weight_decay"):
        return chain(maximize(arguments), transform, decay(arguments["weight_decay"]), rate(arguments))
    return chain(before(arguments), transform, rate(arguments))


def _nadam(arguments: Arguments) -> str:
    return _decayed(arguments, f"vendored.scale_by_nadam({moments(arguments)}, momentum_decay={arguments['momentum_decay'].text})")


def _radam(arguments: Arguments) -> str:
    return _decayed(arguments, f"vendored.scale_by_radam({moments(arguments)})")


ROWS = (
    Optimizer(
        "torch.optim.Adam",
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, maximize=False, decoupled_weight_decay=False",
        _adam,
        ADAM_SLOTS,
        options=(
            "",
            "betas=(0.8, 0.95), eps=1e-3",
            "weight_decay=0.1",
            "amsgrad=True, weight_decay=0.1",
            "maximize=True, weight_decay=0.1",
            "weight_decay=0.1, decoupled_weight_decay=True",
        ),
        momentum="b1",
        note="weight decay is added to the gradient, before the moments",
    ),
    Optimizer(
        "torch.optim.AdamW",
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False",
        _adamw,
        ADAM_SLOTS,
        options=("", "weight_decay=0.3, betas=(0.9, 0.95)", "amsgrad=True, weight_decay=0.3", "maximize=True, weight_decay=0.3"),
        momentum="b1",
        note="optax's default decay is 1e-4",
    ),
    Optimizer(
        "torch.optim.Adamax",
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, *, maximize=False",
        _adamax,
        {"step": ("ScaleByAdamState.count",), "exp_avg": ("ScaleByAdamState.mu",), "exp_inf": ("ScaleByAdamState.nu",)},
        options=("", "weight_decay=0.1", "maximize=True, weight_decay=0.1"),
        momentum="b1",
    ),
    Optimizer(
        "torch.optim.NAdam",
        "lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False, *, maximize=False",
        _nadam,
        {
            "step": ("NadamState.count",),
            "mu_product": ("NadamState.mu_product",),
            "exp_avg": ("NadamState.mu",),
            "exp_avg_sq": ("NadamState.nu",),
        },
        options=("", "weight_decay=0.1, momentum_decay=0.02", "weight_decay=0.1, decoupled_weight_decay=True", "maximize=True"),
        momentum="b1",
        note="the momentum grows with the steps, and its running product corrects the bias",
    ),
    Optimizer(
        "torch.optim.RAdam",
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, maximize=False",
        _radam,
        {"step": ("RadamState.count",), "exp_avg": ("RadamState.mu",), "exp_avg_sq": ("RadamState.nu",)},
        options=("", "weight_decay=0.1, eps=1e-3", "weight_decay=0.1, decoupled_weight_decay=True", "betas=(0.9, 0.6)", "maximize=True"),
        momentum="b1",
        note="eps is added before the bias correction",
    ),
)
