"""What the test over `module_db` leaves out, and why. Data only."""

from __future__ import annotations

EXCLUDED = {
    "LazyConv1d": "shapes come from the first call; the rewriter writes the layer with the observed shape",
    "LazyConv2d": "as LazyConv1d",
    "LazyConv3d": "as LazyConv1d",
    "LazyConvTranspose1d": "as LazyConv1d",
    "LazyConvTranspose2d": "as LazyConv1d",
    "LazyConvTranspose3d": "as LazyConv1d",
}
"""Entries of `module_db` without a vendored layer."""

CONSTANT_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "SoftMarginLoss": (1,),  # torch does not differentiate it with respect to the target
    "PoissonNLLLoss": (1,),  # torch's gradient of the target is NaN wherever Stirling's term does not apply
}
"""Arguments (by number) that no gradient is asked for."""

GRADIENT_TOLERANCES: dict[str, float] = {
    "Hardsigmoid": 1e-7,  # torch multiplies the gradient by 1/6 in single precision
}
"""Relative tolerance of gradients where torch itself is less exact."""
