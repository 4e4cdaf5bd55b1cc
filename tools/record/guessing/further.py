"""The job inside the sandbox: which other calls of an example that runs reach code that it does not. Cheapest first, within a time."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import reach
from migrate_agent.tools.harness.common.example_text import build, import_module, in_mode
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.guessing.trial import MOST_SECONDS, time_limit
from migrate_agent.tools.types import Example

MOST = 2
"""Further calls of one unit."""
BOOLEAN = re.compile(r"mask|pad|valid|keep")
WHOLE = re.compile(
    r"^(t|time\w*|timesteps?|step\w*|ids?|\w*_ids?|pos\w*|label\w*|target\w*|index|\w*_index|indices|len\w*|\w*_lens?|classes)$"
)
SCALARS = ("1", "0.5", "True")


class Call(NamedTuple):
    """The argument list of a call, by position and by name."""

    positional: tuple[str, ...]
    named: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, text: str) -> Call | None:
        """From its text; None where it spreads a list or a dictionary."""
        node = ast.parse(f"_({text}\n)", mode="eval").body
        assert isinstance(node, ast.Call)
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
            return None
        named = tuple((str(keyword.arg), ast.unparse(keyword.value)) for keyword in node.keywords)
        return cls(tuple(map(ast.unparse, node.args)), named)

    def by_name(self, names: Sequence[str]) -> dict[str, str]:
        """Parameter → text, of parameters in this order."""
        return dict(zip(names, self.positional, strict=False)) | dict(self.named)


def text_of(values: Mapping[str, str], required: Sequence[str]) -> str:
    """The argument list: required parameters by position, others by name."""
    return ", ".join(value if name in required else f"{name}={value}" for name, value in values.items())


def others(call: Call, parameters: Sequence[inspect.Parameter], shape: Sequence[int] | None) -> Iterator[dict[str, str]]:
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
            for text in guesses(parameter.name, shape):
                yield {**values, parameter.name: text}


def guesses(name: str, shape: Sequence[int] | None) -> list[str]:
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
    return [*(f"torch.randn({_size(size)})" for size in _different(sizes)), *SCALARS]


def _different(sizes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(size) for size in sizes if size))


def _size(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))}{',' if len(size) == 1 else ''})"


def further_calls(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry. `arguments`: `files` and `parts` as for other jobs, `units`: rows of `module`, `name`, `examples` and `seconds`. Inputs
    `<unit>-<example>` are their tensors. Returns rows of `unit` and `example` (their indices) and `call`: what runs and reaches new code."""
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
            found = list(_of_unit(unit["module"], unit["name"], examples, time.monotonic() + unit["seconds"]))
        except (Exception, SystemExit):
            continue  # an example that does not run here is told where it is recorded
        rows += [{"unit": number, "example": index, "call": call} for index, call in found]
    return rows


def _of_unit(module_name: str, name: str, examples: Sequence[Example], end: float) -> Iterator[tuple[int, str]]:
    module = import_module(module_name)
    known: frozenset[int] = frozenset()
    calls = []
    for example in examples:
        ran, shape = _places(module, name, example)
        known |= ran
        calls.append((Call.of(example.call), shape))
    count = 0
    for index, (call, shape) in enumerate(calls):
        parameters = list(inspect.signature(_forward(module, name)).parameters.values())[1:]
        required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
        for values in others(call, parameters, shape) if call is not None else ():
            if time.monotonic() > end or count >= MOST:
                return
            text = text_of(values, required)
            try:
                ran, _ = _places(
                    module, name, Example("", examples[index].init, text, examples[index].setup, tensors=examples[index].tensors)
                )
            except (Exception, SystemExit):
                continue
            if not ran <= known:
                known |= ran
                count += 1
                yield index, text


def _forward(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part)
    return value.forward


def _places(module: Any, name: str, example: Example) -> tuple[frozenset[int], Sequence[int] | None]:
    """The places that an example runs in both modes, and the shape of its first tensor. Raises the errors of the original."""
    import torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS):
        instance, args, kwargs = build(module, name, example)
        reach.take()
        tensors = [value for value in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        result = in_mode(instance, training=False)(*args, **kwargs)
        ran = reach.take()
        leaves = [value for value in torch.utils._pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
        if not leaves or any(value.is_floating_point() and not bool(torch.isfinite(value).all()) for value in leaves):
            raise ValueError("it gives no finite tensor")
    return ran, list(tensors[0].shape) if tensors else None
