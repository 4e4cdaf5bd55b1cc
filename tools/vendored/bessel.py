"""Bessel functions of the first and second kind (https://pytorch.org/docs/stable/special.html).

The rational approximations are those of the Cephes library, which torch uses too.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

J0_PP = (
    0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687, 8.74716500199817, 5.303240382353949, 1.0,
)  # fmt: skip
J0_PQ = (
    0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171, 8.761908832370695, 5.306052882353947, 1.0,
)  # fmt: skip
J0_QP = (
    -0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683, -177.68116798048806, -147.07750515495118,
    -51.41053267665993, -6.050143506007285,
)  # fmt: skip
J0_QQ = (
    64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525, 5930.727011873169, 2062.0933166032783, 242.0057402402914,
)  # fmt: skip
J0_RP = (
    -4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0,
)  # fmt: skip
J0_RQ = (
    499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683, 2112775201154.892, 310518229857422.56,
    3.1812195594320496e+16, 1.7108629408104315e+18,
)  # fmt: skip
J1_PP = (
    0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076, 8.424045901417724, 5.214515986823615, 1.0,
)  # fmt: skip
J1_PQ = (
    0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015, 8.399855543276042, 5.209828486823619, 1.0,
)  # fmt: skip
J1_QP = (
    0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508, 710.8563049989261, 597.4896124006136,
    211.68875710057213, 25.207020585802372,
)  # fmt: skip
J1_QQ = (
    74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562, 7997.041604473507, 2826.1927851763908,
    336.0936078106983,
)  # fmt: skip
J1_RP = (
    -899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0,
)  # fmt: skip
J1_RQ = (
    620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925, 4749141220799.914, 784369607876235.9,
    8.952223361846274e+16, 5.322786203326801e+18,
)  # fmt: skip
Y0_YP = (
    15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7, -3466283033847297.0,
    4.4273326857256984e+16, -1.8495080043698668e+16,
)  # fmt: skip
Y0_YQ = (
    1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935, 20297961275010.555, 3171577528429750.5,
    2.5059625617265306e+17,
)  # fmt: skip
Y1_YP = (
    1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0, 2.024394757135949e+17, -7.788771962659501e+17,
)  # fmt: skip
Y1_YQ = (
    594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617, 3882312774962.3857, 620557727146953.8,
    6.871410873553005e+16, 3.9727060811656064e+18,
)  # fmt: skip


def as_floating(x: jax.Array) -> jax.Array:
    """`x` in floating point: integers and bools in the default precision."""
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(float)


def ratio(numerator: Sequence[float], denominator: Sequence[float], x: jax.Array) -> jax.Array:
    """The quotient of two polynomials, highest powers first."""
    return jnp.polyval(jnp.array(numerator, x.dtype), x) / jnp.polyval(jnp.array(denominator, x.dtype), x)


def bessel_far(x: jax.Array, tables: Sequence[Sequence[float]], phase: float) -> tuple[jax.Array, jax.Array]:
    """The asymptotic forms of the first and the second kind, for x > 5."""
    inverse = 25 / (x * x)
    p, q = ratio(tables[0], tables[1], inverse), 5 / x * ratio(tables[2], tables[3], inverse)
    sine, cosine = jnp.sin(x - phase), jnp.cos(x - phase)
    scale = (2 / jnp.pi) ** 0.5 / jnp.sqrt(x)
    return (p * cosine - q * sine) * scale, (p * sine + q * cosine) * scale


def bessel_j0(x: jax.Array) -> jax.Array:
    """First kind, order 0 (https://pytorch.org/docs/stable/special.html#torch.special.bessel_j0)."""
    x = jnp.abs(as_floating(x))
    near, far = jnp.where(x <= 5, x, 1.0), jnp.where(x <= 5, 6.0, x)
    square = near * near
    middle = (square - 5.78318596294678452118) * (square - 30.4712623436620863991) * ratio(J0_RP, J0_RQ, square)
    inner = jnp.where(near < 1e-5, 1 - square / 4, middle)
    return jnp.where(x <= 5, inner, bessel_far(far, (J0_PP, J0_PQ, J0_QP, J0_QQ), jnp.pi / 4)[0])


def bessel_j1(x: jax.Array) -> jax.Array:
    """First kind, order 1 (https://pytorch.org/docs/stable/special.html#torch.special.bessel_j1)."""
    signed = as_floating(x)
    x = jnp.abs(signed)
    near, far = jnp.where(x <= 5, x, 1.0), jnp.where(x <= 5, 6.0, x)
    square = near * near
    inner = ratio(J1_RP, J1_RQ, square) * near * (square - 14.6819706421238932572) * (square - 49.2184563216946036703)
    result = jnp.where(x <= 5, inner, bessel_far(far, (J1_PP, J1_PQ, J1_QP, J1_QQ), 3 * jnp.pi / 4)[0])
    return jnp.where(signed < 0, -result, result)


def bessel_second(x: jax.Array, inner: jax.Array, outer: jax.Array) -> jax.Array:
    """The second kind from its two ranges: -inf at 0, NaN below."""
    inside = jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, inner))
    return jnp.where(x <= 5, inside, outer)


def bessel_y0(x: jax.Array) -> jax.Array:
    """Second kind, order 0 (https://pytorch.org/docs/stable/special.html#torch.special.bessel_y0)."""
    x = as_floating(x)
    near, far = jnp.where((x > 0) & (x <= 5), x, 1.0), jnp.where(x > 5, x, 6.0)
    inner = ratio(Y0_YP, Y0_YQ, near * near) + 2 / jnp.pi * jnp.log(near) * bessel_j0(near)
    return bessel_second(x, inner, bessel_far(far, (J0_PP, J0_PQ, J0_QP, J0_QQ), jnp.pi / 4)[1])


def bessel_y1(x: jax.Array) -> jax.Array:
    """Second kind, order 1 (https://pytorch.org/docs/stable/special.html#torch.special.bessel_y1)."""
    x = as_floating(x)
    near, far = jnp.where((x > 0) & (x <= 5), x, 1.0), jnp.where(x > 5, x, 6.0)
    inner = near * ratio(Y1_YP, Y1_YQ, near * near) + 2 / jnp.pi * (bessel_j1(near) * jnp.log(near) - 1 / near)
    return bessel_second(x, inner, bessel_far(far, (J1_PP, J1_PQ, J1_QP, J1_QQ), 3 * jnp.pi / 4)[1])


def spherical_bessel_j0(x: jax.Array) -> jax.Array:
    """sin(x) / x, by its series near 0 (https://pytorch.org/docs/stable/special.html#torch.special.spherical_bessel_j0)."""
    x = as_floating(x)
    square = jnp.where(jnp.abs(x) < 0.5, x * x, 0.0)
    factorials = (6227020800, -39916800, 362880, -5040, 120, -6, 1)
    series = jnp.polyval(jnp.array([1 / f for f in factorials], x.dtype), square)
    far = jnp.where((jnp.abs(x) < 0.5) | jnp.isinf(x), 1.0, x)
    return jnp.where(jnp.isinf(x), 0.0, jnp.where(jnp.abs(x) < 0.5, series, jnp.sin(far) / far))
