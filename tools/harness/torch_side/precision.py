"""Modes that make torch comparable: float64 throughout, and paired random draws. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from migrate_agent.tools.harness.common import budgets, operator_kinds
from migrate_agent.tools.harness.common.random_streams import Draw, Stream
from migrate_agent.tools.harness.packed_lengths import Packed
from migrate_agent.tools.harness.torch_side.triton import wide_kernels
from migrate_agent.tools.harness.torch_side.value_trees import map_tree
from migrate_agent.tools.harness.torch_side.wide_constants import wide_constants

LIFTED = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}
DTYPE_NAMES = ("float32", "float", "float16", "half", "bfloat16", "complex64", "cfloat")
CONSTRUCTORS = ("FloatTensor", "HalfTensor", "BFloat16Tensor")
LIFTED_NAMES = {
    "torch.FloatTensor": "torch.DoubleTensor",
    "torch.HalfTensor": "torch.DoubleTensor",
    "torch.BFloat16Tensor": "torch.DoubleTensor",
}
LIFTED_METHODS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.float: torch.Tensor.double,
    torch.Tensor.half: torch.Tensor.double,
    torch.Tensor.bfloat16: torch.Tensor.double,
}


class Undetermined(FloatingPointError):
    """The original runs, but its result depends on torch's algorithm."""


def _lift(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return LIFTED.get(value, value)
    return LIFTED_NAMES.get(value, value) if isinstance(value, str) else value


def _lift_tree(value: Any) -> Any:
    """Lift dtypes in an argument. Most are no containers, and `map_tree` costs more than the call itself."""
    return map_tree(_lift, value) if isinstance(value, (tuple, list, dict)) else _lift(value)


def widened(value: torch.Tensor) -> torch.Tensor:
    """The tensor in double precision; complex ones become complex128, where `Module.to(torch.float64)` would drop their imaginary part."""
    return value.to(torch.complex128) if value.is_complex() else value.to(torch.float64) if value.is_floating_point() else value


def wide_names(namespace: Mapping[str, Any], module: str) -> dict[str, Any]:
    """An example's namespace with its own tensors (recorded, or made by its setup) in double precision. Parameters stay as they are."""
    module_names = vars(importlib.import_module(module))
    own = {name: value for name, value in namespace.items() if name not in module_names or value is not module_names[name]}

    def wide(value: Any) -> Any:
        return widened(value) if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter) else value

    return {**namespace, **map_tree(wide, own)}


class LiftFunctions(TorchFunctionMode):
    """A function mode in which calls that ask for a narrower float get float64."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func` with its dtypes lifted."""
        # `x.view(dtype)` reinterprets bits: another width would change the shape.
        if func in (torch.Tensor.view,) and any(isinstance(item, torch.dtype) for item in args):
            return func(*args, **(kwargs or {}))
        named = {key: _lift_tree(item) for key, item in kwargs.items()} if kwargs else {}
        return LIFTED_METHODS.get(func, func)(*map(_lift_tree, args), **named)


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that does not import `torch._dynamo` (two seconds) for its first operator; nothing is compiled here."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class LiftOperators(OperatorMode):  # type: ignore[no-untyped-call]
    """The dispatch mode for operators inside composite functions, which `LiftFunctions` does not see."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func` with its dtypes lifted."""
        kwargs = kwargs or {}
        if _is_view(func):
            return func(*args, **kwargs)
        return func(*map(_lift, args), **{key: _lift(item) for key, item in kwargs.items()})


@cache
def _is_view(func: Any) -> bool:
    return "view" in func.__name__


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    rate: float = 0.0,
    causal: bool = False,
    attn_mask: Any = None,
    scale: Any = None,
) -> torch.Tensor:
    """Attention by its formula, with the arguments of the fused operator; the dropout `rate` has no effect, since masks are ones."""
    output: torch.Tensor = torch.ops.aten._scaled_dot_product_attention_math(query, key, value, attn_mask, 0.0, causal, scale=scale)[0]
    return output


def _tied(value: torch.Tensor, k: int, dim: int = -1, largest: bool = True, *_: Any) -> bool:
    """Whether equal numbers (or several NaN) are among the `k` + 1 largest (or smallest)."""
    if not value.ndim or not value.numel():
        return False
    first = value.sort(dim=dim, descending=largest).values.movedim(dim, -1)[..., : k + 1]
    one, next_one = first[..., :-1], first[..., 1:]
    return bool(((one == next_one) | ((one != one) & (next_one != next_one))).any())


AXES = {"kthvalue": 2, "median": 1, "nanmedian": 1}
"""Operators that give one of several elements → where their axis stands; which of equal ones they point at is up to the machine."""


def _repeated(value: torch.Tensor, chosen: torch.Tensor, dim: int) -> bool:
    """Whether an element that was `chosen` along an axis stands there more than once (or both are NaN)."""
    if not value.ndim or not value.numel():
        return False
    one = chosen if chosen.ndim == value.ndim else chosen.unsqueeze(dim)
    equal = (value == one) | ((value != value) & (one != one))
    return bool((equal.sum(dim) > 1).any())


def _uniform(low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    return float(low), float(high) - float(low)


def packed_of(padded: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Packed:
    """What the arguments of the operator that packs say: `padded` (N, L, …) or (L, N, …), and `lengths` (N,) in falling order."""
    return Packed(tuple(lengths.tolist()), padded.shape[batch_first], int(batch_first))


class PairedDraws(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode in which random operators take their numbers from a `Stream`; `bernoulli` (dropout) gives ones, or drops whole masks.

    A draw that the backward pass repeats (`torch.utils.checkpoint`) gets the numbers of the first time.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stream = stream
        self.drawn: dict[tuple[str, bytes], torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, and overwrite what it drew."""
        kwargs = dict(kwargs or {})
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:  # else it comes whole, with the draws that it makes
                return func.decompose(*args, **kwargs)
        name, plain = _named(func)
        if plain:
            return func(*args, **kwargs)
        if name == "native_dropout":
            return self._native_dropout(*args)
        if name.endswith("batch_norm_backward"):  # torch 2.13 on the CPU errs for one sample where this gradient is not contiguous
            args = tuple(item.contiguous() if isinstance(item, torch.Tensor) else item for item in args)
        if name == "hardsigmoid_backward" and args[1].dtype == torch.float64:  # torch's kernel multiplies by a sixth in float32
            return args[0] * (args[1].abs() < 3) / 6
        if name.startswith("_fft_") and not torch.isfinite(args[0]).all():
            raise Undetermined("which elements a Fourier transform of infinity or NaN makes NaN is up to its algorithm")
        if name == "_scaled_dot_product_flash_attention_for_cpu" and args[1].shape[-2] != args[2].shape[-2]:  # it does not look
            raise Undetermined("fused attention of another number of values than of keys reads past their end")
        if name == "topk" and len(args) > 4:  # any order is right without `sorted`: take the one that JAX gives
            args = (*args[:4], True, *args[5:])
        # The operator itself still runs below: it moves the generator on, which tells later draws
        # apart.
        draw = DRAWS.get(name)
        # `checkpoint` restores the generator's state before it recomputes, so that the state
        # identifies the draw.
        draw_key = (name, torch.get_rng_state().numpy().tobytes()) if draw is not None else (name, b"")
        result = func(*args, **kwargs)
        if name == "gelu":  # oneDNN's vectors give NaN for infinity, torch's own kernel and the rest of a vector do not
            result = torch.where(args[0] == torch.inf, args[0], result)
        if name == "_scaled_dot_product_flash_attention_for_cpu" and not all(bool(torch.isfinite(item).all()) for item in args[:3]):
            result = (_attention(*args, **kwargs), *result[1:])  # its blocks lose NaN, where all scores of a row are NaN
        if name == "_pack_padded_sequence":
            self.stream.packed.append(packed_of(*args))
        if name == "topk":
            self.stream.tied |= _tied(*args, **kwargs)
        if (place := AXES.get(name)) is not None and isinstance(result, tuple):
            self.stream.tied |= _repeated(args[0], result[0], kwargs.get("dim", args[place] if len(args) > place else -1))
        if draw is not None and in_backward() and draw_key in self.drawn:
            result.copy_(self.drawn[draw_key])
        elif draw is not None:
            draw(self.stream, result, args, kwargs)
            self.drawn[draw_key] = result.detach().clone()
        elif torch.Tag.nondeterministic_seeded in func.tags and name not in QUIET:
            self._note(name, result.shape if isinstance(result, torch.Tensor) else ())
        return result

    def _note(self, kind: str, shape: Sequence[int], rate: float | None = None) -> None:
        if not (in_backward() and Draw(kind, tuple(shape), rate) in self.stream.draws):
            self.stream.note(kind, shape, rate)

    def _native_dropout(self, value: torch.Tensor, rate: float, train: bool | None) -> Any:
        mask = torch.ones_like(value, dtype=torch.bool)
        if train is False or rate == 0:
            return value.clone(), mask
        if rate == 1:
            return torch.zeros_like(value), ~mask
        if in_backward() and Draw("bernoulli", tuple(value.shape), 1 - rate) in self.stream.draws:
            return value / (1 - rate), mask
        values = torch.as_tensor(self.stream.mask(value.shape, 1 - rate))
        return value / (1 - rate) * values, mask & values


@cache
def _is_composite(func: Any) -> bool:
    """Whether an operator is made of others before autograd sees it, which inference mode leaves out."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


@cache
def _named(func: Any) -> tuple[str, bool]:
    """The operator's name, and whether `PairedDraws` runs it unchanged. Cached: this runs for every operator."""
    name = func.__name__.partition(".")[0]
    looked_at = name in (
        "native_dropout",
        "hardsigmoid_backward",
        "gelu",
        "_scaled_dot_product_flash_attention_for_cpu",
        "topk",
        "_pack_padded_sequence",
        *AXES,
        *DRAWS,
    )
    by_form = name.endswith("batch_norm_backward") or name.startswith("_fft_") or torch.Tag.nondeterministic_seeded in func.tags
    return name, not (looked_at or by_form)


def in_backward() -> bool:
    """Whether autograd's backward pass runs: operators are gradients then, or a recomputed forward pass."""
    return torch._C._current_graph_task_id() != -1


def _affine(kind: str, scale: Callable[..., tuple[Any, Any]]) -> Callable[..., None]:
    """A drawing rule that overwrites the result by `loc + scale · standard draw`."""

    def draw(stream: Stream, result: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        standard = torch.from_numpy(stream.draw(kind, result.shape)).reshape(result.shape)
        loc, factor = scale(args, kwargs)
        result.copy_(loc + standard * factor)

    return draw


def _integers(bounds: Callable[..., tuple[int, int]]) -> Callable[..., None]:
    def draw(stream: Stream, result: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        low, high = bounds(args, kwargs)
        standard = torch.from_numpy(stream.draw("integers", result.shape)).reshape(result.shape)
        result.copy_(torch.floor(low + standard * (high - low)))

    return draw


def _bernoulli(stream: Stream, result: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    rate = next((item for item in (*args[1:], *kwargs.values()) if isinstance(item, float)), None)
    if rate is None and len(args) == 1 and not kwargs and result is args[0]:
        rate = 0.5  # the default of `bernoulli_` is left out of what is passed on
    result.copy_(torch.as_tensor(stream.mask(result.shape, rate)))


def _permutation(stream: Stream, result: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    result.copy_(torch.from_numpy(stream.draw("permutation", result.shape)))


def _bounds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int]:
    numbers = [item for item in args if isinstance(item, int) and not isinstance(item, bool)]
    low, high = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return int(kwargs.get("low", low)), int(kwargs.get("high", high))


def _pair(args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, str], defaults: tuple[Any, Any]) -> tuple[Any, Any]:
    positional = dict(zip(names, args, strict=False))
    return tuple(kwargs.get(name, positional.get(name, default)) for name, default in zip(names, defaults, strict=True))


def _unit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, float]:
    return 0.0, 1.0


def _multinomial(stream: Stream, result: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Draw the indices of the largest quotients of weights and exponential numbers, as torch's own kernel does without replacement."""
    weights, count = args[0], args[1]
    if args[2] if len(args) > 2 else kwargs.get("replacement", False):
        drawn = torch.from_numpy(stream.draw("exponential", (count, *weights.shape)))
        result.copy_((weights / drawn.reshape(count, *weights.shape)).argmax(-1).movedim(0, -1))
    else:
        drawn = torch.from_numpy(stream.draw("exponential", weights.shape))
        race = weights / drawn
        stream.tied |= _tied(torch.where(race < torch.finfo(race.dtype).tiny, 0.0, race), count)  # weights that vanish are all alike
        result.copy_(race.topk(count, -1).indices)


DRAWS: dict[str, Callable[..., None]] = {
    "rand": _affine("uniform", _unit),
    "rand_like": _affine("uniform", _unit),
    "uniform_": _affine("uniform", lambda a, k: _uniform(*_pair(a[1:], k, ("from", "to"), (0.0, 1.0)))),
    "uniform": _affine("uniform", lambda a, k: _uniform(*_pair(a[1:], k, ("from", "to"), (0.0, 1.0)))),
    "randn": _affine("normal", _unit),
    "randn_like": _affine("normal", _unit),
    "normal_": _affine("normal", lambda a, k: _pair(a[1:], k, ("mean", "std"), (0.0, 1.0))),
    "normal": _affine("normal", lambda a, k: _pair(a, k, ("mean", "std"), (0.0, 1.0))),
    "normal_functional": _affine("normal", lambda a, k: _pair(a[1:], k, ("mean", "std"), (0.0, 1.0))),
    "exponential_": _affine("exponential", lambda a, k: (0.0, 1.0 / _pair(a[1:], k, ("lambd", "_"), (1.0, 0))[0])),
    "randint": _integers(_bounds),
    "randint_like": _integers(lambda a, k: _bounds(a[1:], k)),
    "random_": _integers(lambda a, k: _bounds(a[1:], k)),
    "randperm": _permutation,
    "bernoulli_": _bernoulli,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
}
QUIET = frozenset(
    {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math", "_fused_sdp_choice", "rrelu_with_noise"}
)


class Undefined(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records whether an operator makes NaN of arguments without NaN (the difference of two infinities)."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func` and look at what comes out."""
        result = func(*args, **(kwargs or {}))
        if not self.seen and any(map(_has_nan, result if isinstance(result, (list, tuple)) else (result,))):
            self.seen = not any(map(_has_nan, torch.utils._pytree.tree_leaves((args, kwargs))))
        return result


def _has_nan(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.dtype.is_floating_point and not value.is_meta and value.isnan().any())
    return isinstance(value, float) and value != value


KEEPING = frozenset({"copy_", "fill_", "masked_fill", "masked_fill_", "index_put", "index_put_", "index_fill", "index_fill_"})
"""Operators whose result has the dtype of their first argument, whatever the others have."""


class WithoutAxes(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records whether an operator takes a tensor without axes beside narrower ones with axes: torch keeps the narrow dtype, JAX the wide one."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Look at the dtypes of what `func` takes, and run it."""
        if not self.seen and func.__name__.partition(".")[0] not in KEEPING:
            leaves = torch.utils._pytree.tree_leaves((args, kwargs))
            floats = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
            narrow = [tensor.dtype for tensor in floats if tensor.ndim]
            self.seen = any(_widens_all(tensor.dtype, narrow) for tensor in floats if not tensor.ndim)
        return func(*args, **(kwargs or {}))


def _widens_all(dtype: torch.dtype, others: Sequence[torch.dtype]) -> bool:
    return bool(others) and all(torch.promote_types(dtype, other) != other for other in others)


class SmallDivisors(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records whether something of a narrow dtype is divided by a plain number whose inverse that dtype does not hold: XLA multiplies by the
    inverse of a constant."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Look at what `func` divides by, and run it."""
        if func.__name__.partition(".")[0] in ("div", "div_") and isinstance(args[0], torch.Tensor) and args[0].is_floating_point():
            number = args[1].item() if isinstance(args[1], torch.Tensor) and not args[1].ndim else args[1]
            held = isinstance(number, (int, float)) and number and abs(1 / number) <= torch.finfo(args[0].dtype).max
            self.seen = self.seen or (isinstance(number, (int, float)) and bool(number) and not held)
        return func(*args, **(kwargs or {}))


DIVISORS = {"div": 1, "reciprocal": 0, "rsqrt": 0, "sqrt": 0, "pow": 0, "log": 0, "log2": 0, "log10": 0, "xlogy": 1, "addcdiv": 2}
"""Operator → index of the argument that it, or its gradient, divides by."""


class Vanishing(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records whether an operator divides by a number so small that its inverse, times another number, overflows."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Look at what `func` divides by, and run it."""
        position = DIVISORS.get(func.__name__.partition(".")[0].rstrip("_"), len(args))
        self.seen = self.seen or any(map(_vanishes, args[position : position + 1]))
        return func(*args, **(kwargs or {}))


def _vanishes(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.is_meta:
        return False
    return bool(((value != 0) & (value.abs() < budgets.VANISHING)).any())


class Widths(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records the narrowest float dtype below float32 of any result, and the dtypes of some kinds of operators."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.narrow = ""
        self.kinds: set[tuple[str, bool]] = set()
        """Kind of operator, and whether its result was narrow."""
        self._rounded = WeakIdKeyDictionary()
        """The tensors whose numbers were computed in float32 or wider and rounded to a narrower dtype since."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func` and look at what comes out."""
        result = func(*args, **(kwargs or {}))
        for item in result if isinstance(result, (list, tuple)) else (result,):
            if not isinstance(item, torch.Tensor) or not item.dtype.is_floating_point:
                continue
            narrow = item.dtype in (torch.float16, torch.bfloat16)
            # bfloat16 has fewer bits of mantissa than float16, so it stays once seen.
            if narrow and self.narrow != "bfloat16":
                self.narrow = str(item.dtype).removeprefix("torch.")
            if (kind := operator_kinds.TORCH.get(func.overloadpacket.__name__)) is not None:
                self.kinds.add((kind, narrow))
            self._follow(func.overloadpacket.__name__, args, item, narrow)
        return result

    def _follow(self, name: str, args: tuple[Any, ...], result: torch.Tensor, narrow: bool) -> None:
        """Note whether the result was rounded, and products of what was."""
        if not (narrow or self._rounded or name in operator_kinds.TORCH_PRODUCTS):
            return
        operands = [one for arg in args for one in (arg if isinstance(arg, (list, tuple)) else (arg,)) if isinstance(one, torch.Tensor)]
        rounded = any(one in self._rounded for one in operands)
        if name in operator_kinds.TORCH_PRODUCTS:
            self.kinds.add((operator_kinds.PRODUCTS, rounded or narrow))
        narrowed = name == "_to_copy" and narrow and operands[0].dtype in (torch.float32, torch.float64)
        if narrowed or (rounded and name in (*operator_kinds.TORCH_LAYOUTS, "_to_copy")):
            self._rounded[result] = True


class _FinfoLifted:
    """Stands in for `torch.finfo` while everything is float64."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __call__(self, dtype: torch.dtype | None = None) -> Any:
        return self.original(LIFTED.get(dtype, dtype) if dtype is not None else torch.float64)


@contextmanager
def exact() -> Iterator[None]:
    """Run everything in float64: default dtype, casts, typed constructors, `torch.finfo`, and the names of narrower dtypes."""
    default, finfo = torch.get_default_dtype(), torch.finfo
    names = {name: getattr(torch, name) for name in (*DTYPE_NAMES, *CONSTRUCTORS)}
    torch.set_default_dtype(torch.float64)
    torch.finfo = _FinfoLifted(finfo)  # type: ignore[assignment, misc]
    for name, narrow in names.items():
        # The user's `x.dtype == torch.float32` must hold for a tensor that is float64 here.
        setattr(torch, name, torch.DoubleTensor if name in CONSTRUCTORS else LIFTED[narrow])
    try:
        with wide_kernels(), wide_constants(), LiftOperators(), LiftFunctions():  # type: ignore[no-untyped-call]
            yield
    finally:
        for name, narrow in names.items():
            setattr(torch, name, narrow)
        torch.set_default_dtype(default)
        torch.finfo = finfo  # type: ignore[misc]
