"""Linear layers and reshapes (https://docs.pytorch.org/docs/stable/nn.html#linear-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Call, Layer

KERNEL = {"weight": "{self}.kernel", "bias": "{self}.bias"}
OWN = {"weight": "{self}.weight", "bias": "{self}.bias"}


def plain_linear(call: Call) -> str:
    """`nnx.Linear` with torch's initial values; "" where it is to have a dtype, or a size that nobody would compute twice."""
    if call.given("dtype") or not call.repeats("in_features"):
        return ""
    bias = call.literal("bias")
    use_bias = "" if bias is True else "use_bias={bias}, "
    bias_init = "" if bias is False else "bias_init=vendored.fan_in_bias({in_features}), "
    return f"nnx.Linear({{in_features}}, {{out_features}}, {use_bias}kernel_init=vendored.fan_in_kernel, {bias_init}rngs={{rngs}})"


ROWS = (
    Layer(
        "torch.nn.Linear",
        "in_features, out_features, bias=True, device=None, dtype=None",
        "Linear",
        params=KERNEL,
        samples=("3, 5",),
        plain=plain_linear,
        plain_class="nnx.Linear",
        tested_as="nnx.Linear",
        plain_reads={"weight": "{self}.kernel[...].T"},
        not_plain=("reset_parameters",),
    ),
    Layer(
        "torch.nn.Bilinear",
        "in1_features, in2_features, out_features, bias=True, device=None, dtype=None",
        "Bilinear",
        params=OWN,
        samples=("3, 4, 5",),
    ),
    Layer("torch.nn.Identity", "*args, **kwargs", "Identity", samples=("",), plain=lambda call: "nnx.identity"),
    Layer("torch.nn.Flatten", "start_dim=1, end_dim=-1", "Flatten", samples=("",)),
    Layer("torch.nn.Unflatten", "dim, unflattened_size", "Unflatten", samples=("1, (2, 3)",)),
)
