"""Every number the verifier judges by, with its reason. Nothing else in the project may widen one of them.

How much is tried before it judges is in `budgets`.

Errors are relative to the root mean square (RMS) of the reference leaf unless said otherwise.
"""

from __future__ import annotations

from typing import Final

EPS64: Final = 2.0**-52
EPS32: Final = 2.0**-23

FLOOR_FP64: Final = 1e-11
"""Two right float64 programs differ by 1e-16 … 1e-14 (order of sums, libm against XLA's own functions); the mildest wrong rewrites that
we know (epsilon 1e-6 for 1e-5 on benign inputs, tanh for exact GELU) differ by 1e-6 … 1e-4. 1e-11 is three orders from the first."""

FLOOR_GRADIENT_FP64: Final = 1e-10
"""Gradients add one more pass of rounding and are summed over the batch; still four orders under the mildest wrong rewrite."""

NOISE_FACTOR: Final = 64.0
"""How far a right program may lie from torch's answer, in units of the change that one-ulp perturbations of inputs, parameters and every
intermediate result cause in torch's own answer. Other sums of n terms add √n; 64 covers n = 4096 with two runs' sampling error."""

CAP_FP64: Final = 1e-3
"""However ill-conditioned a unit is, an error above this is wrong."""

GLOBAL_SCALE: Final = 1e-4
"""Gradients that vanish by mathematics (a bias before batch norm or softmax) are rounding noise. They are compared on the scale of
this fraction of the largest gradient, so that noise is not divided by noise: with the floor above, 45 ulp of that, as sums of a few thousand
terms that cancel come to. Outputs at large inputs, where a gate may be all but shut, on that of this fraction of what they usually are."""

WORST_FACTOR: Final = 32.0
"""A single element may be this much further off than the RMS limit, scaled by its own size: five sigma of a heavy tail."""

EPS_NATIVE: Final = {"float32": EPS32, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""The distance from 1 to the next number, by the narrowest float dtype that torch's own run uses."""

FP32_FACTOR: Final = 2.0
"""float32: the candidate's error against torch's float64 answer may be twice torch's own float32 error …"""

FLOOR_FP32: Final = 16 * EPS32
"""… plus 2e-6: torch's fused kernels are sometimes exact where XLA rounds, and 16 ulp is what ten operations of rounding come to."""

FLOOR_TERM: Final = 1 / 32
MOST_TERMS: Final = 2**14
"""… or 1/32 ulp for each number of the inputs that comes to one of an output (16,384 at most): XLA adds the terms of a total one after the other,
and the roundings of equal terms have one direction (2,048 of them: 52 ulp)."""
FLOOR_EQUAL_TERM: Final = 1 / 8
"""… or 1/8 ulp at the edges, where all terms may be equal: each is off by up to half an ulp of the sum so far, a quarter of an ulp of the total on
average (2,048 logarithms of 0.5: 85 ulp)."""

FAR_OFF: Final = 1e-2
"""At the edges: where torch's own float32 answer is further off, nothing is judged by it."""

NOISE_AT_EDGES: Final = 0.1
"""… nor, of errors up to its size, where rounding in float32 may move it by this much. An instance norm of a constant image divides what rounding
left of it."""

OUTLIERS: Final = 0.01
"""In float16: the share of elements, one at least, that may be lost where each is 1,024 times as large as others usually are."""

LOST_BESIDE: Final = 0.1
LARGE_BESIDE: Final = 64.0
"""… or where torch's own answer is infinite at ten times as many, and each is this many times as large as others usually are."""

FLOOR_NARROW: Final = 0.5
NOISE_FACTOR_NARROW: Final = 0.5
"""… in bfloat16 and float16 half an ulp, or half of the noise scaled to them (which is what rounding every single result would do): torch's
kernels keep sums in float32 and round once, XLA rounds after some of the steps. Much of the noise is in torch's own error already."""

NOISE_FACTOR_FP32: Final = 8.0
"""… plus eight times the float64 noise scaled to float32, which is what conditioning alone permits."""

NOISE_RUNS_NATIVE: Final = 4
"""Runs with noise of that size, of which the largest change counts: where rounding crosses a kink, it does so in some runs and not in others."""

NOISE_RUNS_GRADIENT: Final = 16
"""… of gradients: the kinks behind one layer are few, and a run crosses one of them seldom. Of 20 further runs of a network of 17 blocks on a batch of
two, 12 lay beyond twice the largest change of the first 4, and none beyond 0.6 of twice that of the first 16."""

KINK_FACTOR: Final = 2.0
"""A native gradient, and a loss of a native training curve, may be off by twice that change: two programs may each cross a kink that the other does not."""

PLAIN_BRANCH_FP32: Final = 1e-5
"""Branches by platform without a kernel, beside each other in float32: what is not the same formula, such as gelu by tanh, is 5e-5 off and more."""

TPU_BRANCH_FP32: Final = 1e-4
"""A kernel in float32 beside plain JAX in float32: both round, and sums run by blocks; right ones differ by 1e-7 … 1e-6."""

RECORDED: Final = {"float32": (2e-5, 2e-3), "float16": (2e-3, 2e-2), "bfloat16": (1.5e-2, 0.1)}
"""Relative RMS errors beside what a kernel gave where it was recorded: up to the first it is the kernel's result (sums in another order come to a few ulp),
beyond the second it is not. Between lies what a GPU may have rounded (TF32 has ten bits): neither right nor wrong."""

KINK_SHIFT: Final = 1e-7
KINK_CHANGE: Final = 1e-3
KINK_SCALE: Final = 1e-7
"""At the edges, a gradient that changes by more than a thousandth of its size where the inputs move by 1e-7 of theirs has a jump there
(`relu` at zero, `max` of equal values): frameworks choose among its values by convention, so that only its being finite is judged.
Sizes are at least this fraction of the largest gradient's."""

FLOOR_GRADIENT_FP32: Final = 1e-3
FLOOR_GRADIENT_NARROW: Final = 16.0
GLOBAL_SCALE_NATIVE: Final = 1e-3
"""Native gradients: sums over a batch in another order, and cancellation, make right ones differ by 1e-6 … 1e-4; a branch that only native
dtypes take is off by per cents. (Narrow: in ulp.) On the scale of this fraction of the largest gradient, as `GLOBAL_SCALE`."""

VANISHING: Final = 1e-9
GLOBAL_SCALE_VANISHING: Final = 1e-2
"""A gradient that is zero by its formula (a bias before batch norm) is in float64 below this fraction of the largest one. Natively it is rounding
alone, by ten to a hundred ulp of the sums that cancel in it, and counts on this scale."""

FLOOR_GRADIENT_NARROWED: Final = 1e-5
"""Native gradients of a program that rounds to a narrower dtype than torch, where right ones keep to float32's own errors: one cast of a gradient to
bfloat16 is off by 1.6e-3, and by less where it is one summand of several."""

SAME_CALL: Final = {
    "values": (NOISE_FACTOR * FLOOR_FP64, FLOOR_FP64),
    "gradients": (NOISE_FACTOR * FLOOR_GRADIENT_FP64, FLOOR_GRADIENT_FP64),
    "native": (1e-4,),
    "narrow": (2 * 2.0**-7,),
}
"""Where the place of a failure is looked for: the calls of a submodule count as equal below these, the first that finds a place."""

SEARCH_AGREE: Final = 1e-13
"""Programs that differ by less agree but for rounding, whose gradient says nothing: then larger outputs are looked for."""

DROWNED: Final = CAP_FP64 / NOISE_FACTOR
"""An output of vanishing inputs of which rounding noise is a larger share is not judged there: the limit would be cut off below the noise."""

TIPPED: Final = (0.05, 0.005)
"""Share of an integer or boolean output that rounding may tip over natively, in narrow dtypes and in float32. In float64 none may."""

INIT_ALPHA: Final = 1e-7
"""Probability that a right unit is refused by the initialisation test, over all its parameters together (Bonferroni)."""

INIT_MOMENT_ELEMENTS: Final = 4
INIT_MOMENT_SHARE: Final = 1e-2
"""Means and mean squares (in units of torch's deviation and variance) are tested for parameters of so many elements, where they differ by
more than this: rounding alone differs in what each construction normalises, as orthogonal matrices are."""

INIT_BLOCKS: Final = 4
INIT_ELEMENTS_BLOCK: Final = 20_000
"""Slices along each axis whose values are compared on their own, and how many values of each: a scale that belongs to another third of a
fused projection does not show in the whole."""
INIT_DISTINCT: Final = 0.9
"""A parameter's values may be distinct in this share of what torch's are: tiled or broadcast ones are not."""
INIT_REPEATED: Final = 0.05
"""The share of constructions that may have fewer distinct values, by chance."""
INIT_TILED: Final = 0.99
"""Where fewer are distinct, copies count once in the test of the distribution (they are no draws of their own), unless fewer than these are
distinct over all constructions too: those are discrete draws."""
INIT_SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
INIT_DEPENDENT: Final = 0.95
"""Elements of a parameter count as dependent where the shares of them below these quantiles vary more between torch's constructions than
those of independent elements do with this probability."""
INIT_COPIED: Final = 64
INIT_COPIED_WITHIN: Final = 1e-3
INIT_COPIED_LEAST: Final = 8
"""Two parameters whose standardised first values are within this, this many of them in each of eight constructions (INITS), were drawn with one
key. Fewer free values than INIT_COPIED_LEAST may be the same by chance, and are not judged."""
INIT_GRAM_SIGMAS: Final = 12.0
INIT_GRAM_SHARE: Final = 1e-2
"""Mean orthogonality of rows over eight constructions: Student's t with 14 degrees of freedom is past 12 with probability 1e-8."""

INIT_FIXED: Final = 1e-4
INIT_NOT_FIXED: Final = 1e-2
INIT_PARTS: Final = 65_536
"""Lengths (squared) and sums along axes that vary by less than the one, relative to torch's mean square, are fixed: normalised values.
Those that vary by more than the other are not: the squares of 4,096 independent values do by 1.4e-2 and more. So many elements are looked at."""

INIT_CONSTANT: Final = 1e-5
"""Parameters that torch initialises to the same values each time must be equal to this, relative to their largest value (float32 both)."""

CURVE_FP32: Final = 5e-3
CURVE_NARROW: Final = 2.0
"""Where torch trains in bfloat16 or float16: this many ulp instead, plus twice torch's own error against its float64 curve."""
CURVE_CAP_FP32: Final = 5e-2
CURVE_CAP_NARROW: Final = 16.0
"""What conditioning may widen the curves' limits to, at most (narrow: in ulp). Beyond, two right programs differ as well, and the comparison
ends; the first loss, before any step, is always compared."""


def native_noise(narrow: str) -> float:
    """The rounding noise, as a share of each result, whose effect on native gradients and curves is allowed: of the narrow dtype, or of float32 where ""."""
    return (NOISE_FACTOR_NARROW if narrow else NOISE_FACTOR_FP32) * EPS_NATIVE[narrow or "float32"]


MAX_LITERAL_ITEMS: Final = 512
MAX_LITERAL_CHARACTERS: Final = 4096
"""A literal with more items or characters than this is data, not code."""

FRESH_CALLS: Final = 8
FRESH_ALPHA: Final = 1e-9
"""Dropout must not repeat itself in this many further calls, where right ones would all repeat with at most this probability."""

SLOPE_STEP: Final = 1e-4
"""How far a point is moved along the normalised gradient to see the loss's slope, in float64."""

SLOPE: Final = 0.01
"""Relative distance from the slope up to which a gradient is one: kinks near the point change a slope a little, other masks change it much."""
