"""Modified Bessel functions and the Airy function (https://pytorch.org/docs/stable/special.html).

The approximations are those of the Cephes library, which torch uses too.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from migrate_agent.tools.vendored.bessel import as_floating, ratio

K0_A = (
    1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09, 2.5347910790261494e-07,
    2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615, 0.3442898999246285, -0.5353273932339028,
)  # fmt: skip
K0_B = (
    5.300433772686263e-18, -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16, 5.512055978524319e-16,
    -1.848593377343779e-15, 6.3400764774050706e-15, -2.2275133269916698e-14, 8.032890775363575e-14, -2.9800969231727303e-13,
    1.140340588208475e-12, -4.514597883373944e-12, 1.8559491149547177e-11, -7.957489244477107e-11, 3.577397281400301e-10,
    -1.69753450938906e-09, 8.574034017414225e-09, -4.660489897687948e-08, 2.766813639445015e-07, -1.8317555227191195e-06,
    1.39498137188765e-05, -0.00012849549581627802, 0.0015698838857300533, -0.0314481013119645, 2.4403030820659555,
)  # fmt: skip
K1_A = (
    -7.023863479386288e-18, -2.427449850519366e-15, -6.666901694199329e-13, -1.4114883926335278e-10, -2.213387630734726e-08,
    -2.4334061415659684e-06, -0.0001730288957513052, -0.006975723859639864, -0.12261118082265715, -0.3531559607765449,
    1.5253002273389478,
)  # fmt: skip
K1_B = (
    -5.756744483665017e-18, 1.7940508731475592e-17, -5.689462558442859e-17, 1.838093544366639e-16, -6.057047248373319e-16,
    2.038703165624334e-15, -7.019837090418314e-15, 2.4771544244813043e-14, -8.976705182324994e-14, 3.3484196660784293e-13,
    -1.2891739609510289e-12, 5.13963967348173e-12, -2.1299678384275683e-11, 9.218315187605006e-11, -4.1903547593418965e-10,
    2.015049755197033e-09, -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
    -1.936197974166083e-05, 0.00019521551847135162, -0.002857816859622779, 0.10392373657681724, 2.7206261904844427,
)  # fmt: skip
AIRY_AN = (
    0.346538101525629, 12.007595273964581, 76.27960536152345, 168.08922493463058, 159.75639135016442, 70.53609068404442,
    14.026469116338967, 1.0,
)  # fmt: skip
AIRY_AD = (
    0.5675945326387702, 14.75625625848472, 84.51389701414746, 177.31808814540045, 164.2346928715297, 71.47784008255756,
    14.095913560783403, 1.0,
)  # fmt: skip
AIRY_AFN = (
    -0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191, -0.04919001326095003, -0.004062659235948854,
    -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08,
)  # fmt: skip
AIRY_AFD = (
    13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596, 1.4752914677166642, 0.11568717379518804,
    0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07,
)  # fmt: skip
AIRY_AGN = (
    0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502, 0.35146565610554764, 0.06338889196289255,
    0.005858041130483885, 0.000282851600836737, 6.98793669997261e-06, 8.117892395543892e-08, 3.415517847659236e-10,
)  # fmt: skip
AIRY_AGD = (
    9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755, 0.9542936116189619, 0.08645808263523921,
    0.004126565238242226, 0.00010125908511650914, 1.1716673321441352e-06, 4.9183457006293e-09,
)  # fmt: skip


def chebyshev_sum(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    """A Chebyshev series over [-2, 2] by Clenshaw's recurrence, highest order first."""
    last, before = jnp.full_like(x, coefficients[0]), jnp.zeros_like(x)
    older = before
    for coefficient in coefficients[1:]:
        older, before = before, last
        last = x * before - older + coefficient
    return (last - older) / 2


def modified_second(x: jax.Array, inner: jax.Array, outer: jax.Array) -> jax.Array:
    """The second kind from its two ranges: inf at 0, NaN below."""
    inside = jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, inner))
    return jnp.where(x <= 2, inside, outer)


def scaled_modified_bessel_k0(x: jax.Array) -> jax.Array:
    """Second kind, order 0, times exp(x) (https://pytorch.org/docs/stable/special.html#torch.special.scaled_modified_bessel_k0)."""
    x = as_floating(x)
    near, far = jnp.where((x > 0) & (x <= 2), x, 1.0), jnp.where(x > 2, x, 3.0)
    inner = chebyshev_sum(K0_A, near * near - 2) - jnp.log(0.5 * near) * jax.scipy.special.i0(near)
    return modified_second(x, inner * jnp.exp(near), chebyshev_sum(K0_B, 8 / far - 2) / jnp.sqrt(far))


def modified_bessel_k0(x: jax.Array) -> jax.Array:
    """Second kind, order 0 (https://pytorch.org/docs/stable/special.html#torch.special.modified_bessel_k0)."""
    return scaled_modified_bessel_k0(x) * jnp.exp(-as_floating(x))


def scaled_modified_bessel_k1(x: jax.Array) -> jax.Array:
    """Second kind, order 1, times exp(x) (https://pytorch.org/docs/stable/special.html#torch.special.scaled_modified_bessel_k1)."""
    x = as_floating(x)
    near, far = jnp.where((x > 0) & (x <= 2), x, 1.0), jnp.where(x > 2, x, 3.0)
    inner = chebyshev_sum(K1_A, near * near - 2) / near + jnp.log(0.5 * near) * jax.scipy.special.i1(near)
    return modified_second(x, inner * jnp.exp(near), chebyshev_sum(K1_B, 8 / far - 2) / jnp.sqrt(far))


def modified_bessel_k1(x: jax.Array) -> jax.Array:
    """Second kind, order 1 (https://pytorch.org/docs/stable/special.html#torch.special.modified_bessel_k1)."""
    return scaled_modified_bessel_k1(x) * jnp.exp(-as_floating(x))


def airy_series(x: jax.Array) -> jax.Array:
    """The Airy function by its power series, for |x| up to 2.09; as many terms as the precision asks for."""
    cube = x * x * x
    State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]

    def unfinished(state: State) -> jax.Array:
        return jnp.any(state[0] + state[2] != state[0])

    def step(state: State) -> State:
        f, g, m, n, k = state
        m = m * cube / ((k + 1) * (k + 2))
        n = n * cube / ((k + 2) * (k + 3))
        return f + m, g + n, m, n, k + 3

    start = (jnp.ones_like(x), x, jnp.ones_like(x), x, jnp.ones((), x.dtype))
    f, g, *_ = lax.while_loop(unfinished, step, start)
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g


def airy_ai(x: jax.Array) -> jax.Array:
    """The Airy function Ai; NaN at infinity, as torch has it (https://pytorch.org/docs/stable/special.html#torch.special.airy_ai)."""
    x = as_floating(x)
    left, right = jnp.where(x < -2.09, -x, 3.0), jnp.where((x >= 2.09) & (x <= 103.892), x, 3.0)
    phase = 2 * left * jnp.sqrt(left) / 3
    z = 1 / phase
    sine, cosine = jnp.sin(phase + jnp.pi / 4), jnp.cos(phase + jnp.pi / 4)
    waves = sine * (1 + z * z * ratio(AIRY_AFN, AIRY_AFD, z * z)) - cosine * z * ratio(AIRY_AGN, AIRY_AGD, z * z)
    zeta = 2 * right * jnp.sqrt(right) / 3
    decay = ratio(AIRY_AN, AIRY_AD, 1 / zeta) / (2 * jnp.sqrt(jnp.sqrt(right)) * jnp.exp(zeta))
    series = airy_series(jnp.where((x >= -2.09) & (x <= 2.09), x, 0.0))
    outer = jnp.pi**-0.5 * jnp.where(x < 0, waves / jnp.sqrt(jnp.sqrt(left)), jnp.where(x > 103.892, 0.0, decay))
    return jnp.where(jnp.isinf(x), jnp.nan, jnp.where((x >= -2.09) & (x < 2.09), series, outer))
