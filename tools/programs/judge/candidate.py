"""The job on the side of the candidate: runs a training program in JAX, watched, from the state that the original's optimizers began with."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from migrate_agent.tools.harness.jax_side.compiled_programs import kind_of, outermost_trace
from migrate_agent.tools.harness.jax_side.initial_values import INITIAL, is_concrete
from migrate_agent.tools.programs.judge.beside import unrun_of
from migrate_agent.tools.programs.judge.clock import steady_clock
from migrate_agent.tools.programs.judge.contract import Trace
from migrate_agent.tools.programs.judge.deciding import conditions
from migrate_agent.tools.programs.judge.held_modules import held_modules
from migrate_agent.tools.programs.judge.jax_files import jax_files
from migrate_agent.tools.programs.judge.jax_schedules import keep_schedulers, later_rates, watch_schedules
from migrate_agent.tools.programs.judge.loads import reading
from migrate_agent.tools.programs.judge.paired import PairedDraws
from migrate_agent.tools.programs.judge.plain_lines import PlainLines
from migrate_agent.tools.programs.judge.reach import reached, unreached
from migrate_agent.tools.programs.judge.running import (
    WORK,
    files_in,
    printing,
    program_folder,
    run_script,
    seed_host_streams,
    written,
)


def run_candidate(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run a program as `Program.arguments` say and write its trace to `output`.

    `inputs["start"]` are the weights that the original's modules and optimizers began with, `generators` the states of torch's generator there, and
    `draws` those before each draw of the script that came after parameters were initialised, which takes no numbers of that generator here. `exact`,
    `scale`, `lines`, `steps` and `keep` are as for the original. `restored` are the numbers of the optimizers whose modules have their weights from a
    file by then. `quick` asks for compilation without optimisations. `schedules` are the schedulers of the original whose course goes on after the
    run: count, number of rates, and metric.
    """
    from safetensors.numpy import load_file

    from migrate_agent.tools.harness.common.xla_flags import EMITTERS, set_flag
    from migrate_agent.tools.harness.jax_side.convolutions import quick_convolutions
    from migrate_agent.tools.harness.jax_side.precision import configure, counting_compilations, lift_to_float64

    quick_convolutions()
    if arguments.get("quick"):
        set_flag(EMITTERS, "false")
        configure("jax_disable_most_optimizations", True)
    _hand_over_arrays()
    if arguments["exact"]:
        lift_to_float64()
        _widen_arrays()
    _seed_what_is_unseeded()
    trace = Trace(arguments["steps"], tuple(arguments["keep"]))
    watch = _Watch(trace, load_file(str(inputs["start"])), arguments["generators"], arguments["draws"], arguments["exact"])
    watch.work = output / WORK
    watch.scale, watch.restored = arguments["scale"], frozenset(arguments["restored"])
    counts: dict[str, int] = {}
    with program_folder(output, arguments) as script, ExitStack() as stack:
        work = output / WORK
        steady_clock(work, arguments.get("later", False))
        watch.install()
        functions = watch_schedules()
        before = files_in(work)
        opened = stack.enter_context(reading(work, before))
        stack.enter_context(counting_compilations(counts))
        stack.enter_context(printing(trace))
        plain = PlainLines(script.read_text(encoding="utf-8-sig"))
        others: dict[str, set[int]] = {path: set() for path in arguments["beside"]} if arguments["lines"] else {}
        watched_files = {str(work / path): ran for path, ran in others.items()}
        lines = stack.enter_context(reached(script, plain.look, watched_files)) if arguments["lines"] else set()
        seed_host_streams()
        run_script(script, trace)
        _wait(trace)
        watch.keep_last()
        schedules = later_rates(functions, watch.schedulers, arguments["schedules"], trace.steps)
        unrun = unreached(script.read_text(encoding="utf-8-sig"), lines) if arguments["lines"] else []
    files = written(work, before)
    text = script.read_text(encoding="utf-8-sig")
    trace.write(
        output,
        files=files,
        contents=jax_files(work, files, _stacked_layers([*watch.models, *watch.constructed.values()])),
        problems=watch.problems,
        compiled=watch.compiled,
        eager=watch.eager,
        partial=not watch.models,
        unrun=unrun,
        beside=unrun_of(work, arguments["beside"], others) if arguments["lines"] else {},
        plain=plain.rows(unrun),
        conditions=conditions(text),
        reads=sorted(opened),
        schedules=schedules,
    )
    return {"steps": trace.steps}


def _wait(trace: Trace) -> None:
    """Wait for what compiled code tells. A step that ended the program, which it was too early to see, may arrive as an error of the runtime here."""
    import jax

    barrier: Any = jax.effects_barrier
    try:
        barrier()
    except Exception:
        if not trace.done:
            raise


def _hand_over_arrays() -> None:
    """Let callbacks of compiled code get NumPy's arrays, as the runtime has them, which are there as long as the callback runs.

    JAX copies them into arrays of its own first. Such a copy needs a thread of the pool that the program itself computes in, and where there are few
    of those, each waits for the other for ever.
    """
    namespace: Any = importlib.import_module("jax._src.debugging")
    if hasattr(getattr(namespace, "api", None), "device_put"):
        namespace.api = SimpleNamespace(**{**vars(namespace.api), "device_put": lambda values, device: values})


def _seed_what_is_unseeded() -> None:
    """Let a stream that a program does not seed be that of seed 0, as torch's is on the side of the original."""
    namespace: Any = np.random
    own = namespace.SeedSequence

    def sequence(*args: Any, **kwargs: Any) -> Any:
        zeros = SimpleNamespace(generate_state=lambda count, dtype=np.uint32: np.zeros(count, dtype))
        return own(*args, **kwargs) if args or kwargs else zeros

    namespace.SeedSequence = sequence


def _widen_arrays() -> None:
    """Let arrays of NumPy become arrays of float64, as on the side of the original."""
    import jax.numpy as jnp

    namespace: Any = jnp
    for name in ("asarray", "array"):
        setattr(namespace, name, _widened(getattr(jnp, name)))


def _widened(own: Callable[..., Any]) -> Callable[..., Any]:
    def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
        narrow = isinstance(value, np.ndarray) and value.dtype == np.float32
        return own(value.astype(np.float64) if narrow else value, *args, **kwargs)

    return convert


def _widen_batches() -> None:
    """Let what loaders of the program give be float64 from here on: on the side of the original tensors are made of it there."""
    import jax

    def wide(leaf: Any) -> Any:
        return leaf.astype(np.float64) if isinstance(leaf, np.ndarray) and leaf.dtype == np.float32 else leaf

    def widened(own: Callable[..., Any]) -> Callable[..., Any]:
        return lambda loader: (jax.tree.map(wide, batch) for batch in own(loader))

    for cls in {
        id(one): one for module in list(sys.modules.values()) if (one := getattr(module, "__dict__", {}).get("DataLoader"))
    }.values():
        if isinstance(cls, type) and "__iter__" in vars(cls) and not hasattr(cls, "gives_wide_batches"):
            loader: Any = cls
            loader.__iter__, loader.gives_wide_batches = widened(loader.__iter__), True


class _Watch:
    """Hooks into Flax and JAX that note what a training loop does, also where it is compiled."""

    def __init__(self, trace: Trace, start: Mapping[str, Any], generators: list[Any], draws: list[Any], exact: bool) -> None:
        self.trace, self.generators, self.draws, self.exact = trace, generators, draws, exact
        self.start = {name: value for name, value in start.items() if name.startswith("start/")}
        self._made = _by_number(start, "made")
        self.work = Path.cwd()
        """The folder of the repository that the program runs in."""
        self.scale = 1.0
        """What every gradient is multiplied by."""
        self.restored: frozenset[int] = frozenset()
        """Optimizers whose modules the program has read from a file before."""
        self._initialised = False
        self.models: list[Any] = []
        self.schedulers: list[Any] = []
        self.problems: list[str] = []
        self.compiled: list[tuple[int, str]] = []
        """Of each gradient that was traced, the program that it is a part of, and what that program is right for."""
        self._programs: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._numbers = count()
        self.eager = 0
        self.paired = PairedDraws()
        self._inside = False
        self._updating = False
        self._depth = 0
        """How many modules are being constructed, one inside the other."""
        self.constructed: dict[int, Any] = {}
        """Modules with the names and shapes of those that an optimizer of the original has, by its number."""
        self._latest: dict[int, dict[str, Any]] = {}

    def install(self) -> None:
        """Watch gradients, optimizers and draws from here on."""
        import jax
        from flax import nnx

        for owner, name in ((nnx, "value_and_grad"), (nnx, "grad"), (jax, "value_and_grad"), (jax, "grad")):
            setattr(owner, name, self._gradient(getattr(owner, name), name == "grad", getattr(owner, "value_and_grad")))  # noqa: B009
        optimizer: Any = nnx.Optimizer
        module: Any = nnx.Module
        module.__repr__ = module.__str__ = lambda self: type(self).__name__
        self._optimizer(optimizer)
        self._watch_parameters(nnx.Param)
        self._watch_modules(nnx.Module)
        self._watch_updates()
        core: Any = importlib.import_module("jax._src.random.core")
        for name, numbers in INITIAL.items():
            setattr(core, name, self._while_constructing(getattr(core, name), numbers))
        if self.exact:
            core._bernoulli = lambda key, p, shape=None, mode="low": jax.numpy.ones(np.shape(p) if shape is None else shape, bool)
            self._pair(core)

    def _pair(self, core: Any) -> None:
        """Let draws after the first optimizer is there be those of the original's modules."""
        import jax
        import jax.numpy as jnp

        def drawn(kind: str, shape: Any, dtype: Any) -> Any:
            size = tuple(shape)
            # The numbers of each call, also where the caller is compiled.
            callback: Any = jax.experimental.io_callback
            struct: Any = jax.ShapeDtypeStruct
            numbers = callback(lambda: self.paired.draw(kind, size), struct(size, np.float64), ordered=True)
            return numbers.astype(dtype)

        def uniform(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
            return jnp.asarray(low + drawn("uniform", shape, dtype) * (high - low), dtype)

        replacements: dict[str, Callable[..., Any]] = {
            "_uniform": uniform,
            "_normal": lambda key, shape, dtype: drawn("normal", shape, dtype),
            "_exponential": lambda key, shape, dtype: drawn("exponential", shape, dtype),
            "_gumbel": lambda key, shape, dtype, mode: -jnp.log(drawn("exponential", shape, dtype)),
        }
        for name, replacement in replacements.items():
            setattr(core, name, self._once_active(getattr(core, name), replacement))

    def _while_constructing(self, own: Callable[..., Any], numbers: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            quick = self._depth > 0 and is_concrete(*args, *kwargs.values())
            return (numbers if quick else own)(*args, **kwargs)

        return draw

    def _once_active(self, own: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: (replacement if self.paired.active else own)(*args, **kwargs)

    def _gradient(self, own: Callable[..., Any], bare: bool, with_value: Callable[..., Any]) -> Callable[..., Any]:
        def transform(function: Any = None, *options: Any, **named: Any) -> Any:
            if function is None:
                return lambda f: transform(f, *options, **named)
            inner = with_value(function, *options, **named) if bare else own(function, *options, **named)
            if self._inside:
                return own(function, *options, **named)

            def differentiate(*args: Any, **kwargs: Any) -> Any:
                if self._inside:
                    return own(function, *options, **named)(*args, **kwargs)
                self._begin_without_optimizers()
                self._inside = True
                try:
                    value, gradients = inner(*args, **kwargs)
                finally:
                    self._inside = False
                gradients = self._scaled(gradients)
                auxiliary = bool(named.get("has_aux"))
                self._note_loss(value[0] if auxiliary else value, args, getattr(function, "__qualname__", ""))
                if bare:
                    return (gradients, value[1]) if auxiliary else gradients
                return value, gradients

            return differentiate

        return transform

    def _scaled(self, gradients: Any) -> Any:
        import jax

        return gradients if self.scale == 1.0 else jax.tree.map(lambda g: g * self.scale, gradients)

    def _note_loss(self, loss: Any, args: Any, name: str) -> None:
        import jax

        if isinstance(loss, jax.core.Tracer):
            self.compiled.append((self._program(), kind_of(name, args)))
        else:
            self.eager += 1
        jax.debug.callback(lambda value: self.trace.add("backward", loss=float(value)), loss, ordered=True)

    def _program(self) -> int:
        """The number of the program that is being traced."""
        trace = outermost_trace()
        if trace not in self._programs:
            self._programs[trace] = next(self._numbers)
        return self._programs[trace]

    def _optimizer(self, cls: Any) -> None:
        construct = cls.__init__
        own_classes = {cls}

        def __init__(optimizer: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            number = len(self.models)
            self.paired.active = True
            if not number:
                # The program's modules are there by now, and its schedulers are not.
                keep_schedulers(self.schedulers, self.work)
            updated = self._updated(number, model)
            self.models += updated
            for place, one in enumerate(updated):
                self._begin(number + place, one)
            construct(optimizer, model, *args, **kwargs)
            if (own := type(optimizer)) not in own_classes and "update" in vars(own):
                own_classes.add(own)
                own.update = self._watched_update(own.update)
            # Static, so that they are the same under `jit`, where the optimizer is another object.
            object.__setattr__(optimizer, "_number", number)
            object.__setattr__(optimizer, "_trained", next(i for i, one in enumerate(self.models) if one is self.models[number]))

        cls.__init__, cls.update = __init__, self._watched_update(cls.update)

    def _updated(self, number: int, model: Any) -> list[Any]:
        """The modules that an optimizer over `model` updates, of which the original's first one has this number."""
        states = _by_number(self.start, "start")
        return held_modules(model, [{name: value.shape for name, value in states[i].items()} for i in sorted(states) if i >= number])

    def _watched_update(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """An update that notes a step: of gradients, or of a closure that the optimizer calls as often as it needs."""

        def update(optimizer: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
            if self._updating:
                return own(optimizer, model, *args, **kwargs)
            self._updating = True
            try:
                result = own(optimizer, model, *args, **kwargs)
            finally:
                self._updating = False
            number = getattr(optimizer, "_number", 0)
            for place, one in enumerate(self._updated(number, model)):
                self._note_step(number + place, one)
            return result

        return update

    def _watch_modules(self, module: Any) -> None:
        """Give a module that is constructed the weights of the original's one with its names and shapes: it may be trained without an `nnx.Optimizer`."""
        meta: Any = type(module)
        construct = meta.__call__

        def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                made = construct(cls, *args, **kwargs)
            finally:
                self._depth -= 1
            if not self._depth and isinstance(made, module):
                self._begin_module(made)
            return made

        meta.__call__ = call

    def _begin_module(self, model: Any) -> None:
        """Give a module the weights that the original's next one with its names and shapes began with."""
        import jax

        from migrate_agent.tools.weights import StateDictError, leaves, load_leaves

        try:
            targets = leaves(model)
        except StateDictError:
            return
        shapes = {name: leaf.shape for name, leaf in targets.items()}
        if not shapes or any(isinstance(leaf.variable.get_value(), jax.core.Tracer) for leaf in targets.values()):
            return
        for number, state in self._made.items():
            if shapes == {name: value.shape for name, value in state.items()}:
                load_leaves(targets, self._narrow(self._made.pop(number)))
                break
        if not self.models:
            self._note_module(model, shapes)

    def _narrow(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state in the precision of the run, which may be double without ours."""
        import jax

        double = self.exact or jax.config.jax_enable_x64  # type: ignore[attr-defined]
        narrow = {name for name, value in state.items() if value.dtype == np.float64 and not double}
        return {name: value.astype(np.float32) if name in narrow else value for name, value in state.items()}

    def _note_module(self, model: Any, shapes: Mapping[str, Any]) -> None:
        for number in sorted({int(name.split("/")[1]) for name in self.start} - self.constructed.keys()):
            prefix = f"start/{number}/"
            theirs = {name.removeprefix(prefix): value.shape for name, value in self.start.items() if name.startswith(prefix)}
            if shapes == theirs:
                self.constructed[number] = model
                self._load(number, model, [])
                return

    def _watch_updates(self) -> None:
        """Note updates by `optax.apply_updates` of parameters that no `nnx.Optimizer` holds."""
        import optax

        namespace: Any = optax
        own = optax.apply_updates

        def apply_updates(params: Any, updates: Any) -> Any:
            result = own(params, updates)
            if not self._updating and not self.models:
                self._note_parameters(result)
            return result

        namespace.apply_updates = apply_updates

    def _note_parameters(self, params: Any) -> None:
        import jax

        values = {_path(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
        matches = [(number, _parameter_names(model)) for number, model in self.constructed.items()]
        number, names = next(((number, names) for number, names in matches if names.keys() == values.keys()), (-1, {}))
        if number < 0:
            return
        arrange = {name: leaf.axes for leaves in names.values() for name, leaf in leaves}
        arrays = {name: leaf.part(values[path]) for path, leaves in names.items() for name, leaf in leaves}
        jax.debug.callback(lambda arrays: self._end_step(number, arrays, arrange), arrays, ordered=True)

    def _end_step(self, number: int, arrays: Mapping[str, Any], arrange: Mapping[str, Any]) -> None:
        trace = self.trace
        trace.steps += 1
        trace.add("step", optimizer=number)
        self._latest[number] = {name: _arranged(value, arrange[name]) for name, value in arrays.items()}
        if trace.wants(trace.steps):
            trace.store(f"step/{trace.steps}/{number}", self._latest[number])
        trace.end_step()

    def _begin(self, number: int, model: Any) -> None:
        """Give the model and the generator the state that the original had here."""
        self._load(number, model, self.problems)
        self._set_generator(number)

    def _load(self, number: int, model: Any, problems: list[str]) -> None:
        from migrate_agent.tools.weights import StateDictError, load_state_dict

        prefix = f"start/{number}/"
        state = {name.removeprefix(prefix): value for name, value in self.start.items() if name.startswith(prefix)}
        if not state:
            problems.append(f"the original has no optimizer number {number + 1}")
            return
        narrow = self._narrow(state)
        if number in self.restored and (name := _first_other(model, narrow)):
            problems.append(f"{name} is not what the file holds that the program goes on from")
        copies = _copies(model)
        try:
            for one in (model, *copies):
                load_state_dict(one, narrow)
        except StateDictError as error:
            problems.append(str(error))

    def _begin_without_optimizers(self) -> None:
        """Begin training of modules that no `nnx.Optimizer` holds, once all of them are there and a number is drawn, or a gradient taken."""
        if not self.models and not self.paired.active and self.constructed.keys() == set(range(len(self.generators))):
            self.paired.active = True
            if not self.draws:
                self._set_generator(len(self.generators) - 1)

    def _set_generator(self, number: int) -> None:
        for generator in _generators():
            generator.set_state(_state(self.generators[number]))

    def _watch_parameters(self, cls: Any) -> None:
        """From the first parameter on, give the generator the state that the original had before each draw."""
        construct = cls.__init__

        def __init__(parameter: Any, *args: Any, **kwargs: Any) -> None:
            if not self._initialised:
                self._initialised = True
                self._watch_draws()
                if self.exact:
                    _widen_batches()
            construct(parameter, *args, **kwargs)

        cls.__init__ = __init__

    def _watch_draws(self) -> None:
        inside = [False]

        def watched(generator: Any, own: Callable[..., Any]) -> Callable[..., Any]:
            def draw(*args: Any, **kwargs: Any) -> Any:
                if inside[0]:
                    return own(*args, **kwargs)
                # All optimizers are there: nothing takes numbers for parameters any more.
                if self.draws and len(self.models) < len(self.generators):
                    generator.set_state(_state(self.draws.pop(0)))
                else:
                    self._begin_without_optimizers()
                inside[0] = True
                try:
                    return own(*args, **kwargs)
                finally:
                    inside[0] = False

            return draw

        for generator in _generators():
            for name in DRAWS:
                if hasattr(generator, name):
                    setattr(generator, name, watched(generator, getattr(generator, name)))

    def _note_step(self, number: int, model: Any) -> None:
        import jax

        from migrate_agent.tools.weights import leaves

        targets = leaves(model)
        values = {name: leaf.part(leaf.variable.get_value()) for name, leaf in targets.items()}
        arrange = {name: leaf.axes for name, leaf in targets.items()}

        def note(arrays: Mapping[str, Any]) -> None:
            trace = self.trace
            trace.steps += 1
            trace.add("step", optimizer=number)
            if trace.wants(trace.steps):
                trace.store(f"step/{trace.steps}/{number}", {k: _arranged(v, arrange[k]) for k, v in arrays.items()})
            trace.end_step()

        jax.debug.callback(note, values, ordered=True)

    def keep_last(self) -> None:
        """Keep the parameters that the run ended with."""
        from migrate_agent.tools.weights import state_dict

        if self.trace.done:
            # A step that is ended from within has given its arrays' memory over, and no new ones came of it.
            return
        for number, model in enumerate(self.models):
            self.trace.store(f"end/{number}", state_dict(model))
        for number, arrays in self._latest.items():
            self.trace.store(f"end/{number}", arrays)


def _by_number(tensors: Mapping[str, Any], kind: str) -> dict[int, dict[str, Any]]:
    """The states among tensors that are called `kind/NUMBER/NAME`, in order."""
    states: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith(f"{kind}/"):
            _, number, rest = name.split("/", 2)
            states.setdefault(int(number), {})[rest] = value
    return dict(sorted(states.items()))


DRAWS = ("rand", "randn", "randint", "randperm", "integer", "integers", "permutation", "normal", "uniform", "multinomial", "categorical")
"""Methods of the generator with torch's stream, of which each is one draw of torch."""


def _path(path: Any) -> str:
    """The dotted path of a leaf of a tree of parameters, whatever the nodes are."""
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(part for part in parts if part not in ("value", "raw_value"))


def _stacked_layers(models: Sequence[Any]) -> set[int]:
    """How many layers each stack of these modules has."""
    from flax import nnx

    nodes = [node for model in models for _, node in nnx.iter_graph(model) if getattr(type(node), "stacked", "")]
    return {int(node.count) for node in nodes}


def _parameter_names(model: Any) -> dict[str, list[tuple[str, Any]]]:
    """Path of each parameter of a module → its name in the original, and its leaf; several of each that holds those of several layers."""
    import jax
    from flax import nnx

    from migrate_agent.tools.weights import leaves

    of_variable: dict[int, list[tuple[str, Any]]] = {}
    for name, leaf in leaves(model).items():
        # Names of tied parameters: the last one counts.
        others = [one for one in of_variable.get(id(leaf.variable), ()) if one[1].index != leaf.index]
        of_variable[id(leaf.variable)] = [*others, (name, leaf)]
    paths = {".".join(map(str, path)): variable for path, variable in nnx.iter_graph(model) if isinstance(variable, nnx.Param)}
    parameters = {_path(path) for path, _ in jax.tree_util.tree_leaves_with_path(nnx.state(model, nnx.Param))}
    return {path: of_variable[id(variable)] for path, variable in paths.items() if path in parameters and id(variable) in of_variable}


def _first_other(model: Any, state: Mapping[str, Any]) -> str:
    """The first tensor of a module that is not that of a state, or ""."""
    from migrate_agent.tools.weights import state_dict

    own = state_dict(model)
    return next((name for name in state if name not in own or not np.allclose(own[name], state[name], rtol=1e-6, atol=1e-9)), "")


def _copies(model: Any) -> list[Any]:
    """Other modules of the same class with the same values, such as an average of weights that began as a copy."""
    from migrate_agent.tools.weights import leaves

    def values(module: Any) -> dict[str, Any]:
        return {name: np.asarray(leaf.part(leaf.variable.get_value())) for name, leaf in leaves(module).items()}

    own = values(model)
    others = [one for one in gc.get_objects() if type(one) is type(model) and one is not model]
    rows = [(one, values(one)) for one in others]
    return [one for one, row in rows if row.keys() == own.keys() and all(np.array_equal(row[name], own[name]) for name in own)]


def _generators() -> list[Any]:
    """The generators with torch's stream that modules of the program have."""
    spaces = [vars(module) for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
    candidates = [space.get("default_generator") for space in spaces]
    return list({id(one): one for one in candidates if type(one).__name__ == "TorchGenerator"}.values())


def _state(row: Mapping[str, Any]) -> dict[str, Any]:
    bits = {"bit_generator": "MT19937", "state": {"key": np.array(row["words"], np.uint64), "pos": row["place"]}}
    return {"seed": row["seed"], "spare": row["spare"], "bits": bits}


def _arranged(array: Any, axes: Any) -> Any:
    array = np.asarray(array)
    return np.array(array if axes is None else array.transpose(axes), order="C")
