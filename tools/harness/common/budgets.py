"""How much the verifier tries, each number with its reason: seeds, steps, sizes, searches.

A number here decides which inputs are compared and what that costs. What an error may come to is in `tolerances`.
"""

from __future__ import annotations

from typing import Final

NOISE_RUNS: Final = 2
"""Perturbed runs a scenario. The RMS of the change averages over all elements, so two runs estimate it well."""

NOISE_FEW: Final = 8
"""A leaf of fewer elements is perturbed so often that there are as many changes: in a sum or two, roundings cancel by chance."""

NOISE_SECONDS: Final = 60.0
"""Runs with native rounding end after this long for one scenario, once `tolerances.NOISE_RUNS_NATIVE` of them have been."""

SEARCH_STARTS: Final = 2
SEARCH_STEPS: Final = 3
SEARCH_SMALL: Final = 2_000_000
"""Units with more numbers than this in state and input are searched from one start only."""
SEARCH_STEP: Final = 0.25
SEARCH_DECAY: Final = 0.6
"""The first step is this share of the domain's width, each further one this share of the last."""
SEARCH_REACH: Final = 8.0
"""Without a declared domain, inputs may lie this many standard deviations around what was recorded."""

SEEDS: Final = 3
SEED_STRIDE: Final = 10_007
"""Verifications with other seeds (`Options.seed`) draw from streams that are this far apart."""
STEPS: Final = 5
INITS: Final = (8, 64, 512)
INIT_ELEMENTS: Final = 600_000
INIT_TENSORS: Final = 4_000
"""Constructions for the initialisation test: as many as make this many elements altogether, but 8 at least, and 64 to 512 at most, as many as
make so many tensors. A bias of 8 elements needs 64 for the test to tell uniform from normal of another width, nine numbers need
hundreds for a width that is off by a tenth; a large model has elements enough."""
INIT_SMALL: Final = 12_288
INIT_SMALL_TENSORS: Final = 20_000
"""Random parameters of which those constructions have fewer elements are looked at in further ones, up to so many elements, 512 constructions
and tensors: a class token of 24 numbers in a model of thousands needs hundreds, too, for a width that is off by a tenth."""
INIT_TOGETHER: Final = 20_000_000
"""Elements of constructions that are made by one call of a compiled program, since they are in memory together."""
INIT_SAMPLE: Final = 4096
"""Elements of a parameter that are compared, per construction."""

INIT_CONFIGURED: Final = 24
"""Initial values of other configurations are compared of the first, and of further ones while they have no more tensors altogether: each is a
compilation."""


RELATIVE_STEP: Final = 5e-3
"""SGD's learning rate is chosen so that the first step moves the parameters by this fraction of their norm: a fixed one diverges for some
units, and after divergence two right programs differ as well."""
LEARNING_RATE_ADAMW: Final = 1e-3
MOMENTUM: Final = 0.9
WEIGHT_DECAY: Final = 0.01
BETAS: Final = (0.9, 0.999)
ADAM_EPSILON: Final = 1e-8

LARGE: Final = 1e3
"""Edge scenario: inputs scaled by this, far past every clamp and saturation in ordinary models, yet without overflow."""

VANISHING: Final = 1e-150
LARGE_STEPS: Final = (1.0, 0.25, 1 / 16, 1 / 64)
"""Gradients at large inputs are compared where the original divides by no number that is below the first and not zero (nor takes its root or
logarithm, whose gradients do), and its gradients are finite: what is finite in one right formula overflows in another then. Else inputs are tried
that are smaller by these factors. JAX's own derivative of `x / y` has `y ** -2`, which overflows below 1e-154."""

REACH: Final = (10.0, LARGE**2)
REACH_FACTOR: Final = 10.0
REACH_STEP: Final = 1.04
"""Numbers of this size that the original computes with and that decide no output, as what masked scores are filled with, are reached by
scaling the inputs, up to `LARGE`: a score is of the second degree in them. The scale is looked for in steps at which one that is so many times
as large decides, and then so closely that one that is a tenth off does."""
TILT: Final = 1e-3
"""Uniform draws are also tried within this share of either end of their range: a rate of so much, or an integer of so few, decides there."""
MULTIPLES: Final = 2
"""Up to so many sizes at and past a multiple of a number of the modules are tried, where the code takes remainders."""
EMPTIED: Final = 2
"""Up to so many lists among the arguments of a call are also empty, each alone."""
LEVELS: Final = 32
"""Into so many parts the range of uniform draws is cut to see where an output jumps."""
COMPARED_WITH: Final = 2
"""Up to so many numbers that uniform draws are compared with are tried at either side."""
COMPARED: Final = 1e-5
"""How far from such a number either side is."""
JUMP: Final = 1e-3
"""By so much of its largest value an output must differ between two draws that are as good as equal."""
DROPPED: Final = 8
"""Up to so many masks of dropout are each made zero alone; of more, those of one size and rate together. Up to so many kinds."""
MASKS: Final = 512
REACH_NUMBERS: Final = 2
REACH_ELEMENTS: Final = 200_000
"""At most so many such numbers are looked for, in units with no more elements in state and input."""

LABELS: Final = 6
LAST_LABELS: Final = 12
"""How many whole numbers of the original's code are tried in each input of integers, and how many as the number of rows of a table, of which an
integer is the last."""

COMPILING_THREADS: Final = 2
"""How many programs of the candidate are compiled at the same time."""

MAX_SETTINGS: Final = 24
"""Objects of settings with more fields than this are left as they are: most would have nothing to do with the unit."""

ZEROED: Final = 4
"""Gradients are also taken where the parameters of one module are zero, of so many modules, and of all but one: what follows is at its kink."""

SPECIAL_STATES: Final = 2
"""Up to so many states with which the original gives NaN or infinities; each is one more run of a program that is there."""

FURTHER: Final = 4
FURTHER_ELEMENTS: Final = 20_000
"""Gradients are taken on so many further inputs, where parameters and inputs have no more elements than this together: more elements would hit a
narrow range by themselves."""

BEYOND: Final = 4
BEYOND_ELEMENTS: Final = 2_000_000
"""Sizes of so many axes go beyond so many numbers that a rewrite compares sizes with, in inputs of so many elements."""

LONG: Final = 512
LONG_ELEMENTS: Final = 300_000
LONG_GROWTH: Final = 4
LONG_TRIES: Final = 24
LONG_SIZES: Final = 2
LONG_OPERATORS: Final = 600
LONG_SECONDS: Final = 1.0
"""Sizes of inputs go beyond whole numbers of the code up to this one, in inputs of so many elements (of a large unit so many times as many as the
example has); so many are tried, and compared. Loops over a longer axis must not run more operators than this (where the example does not): they are
compiled one by one. The original may compute so many seconds on them: a gradient takes a compiled program in float64 twenty times as long."""

REFUSALS: Final = 6
REFUSAL_TRIES: Final = 48
"""So many places that raise are looked for, in so many trials, each a construction or a forward pass that usually ends early."""
REFUSED_INPUTS: Final = 16
REFUSED_SIZE: Final = 64
"""What a constructor refuses is called with so many inputs of sizes up to this one, where a rewrite constructs; nothing is compiled."""

SMALL: Final = 3
SMALL_TRIES: Final = 12
"""So many numbers of the arguments are made smaller than the sizes of the inputs, of so many that are tried."""

CONFIGURATION_ELEMENTS: Final = 300_000
CONFIGURATION_TRIES: Final = 24
CONFIGURATION_OPERATORS: Final = 30_000
"""Units with at most so many elements in state and input are compared in other configurations too, each found in at most so many tries, and
in so few that about so many operators run."""

PART_MODES: Final = 4
BESIDE: Final = 4
ATTRIBUTES: Final = 8
ATTRIBUTE_CALLS: Final = 3
"""So many submodules, or all norms, are each set to the other mode alone, and with so many groups of others that a port may have one part for. So many attributes
are looked at that may be set after construction, and so many calls show them, where one hides another."""

QUIET: Final = 8
QUIET_TIMES: Final = (16.0, 1 / 16, 1000.0, 1 / 1000)
"""So many numbers that are no whole ones are changed by themselves; one of which half has no effect is made so many times as large, until it has one."""

APART: Final = 3
"""So many arguments with which other code runs are changed alone, at most."""
SIZED: Final = 2
SIZED_TRIES: Final = 6
ZEROS: Final = 2
ZERO_TRIES: Final = 12
"""So many numbers that are sizes of the inputs are changed together with these, each in so many tries; so many ints are zero, of so many."""
TIED_NUMBERS: Final = 6
TIED: Final = 1
"""So many ints are looked at for sizes of the inputs that a relation ties to them, and so many configurations with both changed compared."""
END_TRIES: Final = 6
ENDS: Final = 3
SIZE_TRIES: Final = 6
FEW_ROWS: Final = 1
STARTS: Final = 2
"""So many floats are tried at the ends of their range, and so many configurations with them compared; so many ints at one and beyond all sizes, and so
many configurations in which a part of the state has a single row or none; initial values are compared with so many ints at one."""
FAR: Final = 1000
"""An int of a function is also this, alone: so many steps a schedule has, where an example has a few."""
FAR_OPERATORS: Final = 200
"""Operators that a function may run with such an int, at most: a loop over so many steps is left out."""
STRINGS: Final = 4
"""So many other configurations in which one string is another, at most."""

MAX_EXAMPLES: Final = 4
"""Examples of a unit that are run, first come first served; only the first gets all seeds."""

MAX_BRIEF: Final = 12
"""Further examples that reach code that the others do not: of each only one call in each mode is compared, in float64."""

MAX_METHODS: Final = 12
METHOD_EXAMPLES: Final = 2
METHOD_CONSTRUCTIONS: Final = 3
METHOD_SEEDS: Final = 2
METHOD_CHANGES: Final = 3
"""Calls of so many methods beside them, of each up to so many examples with one constructor call, and with so many constructor calls, with so many
seeds and so many other arguments: each of these costs a compilation."""

ORDER_TRIES: Final = 24
ORDERED: Final = 4
"""So many calls are compared after one of another method, of so many that are tried."""

MAX_SHAPES: Final = 4
"""Shape variants per example, an empty batch aside: each costs one compilation."""

MAX_ONES: Final = 2
"""Variants beside these in which one axis alone has size 1."""

MAX_ALONE: Final = 4
ALONE_TRIES: Final = 12
"""Variants in which one input alone has another size, which the example has elsewhere too, or all others have; and in how many tries they are found."""

TIED_SIZES: Final = 4
TIED_TRIES: Final = 48
MAX_TIED: Final = 3
TIED_ELEMENTS: Final = 300_000
TIED_GROWTH: Final = 4
"""So many sizes that are refused alone are tried together, in so many calls, most of which end early; so many are compared, each one compilation. Inputs of
so many elements at most, or so many times as many as the example has."""

RATE_DIGITS: Final = 5
"""Dropout rates are compared to this many digits (float32 has seven)."""
