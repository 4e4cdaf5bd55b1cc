"""Calls in bfloat16 and float16, with integers in the place of booleans, and with infinities where a mask hides them. Used inside the sandbox, on
the original's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files
from migrate_agent.tools.harness.common.conditions import Conditions
from migrate_agent.tools.harness.common.input_sampling import Array, Extreme
from migrate_agent.tools.harness.torch_side.precision import SmallDivisors, Undetermined, WithoutAxes
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt, finite_share, same
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.writer import NARROWED, SCALED, ScenarioWriter

CASTS = frozenset("float half bfloat16 float16 float32 double dtype type_as finfo autocast is_floating_point".split())
"""Names in code that looks at dtypes or changes them."""
WIDTHS = ("bfloat16", "float16")
TRAINED = "bfloat16"
"""The width that is also compared in training mode, whose code may make arrays of its own."""
WITHOUT_AXES = Undetermined("in torch a number without axes does not widen what it is added to, in JAX it does")
SMALL_DIVISOR = Undetermined(
    "a number is divided by whose inverse this width does not hold, and XLA multiplies by the inverse of a constant"
)
HOST_DRAWS = frozenset("random default_rng randint uniform choice choices sample shuffle gauss beta binomial permutation".split())
"""Names in code that draws numbers by Python or NumPy."""
DRAWN_ON_HOST = Undetermined("a number that Python or NumPy draws does not widen what it is multiplied with, in JAX it does")
SCALE = 1e-6
"""Parameters are also this many times as large: what is added to a variance or a norm is no longer small beside it."""


def casts(writer: ScenarioWriter) -> bool:
    """Whether the original's code looks at dtypes."""
    return source_literals.uses(writer.original.native, CASTS)


def narrow_inputs(writer: ScenarioWriter) -> None:
    """Add calls in which parameters and inputs are narrow, and one in which the inputs alone are, as far as torch takes them."""
    leaves = writer.original.leaves
    narrow = [leaf.dtype == "float32" and not numpy for leaf, numpy in zip(leaves, writer.original.is_numpy, strict=True)]
    if not any(narrow) or any(leaf.dtype in WIDTHS for leaf in leaves):
        return
    _keep_state(writer, NARROWED, {name: rounded(value) for name, value in writer.states[0].items()})
    values = [rounded(value) if moves else value for value, moves in zip(writer.values(0), narrow, strict=True)]
    for label, width, mixed in (*((width, width, False) for width in WIDTHS), ("mixed", "bfloat16", True)):
        dtypes = [width if moves else leaf.dtype for leaf, moves in zip(leaves, narrow, strict=True)]
        if mixed and _seen(writer, WithoutAxes(), values, dtypes, Conditions()):
            writer.skip(f"narrow-{label}", WITHOUT_AXES)
        elif not mixed or writer.states[NARROWED]:
            conditions = Conditions() if mixed else Conditions(width, unsaved=_unsaved_floats(writer))
            how: dict[str, Any] = {"native": True, "conditions": conditions, "dtypes": dtypes, "runs": 1}
            if _seen(writer, SmallDivisors(), values, dtypes, conditions):
                writer.skip(f"narrow-{label}", SMALL_DIVISOR)
                continue
            writer.attempt(f"narrow-{label}", Role.NARROW, NARROWED, values, **how)
            if label == TRAINED and not writer.original.method and writer.trains():
                _trained(writer, f"narrow-{label}-train", values, how)
            # What a mask fills with may have no place in the narrowest range.
            if label == "float16" and any(leaf.dtype == "bool" for leaf in leaves):
                hidden = [np.zeros_like(value) if leaf.dtype == "bool" else value for value, leaf in zip(values, leaves, strict=True)]
                writer.attempt("narrow-float16-masked", Role.NARROW, NARROWED, hidden, **how)


def _seen(
    writer: ScenarioWriter, mode: WithoutAxes | SmallDivisors, values: Sequence[Array], dtypes: Sequence[str], conditions: Conditions
) -> bool:
    """Whether a mode that watches the call sees what it looks for."""
    attempt(
        lambda: writer.original.run(writer.states[NARROWED], values, "eval", dtypes=dtypes, native=True, watch=mode, conditions=conditions)
    )
    return mode.seen


def _trained(writer: ScenarioWriter, label: str, values: Sequence[Array], options: Mapping[str, Any]) -> None:
    """The call in training mode, where no number of Python's is drawn."""
    if source_literals.uses(writer.original.native, HOST_DRAWS):
        writer.skip(label, DRAWN_ON_HOST)
    else:
        writer.attempt(label, Role.NARROW, NARROWED, values, mode="train", **options)


def _unsaved_floats(writer: ScenarioWriter) -> tuple[str, ...]:
    """The float buffers that are in no checkpoint: torch casts them with the rest."""
    module = writer.original.native
    saved = module.state_dict().keys()
    return tuple(name for name, buffer in module.named_buffers() if buffer.is_floating_point() and name not in saved)


def rounded(value: Array) -> Array:
    """Floats as bfloat16 and float16 both hold them, in the array's own dtype."""
    if value.dtype.kind != "f":
        return value
    tensor = torch.from_numpy(np.array(value))
    for width in (torch.bfloat16, torch.float16):
        cast = tensor.to(width).to(tensor.dtype)
        tensor = torch.where(torch.isfinite(cast), cast, tensor)
    return np.asarray(tensor.numpy())


def small_parameters(writer: ScenarioWriter) -> None:
    """Add a call with parameters that are a millionth of the usual ones."""
    names = writer.original.parameters
    state = {name: input_sampling.single(value * SCALE) if name in names else value for name, value in writer.states[0].items()}
    if any(value.dtype.kind == "f" for name, value in state.items() if name in names):
        _keep_state(writer, SCALED, state)
        writer.attempt("edge-small-parameters", Role.EDGE, SCALED, writer.values(0), native=True, runs=1, extreme=Extreme.LARGE)


def masks(writer: ScenarioWriter) -> None:
    """Add integers in the place of booleans, where they mean the same to the original, and infinities where a mask hides them."""
    leaves, values = writer.original.leaves, writer.values(0)
    flags = [leaf.dtype == "bool" and leaf.value.ndim > 0 for leaf in leaves]
    if not any(flags):
        return
    integers = [value.astype(np.int64) if flag else value for value, flag in zip(values, flags, strict=True)]
    usual = writer.once(writer.states[0], values, "eval")
    counted = attempt(lambda: writer.original.run(writer.states[0], integers, "eval"))
    if counted is not None and counted.tree == usual.tree and same(counted, usual):
        dtypes = ["int64" if flag else leaf.dtype for leaf, flag in zip(leaves, flags, strict=True)]
        writer.attempt("edge-integers-for-booleans", Role.EDGE, 0, integers, native=True, dtypes=dtypes, runs=1)
    hidden = input_sampling.hidden(leaves, values, flags)
    if hidden is not None:
        writer.attempt("edge-hidden-infinities", Role.NONFINITE, 0, hidden, native=True, runs=1, extreme=Extreme.HIDDEN)


def extremes(writer: ScenarioWriter) -> None:
    """Add inputs far from zero beside their spread, huge ones, and rows of zeros, where torch gives numbers for them."""
    for label, values in input_sampling.far_inputs(writer.original.leaves, writer.values(0)).items():
        result = attempt(lambda values=values: writer.once(writer.states[0], values, "eval"))  # type: ignore[misc]
        if result is not None and finite_share(result) == 1:
            # Natively XLA computes a score anew where it takes the largest one away: at this size the two differ by more than `exp` can take.
            huge = label == "huge"
            extreme = Extreme.LARGE if huge else Extreme.NONE
            writer.attempt(f"edge-{label}", Role.EDGE, 0, values, native=not huge, runs=1, extreme=extreme)


def _keep_state(writer: ScenarioWriter, seed: int, state: Mapping[str, Array]) -> None:
    writer.states[seed] = dict(state)
    tensor_files.save(writer.folder / f"given/states/{writer.state_name(seed)}.safetensors", writer.states[seed])


def add_widths(writer: ScenarioWriter) -> None:
    """Add all of these."""
    extremes(writer)
    small_parameters(writer)
    add_forms(writer)


def add_forms(writer: ScenarioWriter) -> None:
    """Add the other forms of the same inputs: masks of integers, masks that hide infinities, narrow dtypes."""
    masks(writer)
    if _numbers(writer) <= budgets.CONFIGURATION_ELEMENTS:
        narrow_inputs(writer)


def _numbers(writer: ScenarioWriter) -> int:
    arrays: Sequence[Array] = [*writer.states[0].values(), *writer.values(0)]
    return sum(value.size for value in arrays)
