"""What the construction of an optimizer of torch becomes: `nnx.Optimizer` with an exact `optax` transform, all values written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.names import code

DROPPED = frozenset({"foreach", "fused", "capturable", "differentiable", "maximize"})
SIGNATURES: Mapping[str, Mapping[str, str]] = {
    "torch.optim.Adam": {"lr": "1e-3", "betas": "(0.9, 0.999)", "eps": "1e-8", "weight_decay": "0", "amsgrad": "False"},
    "torch.optim.AdamW": {"lr": "1e-3", "betas": "(0.9, 0.999)", "eps": "1e-8", "weight_decay": "1e-2", "amsgrad": "False"},
    "torch.optim.SGD": {"lr": "1e-3", "momentum": "0", "dampening": "0", "weight_decay": "0", "nesterov": "False"},
}


def transform(dotted: str, call: cst.Call, inject: bool) -> str:
    """The text of the transform. `inject`: the rate is set from outside. Raises `NotUnderstoodError`."""
    signature = SIGNATURES.get(dotted)
    if signature is None:
        raise NotUnderstoodError(f"{dotted} has no row in the table of optimizers", call)
    values = dict(signature)
    for position, argument in enumerate(call.args[1:]):
        name = argument.keyword.value if argument.keyword is not None else list(signature)[position]
        if name in values:
            values[name] = code(argument.value)
        elif (
            name not in DROPPED
            or code(argument.value) not in ("None", "True", "False")
            or (name == "maximize" and code(argument.value) != "False")
        ):
            raise NotUnderstoodError(f"{dotted}({name}=…) has no rule", call)
    return _ROWS[dotted](values, inject, call)


def _adam(values: Mapping[str, str], inject: bool, call: cst.Call) -> str:
    if values["amsgrad"] != "False":
        raise NotUnderstoodError("amsgrad has no rule", call)
    adam = _call("optax.adam", f"{values['lr']}, {_moments(values)}", inject)
    if values["weight_decay"] in ("0", "0.0"):
        return adam
    if inject:
        raise NotUnderstoodError("Adam with weight decay and a rate that is set from outside has no rule", call)
    return f"optax.chain(optax.add_decayed_weights({values['weight_decay']}), {adam})"


def _adamw(values: Mapping[str, str], inject: bool, call: cst.Call) -> str:
    if values["amsgrad"] != "False":
        raise NotUnderstoodError("amsgrad has no rule", call)
    return _call("optax.adamw", f"{values['lr']}, {_moments(values)}, weight_decay={values['weight_decay']}", inject)


def _sgd(values: Mapping[str, str], inject: bool, call: cst.Call) -> str:
    if values["dampening"] not in ("0", "0.0"):
        raise NotUnderstoodError("SGD with dampening has no rule", call)
    momentum = "" if values["momentum"] in ("0", "0.0") else f", momentum={values['momentum']}"
    nesterov = "" if values["nesterov"] == "False" else f", nesterov={values['nesterov']}"
    sgd = _call("optax.sgd", f"{values['lr']}{momentum}{nesterov}", inject)
    if values["weight_decay"] in ("0", "0.0"):
        return sgd
    if inject:
        raise NotUnderstoodError("SGD with weight decay and a rate that is set from outside has no rule", call)
    return f"optax.chain(optax.add_decayed_weights({values['weight_decay']}), {sgd})"


def _call(function: str, arguments: str, inject: bool) -> str:
    return f"optax.inject_hyperparams({function})({arguments})" if inject else f"{function}({arguments})"


def _moments(values: Mapping[str, str]) -> str:
    betas = cst.parse_expression(values["betas"])
    if isinstance(betas, (cst.Tuple, cst.List)) and len(betas.elements) == 2:
        first, second = (code(element.value) for element in betas.elements)
    else:
        first, second = f"{values['betas']}[0]", f"{values['betas']}[1]"
    return f"b1={first}, b2={second}, eps={values['eps']}"


_ROWS: Mapping[str, Callable[[Mapping[str, str], bool, cst.Call], str]] = {
    "torch.optim.Adam": _adam,
    "torch.optim.AdamW": _adamw,
    "torch.optim.SGD": _sgd,
}
