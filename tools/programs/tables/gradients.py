"""Clipping, and averages of weights (https://pytorch.org/docs/stable/nn.html#utilities, https://pytorch.org/docs/stable/optim.html)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments
from migrate_agent.tools.programs.tables.registry import Function, Refused
from migrate_agent.tools.rewrite.tables.registry import Refuse


def _clip_norm(arguments: Arguments) -> str:
    if not arguments["error_if_nonfinite"].is_default(False):
        raise Refuse("error_if_nonfinite raises from inside the step, which a compiled step cannot do")
    norm_type = "" if arguments["norm_type"].is_default(2) else f", {arguments['norm_type'].text}"
    return f"vendored.clip_grad_norm({arguments['parameters'].text}, {arguments['max_norm'].text}{norm_type})"


def _clip_value(arguments: Arguments) -> str:
    return f"vendored.clip_grad_value({arguments['parameters'].text}, {arguments['clip_value'].text})"


def _average(arguments: Arguments) -> str:
    average, several = arguments["avg_fn"], arguments["multi_avg_fn"]
    # The helpers of both kinds are the same function here, of one array each; a function of the program's own is of lists.
    if not several.is_default(None) and not several.text.startswith(("get_ema_avg_fn(", "get_swa_avg_fn(")):
        raise Refuse(f"multi_avg_fn={several.text} is a function of lists of tensors: give avg_fn")
    chosen = average if several.is_default(None) else several
    options = "" if chosen.is_default(None) else f", {chosen.text}"
    options += "" if arguments["use_buffers"].is_default(False) else f", use_buffers={arguments['use_buffers'].text}"
    return f"vendored.AveragedModel({arguments['model'].text}{options})"


def _ema(arguments: Arguments) -> str:
    return f"vendored.get_ema_avg_fn({arguments['decay'].text})"


def _swa(arguments: Arguments) -> str:
    return "vendored.get_swa_avg_fn()"


SWA = "torch.optim.swa_utils"
ROWS = (
    Function(
        "torch.nn.utils.clip_grad_norm_",
        "parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None",
        _clip_norm,
        "takes the gradients, gives them and the norm before; optax.clip_by_global_norm lacks the 1e-6 beside the norm",
    ),
    Function(
        "torch.nn.utils.clip_grad_value_", "parameters, clip_value, foreach=None", _clip_value, "takes the gradients and gives them clipped"
    ),
    Function(
        f"{SWA}.AveragedModel",
        "model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False",
        _average,
        "the first update copies; the initial weights have no share",
    ),
    Function(f"{SWA}.get_ema_avg_fn", "decay=0.999", _ema),
    Function(f"{SWA}.get_ema_multi_avg_fn", "decay=0.999", _ema),
    Function(f"{SWA}.get_swa_avg_fn", "", _swa),
    Function(f"{SWA}.get_swa_multi_avg_fn", "", _swa),
    Refused(f"{SWA}.update_bn", "update_bn runs the model over the data for its statistics alone: call the model in training mode instead"),
)
