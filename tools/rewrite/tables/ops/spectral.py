"""Fourier transforms and windows (https://pytorch.org/docs/stable/fft.html)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import axis, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")


def _shift(name: str) -> Template:
    def to(call: Call) -> str:
        return f"jnp.fft.{name}({{input}}, axes={axis(call)})"

    return to


def _many(name: str) -> Template:
    """The template of a transform over several axes: `jnp.fft` where no lengths are passed.

    Torch allows -1 in the lengths, and lengths without axes apply to the last axes.
    """

    def to(call: Call) -> str:
        axes = call.literal("dim")
        # Torch lets `fft2` run over any number of axes; NumPy insists on two.
        whole = f"{name[:-1]}n" if name in TWO and isinstance(axes, (tuple, list)) and len(axes) != 2 else name
        plain = not call.given("s") or call.literal("s") is None
        # NumPy has no Hermitian transform over several axes.
        if plain and not name.startswith(("hfft", "ihfft")) and not isinstance(call.literal("dim"), int):
            return f"jnp.fft.{whole}({{input}}, axes={axis(call)}, norm={{norm}})"
        return f"vendored.fft_over('{whole}', {{input}}, {{s=None}}, {{dim=None}}, {{norm=None}})"

    return to


TRANSFORMS = [
    *(
        Op(f"torch.fft.{name}", "input, n=None, dim=-1, norm=None", f"jnp.fft.{name}({{input}}, n={{n}}, axis={{dim}}, norm={{norm}})")
        for name in ONE
    ),
    *(Op(f"torch.fft.{name}", "input, s=None, dim=(-2, -1), norm=None", _many(name)) for name in (*TWO, "hfft2", "ihfft2")),
    *(Op(f"torch.fft.{name}", "input, s=None, dim=None, norm=None", _many(name)) for name in (*MANY, "hfftn", "ihfftn")),
    Op("torch.fft.fftshift", "input, dim=None", _shift("fftshift")),
    Op("torch.fft.ifftshift", "input, dim=None", _shift("ifftshift")),
    Op(
        "torch.fft.fftfreq",
        "n, d=1.0, *, dtype=None",
        "jnp.fft.fftfreq({n}, {d}, dtype={dtype})",
        samples=("torch.fft.fftfreq(5)", "torch.fft.fftfreq(4, 0.5)"),
    ),
    Op("torch.fft.rfftfreq", "n, d=1.0, *, dtype=None", "jnp.fft.rfftfreq({n}, {d}, dtype={dtype})", samples=("torch.fft.rfftfreq(5)",)),
]

STFT = [
    *spelled(
        "stft",
        "input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, "
        "return_complex=None, align_to_window=None",
        "vendored.stft({input}, {n_fft}, hop_length={hop_length}, win_length={win_length}, window={window}, center={center}, "
        "pad_mode={pad_mode}, normalized={normalized}, onesided={onesided}, return_complex={return_complex})",
    ),
    *spelled(
        "istft",
        "input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, "
        "return_complex=False",
        "vendored.istft({input}, {n_fft}, hop_length={hop_length}, win_length={win_length}, window={window}, center={center}, "
        "normalized={normalized}, onesided={onesided}, length={length}, return_complex={return_complex})",
    ),
]


REMOVED = [
    *spelled("fft", "input, signal_ndim, normalized=False", "vendored.paired_fft({input}, {signal_ndim}, {normalized})"),
    *spelled("ifft", "input, signal_ndim, normalized=False", "vendored.paired_fft({input}, {signal_ndim}, {normalized}, inverse=True)"),
    *spelled(
        "rfft",
        "input, signal_ndim, normalized=False, onesided=True",
        "vendored.paired_rfft({input}, {signal_ndim}, {normalized}, {onesided})",
    ),
    *spelled(
        "irfft",
        "input, signal_ndim, normalized=False, onesided=True, signal_sizes=None",
        "vendored.paired_irfft({input}, {signal_ndim}, {normalized}, {onesided}, {signal_sizes})",
    ),
]
"""Functions of PyTorch before 1.8: of pairs of numbers in place of complex ones."""


def _window(coefficients: str) -> str:
    return f"vendored.cosine_window({{window_length}}, {coefficients}, periodic={{periodic}}, dtype={{dtype}})"


def _signal(coefficients: str) -> str:
    # The two families of torch state the same choice by opposite flags.
    return f"vendored.cosine_window({{M}}, {coefficients}, periodic=not {{sym=True}}, dtype={{dtype}})"


W = "torch.signal.windows."
PERIODIC = "window_length, periodic=True, *, dtype=None"
SYMMETRIC = "M, *, sym=True, dtype=None"
WINDOWS = [
    Op("torch.hann_window", PERIODIC, _window("(0.5, 0.5)"), samples=("torch.hann_window(7)", "torch.hann_window(8, periodic=False)")),
    Op("torch.blackman_window", PERIODIC, _window("(0.42, 0.5, 0.08)"), samples=("torch.blackman_window(7)",)),
    Op(
        "torch.hamming_window",
        "window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None",
        _window("({alpha=0.54}, {beta=0.46})"),
        samples=("torch.hamming_window(7)",),
    ),
    Op(
        "torch.bartlett_window",
        PERIODIC,
        "vendored.bartlett_window({window_length}, periodic={periodic}, dtype={dtype})",
        samples=("torch.bartlett_window(7)",),
    ),
    Op(
        "torch.kaiser_window",
        "window_length, periodic=True, beta=12.0, *, dtype=None",
        "vendored.kaiser_window({window_length}, {beta=12.0}, periodic={periodic}, dtype={dtype})",
        samples=("torch.kaiser_window(7)",),
    ),
    Op(W + "hann", SYMMETRIC, _signal("(0.5, 0.5)")),
    Op(W + "blackman", SYMMETRIC, _signal("(0.42, 0.5, 0.08)")),
    Op(W + "hamming", SYMMETRIC, _signal("(0.54, 0.46)")),
    Op(W + "nuttall", SYMMETRIC, _signal("(0.3635819, 0.4891775, 0.1365995, 0.0106411)")),
    Op(W + "general_hamming", "M, *, alpha=0.54, sym=True, dtype=None", _signal("({alpha=0.54}, 1 - {alpha=0.54})")),
    Op(W + "general_cosine", "M, *, a, sym=True, dtype=None", _signal("{a}")),
    Op(W + "bartlett", SYMMETRIC, "vendored.bartlett_window({M}, periodic=not {sym=True}, dtype={dtype})"),
    Op(
        W + "kaiser",
        "M, *, beta=12.0, sym=True, dtype=None",
        "vendored.kaiser_window({M}, {beta=12.0}, periodic=not {sym=True}, dtype={dtype})",
    ),
    Op(W + "cosine", SYMMETRIC, "vendored.sine_window({M}, periodic=not {sym=True}, dtype={dtype})"),
    Op(
        W + "gaussian",
        "M, *, std=1.0, sym=True, dtype=None",
        "vendored.gaussian_window({M}, {std=1.0}, periodic=not {sym=True}, dtype={dtype})",
    ),
    Op(
        W + "exponential",
        "M, *, center=None, tau=1.0, sym=True, dtype=None",
        "vendored.exponential_window({M}, {center=None}, {tau=1.0}, periodic=not {sym=True}, dtype={dtype})",
    ),
]
