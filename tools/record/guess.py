"""Guesses constructor arguments and inputs of a unit, and tries them inside the sandbox until one runs.

The rows map parameter names and layer classes to source texts, likeliest first.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common.example_text import call_arguments, construct, import_module, in_mode, load_unit, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts
from migrate_agent.tools.record.adapt import NOT_FINITE, adapt_input
from migrate_agent.tools.record.choices import choices
from migrate_agent.tools.record.encode import parameters_of
from migrate_agent.tools.types import Example

MAX_INITS = 12
MAX_CALLS = 32
TURNS = 4
"""Number of argument lists for one main input."""
EMPTY = inspect.Parameter.empty


class Row(NamedTuple):
    """Parameters whose name matches → texts to try, likeliest first."""

    names: str
    texts: tuple[str, ...]


def row(names: str, *texts: str) -> Row:
    return Row(names, texts)


INIT_ROWS = (
    row(r".*(act|activation|nonlinearity|act_layer|act_fn)", "torch.nn.GELU", "torch.nn.GELU()", "torch.nn.functional.gelu", "'gelu'"),
    row(r".*norm(_layer|_class|_fn|_type)?", "torch.nn.LayerNorm", "torch.nn.LayerNorm(64)", "torch.nn.BatchNorm2d", "True", "'layer'"),
    row(r"p|.*drop(out|_?path|_?prob|_?rate)?(_\w+)?|.*_p(rob)?|rate", "0.0"),
    row(r"eps(ilon)?|.*_eps", "1e-5"),
    row(r"(use|with|is|has|no|add|return|do)_.*|.*bias|causal|inplace|affine|bidirectional|batch_first", "True"),
    row(r"(image|img|input)_?(size|res(olution)?|dim)|resolution|image_(height|width)|height|width|h|w", "32", "(32, 32)"),
    row(r".*patch(_size|es)?(_\w+)?", "8", "(8, 8)"),
    row(
        r".*(seq|sequence|max|block|context)_?(len(gth)?|size|positions?).*|length|seq|n_positions|num_landmarks|window(_size)?", "32", "8"
    ),
    row(r"(num_|n_)?(class(es)?|labels?|outputs?)|vocab(_size|ulary)?|(num_|n_)?(tokens|embeddings|words)|n_?vocab|ntoken", "64"),
    row(r"(dim|d)_?(head|k|v|key|value)|head_?(dim|size|channels)", "16"),
    row(r"(.*_)?n?_?heads?|nhead", "4"),
    row(r"dims|channels_list|hidden_(dims|sizes)|widths|(hidden_)?layer_sizes", "[64, 64]", "(64, 64)"),
    row(r"depths|num_blocks_list|(.*_)?layers_list", "[1, 1]"),
    row(
        r"(.*_)?(depth|n_?(um_)?(layers?|blocks?|stages?|repeats?)|layers?|blocks?|iterations|steps)",
        "2",
        "torch.nn.Identity()",
        "[1, 1, 1, 1]",
    ),
    row(r"(.*_)?(kernel|kernel_size|ks|k)", "3"),
    row(r"(.*_)?(stride|dilation|groups|reduction_?axis|layer_idx|index|idx)", "1"),
    row(r"(.*_)?(pad|padding)", "1"),
    row(r"in_chans|img_channels|image_channels", "3"),
    row(r".*(ratio|mult|multiplier|factor|expansion|scale)(_\w+)?|mlp_.*|gamma|alpha|beta|r|reduction", "2", "1.0", "64"),
    row(
        r"fn|f|func|module|net|network|model|layer|block|sublayer|branch|backbone|encoder|decoder|core|inner|residual|head|shortcut|body",
        "torch.nn.Identity()",
        "torch.nn.Linear(64, 64)",
    ),
    row(r"(.*_)?(loss|criterion|loss_f(n|unc)?|loss_function)", "torch.nn.functional.mse_loss", "torch.nn.MSELoss()"),
    row(r"downsample|upsample", "None", "torch.nn.Identity()", "2"),
    row(r"modules|nets|fns|encoders", "[torch.nn.Identity(), torch.nn.Identity()]"),
    row(r"mode|padding_mode|pool|pooling", "'mean'", "'nearest'", "'zeros'"),
    row(r"shape|normalized_shape|size", "64", "(64,)", "(32, 32)"),
    row(r".*", "64", "2", "0.1", "torch.nn.Identity()"),
)
ANNOTATED = {"bool": ("True",), "str": ("'relu'", "'mean'")}
NUMBERS = {"int": (r"\d+", "64"), "float": (r"\d*\.\d+|\d+e-?\d+", "0.1")}
INTEGERS = re.compile(r"(.*_)?(ids?|idx|indices|tokens?|labels?|targets?|seq|words|positions?)")
CALL_ROWS = (
    row(r".*mask.*", "None", "torch.ones({batch}, {length}).bool()", "torch.ones({length}, {length}).bool()"),
    row(r"(.*_)?(t|time|times|timesteps?|sigma)", "torch.rand({batch})", "torch.randint(0, 8, ({batch},))"),
    row(r"(.*_)?(h|hidden|hx|state|cache|past|past_key_values|kv_cache)", "None", "{same}"),
    row(r"(size|n|k|length|h|w|height|width|num_\w+|seq_len)", "8"),
)


def parameter_texts(name: str, annotation: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """The texts to try for a parameter."""
    kind = re.sub(r"\s*\|\s*None|Optional\[(.*)\]", r"\1", annotation)
    if kind in ANNOTATED:
        return ANNOTATED[kind]
    texts = next((row.texts for row in rows if re.fullmatch(row.names, name.lower())), ())
    if kind in NUMBERS:
        pattern, default = NUMBERS[kind]
        texts = tuple(text for text in texts if re.fullmatch(pattern, text)) or (default,)
    return texts


def config_texts(cls: Any, name: str) -> tuple[str, ...]:
    """Texts that build a configuration dataclass: with small sizes, and with its defaults."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    small = []
    for field in fields:
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        whole = isinstance(field.default, int) and not isinstance(field.default, bool) and field.default > 8
        if required or whole:
            annotation = "int" if whole else _text(field.type)
            small.append(f"{field.name}={parameter_texts(field.name, annotation, INIT_ROWS)[0]}")
    return tuple(dict.fromkeys((f"{name}({', '.join(small)})", f"{name}()")))


def _text(annotation: Any) -> str:
    if annotation is EMPTY:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation)) or ""


def config_arguments(namespace: Mapping[str, Any], parameter: inspect.Parameter) -> tuple[str, ...]:
    """Texts for a parameter that takes one of the configuration dataclasses that the file knows."""
    classes = {name: value for name, value in namespace.items() if isinstance(value, type) and dataclasses.is_dataclass(value)}
    class_name = _text(parameter.annotation).strip("'\"")
    if class_name in classes:
        return config_texts(classes[class_name], class_name)
    if parameter.annotation is EMPTY and re.fullmatch(r"(.*_)?(config|cfg|conf|args|params|hparams|opt|options)", parameter.name):
        return tuple(text for name, value in classes.items() for text in config_texts(value, name))
    return ()


def argument_lists(options: Sequence[tuple[str, tuple[str, ...]]], limit: int) -> Iterator[str]:
    """Argument lists: all first choices, then each parameter's other choices one at a time. `options` are (prefix, texts)."""
    if any(not texts for _, texts in options):
        return
    first = [prefix + texts[0] for prefix, texts in options]
    lists = [first]
    for index, (prefix, texts) in enumerate(options):
        lists += [[*first[:index], prefix + text, *first[index + 1 :]] for text in texts[1:]]
    yield from [", ".join(parts) for parts in lists][:limit]


def required(function: Any) -> list[inspect.Parameter]:
    return [p for p in parameters_of(function) if p.default is EMPTY and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _prefix(parameter: inspect.Parameter) -> str:
    return f"{parameter.name}=" if parameter.kind is parameter.KEYWORD_ONLY else ""


def constructor_arguments(cls: type, namespace: Mapping[str, Any]) -> Iterator[str]:
    """Argument lists for the constructor, likeliest first."""
    options = []
    for parameter in required(cls):
        annotation = _text(parameter.annotation)
        words = () if annotation in ("bool", *NUMBERS) else choices(cls, parameter)
        texts = config_arguments(namespace, parameter) or (*words, *parameter_texts(parameter.name, annotation, INIT_ROWS))
        options.append((_prefix(parameter), texts))
    yield from argument_lists(options, MAX_INITS)


LAYER_ROWS = (
    row("Linear", "torch.randn(2, 16, {0.in_features})", "torch.randn(2, {0.in_features})"),
    row("Conv(Transpose)?1d", "torch.randn(2, {0.in_channels}, 32)"),
    row("Conv(Transpose)?2d", "torch.randn(2, {0.in_channels}, 32, 32)", "torch.randn(2, {0.in_channels}, 16, 16)"),
    row("Conv(Transpose)?3d", "torch.randn(2, {0.in_channels}, 8, 16, 16)"),
    row("Embedding(Bag)?", "torch.randint(0, {0.num_embeddings}, (2, 16))"),
    row("RNN|LSTM|GRU", "torch.randn(2, 16, {0.input_size})"),
    row("MultiheadAttention", "torch.randn(2, 16, {0.embed_dim})"),
    row("LayerNorm|RMSNorm", "torch.randn(2, 16, {0.normalized_shape[0]})"),
    row("(Batch|Instance)Norm1d", "torch.randn(2, {0.num_features}, 16)"),
    row("(Batch|Instance)Norm2d", "torch.randn(2, {0.num_features}, 16, 16)"),
    row("(Batch|Instance)Norm3d", "torch.randn(2, {0.num_features}, 8, 8, 8)"),
    row("GroupNorm", "torch.randn(2, {0.num_channels}, 16, 16)", "torch.randn(2, {0.num_channels}, 16)"),
)


def layer_inputs(layer: Any) -> tuple[str, ...]:
    """Texts of inputs that a layer of torch (or a subclass of one) takes."""
    name = next((base.__name__ for base in type(layer).__mro__ if base.__module__.startswith("torch.nn.modules")), "")
    templates = next((row.texts for row in LAYER_ROWS if re.fullmatch(row.names, name)), ())
    return tuple(text.format(layer) for text in templates)


GENERIC = (
    "torch.randn(2, 16, 64)",
    "torch.randn(2, 3, 32, 32)",
    "torch.randn(2, 64, 16, 16)",
    "torch.randn(2, 64)",
    "torch.randn(2, 64, 16)",
    "torch.randn(2, 4, 16, 16)",
    "torch.randint(0, 64, (2, 16))",
)


def tensor_inputs(module: Any) -> tuple[str, ...]:
    """Texts for the main input: inputs of the first layers, then inputs of common shapes."""
    texts: list[str] = []
    for layer in module.modules():
        texts += layer_inputs(layer)
        if len(texts) >= 4:
            break
    return tuple(dict.fromkeys([*texts[:4], *GENERIC]))


def call_arguments_text(parameters: Sequence[inspect.Parameter], main: str, turn: int) -> str | None:
    """The `turn`-th argument list with this main input; `None` where there are fewer.

    Turn 0 has the first choice of every other parameter, each later one another choice of one of them.
    """
    options = [(_prefix(parameter), call_texts(parameter, main, index)) for index, parameter in enumerate(parameters)]
    return next(islice(argument_lists(options, TURNS), turn, None), None)


def first_call(module: Any, trouble: Callable[[str], str]) -> str | None:
    """The first argument list, likeliest first, for which `trouble` returns ""; `None` after `MAX_CALLS`.

    Where the error names the shape that a layer expects, an input of that shape is tried next.
    """
    parameters = required(module.forward)
    waiting = deque((main, turn) for turn in range(TURNS) for main in tensor_inputs(module))
    attempts: set[str] = set()
    while waiting and len(attempts) < MAX_CALLS:
        main, turn = waiting.popleft()
        call = call_arguments_text(parameters, main, turn)
        if call is None or call in attempts:
            continue
        attempts.add(call)
        said = trouble(call)
        if not said:
            return call
        if fixed := adapt_input(main, said):
            # The front of the queue: the error has just said what fits, which beats every guess
            # that waits.
            waiting.extendleft((fixed, again) for again in reversed(range(TURNS)))
    return None


def call_texts(parameter: inspect.Parameter, main: str, index: int) -> tuple[str, ...]:
    """Texts for one parameter of `forward`, given the main input."""
    # The guessed text is `torch.<function>(sizes…)`; for `randint` the two bounds come first.
    sizes = [int(size) for size in re.findall(r"\d+", main[main.index("(") :])]
    integers = "randint" in main
    shape = sizes[2:] if integers else sizes
    fields = {"batch": shape[0], "length": shape[1] if len(shape) > 1 else 1, "same": main}
    annotation = _text(parameter.annotation)
    if annotation in ("int", "float", "bool", "str"):
        return ANNOTATED.get(annotation, ("2", "8"))  # a float takes these as well
    if index == 0:
        return (main,)
    for names, texts in CALL_ROWS:
        if re.fullmatch(names, parameter.name.lower()):
            return tuple(text.format(**fields) for text in texts)
    if INTEGERS.fullmatch(parameter.name.lower()) and not integers:
        return f"torch.randint(0, 8, ({fields['batch']}, {fields['length']}))", f"torch.randint(0, 8, ({fields['batch']},))", main
    return (main,)


def failure_of(cls: type, example: Example, namespace: Mapping[str, Any]) -> str:
    """Why the example does not build, run in both modes and return finite tensors; "" where it does."""
    import torch

    for training in (False, True):
        torch.manual_seed(0)
        try:
            args, kwargs = call_arguments(example, namespace)
            result = in_mode(construct(cls, example, namespace), training=training)(*args, **kwargs)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            return "it gives no tensor"
        if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
            return NOT_FINITE
    return ""


def guess_example(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, str] | None:
    """Try guesses for the unit `name` of `module` until one runs or `seconds` are over.

    Returns `{"init", "call"}`, or `None` where no guess runs. `output` is not written to.
    """
    import torch

    deadline = time.monotonic() + arguments["seconds"]
    root = Path(sys.path[0] or ".").resolve()
    sys.path[:0] = [str(root / folder) for folder in dict.fromkeys(file[2] for file in arguments["files"])]
    use_parts(arguments["parts"], root)
    module = import_module(arguments["module"])
    cls = load_unit(arguments["module"], arguments["name"])
    for init in constructor_arguments(cls, vars(module)):
        blank = Example("", init, "", origin="inference")
        namespace = make_namespace(module, blank)

        def trouble(call: str, blank: Example = blank, namespace: Mapping[str, Any] = namespace) -> str:
            if time.monotonic() > deadline:
                raise TimeoutError
            return failure_of(cls, dataclasses.replace(blank, call=call), namespace)

        try:
            torch.manual_seed(0)
            call = first_call(construct(cls, blank, namespace), trouble)
        except TimeoutError:
            return None
        except Exception:
            continue
        if call is not None:
            return {"init": init, "call": call}
    return None
