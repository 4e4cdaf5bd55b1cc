"""What an expression of JAX source evaluates to, as far as the text alone says so for sure."""

from __future__ import annotations

from dataclasses import dataclass

ARRAYS_BY_NAME = frozenset(
    """abs absolute acos acosh add amax amin angle append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
    argsort argwhere around array asarray asin asinh astype atan atan2 atanh bincount bitwise_and bitwise_not bitwise_or bitwise_xor
    broadcast_to cbrt ceil clip column_stack concat concatenate conj conjugate convolve copy copysign corrcoef cos cosh count_nonzero cov cross
    cumprod cumsum deg2rad delete diag diagflat diagonal diff divide dot dstack einsum empty empty_like equal exp exp2 expand_dims expm1
    eye flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod full full_like geomspace greater greater_equal heaviside
    hstack hypot imag inner interp isclose isfinite isin isinf isnan kron left_shift less less_equal log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor logspace matmul max maximum mean median min minimum mod moveaxis multiply nan_to_num nanmax
    nanmean nanmin nansum negative nextafter not_equal ones ones_like outer pad permute_dims polyval positive pow power prod quantile rad2deg
    radians ravel real reciprocal remainder repeat reshape right_shift rint roll rot90 round searchsorted sign signbit sin sinc sinh sort sqrt
    square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose tri tril triu true_divide trunc
    vander var vdot vstack zeros zeros_like""".split()
)
"""Functions of `jax.numpy` that give one array, whatever their arguments."""
ARRAYS_IN_NN = frozenset(
    """celu dot_product_attention elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid log_softmax logsumexp mish
    one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus squareplus standardize swish tanh""".split()
)
ARRAYS_IN_LAX = frozenset(
    """abs add broadcast_in_dim clamp concatenate conv_general_dilated convert_element_type cummax cummin cumprod cumsum dot dot_general
    dynamic_slice dynamic_slice_in_dim dynamic_update_slice erf erf_inv erfc exp expand_dims index_in_dim iota broadcasted_iota log logistic max
    min mul pad reduce_window rem reshape rev rsqrt select slice_in_dim sort square sub tanh""".split()
)
ARRAYS_IN_RANDOM = frozenset(
    "bernoulli beta bits categorical cauchy choice exponential gamma gumbel laplace normal permutation poisson randint truncated_normal uniform".split()
)
SEQUENCES_BY_NAME = frozenset("split array_split hsplit vsplit dsplit unstack meshgrid broadcast_arrays nonzero".split())
"""Functions of `jax.numpy` that give a tuple or list of arrays."""
ARRAY_METHODS = frozenset(
    """all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min prod ptp ravel repeat reshape
    round searchsorted sort squeeze std sum swapaxes take trace transpose var view""".split()
)
"""Methods of JAX arrays that give an array."""
UPDATES = frozenset("set add subtract multiply mul divide power min max apply get".split())
"""Methods of `x.at[i]`."""
LAYERS = frozenset("Linear LinearGeneral Einsum Embed Conv ConvTranspose LayerNorm RMSNorm BatchNorm GroupNorm InstanceNorm".split())
"""Layers of `flax.nnx` whose call gives one array."""
VARIABLES = frozenset("Param Variable BatchStat Cache Intermediate".split())
"""Classes of `flax.nnx` that hold an array, which `v[...]` reads and `v[...] = x` replaces."""


@dataclass(frozen=True)
class Kind:
    """What a value is: `array`, `declared` (an annotation says that it is one), `arrays` (a sequence of arrays), `tuple` of `parts`, `variable`,
    `layer` (its call gives an array), or `instance`, `class`, `function` of the definition `key`."""

    name: str
    parts: tuple[Kind | None, ...] = ()
    key: str = ""


ARRAY, DECLARED, ARRAYS, VARIABLE, LAYER = map(Kind, ("array", "declared", "arrays", "variable", "layer"))


def is_array(kind: Kind | None) -> bool:
    """Whether this is an array, or declared as one."""
    return kind is not None and kind.name in ("array", "declared")


def join(first: Kind | None, second: Kind | None) -> Kind | None:
    """What holds of both; None where nothing does."""
    if first == second:
        return first
    if is_array(first) and is_array(second):
        return DECLARED
    if first and second and first.name == second.name == "tuple" and len(first.parts) == len(second.parts):
        return Kind("tuple", tuple(join(a, b) for a, b in zip(first.parts, second.parts, strict=True)))
    return None


def element(kind: Kind | None, index: int, count: int) -> Kind | None:
    """The kind of one of `count` values that a value is unpacked into."""
    if kind is None:
        return None
    if kind.name == "tuple":
        return kind.parts[index] if len(kind.parts) == count else None
    return ARRAY if kind.name in ("array", "arrays") else DECLARED if kind.name == "declared" else None


def of_call(dotted: str) -> Kind | None:
    """What calling a function of JAX or Flax gives, by its full dotted name."""
    module, _, name = dotted.rpartition(".")
    tables = {"jax.numpy": ARRAYS_BY_NAME, "jax.nn": ARRAYS_IN_NN, "jax.lax": ARRAYS_IN_LAX, "jax.random": ARRAYS_IN_RANDOM}
    if name in tables.get(module, ()):
        return ARRAY
    if module == "jax.numpy" and name in SEQUENCES_BY_NAME:
        return ARRAYS
    if module in ("flax.nnx", "nnx") and name in VARIABLES:
        return VARIABLE
    return LAYER if module in ("flax.nnx", "nnx") and name in LAYERS else None
