"""One example of the original: constructed in float64 and natively, run on given states and inputs. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, Literal, TypeVar, cast

import numpy as np
import torch

from migrate_agent.tools.harness.common import host_random, methods, operator_kinds, reach, tolerances, trees
from migrate_agent.tools.harness.common.argument_changes import (
    CALL,
    Changes,
    absent,
    bind,
    called,
    changed,
    floats,
    ints,
    proposals,
    strings,
)
from migrate_agent.tools.harness.common.conditions import AS_MADE, Conditions
from migrate_agent.tools.harness.common.example_text import (
    call_arguments,
    construct,
    import_module,
    in_mode,
    init_arguments,
    load_unit,
    make_namespace,
)
from migrate_agent.tools.harness.common.inner_gradients import asks_gradients
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf
from migrate_agent.tools.harness.common.kept_objects import snapshot
from migrate_agent.tools.harness.common.partial_import import use_parts, use_roots
from migrate_agent.tools.harness.common.random_streams import USUAL, Drawing, Stream
from migrate_agent.tools.harness.packed_lengths import Packed
from migrate_agent.tools.harness.torch_side.built_tables import put_tables, tables_of
from migrate_agent.tools.harness.torch_side.copied_tensors import copy_computed_tensors
from migrate_agent.tools.harness.torch_side.filled_memory import FilledMemory
from migrate_agent.tools.harness.torch_side.held_values import held_values, noted, parted, spoil
from migrate_agent.tools.harness.torch_side.precision import PairedDraws, Widths, exact, wide_names, widened
from migrate_agent.tools.harness.torch_side.removed_functions import restore_functions
from migrate_agent.tools.harness.torch_side.rounding import RoundingNoise
from migrate_agent.tools.harness.torch_side.scripts_as_written import run_scripts_as_written
from migrate_agent.tools.harness.torch_side.second_derivatives import WeightNormByFormula
from migrate_agent.tools.types import Example

LARGE_PARAMETER = 2**16
"""Parameters with so many elements are copied no more often than they must be."""
PLAIN = (bool, int, float, str, tuple, type(None))
Given = TypeVar("Given")
State = Mapping[str, Array]
Layout = Literal["", "strided", "expanded"]
"""Memory layout of argument tensors: contiguous, with permuted strides, or the first row of a batch repeated with stride zero."""


@dataclass
class Result:
    """The results of one run: arrays by key (`out/0`, `grad/name`, `input-grad/0`, `state/name`, `left/path` and `held/path` of plain attributes that
    the call set or not, `loss`), the output's tree, dtypes and draws.

    Floats of Python in the tree are arrays too (`number/2`, by their place), so that their rounding can be measured.
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    tree: trees.Tree = field(default_factory=dict)
    dtypes: list[str] = field(default_factory=list)
    draws: list[list[object]] = field(default_factory=list)
    narrow: str = ""
    """The narrowest float dtype below float32 that a native run computed with."""
    wide: tuple[str, ...] = ()
    """Kinds of operators that a native run computed in float32 or wider alone."""
    tied: bool = False
    """Whether it chose among equal numbers, which depends on torch's algorithm."""
    mutated: bool = False
    """Whether the call changed one of its arguments."""
    rearranged: bool = False
    """Whether it changed a container among them, by removing an item from a list for example."""
    targets: Mapping[int, Array] = field(default_factory=dict)
    """Targets of the loss by index of the output."""
    reached: frozenset[int] = frozenset()
    """Places of the user's code that ran."""
    packed: Sequence[Packed] = ()
    """The sequences that it packed, in order."""


def to_numpy(value: Any, *, shared: bool = False) -> Array:
    """A tensor as numpy; bfloat16 as float32, a sparse one with all of its zeros. Where `shared`, nobody else will write into it, and it may be no copy."""
    tensor = torch.as_tensor(value).detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.to(torch.float32)
    if tensor.is_quantized:
        raise trees.Unencodable("a quantised tensor")
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    array: Array = tensor.resolve_conj().resolve_neg().numpy()
    return np.ascontiguousarray(array) if shared and array.ndim else np.array(array)


def dtype_name(value: Any) -> str:
    """`float32`, `int64`, … of a tensor or array."""
    return str(value.dtype).removeprefix("torch.")


def is_leaf(value: Any) -> bool:
    """Whether a value travels as an array."""
    return isinstance(value, (torch.Tensor, np.ndarray, np.generic))


def wide(value: Array) -> Array:
    """Floats as float64, complex as complex128, all else as it is."""
    return value.astype({"f": np.float64, "c": np.complex128}[value.dtype.kind]) if value.dtype.kind in "fc" else value


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy of a module, whose state is written into it next: large parameters of it hold nothing yet.

    Closures in its attributes that hold a module (`self.f = lambda x: self.lin(x)`) hold its copy.
    """
    # Tensors that a hook computes before each call (`weight_norm`) have an autograd history, which
    # `deepcopy` refuses: their values are copied instead.
    memo = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, torch.Tensor) and not value.is_leaf
    }
    memo |= {id(value): _unfilled(value) for value in module.state_dict(keep_vars=True).values() if _is_large(value)}
    clone = _deep_copy(module, memo)
    for parameter in module.parameters():
        if vars(parameter) and id(parameter) in memo:
            _carry_marks(parameter, memo[id(parameter)], memo)
    for part in clone.modules():
        for attributes in (vars(part), *(value for value in vars(part).values() if isinstance(value, dict))):
            for key, value in attributes.items():
                if isinstance(value, FunctionType):
                    attributes[key] = _rebound(value, memo)
    return clone


def _is_large(value: Any) -> bool:
    """Whether a value is a parameter whose copy takes as long as a small unit's call."""
    return type(value) is torch.nn.Parameter and value.layout is torch.strided and value.numel() >= LARGE_PARAMETER


def _unfilled(value: torch.nn.Parameter) -> torch.nn.Parameter:
    """What `deepcopy` makes of a parameter, without its numbers."""
    return torch.nn.Parameter(torch.empty_like(value.data, memory_format=torch.preserve_format), value.requires_grad)


def _carry_marks(parameter: torch.Tensor, clone: torch.Tensor, memo: dict[int, Any]) -> None:
    """Give a parameter's copy what code hung on it (`weight.fast = None`), which `deepcopy` drops of a parameter, and keeps of a tensor."""
    for name, value in vars(parameter).items():
        setattr(
            clone, name, value.detach().clone() if isinstance(value, torch.Tensor) and not value.is_leaf else copy.deepcopy(value, memo)
        )


def _deep_copy(module: torch.nn.Module, memo: dict[int, Any]) -> torch.nn.Module:
    """A deep copy; `memo` has the copies of what must not be copied as usual, and gets all others."""
    given = dict(memo)
    try:
        return copy.deepcopy(module, memo)
    except TypeError:
        # The standard library copies no lock, generator or `staticmethod`: both modules hold it.
        held = (value for part in module.modules() for value in vars(part).values())
        values = (item for value in held for item in (value.values() if isinstance(value, dict) else (value,)))
        shared = {id(value): value for value in values if not _copies(value)}
        memo.clear()
        memo.update(given | shared)
        return copy.deepcopy(module, memo)


def _copies(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return True  # a tensor that cannot be copied is in the memo, and what a module holds is looked at by itself
    try:
        copy.deepcopy(value)
    except TypeError:
        return False
    return True


def _rebound(function: FunctionType, memo: Mapping[int, Any]) -> FunctionType:
    """The function with a new closure, in which copied objects are replaced by their copies."""
    try:
        contents = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # a cell that nothing was put into
        return function
    if not any(isinstance(value, torch.nn.Module) and id(value) in memo for value in contents):
        return function
    cells = tuple(CellType(memo.get(id(value), value)) for value in contents)
    clone = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    clone.__kwdefaults__ = function.__kwdefaults__
    return clone


def seed_draws(seed: int) -> None:
    """Seed the CPU's generator. `torch.manual_seed` does more: it formats a traceback for each kind of device that is not here."""
    torch.default_generator.manual_seed(seed)


@contextmanager
def flushing() -> Iterator[None]:
    """Flush subnormal numbers to zero, as XLA does: they must not decide comparisons."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


class Original:
    """An example of a unit, ready to run. Raises the errors of the import, the setup, the constructor and the call's texts."""

    def __init__(self, module: str, name: str, texts: Mapping[str, Any], tensors: Path | None, seed: int = 0) -> None:
        reach.take()
        self.method = str(texts.get("method", ""))
        self.example = Example("", texts["init"], texts["call"], texts["setup"], tensors=tensors, method=self.method)
        self.leaves_memory = True
        self.changes_objects = False
        self.on_host: bool | None = None
        """Whether calls gave NumPy's arrays and no tensor; None where none gave either."""
        """Whether a call so far changed a plain object that the module holds, such as its configuration."""
        self.resolved: dict[str, Any] = {}
        """Attributes, no arrays, that a first call changed and a second one left as they were: path in the module → value."""
        self.held: set[str] = set()
        """Paths of plain attributes in which calls so far left arrays or numbers, or found arrays."""
        self.changes: Changes = texts.get("changes") or {}
        self.namespace = make_namespace(import_module(module), self.example)
        # After the setup, which may have the file imported again by its part.
        self.cls = cast(Any, load_unit(module, name, texts["init"]))
        seed_draws(seed)
        self.native = self.fresh()
        seed_draws(seed)
        args, kwargs = call_arguments(self.example, self.namespace)
        self.call = called(methods.unbound(self.cls, self.method), self.changes, args, kwargs)
        leaves: list[Any] = []
        self.tree = trees.encode(self.call, leaves, is_leaf, arguments=True)
        self.leaves = [Leaf(wide(to_numpy(leaf)), dtype_name(leaf)) for leaf in leaves]
        self.filled: frozenset[int] = frozenset()
        """Which of the sequences that a run packs must be as long as the padding for its longest: the shapes of outputs follow their lengths."""
        self.is_numpy = [not isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.sparse = [getattr(leaf, "layout", torch.strided) for leaf in leaves]
        """The layout of each leaf: the call gets sparse ones, the port arrays."""
        seed_draws(seed)
        with exact():
            # Constructed anew rather than converted: a table that the constructor computes must be
            # computed in float64.
            self.exact = self.fresh(namespace=wide_names(self.namespace, module))
        self.exact._apply(widened)
        self._made = module, seed
        self._arrays: dict[str, tuple[Any, Array]] = {}
        self._has_tables = bool(tables_of(self.exact))
        self.parameters = dict(self.native.named_parameters(remove_duplicate=False))
        self.constructed = reach.take()
        """Places of the user's code that ran so far."""

    @classmethod
    def of_job(cls, arguments: Mapping[str, Any], texts: Mapping[str, Any], tensors: Path | None, seed: int = 0) -> Original:
        """That of a job's unit, whose files are imported as far as the job says that they are needed. Raises as the constructor does."""
        # `torch.compile` runs its function as it is: there may be no compiler, and it has not all kernels in float64.
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
        run_scripts_as_written()
        restore_functions()
        copy_computed_tensors()
        reach.count(Path(sys.path[0]), arguments.get("folder", ""))
        use_roots(arguments["roots"])
        use_parts(arguments["parts"], Path(sys.path[0]))
        return cls(arguments["module"], arguments["name"], texts, tensors, seed)

    def fresh(self, unset: int = 0, namespace: Mapping[str, Any] | None = None) -> Any:
        """A newly constructed module, evaluated in `namespace`. Memory that its constructor does not set holds `unset`."""
        with FilledMemory(unset) if self.leaves_memory else nullcontext():
            return construct(changed(self.cls, self.changes), self.example, namespace or self.namespace)

    def _noisy_tables(self, noise: int, share: float) -> dict[str, torch.Tensor]:
        """The tables of a module whose constructor ran with rounding noise; none where it does not run with that."""
        module, seed = self._made
        seed_draws(seed)
        with suppress(Exception), exact(), RoundingNoise(noise, share):
            return tables_of(self.fresh(namespace=wide_names(self.namespace, module))._apply(widened))
        return {}

    @property
    def takes_sparse(self) -> bool:
        """Whether the call is given sparse tensors."""
        return any(layout is not torch.strided for layout in self.sparse)

    @property
    def is_function(self) -> bool:
        """Whether the unit is a function, and the module stands for it."""
        return hasattr(self.cls, "function")

    def proposals(self) -> dict[str, tuple[Any, ...]]:
        """Other values of the arguments of the call and of the constructor, by name."""
        return self._by_name(proposals, partial(proposals, absent=True))

    def strings(self) -> dict[str, str]:
        """The strings among the arguments of the call and of the constructor, by name."""
        return self._by_name(strings, strings)

    def ints(self) -> dict[str, int]:
        """The ints among the arguments of the call and of the constructor, by name."""
        return self._by_name(ints, ints)

    def floats(self) -> dict[str, float]:
        """The finite floats among the arguments of the call and of the constructor, by name."""
        return self._by_name(floats, floats)

    def absent(self) -> dict[str, None]:
        """The arguments of the call and of the constructor that are None, by name."""
        return self._by_name(absent, absent)

    def _by_name(self, called: Callable[..., dict[str, Given]], constructed: Callable[..., dict[str, Given]]) -> dict[str, Given]:
        # What a constructor takes of a module, a function takes in its call.
        called = constructed if self.is_function else called
        function = methods.unbound(self.cls, self.method)
        of_call = {f"{CALL}{name}": value for name, value in called(bind(function, *self.call)).items()}
        return of_call | constructed(bind(self.cls.__init__, *init_arguments(self.example, self.namespace)))

    def unset(self, seed: int) -> frozenset[str]:
        """The parameters and buffers that the constructor does not set: their initial values mean nothing."""
        built = []
        for value in (0, 1):
            seed_draws(seed)
            built.append(tensors_of(self.fresh(value)))
        differs = {name: (value != built[1][name]) & (value == value) for name, value in built[0].items()}  # NaN is set, and equals nothing
        # Where every element is set, later constructions skip the filling, which takes longer than
        # most constructors.
        self.leaves_memory = any(bool(unset_elements.any()) for unset_elements in differs.values())
        return frozenset(name for name, unset_elements in differs.items() if unset_elements.numel() and bool(unset_elements.all()))

    def likeness(self) -> str:
        """A text that is equal for examples with the same configuration of all submodules, and the same shapes of states and arguments."""
        modules = {
            path: {key: value for key, value in vars(module).items() if type(value) in PLAIN}
            for path, module in self.native.named_modules()
        }
        shapes = [[leaf.value.shape, leaf.dtype] for leaf in self.leaves]
        states = {name: tuple(value.shape) for name, value in tensors_of(self.native).items()}
        return repr((self.method, str(self.native), modules, shapes, states, self.tree))

    def state(self) -> dict[str, Array]:
        """Parameters and persistent buffers as constructed, float64."""
        return {name: self._read(name, value) for name, value in tensors_of(self.exact).items()}

    def _read(self, name: str, value: torch.Tensor) -> Array:
        """A tensor of the state as an array that nobody writes into; the same one as before where the tensor is the same, since large ones take long."""
        key = value.data_ptr(), value._version, value.shape, value.dtype
        if value.numel() < LARGE_PARAMETER or value.dtype != torch.float64 or value.layout is not torch.strided:
            return wide(to_numpy(value))
        if name not in self._arrays or self._arrays[name][0] != key:
            array = to_numpy(value, shared=True).view()
            array.flags.writeable = False
            self._arrays[name] = key, array
        return self._arrays[name][1]

    def tied(self) -> dict[str, str]:
        """State name → the earlier name whose memory it shares."""
        first: dict[tuple[Any, ...], str] = {}
        pairs = {}
        for name, value in tensors_of(self.exact).items():
            storage = (value.data_ptr(), tuple(value.shape), value.stride())
            # Empty tensors all have the same address.
            if value.numel() and first.setdefault(storage, name) != name:
                pairs[name] = first[storage]
        return pairs

    def arguments(
        self, values: Sequence[Array], *, native: bool, layout: Layout = "", dtypes: Sequence[str] = ()
    ) -> tuple[list[torch.Tensor], tuple[Any, ...], dict[str, Any], list[Any]]:
        """Leaf tensors with `values` (float ones require gradients, but NumPy's), the call's arguments made of copies of them, and these copies.

        Native ones have `dtypes`, or those of the example.
        """
        leaves = []
        names = dtypes or [leaf.dtype for leaf in self.leaves]
        for value, dtype, sparse, numpy in zip(values, names, self.sparse, self.is_numpy, strict=True):
            tensor = torch.from_numpy(np.array(value))
            tensor = tensor.to(getattr(torch, dtype)) if native else tensor
            # The gradient of a sparse tensor is cut to the places that it has, which an array does not know of.
            trained = (tensor.dtype.is_floating_point or tensor.dtype.is_complex) and sparse is torch.strided and not numpy
            leaves.append(tensor.requires_grad_(trained))
        # Copies: autograd refuses a leaf that is changed in place, which the original may do to its
        # arguments.
        parts = [
            leaf.detach().numpy() if numpy else laid_out(leaf, layout) if sparse is torch.strided else leaf.to_sparse(layout=sparse)
            for leaf, numpy, sparse in zip(leaves, self.is_numpy, self.sparse, strict=True)
        ]
        args, kwargs = _decode(self.tree, parts, self.call)
        return leaves, args, kwargs, parts

    def module(self, state: State, mode: str, *, native: bool, conditions: Conditions = AS_MADE) -> Any:
        """A copy of the module with this state, in `train` or `eval` mode. Raises `AttributeError` where it has no such submodule."""
        module = copied(self.native if native else self.exact)
        if native and conditions.width:
            module = module.to(getattr(torch, conditions.width))
        with torch.no_grad():
            for name, tensor in tensors_of(module).items():
                tensor.copy_(_shared(state[name]))
        module = in_mode(module, training=mode == "train")
        for path in conditions.turned:
            # Into the other mode than the rest, as the port's side does: a `train` of its own may have put the part there already.
            module.get_submodule(path).train(mode != "train")
        for path in conditions.beside:
            part = module.get_submodule(path)
            part.training = not part.training
        for path, _, value in conditions.attributes:
            owner, _, name = path.rpartition(".")
            setattr(module.get_submodule(owner), name, value)
        return module

    def call_once(self, module: Any, values: Sequence[Array], drawing: Drawing, *, native: bool, noise: int, share: float) -> None:
        """Call the module for its effect on its state. Raises the errors of the original."""
        _, args, kwargs, _ = self.arguments(values, native=native)
        with (
            comparable(Stream(0, drawing), module, native=native, noise=noise, share=share),
            torch.set_grad_enabled(asks_gradients(self.cls)),
        ):
            methods.bound(module, self.method)(*args, **kwargs)

    def run(
        self,
        state: State,
        values: Sequence[Array],
        mode: str,
        *,
        targets: Mapping[int, Array] | Callable[[Result], Mapping[int, Array]] | None = None,
        native: bool = False,
        noise: int = 0,
        share: float = tolerances.EPS64,
        exact_inputs: bool = False,
        layout: Layout = "",
        before: Sequence[Array] | None = None,
        prior: tuple[Original, Sequence[Array]] | None = None,
        spoiled: bool = False,
        trained: bool = False,
        drawing: Drawing = USUAL,
        conditions: Conditions = AS_MADE,
        dtypes: Sequence[str] = (),
        second: bool = False,
        watch: Any = None,
    ) -> Result:
        """Run one forward pass, and one backward pass where `targets` are given. Raises the errors of the original.

        `prior` is another example of the same module and its inputs, which is called after that, in the same mode; with `spoiled`, what it left
        in attributes is changed then.
        `targets` (output index → array of the output's shape) may be a function of the result, which has
        the outputs by then. A call on `before`, where given, comes first, in training mode where
        `trained`. `noise` is the seed of rounding noise (0: none) of relative size `share`; `exact_inputs`
        keeps it from state and inputs. With `second`, the gradients are those of the squared length of the gradients (`squared_gradients`).
        `dtypes` are those of the inputs of a native call, where they are not the example's. `watch` is a dispatch mode around the passes.
        """
        tables = self._noisy_tables(noise, share) if noise and self._has_tables else {}
        reach.take()
        if noise and not exact_inputs:
            state, values = jittered(state, noise, share), list(jittered(dict(enumerate(values)), noise, share).values())
        module = self.module(state, "train" if trained else mode, native=native, conditions=conditions)
        put_tables(module, tables)
        made = _plain_attributes(module)
        called: dict[str, Any] = {"native": native, "noise": noise, "share": share}
        if before is not None:
            self.call_once(module, before, drawing, **called)
        called_once = _plain_attributes(module)
        if trained:
            in_mode(module, training=mode == "train")
        if prior is not None:
            _call_prior(module, prior, drawing, spoiled=spoiled, **called)
        leaves, args, kwargs, parts = self.arguments(values, native=native, layout=layout, dtypes=dtypes)
        versions = _versions(parts)
        stream, result, widths = Stream(0, drawing), Result(), Widths()
        # Those that an optimizer was given: a call may put others in their place.
        named = dict(module.named_parameters(remove_duplicate=False))
        held_before = {} if native else noted(held_values(module))
        objects = snapshot(_held(module), lambda value: isinstance(value, (torch.nn.Module, torch.Tensor)))
        with (
            comparable(stream, module, native=native, noise=noise, share=share),
            widths if native else nullcontext(),
            WeightNormByFormula() if second else nullcontext(),
            watch or nullcontext(),
            torch.set_grad_enabled(targets is not None or asks_gradients(self.cls)),
        ):
            output = methods.bound(module, self.method)(*args, **kwargs)
            outputs = _note_outputs(result, trees.with_objects(output, (args, kwargs)))
            if outputs:
                self.on_host = self.on_host is not False and not any(isinstance(item, torch.Tensor) for item in outputs)
            if targets is not None:
                result.targets = targets(result) if callable(targets) else targets
                value = loss(outputs, result.targets)
                value = squared_gradients(value, module, leaves) if second else value
                if value.requires_grad:
                    torch.autograd.backward(value)
                result.arrays["loss"] = to_numpy(value)
        result.draws, result.tied, result.narrow, result.packed = stream.log(), stream.tied, widths.narrow, stream.packed
        result.wide = operator_kinds.wide_alone(widths.kinds)
        result.mutated = versions != _versions(parts)
        result.rearranged = trees.rearranged(self.tree, (args, kwargs), is_leaf)
        if targets is not None:
            result.arrays |= _gradients(dict(module.named_parameters(remove_duplicate=False)) | named, leaves)
        _note_state(result, module, state)
        if not native:
            attributes = _left(module, held_before)
            result.arrays |= attributes
            self.held |= {key.partition("/")[2] for key in attributes}
        result.reached = reach.take()
        if before is not None and not trained and _plain_attributes(module) == called_once:
            self.resolved |= {name: value for name, value in called_once.items() if name not in made or value != made[name]}
        self.changes_objects |= any(put_back() for put_back in objects)
        return result


def _versions(parts: Sequence[Any]) -> list[object]:
    """What tells whether a call wrote into its arguments."""
    return [part._version if isinstance(part, torch.Tensor) else part.tobytes() for part in parts]


def _call_prior(module: Any, prior: tuple[Original, Sequence[Array]], drawing: Drawing, *, spoiled: bool, **called: Any) -> None:
    """Call the module as another example does; with `spoiled`, change what that left in attributes."""
    hidden = noted(held_values(module, hidden=True)) if spoiled else {}
    original, values = prior
    original.call_once(module, values, drawing, **called)
    if spoiled:
        spoil(module, hidden)


def _note_outputs(result: Result, output: Any) -> list[Any]:
    """The tensors of an output, after what a result says of them and of the numbers beside them was noted."""
    outputs: list[Any] = []
    result.tree = trees.encode(output, outputs, is_leaf)
    result.dtypes = [dtype_name(item) for item in outputs]
    result.arrays |= {f"out/{index}": to_numpy(item) for index, item in enumerate(outputs)}
    numbers = enumerate(trees.items(result.tree))
    result.arrays |= {f"number/{index}": np.asarray(item) for index, item in numbers if isinstance(item, float)}
    return outputs


def _note_state(result: Result, module: torch.nn.Module, before: State) -> None:
    """Note the buffers after a call, and the parameters that it wrote to."""
    # `remove_duplicate=False`: a tied parameter counts under each of its names.
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, value in tensors_of(module).items():  # one at a time: a large unit's state fits into memory a few times only
        if name not in parameters or (name in before and not _same(value, before[name])):
            result.arrays[f"state/{name}"] = to_numpy(value)


def _left(module: torch.nn.Module, before: Mapping[str, tuple[Any, int]]) -> dict[str, Array]:
    """What a call left in plain attributes (`left/…`), and the arrays that it found there and did not change (`held/…`)."""
    new, old = parted(held_values(module), before)
    arrays = {}
    for kind, values in (("left", new), ("held", old)):
        for path, value in values.items():
            try:
                # torch would round a number of Python's to its default width.
                arrays[f"{kind}/{path}"] = to_numpy(value) if isinstance(value, torch.Tensor) else np.asarray(value)
            except (trees.Unencodable, RuntimeError, TypeError):  # one without an array: quantised, on no device, or torch's own class
                continue
    return arrays


def _held(module: torch.nn.Module) -> list[Any]:
    """What a module and its parts hold beside their tensors and parts."""
    own = vars(torch.nn.Module())
    return [value for part in module.modules() for name, value in vars(part).items() if name not in own]


def _plain_attributes(module: torch.nn.Module) -> dict[str, Any]:
    """Path → value of the numbers, words and switches that a module and its parts hold."""
    return {
        f"{path}.{name}" if path else name: value
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if value is None or isinstance(value, (bool, int, float, str))
    }


def _same(tensor: torch.Tensor, expected: Array) -> bool:
    """Whether a tensor has these values. Most have, and comparing them costs as much as a small unit's whole pass: the quick way goes first."""
    if tensor.layout is torch.strided and torch.equal(tensor, _shared(expected).to(tensor.dtype)):
        return True
    value = to_numpy(tensor)
    return value.shape == expected.shape and np.array_equal(value, expected.astype(value.dtype), equal_nan=value.dtype.kind in "fc")


def _shared(value: Array) -> torch.Tensor:
    """The array as a tensor that is only read: it shares the memory where that can be."""
    # Arithmetic of NumPy with arrays without axes gives its scalars.
    if not isinstance(value, np.ndarray) or any(step < 0 for step in value.strides):
        return torch.from_numpy(np.array(value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it warns of arrays that must not be written into
        return torch.from_numpy(value)


def wide_flat(value: torch.Tensor) -> Array:
    """The tensor's values as an array [n], float64 where they are real."""
    flat = to_numpy(value).reshape(-1)
    return flat if flat.dtype.kind == "c" else flat.astype(np.float64)


def laid_out(leaf: torch.Tensor, layout: Layout) -> torch.Tensor:
    """A copy of the tensor in this memory layout; contiguous where it cannot have it."""
    if layout == "expanded" and leaf.ndim and leaf.numel() and torch.equal(leaf, leaf[:1].expand_as(leaf)):
        return leaf[:1].clone().expand(leaf.shape)
    if layout == "strided" and leaf.ndim > 1:
        return leaf.transpose(0, -1).contiguous().transpose(0, -1)
    return torch.stack([leaf, leaf], -1)[..., 0] if layout == "strided" and leaf.ndim else leaf.clone()


def tensors_of(module: Any) -> dict[str, torch.Tensor]:
    """The `state_dict` with the module's own tensors, detached."""
    return {name: value.detach() for name, value in module.state_dict(keep_vars=True).items() if isinstance(value, torch.Tensor)}


def comparable(stream: Stream, module: Any, *, native: bool, noise: int = 0, share: float = tolerances.EPS64) -> ExitStack:
    """The context in which the original runs: SDPA by its formula, paired draws, float64 unless `native`, rounding noise where `noise` is not 0."""
    stack = ExitStack()
    stack.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
    if noise:
        stack.enter_context(RoundingNoise(noise, share))
    # Modes entered later see an operator first: the lifting of dtypes must come before the draws.
    stack.enter_context(PairedDraws(stream))
    stack.enter_context(host_random.paired(stream, module.modules()))
    if not native:
        stack.enter_context(exact())
    return stack


def loss(outputs: Sequence[Any], targets: Mapping[int, Array]) -> torch.Tensor:
    """The sum over the outputs of the mean squared distance to their targets (scalar); elements that are not finite count as 0."""
    total = torch.zeros(())
    for index, target in targets.items():
        output = torch.as_tensor(outputs[index])
        goal = torch.from_numpy(np.array(target)).to(output.dtype)
        distance = torch.where(torch.isfinite(output), output - goal, torch.zeros_like(output))
        total = total + (distance.abs() ** 2 if distance.is_complex() else distance**2).mean()
    return total


def squared_gradients(value: torch.Tensor, module: Any, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
    """Half the squared length of the gradient of `value` by the inputs, or by the parameters where no input has one (scalar).

    A sum over all elements is the same in every layout of the parameters. Raises where torch cannot differentiate twice, or nothing once.
    """
    by = [leaf for leaf in leaves if leaf.requires_grad] or [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not by:
        raise ValueError("neither an input nor a parameter has a gradient, so there is no second one")
    gradients = torch.autograd.grad(value, by, create_graph=True, allow_unused=True) if value.requires_grad else ()
    return sum((0.5 * (gradient**2).sum() for gradient in gradients if gradient is not None), torch.zeros(()))


def _gradients(named: Mapping[str, torch.Tensor], leaves: Sequence[torch.Tensor]) -> dict[str, Array]:
    """Gradients by key, of parameters by name and of inputs; zeros where autograd gave none. Frozen parameters are left out."""
    pairs = {f"grad/{name}": value for name, value in named.items() if value.requires_grad}
    pairs |= {f"input-grad/{index}": leaf for index, leaf in enumerate(leaves) if leaf.requires_grad}
    converted: dict[int, Array] = {}
    for value in pairs.values():
        if id(value) not in converted:  # a tied parameter counts under each of its names
            converted[id(value)] = to_numpy(value.grad if value.grad is not None else torch.zeros_like(value), shared=True)
            value.grad = None
    return {key: converted[id(value)] for key, value in pairs.items()}


def jittered(values: Mapping[Any, Array], seed: int, share: float) -> dict[Any, Array]:
    """Change every float by up to `share` of itself; integral values stay, because they may be indices or flags."""
    jittered = {}
    for index, (key, value) in enumerate(values.items()):
        generator = np.random.default_rng([seed, index])
        if value.dtype.kind in "fc":
            whole = value == np.rint(value) if value.dtype.kind == "f" else np.zeros(value.shape, bool)
            factor = np.asarray(generator.uniform(-1, 1, value.shape))
            factor *= share
            factor += 1
            moved = np.multiply(value, factor, out=factor if value.dtype == factor.dtype else None)
            np.copyto(moved, value, where=whole)
            value = np.asarray(moved, value.dtype)
        jittered[key] = value
    return jittered


def _decode(tree: trees.Tree, parts: Sequence[Any], call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with `parts` in place of the recorded tensors. Walks the recorded call, because a tree in JSON loses classes."""
    position = iter(parts)

    def walk(item: Any) -> Any:
        if is_leaf(item):
            return next(position)
        if trees.is_object(item) or trees.is_namespace(item) or trees.is_own_collection(item):
            # The constructor counts as run where the port's runs too.
            if trees.is_fresh(item, is_leaf):
                return type(item)()
            attributes = {name: walk(part) for name, part in sorted(vars(item).items())}
            return trees.made(type(item), attributes, walk(trees.plain(item)) if trees.is_own_collection(item) else None)
        if isinstance(item, list):
            return [walk(part) for part in item]
        if isinstance(item, tuple):
            return (
                type(item)(*map(walk, item)) if hasattr(item, "_fields") else type(item)(map(walk, item)) if type(item) is tuple else item
            )
        if isinstance(item, dict):
            return {key: walk(part) for key, part in item.items()}
        if hasattr(item, "__dataclass_fields__") and not isinstance(item, type):
            clone = copy.copy(item)
            for name, spec in item.__dataclass_fields__.items():
                if spec.init:
                    object.__setattr__(clone, name, walk(getattr(item, name)))
            return clone
        if isinstance(item, trees.ITERATORS):
            return iter([walk(part) for part in copy.copy(item)])
        return item

    args, kwargs = walk(call)
    return args, kwargs
