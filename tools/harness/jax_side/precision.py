"""Makes jax comparable: float64 throughout and paired random draws. Used inside the sandbox, on the candidate's side.

jax has no modes like torch's, so this replaces private functions of jax 0.10: `tests/tools/harness/test_modes.py` holds them down.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, wraps
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common.random_streams import NO_CUSTOMS, Stream, beta
from migrate_agent.tools.harness.common.xla_flags import KERNEL_LIBRARY, library, set_flag
from migrate_agent.tools.harness.jax_side.backward_draws import Again, Heard, key_data
from migrate_agent.tools.harness.jax_side.loop_draws import LoopKeys, Repeated, Requests, static_steps, tables

NARROW = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
ALIASES = ("float32", "float16", "bfloat16", "complex64", "single", "csingle")

set_flag(KERNEL_LIBRARY, library())


def configure(name: str, value: Any) -> None:
    """Set an option of jax's configuration."""
    update: Any = jax.config.update
    update(name, value)


def configured(name: str) -> Any:
    """The value of an option of jax's configuration."""
    read: Any = jax.config.read
    return read(name)


@cache
def lift_to_float64() -> None:
    """Replace narrower float dtypes by float64, for the rest of the process. Call it before the candidate is imported."""
    configure("jax_enable_x64", True)
    narrow_types = {name: getattr(jnp, name) for name in ALIASES if hasattr(jnp, name)}
    wide = {name: _like(getattr(jnp, NARROW[np.dtype(narrow).name])) for name, narrow in narrow_types.items()}
    narrow = {narrow_types[name]: value for name, value in wide.items()}
    dtypes: Any = importlib.import_module("jax._src.dtypes")
    original = dtypes.check_and_canonicalize_user_dtype

    def lifted(dtype: Any, fun_name: Any = None, **options: Any) -> Any:
        canonical = original(dtype, fun_name, **options)
        stays = _importing or getattr(canonical, "name", "") not in NARROW
        return canonical if stays else np.dtype(NARROW[canonical.name])

    # Every function of jax that takes a `dtype` calls this one.
    dtypes.check_and_canonicalize_user_dtype = lifted
    _lift_flax_defaults(narrow)
    for name, value in wide.items():
        setattr(jnp, name, value)
    jnp.finfo = _finfo_of_constants(jnp.finfo, {id(value): narrow_types[name] for name, value in wide.items()})  # type: ignore[assignment]


_importing: list[str] = []
"""The files that are imported now, in a process where float dtypes are lifted."""


@contextmanager
def narrow_constants(name: str) -> Iterator[None]:
    """Import a file of the candidate as the original's files were: before anything is lifted. Numbers that float32 rounds in constants of the file
    (`MEAN = jnp.array([0.485, 0.456])`) are rounded on both sides then; afterwards their arrays are float64."""
    if not lift_to_float64.cache_info().currsize:
        yield
        return
    before = set(sys.modules)
    _importing.append(name)
    try:
        with jax.enable_x64(False):
            yield
    finally:
        _importing.pop()
    for other in sys.modules.keys() - before:
        if str(getattr(sys.modules[other], "__file__", None) or "").startswith(sys.path[0]):
            _widen_constants(vars(sys.modules[other]))


def _widen_constants(names: dict[str, Any]) -> None:
    """Make float64 of a file's arrays, and of those in its lists and tables."""
    names.update((name, _widened(value)) for name, value in list(names.items()) if not name.startswith("__"))


def _widened(value: Any) -> Any:
    match value:
        case jax.Array() if value.dtype.name in NARROW:
            return value.astype(NARROW[value.dtype.name])
        case dict():
            return {key: _widened(item) for key, item in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(map(_widened, value))
    return value


def _like(scalar_type: Any) -> Any:
    """Another scalar type of jax that equals this one."""
    return type(scalar_type)(scalar_type.__name__, (object,), {"dtype": scalar_type.dtype, "__module__": scalar_type.__module__})


def _finfo_of_constants(finfo: Any, narrow: dict[int, Any]) -> Callable[[Any], Any]:
    """`jnp.finfo` that answers constants of files and classes (`EPS = jnp.finfo(jnp.float32).eps`) as they are: the original was imported before
    anything was lifted, and has the numbers of the narrow dtype. `narrow`: by identity of the scalar types that stand for them."""

    def told(dtype: Any) -> Any:
        is_constant = not sys._getframe(1).f_code.co_flags & inspect.CO_OPTIMIZED
        return finfo(narrow.get(id(dtype), dtype) if is_constant else dtype)

    return told


def _lift_flax_defaults(narrow: dict[Any, Any]) -> None:
    """Lift the defaults of Flax's layers, which were bound to `jnp.float32` when flax was imported."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("flax.nnx"):
            continue
        for item in list(vars(module).values()):
            for function in (item, *vars(item).values()) if isinstance(item, type) else (item,):
                defaults = getattr(function, "__kwdefaults__", None)
                if isinstance(defaults, dict):
                    function.__kwdefaults__ = {
                        key: narrow.get(value, value) if isinstance(value, type(jnp.int32)) else value for key, value in defaults.items()
                    }


def untraced_origins() -> None:
    """Shorten the error of a tracer without `sharding`.

    jax asks every tracer for it when it makes an array, and to describe the tracer's origin it would
    read the whole trace.
    """

    def sharding(tracer: Any) -> Any:
        raise AttributeError(f"The 'sharding' attribute is not available on {tracer._error_repr()}.")

    core: Any = importlib.import_module("jax._src.core")
    core.Tracer.sharding = property(sharding)


@contextmanager
def tracers_as_data() -> Iterator[None]:
    """Have flax treat a constructor's plain arrays as data under `jit`: flax 0.12 takes tracers for static attributes."""
    pytreelib: Any = importlib.import_module("flax.nnx.pytreelib")
    tracer = importlib.import_module("jax._src.interpreters.partial_eval").DynamicJaxprTracer
    pytreelib.DATA_REGISTRY.add(tracer)
    try:
        yield
    finally:
        pytreelib.DATA_REGISTRY.discard(tracer)


BRANCH_ARGUMENTS = 2
"""Of `lax.cond` and `lax.switch`, functions stand among the first arguments behind the predicate; what follows are operands."""


class Seen(NamedTuple):
    """A watched draw: its kind, the rate of a `bernoulli`, the numbers, and the key."""

    kind: str
    rate: float | None
    values: Any
    key: Any


def current_trace() -> Any:
    """The trace that operators are added to: another one inside the body of a loop, of a branch, or under `vmap`."""
    core: Any = importlib.import_module("jax._src.core")
    return core.trace_ctx.trace


class Draws:
    """Replaces jax's samplers. With `stream`, draws come from it; without, from jax, and `rates` gets those of `bernoulli`."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.rates: list[list[Any]] = []
        self._core: Any = importlib.import_module("jax._src.random.core")
        self._own: dict[str, Callable[..., Any]] = {}
        for name in (
            "_uniform",
            "_normal",
            "_randint",
            "_exponential",
            "_gumbel",
            "_shuffle",
            "_permutation",
            "_bernoulli",
            "_beta",
            "_random_bits",
        ):
            self._own[name] = getattr(self._core, name)
            setattr(self._core, name, self._dispatch(name))
        self._asked: float | None = None
        self.watch: Any = None
        self.seen: list[Seen] = []
        self.heard: Heard | None = None
        self.nested = False
        """Whether a draw was in a function that is traced on its own: jax's cached trace of it holds that draw, and must not be used again."""
        new_context: Any = jax.make_user_context
        self._traced_as: Any = new_context()
        self._inside: ExitStack | None = None
        self._around: Any = None
        self.branches = 0
        """How many branches of `lax.cond` the function that is being traced stands in."""
        self.branching = False
        """Whether a mask was drawn in a branch since this was set to false."""
        for name in ("cond", "switch"):
            setattr(jax.lax, name, self._branching(getattr(jax.lax, name)))
        self.loops = 0
        """How many compiled loops the function that is being traced stands in."""
        self.loop_keys = LoopKeys()
        self._replace_loops()
        self._note_what_is_asked()

    def _branching(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        """`lax.cond` or `lax.switch` with branches that count themselves while they are traced."""

        def counted(value: Any) -> Any:
            if isinstance(value, (list, tuple)) and value and all(map(callable, value)):
                return [counted(branch) for branch in value]
            if not callable(value) or isinstance(value, jax.Array):
                return value

            @wraps(value)
            def branch(*args: Any, **kwargs: Any) -> Any:
                self.branches += 1
                try:
                    return value(*args, **kwargs)
                finally:
                    self.branches -= 1

            return branch

        @wraps(choose)
        def chosen(index: Any, *args: Any, **kwargs: Any) -> Any:
            names = ("true_fun", "false_fun", "branches")
            plain = [counted(value) if number < BRANCH_ARGUMENTS else value for number, value in enumerate(args)]
            return choose(index, *plain, **{name: counted(value) if name in names else value for name, value in kwargs.items()})

        return chosen

    def _replace_loops(self) -> None:
        """`lax.fori_loop` and `lax.scan` whose steps draw as those of torch's loop do, and `nnx.fori_loop`, which traces its step once more."""
        lax: Any = jax.lax
        fori_loop, scan, of_modules = lax.fori_loop, lax.scan, nnx.fori_loop

        @wraps(fori_loop)
        def looped(lower: Any, upper: Any, body_fun: Any, init_val: Any, **options: Any) -> Any:
            with self._in_steps(static_steps(lower, upper), lambda: jax.eval_shape(body_fun, lower, init_val)) as drawing:
                step = drawing(body_fun, lambda i, carry: i - lower)
                return fori_loop(lower, upper, step, init_val, **options)

        @wraps(scan)
        def scanned(f: Any, init: Any, xs: Any = None, length: Any = None, **options: Any) -> Any:
            leaves = jax.tree.leaves(xs)
            steps = int(length) if length is not None else leaves[0].shape[0] if leaves else None
            shape_of: Any = jax.ShapeDtypeStruct
            first = jax.tree.map(lambda leaf: shape_of(leaf.shape[1:], leaf.dtype), xs)
            with self._in_steps(steps, lambda: jax.eval_shape(f, init, first)) as drawing:
                step = drawing(lambda carry, x: f(carry[1], x), lambda carry, x: carry[0])
                counted = lambda carry, x: _counted(carry[0], step(carry, x))  # noqa: E731
                (_, last), rows = scan(counted, (jnp.int32(0), init), xs, length, **options)
                return last, rows

        @wraps(of_modules)
        def looped_modules(lower: Any, upper: Any, body_fun: Any, init_val: Any, **options: Any) -> Any:
            outside = self.loops

            @wraps(body_fun)
            def body(i: Any, value: Any) -> Any:
                # flax traces a step for the structure of its result, before the loop is there.
                with nullcontext() if self.loops > outside else self._unheard():
                    return body_fun(i, value)

            return of_modules(lower, upper, body, init_val, **options)

        lax.fori_loop, lax.scan, nnx.fori_loop = looped, scanned, looped_modules

    @contextmanager
    def _unheard(self) -> Iterator[Requests]:
        """A context in which draws are written down, and are draws of nobody."""
        stream, heard, rates = self.stream, self.heard, len(self.rates)
        requests = Requests(0, customs=stream.customs if stream is not None else NO_CUSTOMS)
        self.stream, self.heard = None if stream is None else requests, None
        try:
            with self.apart():
                yield requests
        finally:
            self.stream, self.heard = stream, heard
            del self.rates[rates:]

    @contextmanager
    def _in_steps(self, steps: int | None, trial: Callable[[], object]) -> Iterator[Callable[[Any, Any], Any]]:
        """A context for the trace of a loop; gives what makes a step of its body that draws the numbers of the step whose number it is told."""
        stream, rates = self.stream, len(self.rates)
        self.loops += 1
        try:
            requests = self._asked_in_step(stream, trial) if steps else ()
            if not requests or stream is None or steps is None:
                yield lambda body, number: body
                # Natively what a step draws is drawn in each.
                self.rates += self.rates[rates:] * ((steps or 1) - 1)
                return
            before, rows = len(stream.draws), tables(stream, requests, steps)
            self.loop_keys.places += 1
            place = self.loop_keys.places

            def drawing(body: Any, number: Any) -> Any:
                def step(*arguments: Any) -> Any:
                    index = number(*arguments)
                    drawn = Repeated(0, draws=stream.draws[:before], customs=stream.customs, tables=rows, step=index, place=place)
                    self.stream = drawn
                    try:
                        return body(*arguments)
                    finally:
                        self.stream = stream

                return step

            with self.apart():
                yield drawing
        finally:
            self.loops -= 1

    def _asked_in_step(self, stream: Stream | None, trial: Callable[[], object]) -> Sequence[Any]:
        """What one step of a loop asks for; nothing where that is not drawn by its steps: in branches, and in backward passes."""
        if stream is None or isinstance(stream, (Again, Repeated, Requests)):
            return ()
        with self._unheard() as requests:
            trial()
        return () if requests.optional else requests.asked

    def _dispatch(self, name: str) -> Callable[..., Any]:
        replacement = getattr(self, name.removeprefix("_"))

        def sampler(*args: Any, **kwargs: Any) -> Any:
            if name == "_bernoulli":
                self._note_rate(*args, **kwargs)
            if self.stream is not None:
                return self._from_stream(self.stream, replacement, *args, **kwargs)
            return self._watched(name, args[0], self._own[name](*args, **kwargs))

        return sampler

    def _from_stream(self, stream: Stream, replacement: Callable[..., Any], key: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(stream, Again):
            stream.key = key
        elif self.heard is not None:
            self.heard.hear(len(stream.draws), key)
        if isinstance(stream, Repeated):
            self.loop_keys.hear((stream.place, stream.position), stream.step, key_data(key))
        before = len(stream.draws)
        values = replacement(stream, key, *args, **kwargs)
        if self.branches:
            stream.optional.update(range(before, len(stream.draws)))
        if self._inside is not None and _trace() is not self._around:
            self.nested = True
            self._inside.enter_context(self.apart())
        return values

    def apart(self) -> AbstractContextManager[None]:
        """A context in which jax does not use cached traces."""
        # jax's caches have the user context in their keys; a new object equals no earlier one.
        return cast(AbstractContextManager[None], self._traced_as(object()))

    def _watched(self, name: str, key: Any, result: Any) -> Any:
        """Store a draw of the watched trace; a draw inside another transformation has no value outside of it."""
        if self.watch is not None and getattr(result, "_trace", None) is self.watch:
            self.seen.append(Seen(name, self.rates[-1][0] if name == "_bernoulli" else None, result, key_data(key)))
        return result

    @contextmanager
    def watching(self, like: Any) -> Iterator[list[Seen]]:
        """A context that stores the draws in the trace of `like`."""
        self.watch, self.seen = getattr(like, "_trace", None), []
        try:
            yield self.seen
        finally:
            self.watch = None

    def _note_what_is_asked(self) -> None:
        """Store the rate of each call of `bernoulli`: under `jit` its kernel gets a tracer."""
        own = self._core.bernoulli

        def bernoulli(key: Any, p: Any = 0.5, *args: Any, **kwargs: Any) -> Any:
            self._asked = None if isinstance(p, jax.core.Tracer) or np.size(p) != 1 else float(p)
            try:
                return own(key, p, *args, **kwargs)
            finally:
                self._asked = None

        jax.random.bernoulli = self._core.bernoulli = bernoulli
        classes: tuple[Any, ...] = (nnx.Rngs, nnx.RngStream)
        for cls in classes:
            cls.bernoulli = lambda rngs, *args, **kwargs: bernoulli(rngs(), *args, **kwargs)

    @contextmanager
    def hearing(self, heard: Heard) -> Iterator[None]:
        """A context in which traced programs report their draws to `heard` when they run."""
        self.heard = heard
        try:
            with self.apart():
                yield
        finally:
            self.heard = None

    @contextmanager
    def paired(self, stream: Stream) -> Iterator[None]:
        """A context in which draws come from `stream`."""
        outer = self.stream, self._inside, self._around
        # A draw in a loop enters `apart` inside the loop's own, and leaves it after that: the context of before is set once more at the end.
        with self._traced_as(self._traced_as.value), ExitStack() as inside:
            if self.nested:
                inside.enter_context(self.apart())
            self.stream, self._inside, self._around = stream, inside, _trace()
            try:
                yield
            finally:
                self.stream, self._inside, self._around = outer

    def _note_rate(self, key: Any, p: Any, shape: Any = None, mode: str = "low") -> None:
        size = np.shape(p) if shape is None else shape
        rate = self._asked if isinstance(p, jax.core.Tracer) else float(p) if np.size(p) == 1 else None
        self.rates.append([rate, list(size)])
        self.branching |= self.branches > 0
        if self.heard is not None and self.stream is None:
            self.heard.hear(tuple(size), key, p)

    def uniform(self, stream: Stream, key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any) -> Any:
        """`jax.random.uniform`'s kernel."""
        standard = jnp.asarray(stream.draw("uniform", shape), dtype)
        return jnp.asarray(minval + standard * (maxval - minval), dtype)

    def normal(self, stream: Stream, key: Any, shape: Any, dtype: Any) -> Any:
        """`jax.random.normal`'s kernel."""
        return jnp.asarray(stream.draw("normal", shape), dtype)

    def exponential(self, stream: Stream, key: Any, shape: Any, dtype: Any) -> Any:
        """`jax.random.exponential`'s kernel."""
        return jnp.asarray(stream.draw("exponential", shape), dtype)

    def gumbel(self, stream: Stream, key: Any, shape: Any, dtype: Any, mode: Any) -> Any:
        """`jax.random.gumbel`'s kernel: made of exponential numbers where torch draws those (`multinomial`, `gumbel_softmax`), else of uniform ones."""
        if stream.customs.exponential:
            return jnp.asarray(-jnp.log(stream.draw("exponential", shape)), dtype)
        return self._own["_gumbel"](key, shape, dtype, mode)

    def randint(self, stream: Stream, key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any) -> Any:
        """`jax.random.randint`'s kernel."""
        standard = stream.draw("integers", shape)
        return jnp.floor(minval + standard * (maxval - minval)).astype(dtype)

    def shuffle(self, stream: Stream, key: Any, x: Any, axis: int) -> Any:
        """`jax.random.permutation` of a range."""
        order = stream.draw("permutation", (x.shape[axis],)).astype(int)
        return jnp.take(x, order, axis=axis)

    def permutation(self, stream: Stream, key: Any, x: Any, axis: int, independent: bool) -> Any:
        """`jax.random.permutation` of an array."""
        return self.shuffle(stream, key, x, axis)

    def bernoulli(self, stream: Stream, key: Any, p: Any, shape: Any = None, mode: str = "low") -> Any:
        """`jax.random.bernoulli`: all ones, or the zeros that the stream plans."""
        size = np.shape(p) if shape is None else tuple(shape)
        return jnp.broadcast_to(jnp.asarray(stream.mask(size, self.rates[-1][0])), size)

    def beta(self, stream: Stream, key: Any, a: Any, b: Any, shape: Any, dtype: Any) -> Any:
        """`jax.random.beta`'s kernel."""
        size = np.broadcast_shapes(np.shape(a), np.shape(b)) if shape is None else tuple(shape)
        return jnp.asarray(beta(jnp.asarray(stream.draw("beta", size), dtype), a, b), dtype)

    def random_bits(self, stream: Stream, key: Any, bit_width: int, shape: Any) -> Any:
        """`jax.random.bits`: noted, because raw bits cannot be paired."""
        stream.note("bits", shape)
        return self._own["_random_bits"](key, bit_width, shape)


def _counted(number: Any, result: Any) -> Any:
    """The result of a step of `scan` with the number of the next one."""
    carry, row = result
    return (number + 1, carry), row


def _trace() -> Any:
    """The current trace of jax."""
    core: Any = importlib.import_module("jax._src.core")
    return core.trace_ctx.trace


@contextmanager
def counting_compilations(counts: dict[str, int]) -> Iterator[None]:
    """Count the XLA compilations of this thread by function name."""
    here = threading.get_ident()

    def note(event: str, duration_secs: float, **details: Any) -> None:
        if threading.get_ident() == here and event == "/jax/core/compile/backend_compile_duration":
            name = str(details.get("fun_name", ""))
            counts[name] = counts.get(name, 0) + 1

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
