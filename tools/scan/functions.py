"""Which module-level functions are units: tensor maths that takes and gives values.

A function that trains, reads or writes files, or handles modules is program code. One without tensor maths is copied where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from migrate_agent.tools.scan.detectors import DETECTORS, Hit
from migrate_agent.tools.scan.function_shapes import FunctionShape
from migrate_agent.tools.scan.graph import TORCH_MODULE, Graph, Key
from migrate_agent.tools.scan.strategy import Choice, is_test
from migrate_agent.tools.types import Unit

_PLAIN = r"""
    manual_seed seed initial_seed random device dtype compile no_grad inference_mode enable_grad set_\w+ get_\w+ use_\w+ is_\w+ save load hub
    float\d* double half bfloat16 int\d* long short uint\d+ bool complex\d+ finfo iinfo e pi inf nan typename cuda mps jit autograd optim utils
    distributed backends onnx export fx ao quantization library ops nn multiprocessing profiler amp autocast version compiler
    strided contiguous_format channels_last\w* preserve_format from_numpy
"""
"""Lower-case names of torch that are no maths by themselves."""
MATHS = re.compile(
    rf"torch\.(?!({'|'.join(_PLAIN.split())})(\.|$))[a-z].*|torch\.nn\.functional\.\w+|torch\.autograd\.(grad|functional\.\w+)"
    r"|einops\.(rearrange|reduce|repeat|einsum|pack|unpack)|torchvision\.ops\.[a-z]\w*"
)
STATELESS = re.compile(
    r"torch\.nn\.(Module|Parameter|\w*Loss|Cosine\w+|PairwiseDistance|(Log)?Softm\w+|\w*[Ss]igmoid|\w*[Tt]anh|\w*LU|Softplus|\w*Pool\dd"
    r"|Upsample|Flatten|\w*Pad\dd|Unfold|Fold|Identity|PixelShuffle)"
)
"""Classes of torch's modules without parameters: a function that calls one makes maths, and builds no module."""
NUMPY = re.compile(
    r"numpy\.(?!(pi|e|inf|nan|newaxis|sqrt|log\d*|exp|prod|ceil|floor|abs|max|min|random(\..*)?|ndarray|integer|floating|bool_|u?int\d*|float\d*)$).+"
)
"""Names of NumPy that make or take arrays, where others give one number: what uses them, and nothing of torch, works on NumPy's arrays."""


def function_reasons(graph: Graph) -> dict[Key, str]:
    """The functions that make tensor maths → "" for a unit, else why it is none."""
    shapes = {
        Key(path, name): shape
        for path, reading in graph.readings.items()
        if not graph.files[path].adopted and not is_test(path)
        for name, shape in reading.functions.items()
        if graph.definitions.get(Key(path, name)) is not None and graph.definitions[Key(path, name)].kind == "function"
    }
    reasons = {key: shape.reason or _modules(graph, key) for key, shape in shapes.items()}
    for key, used in _initialising(graph, {key for key, shape in shapes.items() if shape.initialises}, shapes):
        reasons[key] = reasons[key] or f"it uses {used.name}: it initialises parameters"
    maths = {key for key, shape in shapes.items() if _is_maths(graph, key, shape)}
    # What hands tensors on to such a function is maths too, whatever it does itself.
    while grown := {
        key for key in shapes.keys() - maths if not reasons[key] and any(not reasons.get(k, "") for k in _used(graph, key, maths))
    }:
        maths |= grown
    outside = _used_outside(graph, maths)
    return {key: reasons[key] for key in sorted(maths, key=lambda key: (key.path, graph.definitions[key].line)) if _counts(key, outside)}


def _initialising(graph: Graph, drawing: Collection[Key], functions: Collection[Key]) -> Iterator[tuple[Key, Key]]:
    """The functions that hand their work to one that draws into its parameter, as their names say by torch's underscore; and that one."""
    waiting = {key for key in functions if key.name.endswith("_")} - set(drawing)
    while rows := [(key, used) for key in sorted(waiting) for used in _used(graph, key, drawing)]:
        yield from rows
        drawing = {key for key, _ in rows}
        waiting -= drawing


def _counts(key: Key, outside: Collection[Key]) -> bool:
    """Whether users may call it: a private one counts where something else than functions of its kind does."""
    return not key.name.startswith("_") or key in outside


def _used(graph: Graph, key: Key, functions: Collection[Key]) -> Iterator[Key]:
    return (used for used in graph.edges(key).inside if used in functions)


def _used_outside(graph: Graph, maths: Collection[Key]) -> set[Key]:
    """The functions that classes, other functions and tests use."""
    return {used for key in graph.definitions if key not in maths for used in _used(graph, key, maths)}


def _is_maths(graph: Graph, key: Key, shape: FunctionShape) -> bool:
    outside = [name for name in graph.edges(key).outside if name not in ("torch.nn.Module", "torch.nn.Parameter")]
    # `return nn.ReLU()` gives a layer, and computes nothing.
    if any(MATHS.fullmatch(name) or (STATELESS.fullmatch(name) and shape.applies) for name in outside):
        return True
    if any(NUMPY.fullmatch(name) for name in outside):
        return False
    imported = graph.readings[key.path].facts.imported
    return shape.tensors and any(name.partition(".")[0] in ("torch", "einops") for name in imported)


def _modules(graph: Graph, key: Key) -> str:
    """Why a function that builds or initialises modules is none; "" for any other."""
    edges = graph.edges(key)
    if built := sorted(used.name for used in edges.inside if used in graph.units):
        return f"it uses the module class {built[0]}, and is judged with that"
    layers = sorted(name for name in edges.outside if TORCH_MODULE.fullmatch(name) and not STATELESS.fullmatch(name))
    if layers:
        return f"it builds or looks for {layers[0]}: it gives modules, no values"
    if initialised := sorted(name for name in edges.outside if name.startswith("torch.nn.init.")):
        return f"it uses {initialised[0]}: it initialises parameters"
    return ""


def function_units(graph: Graph, reasons: Mapping[Key, str], hits: Mapping[Key, Sequence[Hit]]) -> list[Unit]:
    """The units among the functions, in source order."""
    units = {key for key, reason in reasons.items() if not reason}
    return [_unit(graph, key, _choice(graph, key, hits), functions_needed(graph, key, units)) for key in reasons if key in units]


def functions_needed(graph: Graph, key: Key, units: Collection[Key]) -> tuple[str, ...]:
    """The ids of the functions among the units that a definition reaches."""
    return tuple(f"{used.path}:{used.name}" for used in graph.reach(key).helpers if used in units)


def _unit(graph: Graph, key: Key, choice: Choice, needs: tuple[str, ...]) -> Unit:
    target, line = graph.files[key.path].target, graph.definitions[key].line
    return Unit(key.path, key.name, target, choice.strategy, choice.reason, line, needs, kind="function")


def _choice(graph: Graph, key: Key, hits: Mapping[Key, Sequence[Hit]]) -> Choice:
    for owner in (key, *graph.called(key)):
        for hit in hits.get(owner, ()):
            row = DETECTORS[hit.row]
            if not hit.optional and (row.unit == "substitute" or (row.unit == "redesign" and owner == key)):
                through = "" if owner == key else f" through {owner.name}"
                return Choice(row.unit, f"uses {hit.name}{through} ({owner.path}:{hit.line}): {row.detail}")
    return Choice("rewrite", "")
