"""The job on the side of the original: runs a training program as it is, watched, and leaves a trace."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from migrate_agent.tools.programs.contained import WRAPPERS
from migrate_agent.tools.programs.judge.beside import unrun_of
from migrate_agent.tools.programs.judge.by_hand import updates_by_hand
from migrate_agent.tools.programs.judge.clock import steady_clock
from migrate_agent.tools.programs.judge.contract import Trace
from migrate_agent.tools.programs.judge.deciding import deciding
from migrate_agent.tools.programs.judge.loads import Loads
from migrate_agent.tools.programs.judge.made_modules import watch_made_modules
from migrate_agent.tools.programs.judge.module_frames import drawn_by_a_module
from migrate_agent.tools.programs.judge.paired import PairedDraws
from migrate_agent.tools.programs.judge.plain_lines import PlainLines
from migrate_agent.tools.programs.judge.reach import reached, unreached_on_cpu
from migrate_agent.tools.programs.judge.running import (
    WORK,
    files_in,
    printing,
    program_folder,
    run_script,
    seed_host_streams,
    written,
)
from migrate_agent.tools.programs.judge.torch_files import torch_files
from migrate_agent.tools.programs.judge.torch_schedules import later_rates, watch_schedulers
from migrate_agent.tools.removed_names import restore

STRUCT_STATE = 624
FUNCTIONS = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial")
METHODS = ("random_", "normal_", "uniform_", "bernoulli_", "exponential_")
"""What draws from torch's generator, on `torch` and on its tensors."""
MOST_DRAWS = 200


def run_original(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run a program as `Program.arguments` say and write its trace to `output`.

    `exact` runs it in float64 with dropout's masks all ones, `perturb` moves the weights that its optimizers begin with, and those after each step, by
    that factor at random, `scale` multiplies every gradient, and `lines` notes which lines of the script do not run. `steps` (0: all) is where it ends, `keep` are the
    steps after which parameters are kept. What it raises is raised.
    """
    import torch

    from migrate_agent.tools.programs.judge.devices import everything_on_cpu

    trace = Trace(arguments["steps"], tuple(arguments["keep"]))
    watch = _Watch(trace, output / WORK, arguments.get("perturb", 0.0), arguments.get("scale", 1.0))
    with program_folder(output, arguments) as script, ExitStack() as stack:
        work = output / WORK
        steady_clock(work, arguments.get("later", False))
        everything_on_cpu()
        restore()
        watch.install()
        loads = Loads(script)
        loads.install()
        schedulers = watch_schedulers()
        before = files_in(work)
        if arguments["exact"]:
            # Built before the names of narrow dtypes mean wide ones.
            torch.storage._storage_type_to_dtype_map()
            from migrate_agent.tools.harness.torch_side.precision import exact
            from migrate_agent.tools.programs.judge.draws import NativeDraws, widen_arrays

            stack.enter_context(exact())
            widen_arrays()
            stack.enter_context(NativeDraws(watch.paired))
        stack.enter_context(printing(trace))
        plain = PlainLines(script.read_text(encoding="utf-8-sig"))
        others: dict[str, set[int]] = {path: set() for path in arguments["beside"]} if arguments["lines"] else {}
        watched_files = {str(work / path): ran for path, ran in others.items()}
        lines = stack.enter_context(reached(script, plain.look, watched_files)) if arguments["lines"] else set()
        stack.enter_context(updates_by_hand(script, watch.construct, lambda optimizer: watch.after_step(optimizer, (), {})))
        # Whatever was imported for the watching may have drawn.
        torch.manual_seed(0)
        seed_host_streams()
        with deciding(script) if arguments["lines"] else nullcontext() as parts:
            run_script(script, trace)
        watch.keep_last()
        schedules = later_rates(schedulers)
        # A second run of the same lines, which follows them, is enough.
        unrun = unreached_on_cpu(script.read_text(encoding="utf-8-sig"), lines) if arguments["lines"] else []
    files = written(work, before)
    trace.write(
        output,
        unrun=unrun,
        beside=unrun_of(work, arguments["beside"], others, unreached_on_cpu) if arguments["lines"] else {},
        plain=plain.rows(unrun),
        undecided=parts.undecided() if parts is not None else [],
        loads=loads.rows(),
        files=files,
        contents=torch_files(work, files),
        optimizers=watch.rows,
        draws=watch.draws,
        drew=watch.paired.drew,
        roots=watch.root_names,
        schedules=schedules,
    )
    return {"steps": trace.steps}


class _Watch:
    """Hooks into torch that note what a training loop does."""

    def __init__(self, trace: Trace, work: Path, perturb: float, scale: float) -> None:
        self.trace, self.work, self.perturb, self.scale = trace, work, perturb, scale
        self.optimizers: list[Any] = []
        self.roots: list[Any] = []
        self.rows: list[dict[str, Any]] = []
        self.paired = PairedDraws()
        self.draws: list[dict[str, Any]] = []
        """States of the generator before draws of the script between the first initialised parameter and the last optimizer."""
        self._drawn: list[dict[str, Any]] | None = None
        self.root_names: list[str] = []
        self.unpickled: list[Any] = []
        """Whole modules that the program has read from files."""
        self._modules = count()

    def install(self) -> None:
        import torch

        optimizer: Any = torch.optim.Optimizer
        module: Any = torch.nn.Module
        # What a module looks like as text is each framework's own.
        module.__repr__ = lambda self: type(self).__name__
        self._scale_gradients(torch.Tensor)
        self._around(torch.Tensor, "backward", self._before_backward)
        self._around(optimizer, "__init__", None, self.construct)
        self._around(optimizer, "zero_grad", self._before_zero)
        clip = importlib.import_module("torch.nn.utils.clip_grad")
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            setattr(clip, name, self._watched_clip(getattr(clip, name)))
            setattr(torch.nn.utils, name, getattr(clip, name))
        for owner, names in ((torch, FUNCTIONS), (torch.Tensor, METHODS)):
            for name in names:
                self._around(owner, name, self._before_draw)
        watch_made_modules(self._made)
        self._watch_whole_modules()
        hooks: Any = importlib.import_module("torch.optim.optimizer")
        hooks.register_optimizer_step_post_hook(self.after_step)

    def _around(self, owner: Any, name: str, before: Callable[..., Any] | None, after: Callable[..., Any] | None = None) -> None:
        own = getattr(owner, name)

        inside = [False]

        def watched(*args: Any, **kwargs: Any) -> Any:
            # Torch's function modes call a method a second time.
            if inside[0]:
                return own(*args, **kwargs)
            inside[0] = True
            try:
                return call(*args, **kwargs)
            finally:
                inside[0] = False

        def call(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                before(*args, **kwargs)
            result = own(*args, **kwargs)
            if after is not None:
                after(*args, **kwargs)
            return result

        watched.__name__, watched.__wrapped__ = name, own  # type: ignore[attr-defined]
        setattr(owner, name, watched)

    def _scale_gradients(self, tensor: Any) -> None:
        import torch

        own, scale, inside = tensor.backward, self.scale, [False]

        def backward(loss: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> Any:
            # Torch's function modes call a method a second time.
            if inside[0]:
                return own(loss, gradient, *args, **kwargs)
            inside[0] = True
            try:
                return own(loss, torch.full_like(loss, scale) if gradient is None else gradient * scale, *args, **kwargs)
            finally:
                inside[0] = False

        if scale != 1.0:
            tensor.backward = backward

    def _watched_clip(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """A clipping function that notes how many times its bound the gradients are."""

        def clip(parameters: Any, bound: Any, *args: Any, **kwargs: Any) -> Any:
            import torch

            listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            largest = max((float(p.grad.abs().max()) for p in listed if p.grad is not None and p.grad.numel()), default=0.0)
            norm = own(listed, bound, *args, **kwargs)
            size = largest if norm is None else float(norm)
            # A bound without end only asks for the norm.
            self.trace.add(
                "clip", site=caller(self.work), ratio=size / float(bound) if float(bound) and np.isfinite(float(bound)) else None
            )
            return norm

        def watched(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            names = [name for name in ("max_norm", "clip_value") if name in kwargs]
            return clip(parameters, *(kwargs.pop(name) for name in names), *args, **kwargs)

        return watched

    def _before_draw(self, first: Any = None, *args: Any, **kwargs: Any) -> None:
        import torch

        if kwargs.get("generator") is not None:
            return
        if isinstance(first, torch.nn.Parameter) or drawn_by_a_module(constructing=True):
            self._drawn = self._drawn if self._drawn is not None else []
        elif self._drawn is not None and len(self._drawn) < MOST_DRAWS:
            self._drawn.append(_generator_state(torch.get_rng_state().numpy()))

    def _made(self, module: Any) -> None:
        if not any(
            value.is_meta or type(value).__name__.startswith("Uninitialized") for value in [*module.parameters(), *module.buffers()]
        ):
            self.trace.store(f"made/{next(self._modules)}", _arrays(module))

    def _watch_whole_modules(self) -> None:
        import torch

        own = torch.load

        def load(*args: Any, **kwargs: Any) -> Any:
            tree = own(*args, **kwargs)
            self.unpickled += [tree] if isinstance(tree, torch.nn.Module) else []
            return tree

        torch.load = load

    def _before_backward(self, loss: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        # What is differentiated is the sum of the loss times the gradient that is handed over.
        whole = loss.detach() if gradient is None else (loss.detach() * gradient).sum()
        self.trace.add("backward", loss=float(whole) if whole.numel() == 1 else None)

    def _before_zero(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        self.trace.add("zero", optimizer=self._number(optimizer))

    def _number(self, optimizer: Any) -> int:
        return next((i for i, one in enumerate(self.optimizers) if one is optimizer), -1)

    def construct(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Note an optimizer that is there now: one over several modules as one of each, which is the same thing."""
        import torch

        self.paired.active = True
        self.draws, self._drawn = [*self.draws, *(self._drawn or [])], self._drawn and []
        groups = [{key: _plain(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
        row = {"class": type(optimizer).__name__, "groups": groups, "generator": _generator_state(torch.get_rng_state().numpy())}
        for root in roots_of([p for group in optimizer.param_groups for p in group["params"]]):
            number = len(self.optimizers)
            self.optimizers.append(optimizer)
            self.roots.append(root)
            self.root_names.append(type(root).__name__ if root is not None else "")
            self.rows.append(row)
            self.trace.add("optimizer", number=number, cls=type(optimizer).__name__)
            if root is not None:
                self.trace.store(f"start/{number}", _arrays(root))
                self._perturb(root)

    def _perturb(self, root: Any) -> None:
        import torch

        generator = np.random.default_rng(self.trace.steps)
        with torch.no_grad():
            for parameter in root.parameters() if self.perturb else ():
                noise = generator.standard_normal(tuple(parameter.shape)) * self.perturb
                parameter.mul_(1 + torch.from_numpy(np.asarray(noise)).to(parameter.dtype))

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note a step of an optimizer: of one over several modules, one of each. Ends the program where all steps were made."""
        for number in [i for i, one in enumerate(self.optimizers) if one is optimizer] or [-1]:
            self._after_step_of(number, [float(group["lr"]) for group in optimizer.param_groups])

    def _after_step_of(self, number: int, rates: list[float]) -> None:
        """Note a step of one module's parameters."""
        trace = self.trace
        trace.steps += 1
        trace.add("step", optimizer=number, rates=rates)
        if trace.wants(trace.steps) and number >= 0 and self.roots[number] is not None:
            trace.store(f"step/{trace.steps}/{number}", _arrays(self.roots[number]))
        if number >= 0 and self.roots[number] is not None:
            # Each step is rounded by itself: what the first weights were may be forgotten by then.
            self._perturb(self.roots[number])
        trace.end_step()

    def keep_last(self) -> None:
        """Keep the parameters that the run ended with; those of the last step are kept where it was ended early."""
        for number, root in enumerate(self.roots if not self.trace.done else ()):
            if root is not None:
                self.trace.store(f"end/{number}", arrays := _arrays(root))
                # The program may go on with what it read in place of what it trained.
                others = [row for row in map(_arrays, self.unpickled) if row.keys() == arrays.keys()]
                for other in others[-1:]:
                    self.trace.store(f"unpickled/{number}", other)


def caller(work: Path) -> str:
    """The place of the program that called what runs, relative to the folder of its repository: `train.py:12`."""
    folder = str(work)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(folder):
        frame = frame.f_back
    return f"{os.path.relpath(frame.f_code.co_filename, folder)}:{frame.f_lineno}" if frame is not None else ""


def root_of(owned: set[int]) -> Any:
    """The outermost module that holds parameters of an optimizer: the smallest one that holds them all, where one does."""
    import torch

    # Asked by `isinstance`, what stands for another object answers for that. What only wraps a module for several devices is none.
    modules = [item for item in gc.get_objects() if issubclass(type(item), torch.nn.Module) and type(item).__name__ not in WRAPPERS]
    holders = [(module, {id(p) for p in module.parameters()}) for module in modules]
    parts = {id(child) for module in modules for child in module.children()}
    whole = [(module, ids) for module, ids in holders if owned <= ids]
    tops = [(module, ids) for module, ids in whole if id(module) not in parts]
    return min(tops or whole, key=lambda pair: len(pair[1]))[0] if whole else None


def roots_of(parameters: Sequence[Any]) -> list[Any]:
    """The module that holds the parameters of an optimizer; where none holds them all, those that hold some, by the first parameter of each.

    `[None]` where some are in no module.
    """
    left, roots = list(parameters), [root_of({id(p) for p in parameters})]
    if roots[0] is not None or not left:
        return roots
    roots = []
    while left:
        root = root_of({id(left[0])})
        if root is None:
            return [None]
        own = {id(p) for p in root.parameters()}
        roots.append(root)
        left = [p for p in left if id(p) not in own]
    return roots


def _arrays(root: Any) -> dict[str, Any]:
    return {name: np.array(value.detach().numpy(), order="C") for name, value in root.state_dict().items() if hasattr(value, "detach")}


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else str(value)


def _generator_state(state: Any) -> dict[str, Any]:
    """The state of torch's generator in the terms of NumPy's Mersenne twister: words, the place among them, and the spare normal number."""
    left = int(state[8:12].view(np.int32)[0])
    place = int(state[16:24].view(np.uint64)[0])
    words = state[24 : 24 + 8 * STRUCT_STATE].view(np.uint64)
    rest = state[24 + 8 * STRUCT_STATE :]
    spare = float(rest[8:16].view(np.float64)[0]) if int(rest[24:28].view(np.int32)[0]) else None
    seed = int(state[:8].view(np.uint64)[0])
    return {"seed": seed, "words": words.tolist(), "place": STRUCT_STATE if left == 1 else place, "spare": spare}


os.environ.setdefault("MPLBACKEND", "Agg")
