"""Schedules that cycle the momentum too (https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Argument, Arguments, parse_signature
from migrate_agent.tools.programs.tables.forms import operand
from migrate_agent.tools.programs.tables.registry import Schedule
from migrate_agent.tools.rewrite.tables.registry import Refuse

ONE_CYCLE = (
    "max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy='cos', cycle_momentum=True, "
    "base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False, last_epoch=-1"
)
CYCLIC = (
    "base_lr, max_lr, step_size_up=2000, step_size_down=None, mode='triangular', gamma=1.0, scale_fn=None, scale_mode='cycle', "
    "cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1"
)


def _named(signature: str, arguments: Arguments, *names: str) -> str:
    """`, name=value` of those arguments that are not torch's defaults, which the helpers share."""
    defaults = parse_signature(signature).parameters
    return "".join(f", {name}={arguments[name].text}" for name in names if arguments[name].text != defaults[name].default)


def _total(arguments: Arguments) -> str:
    if arguments["total_steps"].is_default(None):
        return f"{operand(arguments['epochs'].text)} * {operand(arguments['steps_per_epoch'].text)}"
    return arguments["total_steps"].text


def _one_cycle(arguments: Arguments, lr: Argument) -> str:
    options = _named(ONE_CYCLE, arguments, "pct_start", "anneal_strategy", "div_factor", "final_div_factor", "three_phase")
    return f"vendored.one_cycle({arguments['max_lr'].text}, {_total(arguments)}{options})"


def _one_cycle_momentum(arguments: Arguments) -> str:
    options = _named(ONE_CYCLE, arguments, "pct_start", "anneal_strategy", "base_momentum", "max_momentum", "three_phase")
    return f"vendored.one_cycle_momentum({_total(arguments)}{options})"


def _cyclic_of(arguments: Arguments, first: str, last: str) -> str:
    if not arguments["scale_fn"].is_default(None):
        raise Refuse("scale_fn is a function of the program's own: set the rate by hand through vendored LambdaLR")
    options = _named(CYCLIC, arguments, "step_size_up", "step_size_down", "mode", "gamma")
    return f"vendored.cyclic({arguments[first].text}, {arguments[last].text}{options})"


def _cyclic(arguments: Arguments, lr: Argument) -> str:
    return _cyclic_of(arguments, "base_lr", "max_lr")


def _cyclic_momentum(arguments: Arguments) -> str:
    return _cyclic_of(arguments, "max_momentum", "base_momentum")


ROWS = (
    Schedule(
        "torch.optim.lr_scheduler.OneCycleLR",
        ONE_CYCLE,
        _one_cycle,
        _one_cycle_momentum,
        length="total_steps / 2 if total_steps else epochs * steps_per_epoch / 2",
        options=(
            "0.1, total_steps=120",
            "0.1, 100, cycle_momentum=False",
            "0.3, epochs=5, steps_per_epoch=11, anneal_strategy='linear', pct_start=0.25",
            "0.1, total_steps=90, three_phase=True, div_factor=10.0, final_div_factor=100.0, base_momentum=0.8",
        ),
        note="the momentum, or Adam's beta1, falls while the rate climbs; torch has no rate past the last step",
    ),
    Schedule(
        "torch.optim.lr_scheduler.CyclicLR",
        CYCLIC,
        _cyclic,
        _cyclic_momentum,
        length="step_size_up + (step_size_down or step_size_up)",
        options=(
            "0.01, 0.1, 20",
            "0.01, 0.1, step_size_up=7, step_size_down=13, mode='triangular2', base_momentum=0.7",
            "0.01, 0.1, 20, mode='exp_range', gamma=0.99, cycle_momentum=False",
        ),
        note="the momentum, or Adam's beta1, falls while the rate climbs",
    ),
)
