"""Records calls of functions that launch a kernel of the repository: arguments, results and in-place changes.

A kernel has no PyTorch source to migrate from, so the recorded calls are the test of its JAX version.
Recording never changes the user's program: a call that cannot be recorded becomes a reason.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from migrate_agent.tools.record.capture import call_key, tensor_bytes
from migrate_agent.tools.record.kinds import base_kind

MAX_CALLS = 3
MAX_BYTES = 4 * 2**20
"""Bytes of the tensors that go into one call and come out of it."""
OBSERVE_KERNEL = "__migrate_agent_observe_kernel__"
Skipped = Mapping[str, int]
"""Qualified name of a function that launches a kernel → how many of its first parameters (`ctx`) are no arguments of the kernel's."""


@dataclass(eq=False)
class KernelSample:
    """One call: argument and result trees (`harness.common.trees`) over `tensors`, and the parameters that it changed in place."""

    source: str
    name: str
    key: Any
    input_bytes: int
    """Bytes of the tensors that go in."""
    arguments: Mapping[str, Any]
    tensors: dict[str, Any]
    result: Mapping[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


class UnusableCall(Exception):
    """A call that cannot be recorded; the message says why."""


class KernelCapture:
    """Keeps at most three calls of each function, of different shapes, small ones rather than large ones."""

    def __init__(self, active: Callable[[], bool] = lambda: True, changed: Callable[[], None] | None = None) -> None:
        self._active, self._changed = active, changed
        self._calls: dict[tuple[str, str], list[KernelSample]] = {}
        self._reasons: dict[tuple[str, str], str] = {}

    def samples(self) -> list[KernelSample]:
        """The calls that ran to their end."""
        return [sample for calls in self._calls.values() for sample in calls]

    def reasons(self) -> dict[str, str]:
        """`file:name` → why no call of it was kept."""
        return {f"{source}:{name}": reason for (source, name), reason in self._reasons.items() if not self._calls.get((source, name))}

    def observe(self, source: str, name: str, skipped: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator for a function that launches a kernel; the first parameters are passed over."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            names = [parameter.name for parameter in inspect.signature(function).parameters.values()][skipped:]

            @wraps(function)
            def watched(*args: Any, **kwargs: Any) -> Any:
                sample = self._before(source, name, args[skipped:], kwargs) if self._active() else None
                if sample is None:
                    return function(*args, **kwargs)
                # A kernel that draws random numbers cannot be replayed from its arguments.
                states = random_states()
                result = function(*args, **kwargs)
                self._after(sample, result, dict(zip(names, args[skipped:], strict=False)) | kwargs, states == random_states())
                return result

            return watched

        return decorate

    def _before(self, source: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> KernelSample | None:
        try:
            key = call_key((args, dict(kwargs)))
            calls = self._calls.setdefault((source, name), [])
            size = tensor_bytes((args, kwargs))
            if any(sample.key == key for sample in calls) or (
                len(calls) >= MAX_CALLS and size >= max(sample.input_bytes for sample in calls)
            ):
                return None
            if size > MAX_BYTES:
                raise UnusableCall(f"its calls hold more than {MAX_BYTES >> 20} MiB of tensors")
            tree, tensors = encode_tree((list(args), dict(kwargs)), "in")
            return KernelSample(source, name, key, size, tree, tensors)
        except Exception as error:
            self._reasons[source, name] = str(error) if isinstance(error, UnusableCall) else f"{type(error).__name__}: {error}"
            return None

    def _after(self, sample: KernelSample, result: Any, arguments: Mapping[str, Any], repeatable: bool) -> None:
        """Record a call that ran to its end; it replaces the largest one where `MAX_CALLS` are recorded."""
        calls = self._calls[sample.source, sample.name]
        try:
            if not repeatable:
                raise UnusableCall("it draws random numbers")
            sample.result, tensors = encode_tree(result, "out")
            sample.changed = changed_parameters(sample, arguments)
            sample.tensors |= tensors
            if sample.size > MAX_BYTES:
                raise UnusableCall(f"its calls hold more than {MAX_BYTES >> 20} MiB of tensors")
        except Exception as error:
            self._reasons[sample.source, sample.name] = (
                str(error) if isinstance(error, UnusableCall) else f"{type(error).__name__}: {error}"
            )
            return
        if len(calls) >= MAX_CALLS:
            calls.remove(max(calls, key=lambda sample: sample.input_bytes))
        calls.append(sample)
        if self._changed is not None:
            self._changed()


def encode_tree(value: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A value as a tree, and copies of its tensors named `<prefix>/<number>`. Raises `UnusableCall` and the errors of `trees.encode`."""
    from migrate_agent.tools.harness.common import trees

    leaves: list[Any] = []
    tree = trees.encode(value, leaves, lambda item: base_kind(type(item)) in ("tensor", "parameter"))
    return tree, {f"{prefix}/{number}": copy_tensor(leaf) for number, leaf in enumerate(leaves)}


def copy_tensor(tensor: Any) -> Any:
    """A contiguous CPU copy of a tensor. Raises `UnusableCall` for one without strided data of its own or of complex dtype."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided or tensor.is_quantized:
        raise UnusableCall(f"a {type(tensor).__name__} of layout {tensor.layout}")
    if tensor.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise UnusableCall("a tensor without data of its own")
    if tensor.is_complex():
        raise UnusableCall("complex tensors cannot be recorded")
    return tensor.detach().resolve_neg().cpu().clone().contiguous()


def changed_parameters(sample: KernelSample, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the parameters whose tensors the call changed in place, bit by bit."""
    import torch

    before = dict(sample.tensors)
    _, after = encode_tree((list(arguments.values()), {}), "in")
    if before.keys() != after.keys():
        # The call added or removed tensors in a container: any of them may have changed.
        return tuple(name for name, value in arguments.items() if tensor_bytes(value))
    counts = [(name, len(encode_tree(value, "in")[1])) for name, value in arguments.items()]
    owners = [name for name, count in counts for _ in range(count)]
    # Both encodings walk the same arguments in the same order, so the leaves pair up by position.
    pairs = zip(owners, before.values(), after.values(), strict=True)
    # Bytes, not values: NaN differs from itself, and -0.0 equals 0.0.
    return tuple(dict.fromkeys(name for name, old, new in pairs if not torch.equal(old.view(torch.uint8), new.view(torch.uint8))))


def random_states() -> list[bytes]:
    """The states of torch's generators (CPU, and CUDA where it is initialised) as bytes."""
    import torch

    states = [torch.get_rng_state()]
    cuda: Any = torch.cuda
    # Asking for the state would initialise CUDA, which the user's program may not want.
    if cuda.is_available() and cuda.is_initialized():
        states.append(cuda.get_rng_state())
    return [state.numpy().tobytes() for state in states]


def decorate_launchers(tree: ast.Module, names: Skipped, source: str) -> None:
    """Decorate the functions of these names, innermost, so that `staticmethod` and its like stay around."""

    def walk(node: ast.AST, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{path}.{child.name}" if path else child.name
                if name in names and isinstance(child, ast.FunctionDef):
                    arguments: list[ast.expr] = [ast.Constant(source), ast.Constant(name), ast.Constant(names[name])]
                    call = ast.Call(ast.Name(OBSERVE_KERNEL, ast.Load()), arguments, [])
                    for new in ast.walk(call):
                        if isinstance(new, ast.expr):
                            ast.copy_location(new, child)
                    child.decorator_list.append(call)
                walk(child, name)

    if names:
        walk(tree, "")
