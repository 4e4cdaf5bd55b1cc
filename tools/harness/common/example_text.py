"""Evaluates an example's source texts into a module and its arguments (the torch side). Imports torch only inside of functions.

The texts are evaluated in a copy of the namespace of the unit's own file, plus `torch`, `_tensors` and what `setup` binds.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from migrate_agent.tools.harness.common.function_calls import held_names
from migrate_agent.tools.harness.common.function_module import function_module
from migrate_agent.tools.harness.common.partial_import import root_stays_first, use_all_parts
from migrate_agent.tools.harness.named_files import bring
from migrate_agent.tools.removed_names import restore
from migrate_agent.tools.types import Example


def load_unit(source_module: str, name: str, init: str = "") -> type:
    """The class `name` (a qualified name) of an importable module; of a function, a module class that calls it and holds what `init` gives.

    Raises what the import raises, and `AttributeError`.
    """
    value: Any = import_module(source_module)
    for part in name.split("."):
        value = getattr(value, part)
    if not isinstance(value, type) and callable(value):
        return function_module(value, held_names(init))
    if not isinstance(value, type):
        raise TypeError(f"{source_module}.{name} is neither a class nor a function")
    return value


def import_module(name: str) -> ModuleType:
    """Import a file of the user. Raises what the import of the file itself raises.

    Where that fails, extensions that cannot be compiled here are left out (`spare_extensions`), and the file is imported by what the unit needs
    of it, if that is known (`partial_import`). Where only the `__init__.py` of a package around it fails (many import every other file, and
    with them packages that are not installed), the file is imported without it.
    """
    from migrate_agent.tools.harness.torch_side.downloads import spare_downloads
    from migrate_agent.tools.harness.torch_side.extensions import spare_extensions
    from migrate_agent.tools.harness.torch_side.one_process import run_alone

    interpret_triton()
    run_alone()
    spare_downloads()
    restore()
    try:
        with root_stays_first():
            return importlib.import_module(name)
    except (Exception, SystemExit) as raised:
        if spare_extensions() or use_all_parts():
            return import_module(name)
        # What reads an attribute of an absent name says less than the import that failed.
        error = raised.__cause__ if isinstance(raised, AttributeError) and raised.__cause__ else raised
        if not isinstance(error, ImportError):
            raise
        # The file was imported through its package before the package failed.
        if name in sys.modules:
            return sys.modules[name]
        if not _bare_packages(name.split(".")[:-1]):
            raise error from None
        with root_stays_first():
            return importlib.import_module(name)


def interpret_triton() -> None:
    """Without a GPU, have kernels of files imported later run in Triton's own interpreter, which takes tensors of the CPU.

    https://triton-lang.org/main/programming-guide/chapter-3/debugging.html
    """
    import torch

    if importlib.util.find_spec("triton") is not None and not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")


def _bare_packages(parts: Sequence[str]) -> bool:
    """Replace packages that do not import by bare ones, whose `__init__.py` did not run. Returns whether any was replaced."""
    added = False
    for count in range(1, len(parts) + 1):
        package = ".".join(parts[:count])
        try:
            importlib.import_module(package)
        except ImportError:
            spec = importlib.util.find_spec(package)
            if spec is None or spec.submodule_search_locations is None:
                return False
            sys.modules[package] = importlib.util.module_from_spec(spec)
            added = True
    return added


def load_tensors(path: Path | None) -> dict[str, Any]:
    """The recorded tensors of an example, by name."""
    if path is None:
        return {}
    from safetensors.torch import load_file

    return dict(load_file(path))


def seed_python() -> None:
    """Seed the generators of Python and numpy, so that a constructor's draws from them (a random wiring) are equal on both sides."""
    import numpy as np

    random.seed(0)
    np.random.seed(0)


def make_namespace(module: ModuleType, example: Example, tensors: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The namespace in which `init` and `call` are evaluated. `tensors` overrides the example's file. Raises the errors of `setup`.

    Files of the repository that the texts name are copied into the folder that the process runs in.

    Where files that `setup` imports fail, they are imported by what the unit needs of them, as the unit's own file is.
    """
    import torch

    from migrate_agent.tools.harness.torch_side.gpu_names import spare_gpus

    given = tensors if tensors is not None else load_tensors(example.tensors)
    bring(example.init, example.setup)
    setup = compile(example.setup, "<setup of the example>", "exec")
    try:
        namespace = _run_setup(setup, module, torch, given)
    except (Exception, SystemExit):
        if not use_all_parts():
            raise
        namespace = _run_setup(setup, importlib.import_module(module.__name__), torch, given)
    spare_gpus()
    return namespace


def _run_setup(setup: CodeType, module: ModuleType, torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, Any]:
    namespace = {**vars(module), "torch": torch, "_tensors": tensors}
    seed_python()
    exec(setup, namespace)
    return namespace


def construct(cls: Callable[..., Any], example: Example, namespace: Mapping[str, Any]) -> Any:
    """An instance constructed with the arguments `init`; one with lazy layers is called once to create its parameters.

    Raises the errors of the constructor, and `SyntaxError` where `init` is no argument list.
    """
    seed_python()
    instance = _evaluate(f"_unit({example.init}\n)", "init", {**namespace, "_unit": cls})
    if example.call and not example.method:
        _materialise(instance, example, namespace)
    return instance


def _materialise(instance: Any, example: Example, namespace: Mapping[str, Any]) -> None:
    """Make the first call of a module with lazy layers, in evaluation mode, so that running statistics stay as they are."""
    import torch

    from migrate_agent.tools.harness.torch_side.value_trees import map_tree

    module = instance if isinstance(instance, torch.nn.Module) else torch.nn.Module()
    lazy = [value for value in (*module.parameters(), *module.buffers()) if torch.nn.parameter.is_lazy(value)]
    if not lazy:
        return

    def same_precision(value: Any) -> Any:
        # Under `exact` the layers are float64 and recorded inputs float32; lazy layers do not
        # convert.
        return value.to(lazy[0].dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    training = instance.training
    args, kwargs = map_tree(same_precision, call_arguments(example, namespace))
    with torch.no_grad():
        in_mode(instance, training=False)(*args, **kwargs)
    instance.train(training)


def in_mode(instance: Any, *, training: bool) -> Any:
    """Set the module's mode and return the module: a `train` of its own may return anything."""
    instance.train(training)
    return instance


def call_arguments(example: Example, namespace: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of the example's call, evaluated anew."""
    return _captured(example.call, "call", namespace)


def init_arguments(example: Example, namespace: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of the example's constructor, evaluated anew."""
    seed_python()
    return _captured(example.init, "init", namespace)


def _captured(text: str, part: str, namespace: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def capture(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    args, kwargs = _evaluate(f"_call({text}\n)", part, {**namespace, "_call": capture})
    return args, kwargs


def _evaluate(text: str, part: str, namespace: dict[str, Any]) -> Any:
    return eval(_compiled(text, part), namespace)


@cache  # hundreds of modules are made to compare initial values
def _compiled(text: str, part: str) -> CodeType:
    return compile(text, f"<{part} of the example>", "eval")


def build(module: ModuleType, name: str, example: Example) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Instance, positional and keyword arguments of an example."""
    namespace = make_namespace(module, example)
    instance = construct(load_unit(module.__name__, name, example.init), example, namespace)
    args, kwargs = call_arguments(example, namespace)
    return instance, args, kwargs
