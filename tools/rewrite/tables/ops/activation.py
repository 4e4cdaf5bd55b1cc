"""Activations (https://pytorch.org/docs/stable/nn.functional.html#non-linear-activation-functions)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import ndim, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template

F = "torch.nn.functional."


def _softmax(name: str) -> Template:
    """The template of a softmax function; `dtype` is the dtype in which it computes."""

    def to(call: Call) -> str:
        tensor = "{input}.astype({dtype})" if call.given("dtype") and call.literal("dtype") is not None else "{input}"
        # Torch picks axis 0 for 0, 1 and 3 axes and axis 1 otherwise; the helper repeats that
        # choice.
        if not call.given("dim") or call.literal("dim") is None:
            return f"vendored.{name}({tensor})"
        # Torch lets a tensor without axes take `dim=0`; JAX raises there.
        dim = "None" if ndim(call, "input") == 0 else "{dim}"
        return f"jax.nn.softmax(-{tensor}, axis={dim})" if name == "softmin" else f"jax.nn.{name}({tensor}, axis={dim})"

    return to


def _gelu(call: Call) -> str:
    # `jax.nn.gelu` approximates by default, torch does not: the flag must always be written.
    exact = {"none": "approximate=False", "tanh": "approximate=True"}.get(call.literal("approximate"))
    return f"jax.nn.gelu({{input}}, {exact})" if exact else "vendored.gelu({input}, approximate={approximate})"


def _gumbel_softmax(call: Call) -> str:
    return "vendored.gumbel_softmax({logits}, {tau}, hard={hard}, dim={dim}, key={rng})"


SOFTMAX = [
    Op(f"{F}softmax", "input, dim=None, _stacklevel=3, dtype=None", _softmax("softmax")),
    Op(f"{F}log_softmax", "input, dim=None, _stacklevel=3, dtype=None", _softmax("log_softmax")),
    Op(f"{F}softmin", "input, dim=None, _stacklevel=3, dtype=None", _softmax("softmin")),
    *spelled("softmax", "input, dim, dtype=None", _softmax("softmax"), "special.softmax"),
    *spelled("log_softmax", "input, dim, dtype=None", _softmax("log_softmax"), "special.log_softmax"),
    Op(f"{F}gumbel_softmax", "logits, tau=1, hard=False, eps=1e-10, dim=-1", _gumbel_softmax, draws=True),
]

JAX_NN = [
    # Here stand only functions whose gradient agrees with torch also at the kinks.
    *spelled("relu", "input", "jax.nn.relu({input})", inplace=True),
    Op(f"{F}relu", "input, inplace=False", "jax.nn.relu({input})", inplace=True),
    Op(f"{F}silu", "input, inplace=False", "jax.nn.silu({input})"),
    Op(f"{F}mish", "input, inplace=False", "jax.nn.mish({input})"),
    Op(f"{F}gelu", "input, approximate='none'", _gelu),
    Op(f"{F}logsigmoid", "input", "jax.nn.log_sigmoid({input})"),
    Op(f"{F}softsign", "input", "jax.nn.soft_sign({input})"),
    Op(f"{F}tanhshrink", "input", "vendored.tanhshrink({input})"),
    *spelled("selu", "input", "jax.nn.selu({input})", inplace=True),
    Op(f"{F}selu", "input, inplace=False", "jax.nn.selu({input})", inplace=True),
    *spelled("celu", "input, alpha=1.0", "jax.nn.celu({input}, {alpha})", inplace=True),
    Op(f"{F}celu", "input, alpha=1.0, inplace=False", "jax.nn.celu({input}, {alpha})", inplace=True),
    Op(f"{F}elu", "input, alpha=1.0, inplace=False", "jax.nn.elu({input}, {alpha})", inplace=True),
    Op(f"{F}glu", "input, dim=-1", "jax.nn.glu({input}, axis={dim})"),
]

VENDORED = [
    Op(f"{F}relu6", "input, inplace=False", "vendored.relu6({input})"),
    # At 0 torch's gradient is the negative slope; that of `jax.nn.leaky_relu` is 1.
    Op(f"{F}leaky_relu", "input, negative_slope=0.01, inplace=False", "vendored.leaky_relu({input}, {negative_slope})", inplace=True),
    Op(
        # At the bounds torch's gradient is 0; that of `jax.nn.hard_tanh` is 1.
        f"{F}hardtanh",
        "input, min_val=-1.0, max_val=1.0, inplace=False",
        "vendored.hardtanh({input}, min_val={min_val}, max_val={max_val})",
        inplace=True,
    ),
    Op(f"{F}hardsigmoid", "input, inplace=False", "vendored.hardsigmoid({input})"),
    Op(f"{F}hardswish", "input, inplace=False", "vendored.hardswish({input})"),
    # `jax.nn.softplus` has neither `beta` nor the threshold above which torch returns x itself.
    Op(f"{F}softplus", "input, beta=1, threshold=20", "vendored.softplus({input}, beta={beta}, threshold={threshold})"),
    Op(f"{F}softshrink", "input, lambd=0.5", "vendored.softshrink({input}, {lambd})"),
    *spelled("hardshrink", "input, lambd=0.5", "vendored.hardshrink({input}, {lambd})", "nn.functional.hardshrink"),
    *spelled("prelu", "input, weight", "vendored.prelu({input}, {weight})", "nn.functional.prelu"),
    Op(
        f"{F}threshold",
        "input, threshold, value, inplace=False",
        "vendored.threshold({input}, {threshold}, {value})",
        aliases=("torch.threshold",),
    ),
    Op(
        # In evaluation the slope is the mean of the bounds, so that no key must be at hand.
        f"{F}rrelu",
        "input, lower=0.125, upper=1 / 3, training=False",
        lambda call: (
            "vendored.rrelu({input}, lower={lower}, upper={upper})"
            if call.literal("training") is False
            else "vendored.rrelu({input}, lower={lower}, upper={upper}, training={training}, rngs={rngs})"
        ),
        aliases=("torch.rrelu",),
        quiet=(("training", False),),
        draws=True,
    ),
]
