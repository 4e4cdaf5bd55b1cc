"""Convolutions that the verifier lowers in a form of its own give what jax's lowering gives."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from migrate_agent.tools.harness.jax_side.convolution_phases import Group, axes_of, stays_spread
from migrate_agent.tools.harness.jax_side.convolutions import is_settled, plainer

NUMBERS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("NCHW", "HWOI", "NHWC")]
WINDOWS: list[dict[str, Any]] = [
    {"padding": [(0, 0), (0, 0)], "window_strides": (1, 1)},
    {"padding": [(2, 1), (0, 3)], "window_strides": (2, 1)},
    {"padding": [(-1, 2), (1, -1)], "window_strides": (1, 2), "lhs_dilation": (2, 3)},
    {"padding": [(1, 1), (1, 1)], "window_strides": (1, 1), "rhs_dilation": (2, 1)},
    {"padding": [(3, 1), (0, 5)], "window_strides": (1, 1), "lhs_dilation": (3, 2)},
    {"padding": [(-2, 4), (5, -1)], "window_strides": (1, 1), "lhs_dilation": (4, 2)},
    {"padding": [(2, 2), (1, 0)], "window_strides": (1, 2), "lhs_dilation": (5, 1), "rhs_dilation": (1, 2)},
    {"padding": [(2, 2), (2, 0)], "window_strides": (1, 1), "lhs_dilation": (2, 2), "rhs_dilation": (1, 2)},
]
GROUPS = [(1, 1), (2, 1), (4, 1), (1, 2)]


@pytest.mark.parametrize(("numbers", "window", "groups"), list(itertools.product(NUMBERS, WINDOWS, GROUPS)))
def test_same_result(numbers: tuple[str, str, str], window: Any, groups: tuple[int, int]) -> None:
    features, batches = groups
    rng = np.random.default_rng(0)
    lhs, rhs = rng.normal(size=(4, 4, 6, 5)), rng.normal(size=(8, 4 // features, 3, 2))
    lhs = lhs.transpose(["NCHW".index(axis) for axis in numbers[0]])
    rhs = rhs.transpose(["OIHW".index(axis) for axis in numbers[1]])

    def usual(lhs: Any, rhs: Any) -> jax.Array:
        return lax.conv_general_dilated(
            lhs, rhs, dimension_numbers=numbers, feature_group_count=features, batch_group_count=batches, **window
        )

    [equation] = [e for e in jax.make_jaxpr(usual)(lhs, rhs).jaxpr.eqns if e.primitive is lax.conv_general_dilated_p]
    found = plainer(*map(jax.numpy.asarray, (lhs, rhs)), **equation.params)
    np.testing.assert_allclose(found, usual(lhs, rhs), rtol=1e-5, atol=1e-5)
    parts = [
        e
        for e in jax.make_jaxpr(lambda *a: plainer(*a, **equation.params))(lhs, rhs).jaxpr.eqns
        if e.primitive is lax.conv_general_dilated_p
    ]
    assert all(is_settled(e.invars[0].aval, e.invars[1].aval, e.params) for e in parts)
    # Several groups are products of matrices, except where each channel is one.
    expected = max(1, len(_places(equation.params, lhs.shape, rhs.shape))) if features * batches == 1 or features == 4 else 0
    assert len(parts) == expected
    np.testing.assert_allclose(plainer(*map(jax.numpy.asarray, (lhs, rhs)), finite=True, **equation.params), found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("images", [1, 3])
def test_gradients_of_groups_become_products_of_matrices(images: int) -> None:
    """Of one image too, as where the samples of a batch are groups of one (weights that a style modulates)."""
    rng = np.random.default_rng(0)
    lhs, rhs = rng.normal(size=(images, 8, 6, 5)), rng.normal(size=(12, 2, 3, 2))

    def loss(rhs: Any) -> jax.Array:
        return (lax.conv_general_dilated(jax.numpy.asarray(lhs), rhs, (1, 1), [(1, 1), (1, 0)], feature_group_count=4) ** 2).sum()

    *_, equation = [e for e in jax.make_jaxpr(jax.grad(loss))(rhs).jaxpr.eqns if e.primitive is lax.conv_general_dilated_p]
    assert equation.params["batch_group_count"] == 4
    shapes = [item.aval for item in equation.invars]
    parts = jax.make_jaxpr(lambda *given: plainer(*given, **equation.params))(*shapes).jaxpr.eqns
    assert not [part for part in parts if part.primitive is lax.conv_general_dilated_p]
    values = [jax.numpy.asarray(rng.normal(size=item.shape)) for item in shapes]
    np.testing.assert_allclose(
        plainer(*values, **equation.params), lax.conv_general_dilated_p.bind(*values, **equation.params), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("padding", [[(2, 2), (9, 9)], [(0, 2), (9, 3)], [(3, 2), (10, 8)]])
def test_a_window_that_is_larger_than_its_inputs(padding: list[tuple[int, int]]) -> None:
    """As the gradient of a layer that reads whole rows has one."""
    rng = np.random.default_rng(0)
    lhs, rhs = rng.normal(size=(2, 4, 6, 1)), rng.normal(size=(5, 4, 3, 10))

    def usual(lhs: Any, rhs: Any) -> jax.Array:
        return lax.conv_general_dilated(lhs, rhs, (1, 1), padding, dimension_numbers=NUMBERS[0])

    [equation] = [e for e in jax.make_jaxpr(usual)(lhs, rhs).jaxpr.eqns if e.primitive is lax.conv_general_dilated_p]
    found = plainer(*map(jax.numpy.asarray, (lhs, rhs)), **equation.params)
    np.testing.assert_allclose(found, usual(lhs, rhs), rtol=1e-5, atol=1e-5)
    jaxpr = jax.make_jaxpr(lambda *a: plainer(*a, **equation.params))(lhs, rhs).jaxpr
    [inner] = [e for e in jaxpr.eqns if e.primitive is lax.conv_general_dilated_p]
    assert inner.invars[1].aval.shape == (2, 4, 6, 1)


def _places(params: Any, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> list[tuple[Group, ...]]:
    """The groups of phases that meet an input; none where the convolution stays one."""
    if stays_spread(lhs, rhs, params):
        return []
    groups = itertools.product(*(axis.groups for axis in axes_of(lhs, rhs, params)))
    return [group for group in groups if all(first < end for first, end in (axis.taps for axis in group))]


@pytest.mark.parametrize("window", [one for one in WINDOWS if "lhs_dilation" in one and "rhs_dilation" not in one][1:])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_the_same_outputs(window: Any, value: float) -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = rng.normal(size=(1, 2, 6, 5)), rng.normal(size=(3, 2, 3, 2))
    lhs[0, 1, 3, 2] = value
    [equation] = [
        e for e in jax.make_jaxpr(lambda *a: lax.conv_general_dilated(*a, **window))(lhs, rhs).jaxpr.eqns if "dimension_numbers" in e.params
    ]
    found = plainer(*map(jax.numpy.asarray, (lhs, rhs)), **equation.params)
    np.testing.assert_allclose(found, _by_loops(lhs, rhs, window), rtol=1e-5, atol=1e-5)


def _by_loops(lhs: Any, rhs: Any, window: Any) -> Any:
    """The convolution as a sum over the inputs that are there, for steps of one in window and outputs."""
    (low, high), (left, right) = window["padding"]
    rows, columns = window["lhs_dilation"]
    height, width = (lhs.shape[2] - 1) * rows + 1, (lhs.shape[3] - 1) * columns + 1
    out = np.zeros((rhs.shape[0], height + low + high - rhs.shape[2] + 1, width + left + right - rhs.shape[3] + 1))
    for i, j, a, b in itertools.product(*map(range, (*lhs.shape[2:], *rhs.shape[2:]))):
        row, column = i * rows + low - a, j * columns + left - b
        if 0 <= row < out.shape[1] and 0 <= column < out.shape[2]:
            out[:, row, column] += rhs[:, :, a, b] @ lhs[0, :, i, j]
    return out[None]


LOWERED = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions

    jax.config.update("jax_enable_x64", True)
    x, w = (jnp.asarray(np.random.default_rng(seed).normal(size=shape)) for seed, shape in ((0, (2, 32, 32, 32)), (1, (32, 32, 3, 3))))

    def loss(x, w):
        return (lax.conv(x, w, (2, 2), "SAME") ** 2).sum()

    before = jax.jit(jax.value_and_grad(loss, (0, 1)))(x, w)
    quick_convolutions()
    jax.clear_caches()
    text = jax.jit(jax.grad(loss, (0, 1))).lower(x, w).as_text()
    after = jax.jit(jax.value_and_grad(loss, (0, 1)))(x, w)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12), before, after)
    lines = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert len(lines) == 3 and all("pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1]" in line for line in lines), text
"""


LOOPS = """
    import jax, jax.numpy as jnp
    from jax import lax
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions

    jax.config.update("jax_enable_x64", True)
    quick_convolutions()
    for rank in (1, 2, 3):
        for dtype in (jnp.float64, jnp.float32):
            x, w = jnp.ones((2, 64, 32, *[2] * (rank - 1)), dtype), jnp.ones((64, 64, 5, *[1] * (rank - 1)), dtype)
            text = jax.jit(lambda x, w: lax.conv(x, w, (1,) * rank, "VALID")).lower(x, w).as_text()
            assert ("stablehlo.convolution" not in text) == (dtype == jnp.float64 and rank != 2), (rank, dtype)
"""


def test_float64_has_a_kernel_in_two_dimensions_alone() -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(LOOPS)], check=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""})


FEW = """
    import jax, jax.numpy as jnp, numpy as np, torch
    from jax import lax
    from migrate_agent.tools.harness.jax_side.convolutions import FEW_CHANNELS, quick_convolutions

    jax.config.update("jax_enable_x64", True)
    quick_convolutions()
    rng = np.random.default_rng(0)
    # inputs, outputs, side of the window, stride, spacing, groups
    ROWS = ((16, 16, 3, 1, 1, 1), (3, 16, 7, 2, 1, 1), (16, 16, 1, 1, 1, 1), (8, 12, 3, 1, 2, 4), (16, 16, 3, 2, 1, 16), (3, 17, 7, 2, 1, 1))
    for row in ROWS:
        channels, outputs, side, stride, spacing, groups = row

        def loss(x, w):
            options = {"rhs_dilation": (spacing,) * 2, "feature_group_count": groups}
            out = lax.conv_general_dilated(x, w, (stride,) * 2, [(side // 2,) * 2] * 2, **options)
            return (out**2).sum(), out

        step = jax.jit(jax.grad(loss, (0, 1), has_aux=True))
        x, w = rng.normal(size=(2, channels, 48, 48)), rng.normal(size=(outputs, channels // groups, side, side))
        text = step.lower(x, w).as_text()
        lines = [line for line in text.splitlines() if "stablehlo.convolution" in line]
        assert bool(lines) == (groups == 1), row
        windows = [line.split("tensor<")[2].split("x") for line in lines]
        assert all(max(int(window[0]), int(window[1])) > FEW_CHANNELS for window in windows), lines
        for broken in (False, True):
            if broken:
                x[0, 1, 5, 6], x[1, 2, 9, 9] = np.nan, np.inf
            tensors = [torch.tensor(value, requires_grad=True) for value in (x, w)]
            out = torch.nn.functional.conv2d(*tensors, None, stride, side // 2, spacing, groups)
            gradients, found = step(x, w)
            np.testing.assert_allclose(found, out.detach().numpy(), rtol=1e-10, atol=1e-10, err_msg=f"{row} {broken}")
            if not broken:
                (out**2).sum().backward()
                for one, tensor in zip(gradients, tensors, strict=True):
                    np.testing.assert_allclose(one, tensor.grad.numpy(), rtol=1e-10, atol=1e-9, err_msg=f"{row}")
"""


def test_float64_has_no_kernel_for_few_channels() -> None:
    """It is given more channels, and several groups become matrices: XLA's loops also spread NaN over the channels of all groups."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(FEW)], check=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""})


STAYING = """
    import jax, jax.numpy as jnp
    from jax import lax
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions

    jax.config.update("jax_enable_x64", True)
    quick_convolutions()
    for inputs, window, groups in (((1, 1, 12290), (1, 1, 9216), 1), ((64, 64, 9000), (64, 1, 5), 64), ((2, 8, 2000), (8, 4, 900), 2)):
        x, w = jnp.ones(inputs), jnp.ones(window)
        conv = jax.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=groups))
        assert conv.lower(x, w).as_text().count("stablehlo.convolution") == 1, inputs
"""


def test_what_is_too_large_for_matrices_stays_a_convolution() -> None:
    """It was lowered without end."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(STAYING)], check=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""})


SPREADING = """
    import jax, jax.numpy as jnp
    from jax import lax
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions, spreading

    quick_convolutions()
    x, w = jnp.zeros((1, 64, 6)).at[0, 3, 2].set(jnp.nan), jnp.ones((32, 64, 16))

    def transposed(x, w):
        return lax.conv_general_dilated(x, w, (1,), [(11, 11)], lhs_dilation=(8,), dimension_numbers=("NCH", "OIH", "NCH"))

    with spreading(True):
        assert int(jnp.isnan(jax.jit(transposed)(x, w)).sum()) == 32 * 16
    assert jax.jit(lambda x, w: transposed(x, w)).lower(x, w).as_text().count("stablehlo.convolution") == 1
"""


def test_nan_reaches_the_window_alone_where_that_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(SPREADING)], check=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""})


def test_the_lowering_is_replaced_in_a_process_that_asks_for_it() -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(LOWERED)], check=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""})


PATCHES = """
    import jax, jax.numpy as jnp
    from migrate_agent.tools.harness.jax_side import precision
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions

    jax.config.update("jax_enable_x64", True)
    quick_convolutions()
    x, w = jnp.ones((1, 3, 96, 96)), jnp.ones((64, 3, 16, 16))
    jax.block_until_ready(jax.jit(jax.grad(lambda x: (jax.lax.conv(x, w, (16, 16), "VALID") ** 2).sum()))(x))
    print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_the_gradient_of_patches_holds_no_zeros_between_its_inputs() -> None:
    """With them, the windows of all outputs are a matrix of 1.2 GB."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PATCHES)], check=True, capture_output=True, env={"JAX_PLATFORMS": "cpu", "PATH": ""}
    )
    assert int(run.stdout) < 700_000
