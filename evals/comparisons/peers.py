"""Other ways from PyTorch to JAX that the package index has, and how each is asked to run a module.

A peer is installed when it is needed: its pinned wheel is unpacked into the cache, without its dependencies, so that nothing resolves torch or jax anew.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import torch

from migrate_agent.evals.operators.parity import Difference, Program, compare_program
from migrate_agent.evals.zoo_packages.packages import Source, cache_folder, fetch

Kind = Literal["right", "wrong result", "wrong gradient", "wrong state", "not under jit", "not implemented", "its interface", "raises"]


@dataclass(frozen=True)
class Peer:
    """A package that runs torch modules in JAX. `program` makes one of a module and the arguments that it will be called with."""

    name: str
    source: Source
    program: Callable[[torch.nn.Module, Any, Any], Program]
    stand_in: str = ""
    """The class that it puts in the place of tensors: an error that names it means something that this class cannot do."""

    @property
    def version(self) -> str:
        """The pinned version."""
        return self.source.version


@dataclass(frozen=True)
class Judgement:
    """How a peer did on one case; `kind` is the class of the failure."""

    kind: Kind
    reason: str = ""


class Built(NamedTuple):
    """A module and what to call it with; `constant` are the inputs, by number, for which torch has no gradient."""

    module: torch.nn.Module
    args: Any
    kwargs: Any
    constant: tuple[int, ...] = ()


def install(source: Source) -> Path:
    """Unpack the wheel into the cache, and give the folder. Raises `PackageError`."""
    cache = cache_folder().with_name("peers")
    folder = cache / Path(source.file).stem
    if not folder.exists():
        wheel = fetch(source, cache)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder.with_suffix(".new"))
        folder.with_suffix(".new").rename(folder)
    return folder


def import_error(source: Source) -> str:
    """The last line that importing the package says, or nothing where it can be imported. Raises `PackageError`."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(install(source))!r}); import {source.root}"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
    return re.sub(r" \(\S+\.py\)$", "", last) if process.returncode else ""


Mode = Callable[[], AbstractContextManager[None]]
"""What holds while both sides run."""


def judge(peer: Peer, build: Callable[[], Built], mode: Mode = nullcontext) -> Judgement:
    """Run the module that `build` gives under the peer, and compare it with torch, as the rewrite is compared: under `jax.jit`.

    What fails there is tried once more without, to tell why. Raises what `build` raises: that is nobody's failure but ours.
    """
    built, again = build(), build()
    try:
        _compare(peer, built, mode, jit=True)
    except Difference as error:
        return Judgement(_difference(str(error)), str(error))
    except Exception as error:
        reason = f"{type(error).__name__}: {re.sub(r' at 0x[0-9a-f]+', '', ' '.join(str(error).split()))[:200]}"
        return Judgement(_failure(peer, again, mode, error, reason), reason)
    return Judgement("right")


def _compare(peer: Peer, built: Built, mode: Mode, *, jit: bool) -> None:
    module, args, kwargs, constant = built
    with mode():
        compare_program(module, peer.program(module, args, kwargs), args, kwargs, jit=jit, constant=constant)


def _difference(reason: str) -> Kind:
    kinds: Mapping[str, Kind] = {"gradient of": "wrong gradient", "output": "wrong result"}
    return next((kind for text, kind in kinds.items() if reason.startswith(text)), "wrong state")


def _failure(peer: Peer, again: Built, mode: Mode, error: Exception, reason: str) -> Kind:
    if "object has no attribute 'value'" in reason:
        return "its interface"  # it gives one tensor, nothing else
    if isinstance(error, NotImplementedError) or (peer.stand_in and peer.stand_in in reason):
        return "not implemented"
    try:
        _compare(peer, again, mode, jit=False)
    except Exception:
        return "raises"
    return "not under jit"


class Positional(torch.nn.Module):
    """A module called with tensors alone, which stand where the call's tensors stood; all else is fixed."""

    def __init__(self, inner: torch.nn.Module, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.inner = inner
        leaves, self.tree = jax.tree.flatten((args, kwargs), is_leaf=lambda leaf: leaf is None)
        self.fixed = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: Any) -> Any:
        """Put the tensors in their places."""
        leaves = list(self.fixed)
        for position, tensor in zip(self.places, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = jax.tree.unflatten(self.tree, leaves)
        return self.inner(*args, **kwargs)


def tensors_of(args: Any, kwargs: Any) -> list[Any]:
    """The arrays among arguments, in order."""
    leaves = jax.tree.leaves((args, kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]


def torch2jax_program(module: torch.nn.Module, args: Any, kwargs: Any) -> Program:
    """As its README says: `t2j(module)(*arrays, state_dict=…, rng=…, return_state_dict=True)`."""
    library: Any = importlib.import_module("torch2jax")
    wrapped = Positional(module, args, kwargs)
    wrapped.train(module.training)
    function = library.t2j(wrapped)
    own = {name: value for name, value in wrapped.named_parameters(remove_duplicate=False) if value.requires_grad}
    first: dict[int, str] = {}
    leader = {name: first.setdefault(id(value), name) for name, value in own.items()}  # tied ones share their leader's gradient
    state = {name: library.t2j(value) for name, value in wrapped.state_dict().items()}
    parameters = {name: state[name] for name in set(leader.values())}
    others = {name: value for name, value in state.items() if name not in leader}

    def full(parameters: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
        return {**{name: parameters[owner] for name, owner in leader.items()}, **rest}

    def call(parameters: Any, rest: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        key = jax.random.PRNGKey(0)
        output, after = function(*tensors_of(args, kwargs), state_dict=full(parameters, rest), rng=key, return_state_dict=True)
        return output, {name: after[name] for name in rest}

    def names(parameters: Any, rest: Any) -> Mapping[str, Any]:
        return {name.removeprefix("inner."): value for name, value in full(parameters, rest).items()}

    return Program(parameters, others, call, names)


def wheel(package: str, version: str, sha256: str, module: str) -> Source:
    """A pure wheel of the index; `module` is what it is imported as."""
    file = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
    return Source(package, version, file, sha256, (), module)


PEERS: tuple[Peer, ...] = (
    Peer(
        "torch2jax",
        wheel("torch2jax", "0.1.0", "2a60280e5671e5c092f809316ff60f353f18eb1e2cc3d068908828aa27804ab6", "torch2jax"),
        torch2jax_program,
        "Torchish",
    ),
)
"""Those that are measured."""

NOT_IMPORTED: tuple[Source, ...] = (
    wheel("torchax", "0.0.13", "ce09fb2c55d4b772e02aca1c57cf00af4ab9ec67032476b3362e5091c61b80e7", "torchax"),
    wheel("pytorch2jax", "0.1.0", "93313fe032b8fe5b404dcd7daed6c9b96ff6964a593a0849c70ac29a480f2867", "pytorch2jax"),
)
"""Those that install but cannot be imported beside the torch and jax of `constraints.txt`; the suite tries each time, and prints what is said."""

NOT_COMPARED: Mapping[str, str] = {
    "ivy 1.0.0.5": "what it writes needs `jaxlib.xla_extension`, which jaxlib 0.10.2 does not have (tried by hand, with its own dependencies)",
    "torch-jax-interop 0.0.8": "calls torch back from JAX; nothing is translated",
    "wrap-torch2jax 0.9.0": "calls torch back from JAX; nothing is translated",
    "tojax": "needs Python 3.12; for 3.11 the index has a placeholder without code (0.0.1)",
    "framework-translator 1.1.1": "asks a hosted model, which needs an account",
}
"""Others that the index has, with the reason why they are not measured."""


def use(peers: Sequence[Peer] = PEERS) -> None:
    """Make the peers importable in this process. Raises `PackageError`."""
    sys.path[:0] = [str(install(peer.source)) for peer in peers]
