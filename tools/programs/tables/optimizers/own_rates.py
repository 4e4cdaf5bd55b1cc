"""Optimizers that use the rate otherwise than as a factor (https://pytorch.org/docs/stable/optim.html#algorithms)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments
from migrate_agent.tools.programs.tables.forms import before, chain, maximize
from migrate_agent.tools.programs.tables.registry import Optimizer


def _options(arguments: Arguments, *names: str) -> str:
    return ", ".join([arguments["lr"].text, *(f"{name}={arguments[name].text}" for name in names)])


def _rprop(arguments: Arguments) -> str:
    return chain(maximize(arguments), f"vendored.rprop({_options(arguments, 'etas', 'step_sizes')})")


def _asgd(arguments: Arguments) -> str:
    return chain(before(arguments), f"vendored.asgd({_options(arguments, 'lambd', 'alpha', 't0')})")


def _adafactor(arguments: Arguments) -> str:
    return chain(maximize(arguments), f"vendored.adafactor({_options(arguments, 'beta2_decay', 'eps', 'd', 'weight_decay')})")


def _muon(arguments: Arguments) -> str:
    names = ("weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")
    return f"vendored.muon({_options(arguments, *names)})"


ROWS = (
    Optimizer(
        "torch.optim.Rprop",
        "lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, maximize=False",
        _rprop,
        {"step": (), "prev": ("RpropState.prev",), "step_size": ("RpropState.step_size",)},
        options=("", "etas=(0.3, 1.5), step_sizes=(1e-4, 0.05)", "maximize=True"),
        note="the step is left out where the gradient changes its sign; of a schedule the first rate alone counts",
    ),
    Optimizer(
        "torch.optim.ASGD",
        "lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, *, maximize=False",
        _asgd,
        {"step": ("AsgdState.count",), "eta": ("AsgdState.eta",), "mu": ("AsgdState.mu",), "ax": ("AsgdState.ax",)},
        options=("", "lambd=0.1, t0=10, weight_decay=0.1", "maximize=True"),
        note="optax has none",
    ),
    Optimizer(
        "torch.optim.Adafactor",
        "lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, maximize=False",
        _adafactor,
        {
            "step": ("AdafactorState.count",),
            "row_var": ("AdafactorState.row_var",),
            "col_var": ("AdafactorState.col_var",),
            "variance": ("AdafactorState.variance",),
        },
        axes=3,
        options=("", "weight_decay=0.1, d=2.0", "eps=(1e-10, 1e-2), beta2_decay=-0.5", "maximize=True"),
        note="every matrix is factored, and the rate is bounded by the steps",
    ),
    Optimizer(
        "torch.optim.Muon",
        "lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, "
        "adjust_lr_fn=None",
        _muon,
        {"momentum_buffer": ("MuonState.momentum_buffer",)},
        axes=2,
        options=("", "nesterov=False, momentum=0.9", "adjust_lr_fn='match_rms_adamw', weight_decay=0"),
        limit=1e-9,
        note="the Newton-Schulz iteration is rounded to bfloat16 where torch rounds it; sums in another order may differ by its rounding",
    ),
)
