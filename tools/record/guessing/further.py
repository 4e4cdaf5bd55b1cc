"""The job inside the sandbox: which other calls and constructions of an example that runs reach code that it does not.

Cheapest first, within a time.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods, reach
from migrate_agent.tools.harness.common.example_text import build, import_module, in_mode, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.guessing.arguments import Call, text_of
from migrate_agent.tools.record.guessing.distinctions import asked_containers, compares_ranks, distinctions, other_constructions
from migrate_agent.tools.record.guessing.feedback import fed_back
from migrate_agent.tools.record.guessing.own_seconds import WAITING, OwnSeconds
from migrate_agent.tools.record.guessing.trial import MOST_SECONDS, time_limit
from migrate_agent.tools.types import Example

MOST = 3
"""Further calls of one module, and as many of one that is constructed otherwise."""
MOST_WIDTHS = 4
"""Sizes of a module's parameters that an optional argument may have."""
MOST_OF_FUNCTION = 4
"""Further calls of one function, which cost less."""
BOOLEAN = re.compile(r"mask|pad|valid|keep")
WHOLE = re.compile(
    r"^(t|time\w*|timesteps?|step\w*|ids?|\w*_ids?|pos\w*|label\w*|target\w*|index|\w*_index|indices|len\w*|\w*_lens?|classes)$"
)
SCALARS = ("1", "0.5", "True")


class Trial(NamedTuple):
    """What a call showed: the places that it ran, the shape of its first tensor, and sizes that only the module's parameters have."""

    ran: frozenset[int]
    shape: Sequence[int] | None
    widths: Sequence[int] = ()


def others(
    call: Call, parameters: Sequence[inspect.Parameter], shape: Sequence[int] | None, widths: Sequence[int] = ()
) -> Iterator[dict[str, str]]:
    """Other argument lists of a call: each optional argument left out, and each that is None given. `shape` is that of its first tensor [*]."""
    plain = [parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    values = call.by_name([parameter.name for parameter in plain if parameter.kind is parameter.POSITIONAL_OR_KEYWORD])
    for parameter in plain:
        if parameter.default is not parameter.empty and parameter.name in values and values[parameter.name] != repr(parameter.default):
            yield {name: value for name, value in values.items() if name != parameter.name}
    for parameter in plain:
        if isinstance(parameter.default, bool):
            yield {**values, parameter.name: str(not parameter.default)}
    for parameter in plain:
        if parameter.default is None and values.get(parameter.name, "None") == "None":
            for text in guesses(parameter.name, shape, widths):
                yield {**values, parameter.name: text}


def of_other_ranks(values: Mapping[str, str], arguments: Mapping[str, Any], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code compares how many axes something has: all tensors without their first axis, or with one more, then the first
    tensor alone. `arguments` are what the first of the `values` stand for."""
    import torch

    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    if not tensors or not compares_ranks(tree):
        return
    for axis in ("0", "None"):
        for chosen in dict.fromkeys((tuple(tensors), tuple(tensors[:1]))):
            if axis == "None" or all(arguments[name].ndim > 1 for name in chosen):
                yield {**values, **{name: ast.unparse(ast.parse(f"({values[name]})[{axis}]")) for name in chosen}}


def of_one_sample(
    values: Mapping[str, str], arguments: Mapping[str, Any], parameters: Sequence[inspect.Parameter]
) -> Iterator[dict[str, str]]:
    """Other argument lists with a switch turned and the first sample of all tensors alone, as streaming code and samplers ask for."""
    import torch

    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[0] > 1]
    alone = {name: ast.unparse(ast.parse(f"({values[name]})[:1]")) for name in tensors}
    for parameter in parameters:
        if tensors and isinstance(parameter.default, bool):
            yield {**values, **alone, parameter.name: str(not parameter.default)}


def in_other_containers(values: Mapping[str, str], tree: ast.AST) -> Iterator[dict[str, str]]:
    """Other argument lists where code asks whether an argument is a list or a tuple: of a list its first element alone, and else a list of one."""
    for name in values:
        if name in asked_containers(tree):
            literal = ast.parse(values[name], mode="eval").body
            first = literal.elts[:1] if isinstance(literal, (ast.List, ast.Tuple)) else []
            yield {**values, name: ast.unparse(first[0]) if first else f"[{values[name]}]"}


def guesses(name: str, shape: Sequence[int] | None, widths: Sequence[int] = ()) -> list[str]:
    """Texts of values for an optional argument, likeliest first, by its name and the shape of the first tensor of the call."""
    if not shape:
        return list(SCALARS)
    batch, last = shape[:1], shape[-1:]
    if BOOLEAN.search(name):
        length = shape[1:2] or batch
        square = [*length, *length]
        sizes = [shape[:2], shape[:-1], square, [*batch, 1, *square], [*batch, 1, 1, *length], [*batch, *square], shape, batch]
        return [f"torch.ones({_size(size)}, dtype=torch.bool)" for size in _different(sizes)]
    if WHOLE.search(name):
        whole = [f"torch.randint(0, 2, {_size(size)})" for size in _different([batch, shape[:2], shape[1:2] or batch, shape])]
        return [*whole, *SCALARS]
    sizes = [shape, shape[:-1], last, batch, [*batch, *last], [*shape[:-1], 1]]
    sizes += [size for width in widths for size in ([width], [*batch, width], [*shape[:-1], width])]
    return [*(f"torch.randn({_size(size)})" for size in _different(sizes)), *SCALARS]


def _different(sizes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(size) for size in sizes if size))


def _size(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))}{',' if len(size) == 1 else ''})"


def further_calls(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry. `arguments`: `files` and `parts` as for other jobs, `units`: rows of `module`, `name`, `examples` and `seconds`. Inputs
    `<unit>-<example>` are their tensors. Returns rows of `unit` and `example` (their indices), `init` and `call`: what runs and reaches new code."""
    import torch

    torch.set_num_threads(1)
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = [str(root / folder) for folder in dict.fromkeys(file[2] for file in arguments["files"])]
    reach.count(root)
    use_parts(arguments["parts"], root)
    rows = []
    for number, unit in enumerate(arguments["units"]):
        examples = [
            Example("", row["init"], row["call"], row["setup"], tensors=inputs.get(f"{number}-{index}"))
            for index, row in enumerate(unit["examples"])
        ]
        try:
            found = list(_of_unit(unit["module"], unit["name"], examples, OwnSeconds(unit["seconds"])))
        except (Exception, SystemExit):
            continue  # an example that does not run here is told where it is recorded
        rows += [{"unit": number, "example": index, "init": other.init, "call": other.call} for index, other in found]
    return rows


def _of_unit(module_name: str, name: str, examples: Sequence[Example], time: OwnSeconds) -> Iterator[tuple[int, Example]]:
    """The number of an example and a call: of the examples those that run what earlier ones do not, then other calls that do."""
    module = import_module(module_name)
    known: frozenset[int] = frozenset()
    starts = []
    for index, example in enumerate(examples):
        trial = _trial(module, name, example)
        starts.append((index, example, trial))
        if not trial.ran <= known:
            yield index, example
        known |= trial.ran
    most = MOST if isinstance(_unit(module, name), type) else MOST_OF_FUNCTION
    for search in (_other_calls, _constructed_otherwise):
        count, waiting = 0, list(starts)
        while waiting:
            index, start, trial = waiting.pop(0)
            for other in search(module, name, start, trial):
                if time.spent or count >= most:
                    break
                try:
                    tried = _trial(module, name, other)
                except (Exception, SystemExit):
                    continue
                if not tried.ran <= known:
                    known |= tried.ran
                    count += 1
                    # What it left unreached may lie behind one change more.
                    waiting.append((index, other, tried))
                    yield index, other


def _other_calls(module: Any, name: str, example: Example, trial: Trial) -> Iterator[Example]:
    """The example with another call: by its parameters, and by what the file tells apart in them."""
    call, unit = Call.of(example.call), _unit(module, name)
    if call is None:
        return
    of_module = isinstance(unit, type)
    parameters = list(inspect.signature(methods.unbound(unit, "") if of_module else unit).parameters.values())[int(of_module) :]
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    texts = call.by_name([parameter.name for parameter in parameters])

    def result(values: Mapping[str, str]) -> Any:
        return _result(module, name, replace(example, call=text_of(values, required)))[1]

    arguments = dict(zip(texts, _result(module, name, example)[0], strict=False))
    tree = ast.parse(inspect.getsource(module))
    forms = chain(of_other_ranks(texts, arguments, tree), in_other_containers(texts, tree))
    options = chain(others(call, parameters, trial.shape, trial.widths), of_one_sample(texts, arguments, parameters))
    for values in chain(fed_back(texts, parameters, arguments, result), forms, options):
        yield replace(example, call=text_of(values, required))
    for text in other_constructions(call, parameters, distinctions(tree), lambda text: None):
        yield replace(example, call=text)


def _constructed_otherwise(module: Any, name: str, example: Example, trial: Trial) -> Iterator[Example]:
    """The example with another constructor call, by what the file of the unit tells apart."""
    if not isinstance(_unit(module, name), type):
        return
    call = Call.of(example.init)
    namespace = make_namespace(module, example)
    options = distinctions(ast.parse(inspect.getsource(module)))
    parameters = list(inspect.signature(_unit(module, name).__init__).parameters.values())[1:]
    for init in other_constructions(call, parameters, options, lambda text: _value(text, namespace)) if call is not None else ():
        yield replace(example, init=init)


def _value(text: str, namespace: dict[str, Any]) -> Any:
    """What a name stands for in the example, or None."""
    try:
        return eval(text, namespace)
    except Exception:  # it may be known while the example runs alone
        return None


def _result(module: Any, name: str, example: Example) -> tuple[tuple[Any, ...], Any]:
    """The positional arguments of an example, and what the call gives in evaluation mode. Raises the errors of the original."""
    import torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS), torch.no_grad():
        instance, args, kwargs = build(module, name, example)
        return args, in_mode(instance, training=False)(*args, **kwargs)


def _unit(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _trial(module: Any, name: str, example: Example) -> Trial:
    """What an example runs in both modes. Raises the errors of the original."""
    import torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS, WAITING):
        instance, args, kwargs = build(module, name, example)
        reach.take()
        tensors = [value for value in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        result = in_mode(instance, training=False)(*args, **kwargs)
        ran = reach.take()
        leaves = [value for value in torch.utils._pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
        if not leaves or any(value.is_floating_point() and not bool(torch.isfinite(value).all()) for value in leaves):
            raise ValueError("it gives no finite tensor")
    shape = list(tensors[0].shape) if tensors else None
    sizes = [size for value in instance.parameters() for size in value.shape] if isinstance(instance, torch.nn.Module) else []
    widths = [size for size in dict.fromkeys(sizes) if size > 1 and size not in (shape or ())]
    return Trial(ran, shape, widths[:MOST_WIDTHS])
