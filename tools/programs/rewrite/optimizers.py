"""What the construction of an optimizer of torch becomes: `nnx.Optimizer` with an exact `optax` transform, all values written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall
from migrate_agent.tools.programs.rewrite.names import code

DROPPED = frozenset({"foreach", "fused", "capturable", "differentiable"})
SIGNATURES: Mapping[str, Mapping[str, str]] = {
    "torch.optim.Adam": {"lr": "1e-3", "betas": "(0.9, 0.999)", "eps": "1e-8", "weight_decay": "0", "amsgrad": "False"},
    "torch.optim.AdamW": {"lr": "1e-3", "betas": "(0.9, 0.999)", "eps": "1e-8", "weight_decay": "1e-2", "amsgrad": "False"},
    "torch.optim.SGD": {"lr": "1e-3", "momentum": "0", "dampening": "0", "weight_decay": "0", "nesterov": "False"},
}


def transform(dotted: str, call: cst.Call, optimizer: OptimizerCall) -> str:
    """The text of the transform. Raises `NotUnderstoodError`."""
    signature = SIGNATURES.get(dotted)
    if signature is None:
        raise NotUnderstoodError(f"{dotted} has no row in the table of optimizers", call)
    values = dict(signature)
    for position, argument in enumerate(call.args[1:]):
        name = argument.keyword.value if argument.keyword is not None else list(signature)[position]
        if name in values:
            values[name] = code(argument.value)
        elif name not in DROPPED:
            raise NotUnderstoodError(f"{dotted}({name}=…) has no rule", call)
    for name in ("amsgrad", "dampening"):
        if values.get(name, "0") not in ("0", "0.0", "False"):
            raise NotUnderstoodError(f"{dotted}({name}=…) has no rule", call)
    mask = ""
    if optimizer.decays:
        values["weight_decay"] = optimizer.weight_decay
        mask = f", mask=lambda params: jax.tree.map(lambda p: {optimizer.decays}, params)"
    rate = values["lr"]
    if optimizer.inject:
        # The other values stay constants: injected ones are rounded, and float32 has no exact 0.999.
        return f"optax.inject_hyperparams(lambda learning_rate: {_ROWS[dotted]({**values, 'lr': 'learning_rate'}, mask)})(learning_rate={rate})"
    return _ROWS[dotted](values, mask)


def _adam(values: Mapping[str, str], mask: str) -> str:
    return _decayed(values, f"optax.adam({values['lr']}, {_moments(values)})", mask)


def _adamw(values: Mapping[str, str], mask: str) -> str:
    return f"optax.adamw({values['lr']}, {_moments(values)}, weight_decay={values['weight_decay']}{mask})"


def _sgd(values: Mapping[str, str], mask: str) -> str:
    momentum = "" if values["momentum"] in ("0", "0.0") else f", momentum={values['momentum']}"
    nesterov = "" if values["nesterov"] == "False" else f", nesterov={values['nesterov']}"
    return _decayed(values, f"optax.sgd({values['lr']}{momentum}{nesterov})", mask)


def _decayed(values: Mapping[str, str], text: str, mask: str) -> str:
    """With torch's weight decay, which is part of the gradient."""
    if values["weight_decay"] in ("0", "0.0"):
        return text
    return f"optax.chain(optax.add_decayed_weights({values['weight_decay']}{mask}), {text})"


def _moments(values: Mapping[str, str]) -> str:
    betas = cst.parse_expression(values["betas"])
    if isinstance(betas, (cst.Tuple, cst.List)) and len(betas.elements) == 2:
        first, second = (code(element.value) for element in betas.elements)
    else:
        first, second = f"{values['betas']}[0]", f"{values['betas']}[1]"
    return f"b1={first}, b2={second}, eps={values['eps']}"


_ROWS: Mapping[str, Callable[[Mapping[str, str], str], str]] = {
    "torch.optim.Adam": _adam,
    "torch.optim.AdamW": _adamw,
    "torch.optim.SGD": _sgd,
}
