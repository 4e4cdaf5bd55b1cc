"""The rows of the rewriter: operators and layers, and how they are found.

A row's `to` is a **template**, a Python expression with placeholders:

* `{x}`            the caller's argument `x`; where the caller left it out, the enclosing call argument is dropped as well
                   (`jnp.sum({x}, axis={dim})` → `jnp.sum(x)`), so the JAX default must mean what torch's default means;
* `{x=1}`          with a default text where the caller left it out;
* `{*xs}`          a variadic argument spliced as the caller wrote it (`x.reshape({*shape})`); `{xs}` gives it as one tuple;
* `{rng}`          a fresh key from the enclosing module's (or function's) `rngs`;
* `{rngs}`         the enclosing constructor's `rngs`.

Names `jnp.`, `jax.`, `lax.`, `nnx.`, `np.`, `math.`, `partial(`, `einops.` are imported as needed;
`vendored.f(...)` copies `f` from `tools/vendored/` into the target tree and calls it by its bare
name. Parentheses are added where precedence asks for them.

`to` may instead be a function of a `Call` (below) that returns a template, or raises
`Refuse(reason)`, which leaves a hole.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from migrate_agent.tools.discovery import modules_below
from migrate_agent.tools.types import Observed


class Refuse(Exception):
    """Raised by a row that cannot express this call exactly. `code` is the class of the hole."""

    def __init__(self, reason: str, code: str = "unsupported") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class Call(Protocol):
    """What a row's function may ask about the call that it rewrites."""

    def given(self, name: str) -> bool:
        """Whether the caller passed this argument."""
        ...

    def text(self, name: str) -> str:
        """The (already rewritten) source text of the argument, or of its default."""
        ...

    def literal(self, name: str) -> Any:
        """The Python value of the argument where it is a literal (or its default is), else `UNKNOWN`."""
        ...

    def constant(self, name: str) -> Any:
        """As `literal`; also where the argument is a name that its function binds once, to a tuple of literals."""
        ...

    def observed(self, name: str) -> Observed | None:
        """What the argument was when the examples ran, or what inference says; `None` where neither
        knows. For `{*xs}`: of the first.
        """
        ...

    def each(self, name: str) -> list[Observed | None]:
        """What is known of each value of a variadic argument, or of each element of a list or tuple
        that the caller wrote out; of a comprehension once.
        """
        ...

    def innermost(self, name: str) -> list[Observed | None]:
        """What is known of each element of the lists, tuples and comprehensions, in each other, that the caller wrote out."""
        ...

    def is_handed(self, name: str) -> bool:
        """Whether the caller passed an argument of the function around the call, as it got it."""
        ...

    def is_position(self, name: str) -> bool:
        """Whether the argument is made of positions along an axis, as `argmax` gives them."""
        ...

    def may_be_empty_vector(self, name: str) -> bool:
        """Whether one of the elements that the caller wrote out is made of a list that may be empty, and then has one axis."""
        ...

    def is_known(self, name: str) -> bool:
        """Whether the values of the argument are known while JAX traces the function around the call."""
        ...

    def are_amounts(self, name: str) -> bool:
        """Whether the caller wrote out a list or tuple, and its elements are ints of which none can be below zero."""
        ...

    def repeats(self, name: str) -> bool:
        """Whether the argument may be written twice: it calls nothing but `REPEATABLE`, and functions of the repository that only
        compute with numbers.
        """
        ...

    def draws(self, name: str) -> bool:
        """Whether the argument is a function of the repository that takes an `nnx.Rngs`."""
        ...

    def count(self, name: str) -> int:
        """How many values the caller passed for a variadic argument; one that is spread with a star
        counts as several.
        """
        ...

    def parts(self) -> tuple[str, ...]:
        """The names that the result is unpacked into (`v, _ = …`); none where it is not."""
        ...


UNKNOWN: Any = object()
"""`Call.literal` of an argument whose value is not written in the source."""

Template = str | Callable[[Call], str]


@dataclass(frozen=True)
class Op:
    """A torch function and all its spellings.

    `name` is the public dotted name (`torch.clamp`, `torch.nn.functional.gelu`,
    `torch.Tensor.view`). `signature` is torch's own Python signature, with defaults. `method` names
    the tensor method of the same meaning (first argument = the tensor), "" where there is none.
    `inplace` says that `<method>_` exists. `aliases` are further dotted names with the same
    signature. Arguments `out`, `device`, `layout`, `pin_memory`, `requires_grad`, `memory_format`,
    `generator`, `non_blocking`, `inplace` need not stand in the signature: the engine deals with
    them. `samples` are calls (source texts over `torch`) for operators that PyTorch's `op_db`
    lacks; `op_db` names its entry where it differs.
    """

    name: str
    signature: str
    to: Template
    method: str = ""
    inplace: bool = False
    aliases: tuple[str, ...] = ()
    op_db: str = ""
    samples: tuple[str, ...] = ()
    returns: str = "tensor"
    """Kind of the result for static inference: `tensor`, `int`, `tuple`, `bool`, …, or "" where unknown."""
    dtype: str = ""
    """The result's dtype where it is the same whatever the arguments are (`bool` of a comparison).
    Written in place it becomes the receiver's.
    """
    draws: bool = False
    """Whether the operator draws random numbers, so that its template asks for a key (`{rng}` or
    `{rngs}`).
    """
    quiet: tuple[tuple[str, Any], ...] = ()
    """Arguments of an operator that `draws`, and the value of each with which it draws nothing."""
    spread: str = ""
    """The template where a call spreads its last arguments (`x.uniform_(*bounds)`) and `to` is a function; it uses all arguments."""


@dataclass(frozen=True)
class Idiom:
    """How a mirror in plain style writes a call of a torch function for which the table of operators has a helper.

    `name` is that of the operator's row, and `to` gives the template, or "" where it declines: the result must be torch's in every case.
    """

    name: str
    to: Callable[[Call], str]


@dataclass(frozen=True)
class Weight:
    """Where a torch parameter or buffer lives in the NNX layer, and the axis order that turns
    torch's array into NNX's (None: as it is).
    """

    path: str
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Layer:
    """A `torch.nn` layer.

    `vendored` is the class in `tools/vendored/` with torch's constructor signature plus
    keyword-only `rngs`; it is used where the class is passed as a value, inherited from, or built
    from arguments the source does not spell out. `to` is the template of the direct construction
    (default: the vendored class with the caller's arguments and `rngs={rngs}`). `reads` says how
    attributes of an instance are spelled in NNX (`weight` → `{self}.kernel[...].T`); attributes not
    named are read as they are. Vendored layers whose layout differs from torch's have properties
    with torch's names (`weight`, `running_mean`) that read and set arrays in torch's layout; a
    variable that is assigned to one is shared.
    """

    name: str
    signature: str
    vendored: str
    to: Template = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """Attribute → the `nnx.Variable` itself (`weight` → `{self}.kernel`), for initialisers and tying."""
    samples: tuple[str, ...] = ()
    plain: Callable[[Call], str] | None = None
    """The template of a construction of Flax's own layer, where a repository asks no more of it than Flax's has; "" for what it cannot be."""
    plain_class: str = ""
    """Flax's own layer, which the vendored class derives from."""
    tested_as: str = ""
    """Flax's own layer where the classes of no other layer derive from it: `isinstance` then holds for this layer, whichever package's helper it is."""
    plain_reads: Mapping[str, str] = field(default_factory=dict)
    """How attributes of that are spelled, in torch's layout (`weight` → `{self}.kernel[...].T`)."""
    not_plain: tuple[str, ...] = ()
    """Attributes that it has not."""
    short: str = ""
    """The vendored class that stands for the class as a value there: Flax's own with the first of torch's arguments."""
    long_options: tuple[str, ...] = ()
    """Arguments that this does not take."""


REPEATABLE = frozenset("int float len max min round abs sum".split())
"""Functions of Python that give the same each time, at little cost."""


def is_repeatable(node: ast.expr) -> bool:
    """Whether an expression may be written twice: it calls nothing but `REPEATABLE`."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return all(isinstance(call.func, ast.Name) and call.func.id in REPEATABLE for call in calls)


def _rows(package: str, kind: type) -> list[Any]:
    result: list[Any] = []
    for module in modules_below(package):
        for value in vars(module).values():
            rows = value if isinstance(value, (list, tuple)) else (value,)
            result.extend(row for row in rows if isinstance(row, kind))
    return result


def _index(rows: list[Any], names: Callable[[Any], tuple[str, ...]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for row in rows:
        for name in names(row):
            # Two rows for one name would make the result depend on the order of the files.
            if table.get(name, row) is not row:
                raise ValueError(f"two rows for {name}")
            table[name] = row
    return table


def _names(op: Op) -> tuple[str, ...]:
    """The dotted names of a row; that of a function which writes to its first argument has an
    underscore (`torch.relu_`).
    """
    # `torch.relu_` exists, `torch.Tensor.relu__` does not: a method gets its underscore elsewhere.
    function = op.inplace and not op.name.startswith("torch.Tensor.")
    return (op.name, *op.aliases, *((f"{op.name}_",) if function else ()))


@cache
def ops() -> Mapping[str, Op]:
    """Dotted name → row, aliases included. Raises `ValueError` on two rows with one name."""
    return _index(_rows("migrate_agent.tools.rewrite.tables.ops", Op), _names)


@cache
def idioms() -> Mapping[str, Idiom]:
    """Name of an operator's row → its idiom."""
    return _index(_rows("migrate_agent.tools.rewrite.tables.idioms", Idiom), lambda idiom: (idiom.name,))


@cache
def methods() -> Mapping[str, Op]:
    """Tensor method name (without trailing underscore) → row."""

    def names(op: Op) -> tuple[str, ...]:
        implied = op.name.removeprefix("torch.Tensor.") if op.name.startswith("torch.Tensor.") else ""
        return tuple(name for name in (op.method, implied) if name)

    return _index(list(dict.fromkeys(ops().values())), names)


@cache
def layers() -> Mapping[str, Layer]:
    """Dotted class name → row."""
    return _index(_rows("migrate_agent.tools.rewrite.tables.layers", Layer), lambda layer: (layer.name,))


FUSED_PACKAGES = frozenset({"flash_attn", "xformers", "apex", "liger_kernel", "mamba_ssm", "causal_conv1d", "bitsandbytes"})
"""Packages for GPUs with kernels that the tables know. They need not be installed."""


@cache
def functional_layers() -> Mapping[str, str]:
    """Layer → the function that stands for its instances."""
    return {name: layer.to for name, layer in layers().items() if isinstance(layer.to, str) and layer.to.startswith(("jax.", "jnp."))}


@cache
def of_fused_package(dotted: str) -> bool:
    """Whether this is a kernel of such a package that the tables have, or a module or class that
    holds one.
    """
    # Nearly every name ends here; the search over all rows below would cost too much.
    if dotted.partition(".")[0] not in FUSED_PACKAGES:
        return False
    return any(name == dotted or name.startswith(f"{dotted}.") for name in (*ops(), *layers()))


def public_name(dotted: str) -> str:
    """The name by which the tables know a layer: `torch.nn.modules.activation.ELU` →
    `torch.nn.ELU`, and what code reaches through a module that imports torch (`F.torch.cat`) → `torch.cat`. Other names stay.
    """
    if dotted.startswith("torch.") and (inner := dotted.rfind(".torch.")) > 0:
        return public_name(dotted[inner + 1 :])
    # Code imports layers by the path of their file too, and examples report that path.
    if dotted.startswith("torch.nn.modules.") and (name := f"torch.nn.{dotted.rpartition('.')[2]}") in layers():
        return name
    return dotted
