"""Rows that say what a parameter probably takes, by its name and annotation, and what a layer of torch takes. Likeliest first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from migrate_agent.tools.record.guessing.values import Kind, Sequence, Tensor, Value

EMPTY = inspect.Parameter.empty
MOST_WIDTHS = 3


class Row(NamedTuple):
    """Parameters whose name matches → texts to try, likeliest first."""

    names: str
    texts: tuple[str, ...]


def row(names: str, *texts: str) -> Row:
    return Row(names, texts)


INIT_ROWS = (
    row(r".*(act|activation|nonlinearity|act_layer|act_fn|act_class)", "torch.nn.GELU", "torch.nn.GELU()", "torch.relu", "'gelu'"),
    row(r".*norm(_layer|_class|_fn|_type)?", "torch.nn.LayerNorm", "torch.nn.LayerNorm(64)", "torch.nn.BatchNorm2d", "True", "'layer'"),
    row(r"(.*_)?device", "'cpu'", "torch.device('cpu')"),
    row(r"(.*_)?dtype", "torch.float32"),
    row(r"(.*_)?(pre_?trained|resume|verbose|debug)", "False", "None"),
    row(r"(.*_)?(paths?|files?|file_?name|ckpt|checkpoint|dir|folder|logger|writer)", "None", "''"),
    row(r"(.*_)?seed", "0"),
    row(r"p|.*drop(out|_?path|_?prob|_?rate)?(_\w+)?|.*_p(rob)?|rate", "0.0"),
    row(r"eps(ilon)?|.*_eps", "1e-5"),
    row(r"(.*_)?(fp16|bf16|float16|half|amp|cuda|gpu|mixed_?precision|distributed|flash)(_.*)?", "False"),
    row(r"(use|with|is|has|no|add|return|do)_.*|.*bias|causal|inplace|affine|bidirectional|batch_first", "True"),
    row(r"(image|img|input)_?(size|res(olution)?|dim)|resolution|image_(height|width)|height|width|h|w", "32", "(32, 32)", "64"),
    row(r"fmap_size|feature_?map_?size|spatial_shape", "(16, 16)", "16"),
    row(r".*patch(_size|es)?(_\w+)?", "8", "(8, 8)"),
    row(
        r".*(seq|sequence|max|block|context)_?(len(gth)?|size|positions?).*|length|seq|n_positions|num_landmarks|window(_size)?", "32", "8"
    ),
    row(r"(num_|n_)?(class(es)?|labels?|outputs?)|vocab(_size|ulary)?|(num_|n_)?(tokens|embeddings|words)|n_?vocab|ntoken", "64"),
    row(r"(dim|d)_?(head|k|v|key|value)|head_?(dim|size|channels)", "16"),
    row(r"(.*_)?n?_?heads?|nhead", "4"),
    row(r"dims|channels_list|hidden_(dims|sizes)|widths|(hidden_)?layer_sizes", "[64, 64]", "(64, 64)"),
    row(r"depths|num_blocks_list|(.*_)?layers_list", "[1, 1]", "[1, 1, 1, 1]"),
    row(
        r"(.*_)?(depth|n?_?(um_)?(layers?|blocks?|stages?|repeats?|levels?|hops?)|layers?|blocks?|levels?|iterations|iters?|steps)",
        "2",
        "torch.nn.Identity()",
        "[1, 1, 1, 1]",
        "[torch.nn.Identity(), torch.nn.Identity()]",
    ),
    row(r"(n|num)_dims|(n_|num_)?spatial_dims|dimensions?", "2", "1", "3", "64"),
    row(r"(.*_)?(kernels?(_(size|height|width|length)s?)?|filter_(size|width|height)s?|ks|k)|.*k_?size", "3", "(3, 3)"),
    row(r"(.*_)?(stride|dilation|groups|reduction_?axis|layer_idx|index|idx|axis)", "1", "(1, 1)"),
    row(r"(.*_)?(pad|padding)", "1", "(1, 1)"),
    row(r"in_chans|img_channels|image_channels", "3"),
    row(r"proj_factor|(.*_)?downscale", "4", "2"),
    row(r".*(ratio|mult|multiplier|factor|expansion|scale)(_\w+)?|mlp_.*|gamma|alpha|beta|r|reduction", "2", "1.0", "64", "'mean'"),
    row(
        r"fn|f|g|func|module|net|network|model|layer|block|sublayer|branch|backbone|encoder|decoder|core|inner|residual|head|shortcut|body"
        r"|(.*_)?(module|net|network|layer|fn|func)",
        "torch.nn.Identity()",
        "torch.nn.Linear(64, 64)",
        "torch.nn.Conv2d(64, 64, 1)",
    ),
    row(r"(.*_)?(loss|criterion|loss_f(n|unc)?|loss_function)", "torch.nn.functional.mse_loss", "torch.nn.MSELoss()"),
    row(r"downsample|upsample", "False", "None", "torch.nn.Identity()", "2"),
    row(
        r"(.*_)?(std|sigma|temp(erature)?|tau|lr|learning_rate|momentum|(weight_)?decay|lam|lambda|lmbda|threshold|margin)(_(init|initial|min|max|start|end))?",
        "0.5",
        "1.0",
        "64",
    ),
    row(r"(.*_)?(adj|adjacency|laplacian)(_?(mx|mat|matrix))?", "torch.ones(8, 8)", "torch.ones(8, 8).numpy()"),
    row(r"modules|nets|fns|encoders", "[torch.nn.Identity(), torch.nn.Identity()]"),
    row(r"name|key|tag", "'a'"),
    row(r"padding_mode", "'zeros'", "'reflect'"),
    row(r"(.*_)?(mode|pool|pooling|reduction)", "'mean'", "'nearest'", "'zeros'", "'sum'"),
    row(r"(.*_)?(shape|size)|normalized_shape", "64", "(64,)", "(32, 32)", "(3, 32, 32)"),
    row(r".*", "64", "2", "0.1", "torch.nn.Identity()"),
)
ANNOTATED = {"bool": ("True", "False"), "str": ("'relu'", "'mean'")}
NUMBERS = {"int": (r"\d+", "64"), "float": (r"\d*\.\d+|\d+e-?\d+", "0.1")}
SAYS_LITTLE = frozenset(row.names for row in INIT_ROWS[-2:])
"""Rows of names such as `k_size`, of which what the constructor does with the parameter says more."""
POOL = (
    *("64", "32", "16", "8", "4", "2", "1", "3", "(2, 2)", "(32, 32)", "[64, 64]", "[1, 1, 1, 1]", "[32, 64, 128, 256]", "(3, 32, 32)"),
    *("torch.nn.Identity()", "torch.nn.ReLU", "torch.nn.functional.relu", "torch.nn.ReLU()", "torch.nn.Linear(64, 64)"),
    *("[torch.nn.Identity(), torch.nn.Identity()]", "torch.nn.Conv2d", "torch.nn.LayerNorm", "None", "0.1", "'relu'", "{}"),
)
"""What else any parameter of a constructor may take."""
CONFIGS = re.compile(
    r"(.*_)?(configs?|cfgs?|conf|configuration|args|arguments|params|h_?params|hyper_?params|opts?|options|hps?|settings|flags|FLAGS)"
)
"""Names of parameters that take a configuration."""
OPTIONAL = re.compile(r"\s*\|\s*None|(?:typing\.)?Optional\[(.*)\]")
SEQUENCES = re.compile(r"(?:typing\.)?(list|tuple|sequence|iterable)\[(.*)\]", re.I)
NESTED = re.compile(
    r"(?:typing\.)?(?:list|sequence|iterable|tuple)\[\s*(?:typing\.)?(?:tuple|list)\[((?:int|float)(?:\s*,\s*(?:int|float))*)\](?:\s*,\s*\.\.\.)?\]",
    re.I,
)
"""Lists of tuples of numbers."""
NESTED_NUMBERS = (("2", "8"), ("1", "16"), ("8", "8"), ("64", "64"))
LISTS = re.compile(r"(?:typing\.)?(list|sequence|iterable|tuple$)(\[.*\])?", re.I)
MODULES = re.compile(r"(torch\.)?(nn\.)?Module")
CLASSES = re.compile(r"(typing\.)?(type)\[(torch\.)?(nn\.)?Module\]|Callable\[\.\.\., (torch\.)?(nn\.)?Module\]", re.I)
FUNCTIONS = re.compile(r"(typing\.|collections\.abc\.)?Callable\b.*")
TENSORS = re.compile(r"(torch\.)?(Float|Long|Bool)?Tensor")
ARRAYS = re.compile(r"(np\.|numpy\.|npt\.)?(typing\.)?(ndarray|NDArray)(\[.*\])?")
"""Annotations of NumPy's arrays."""
TABLES = ("torch.linspace(0.1, 1, 4096).reshape(64, 64)", "torch.linspace(0.1, 1, 64)")
"""Tensors that a constructor is handed: drawn ones would be others on the side of JAX."""
ARRAY_TABLES = tuple(f"{table}.numpy()" for table in TABLES)


def says_little(name: str) -> bool:
    """Whether no row knows a name, or knows no more than that it is some size."""
    return next(row.names for row in INIT_ROWS if re.fullmatch(row.names, name.lower())) in SAYS_LITTLE


def parameter_texts(name: str, annotation: str, rows: Several[Row] = INIT_ROWS) -> tuple[str, ...]:
    """The texts to try for a parameter of a constructor."""
    kind = OPTIONAL.sub(r"\1", annotation)
    if kind == "bool":
        return ANNOTATED[kind]
    texts = next((row.texts for row in rows if re.fullmatch(row.names, name.lower())), ())
    if kind == "str":
        return tuple(dict.fromkeys([*(text for text in texts if text[0] == "'"), *ANNOTATED[kind]]))
    if kind in NUMBERS:
        pattern, default = NUMBERS[kind]
        return tuple(text for text in texts if re.fullmatch(pattern, text)) or (default,)
    if MODULES.fullmatch(kind):
        return "torch.nn.Identity()", "torch.nn.Linear(64, 64)", "torch.nn.Conv2d(3, 64, 3)"
    if CLASSES.fullmatch(kind):
        return "torch.nn.Identity", "torch.nn.ReLU", "torch.nn.LayerNorm", "torch.nn.BatchNorm2d", "torch.nn.Linear"
    if FUNCTIONS.fullmatch(kind):
        return *(text for text in texts if text.startswith("torch.")), "torch.relu", "torch.nn.ReLU()"
    if TENSORS.fullmatch(kind):
        return "torch.randn(64, 64)", "torch.randn(64)"
    if ARRAYS.fullmatch(kind):
        return *(text for text in texts if text.endswith(".numpy()")), *ARRAY_TABLES
    if match := NESTED.fullmatch(kind):
        return nested_texts([part.strip() for part in match[1].split(",")])
    if match := SEQUENCES.fullmatch(kind):
        return _sequence_texts(match[1].lower(), match[2], texts)
    return texts


def nested_texts(parts: Several[str], places: Several[tuple[str, str]] = NESTED_NUMBERS) -> tuple[str, ...]:
    """Lists of two equal tuples whose members have these types: a small number first, since `(repeats, width)` is usual, and then of equal ones."""
    rows = []
    for first, other in places:
        items = [item if part != "float" else "0.1" for part, item in zip(parts, (first, *[other] * len(parts)), strict=False)]
        row = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        rows.append(f"[{row}, {row}]")
    return tuple(dict.fromkeys(rows))


def _sequence_texts(form: str, inner: str, texts: Several[str]) -> tuple[str, ...]:
    parts = [part.strip() for part in inner.split(",")]
    item = {"int": "64", "float": "0.1", "str": "'relu'"}.get(parts[0]) or parameter_texts("value", parts[0])[0]
    if form == "tuple" and "..." not in parts:
        count = len(parts)
        fitting = [text for text in texts if text.startswith("(") and text.count(",") == count - 1]
        return *fitting, f"({', '.join([item] * count)},)", f"({', '.join(['32'] * count)},)"
    brackets = "()" if form == "tuple" else "[]"
    fitting = [text for text in texts if text[0] == brackets[0]]
    return *fitting, f"{brackets[0]}{item}, {item}{brackets[1]}", f"{brackets[0]}{', '.join([item] * 4)}{brackets[1]}"


def annotation_text(annotation: Any) -> str:
    """The annotation as it is written, "" where there is none."""
    if annotation is EMPTY:
        return ""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


INTEGERS = re.compile(r"(.*_)?(ids?|idx|indices|tokens?|labels?|targets?|seq|words|positions?|tags)")
ONE_ID = re.compile(r"(.*_)?(pad(ding)?|ignored?|blank|sos|eos|bos|unk|null|void)(_.*)?_(idx|index|id|label|token|value)")
"""Names of the number that marks what is no word, or no label."""
DEVICES = re.compile(r"(.*_)?(device|dev)|map_location")
TARGETS = re.compile(r"(.*_)?(labels?|targets?|y|y_true|gts?|gold|truth|tags)")
FEATURES = re.compile(r"enc(oder|oded)?(_.*)?|memory|context|cond(ition)?|features?|(.*_)?(embeds?|embeddings?|states|latents?)")
"""Names of what stands beside token ids and is made of features."""
TENSOR_LISTS = re.compile(r"(typing\.)?(list|tuple|sequence|iterable)\[(torch\.)?Tensor(, (\.\.\.|(torch\.)?Tensor))*\]", re.I)


def call_values(name: str, annotation: str, main: Tensor) -> tuple[Value, ...]:
    """What a further parameter of `forward` probably takes beside the main input."""
    kind = OPTIONAL.sub(r"\1", annotation)
    batch, length = main.shape[0] if main.shape else 2, main.shape[1] if len(main.shape) > 1 else 1
    if DEVICES.fullmatch(name.lower()) or kind in ("device", "torch.device"):
        return "'cpu'", "torch.device('cpu')"
    if kind in ("dtype", "torch.dtype") or re.fullmatch(r"(.*_)?dtype", name.lower()):
        return "torch.float32", "None"
    if kind in ("int", "float", "bool", "str"):
        return ANNOTATED.get(kind, ("2", "8", "0", "1"))
    if TENSOR_LISTS.fullmatch(kind):
        count = max(kind.count(","), 1) + 1 if kind.lower().startswith("tuple") and "..." not in kind else 2
        return (Sequence((main,) * count, "()" if "tuple" in kind.lower() else "[]"),)
    if ARRAYS.fullmatch(kind):
        tensors = [value for value in (*call_values(name, "", main), main) if isinstance(value, Tensor)]
        return tuple(dict.fromkeys(replace(value, kind="array") for value in tensors))
    lower = name.lower()
    if "mask" in lower:
        masks = (
            Tensor((batch, length), "bool"),
            Tensor((length, length), "bool"),
            Tensor((batch, length)),
            Tensor((batch, 1, length, length)),
        )
        return (*masks, "None") if TENSORS.fullmatch(kind) else ("None", *masks)
    if re.fullmatch(r"(.*_)?(t|time|times|timesteps?|sigma)", lower):
        return Tensor((batch,), "positive"), Tensor((batch,), "integer"), Tensor((batch, 1), "positive"), main, "16"
    if re.fullmatch(r"(.*_)?(lengths|lens|seqlens|seq_?lengths)", lower):
        return Tensor((batch,), "integer"), main
    nodes = main.shape[-2] if len(main.shape) > 1 else 8
    if re.fullmatch(r"edge_(index|indices|list)|edges", lower):
        return Tensor((2, 2 * nodes), "integer", nodes), main
    if re.fullmatch(r"adj(acency)?(_(mx|mat|matrix|t))?", lower):
        return Tensor((nodes, nodes), "positive"), Tensor((batch, nodes, nodes), "positive"), main
    if re.fullmatch(r"(.*_)?shape", lower):
        return f"({', '.join(map(str, main.shape))}{',' if len(main.shape) == 1 else ''})", "(16, 16)", "(2, 3, 8, 8)", main
    if re.fullmatch(r"(.*_)?(h|hidden|hx|state|states|cache|past|past_key_values|kv_cache|mems?)", lower):
        return "None", main, Sequence((main, main), "()"), replace_shape(main, (batch, main.shape[-1] if main.shape else 1))
    if re.fullmatch(r"(size|n|k|length|h|w|height|width|num_\w+|seq_len|max_len|epoch|step|n?_?steps|layer_idx|dim|d_model|n_\w+)", lower):
        return "8", "1", "(16, 16)"
    if ONE_ID.fullmatch(lower):
        return "1", "0"
    integer = Tensor((batch, length), "integer"), Tensor((batch,), "integer")
    if main.kind != "integer" and INTEGERS.fullmatch(lower):
        return (main, *integer) if TARGETS.fullmatch(lower) else (*integer, main)
    return (main, *(integer if TARGETS.fullmatch(lower) else ()))


def replace_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(shape, tensor.kind, tensor.high)


IMAGE_SIZE = re.compile(r"(image|img|input)_?(size|res(olution)?|shape|hw)|image_(height|width)")
IMAGE_CHANNELS = re.compile(r"(in|img|image|input|n|num)_?(chans?|channels?|ch|c|planes)|channels?")


def image_input(values: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """The images that a constructor with these values names the size of: (2, C, H, W); none where it names none."""
    sizes = [value for name, value in values.items() if IMAGE_SIZE.fullmatch(name.lower())]
    channels = [value for name, value in values.items() if IMAGE_CHANNELS.fullmatch(name.lower()) and type(value) is int]
    pairs = [(size, size) if type(size) is int else size for size in sizes]
    if not pairs or not isinstance(pairs[0], (tuple, list)) or not all(type(size) is int and size > 0 for size in pairs[0]):
        return ()
    whole = tuple(pairs[0]) if len(pairs[0]) == 3 else ((channels or [3])[0], *pairs[0])
    return (Tensor((2, *whole)),) if len(whole) == 3 and whole[0] > 0 else ()


class Layer(NamedTuple):
    """Layers whose class name matches → shapes they take: sizes are numbers, or attributes of the layer."""

    names: str
    shapes: tuple[tuple[int | str, ...], ...]
    kind: Kind = "normal"


LAYERS = (
    Layer("Linear", ((2, 16, "in_features"), (2, "in_features"))),
    Layer("Bilinear", ((2, "in1_features"),)),
    Layer("Conv(Transpose)?1d", ((2, "in_channels", 32),)),
    Layer("Conv(Transpose)?2d", ((2, "in_channels", 32, 32), (2, "in_channels", 16, 16))),
    Layer("Conv(Transpose)?3d", ((2, "in_channels", 8, 16, 16),)),
    Layer("Embedding(Bag)?", ((2, 16),), "integer"),
    Layer("RNN|LSTM|GRU", ((2, 16, "input_size"),)),
    Layer("(RNN|LSTM|GRU)Cell", ((2, "input_size"),)),
    Layer("MultiheadAttention", ((2, 16, "embed_dim"),)),
    Layer("LayerNorm|RMSNorm", ((2, 16, "normalized_shape"),)),
    Layer("(Batch|Instance)Norm1d", ((2, "num_features", 16),)),
    Layer("(Batch|Instance)Norm2d", ((2, "num_features", 16, 16),)),
    Layer("(Batch|Instance)Norm3d", ((2, "num_features", 8, 8, 8),)),
    Layer("GroupNorm", ((2, "num_channels", 16, 16), (2, "num_channels", 16))),
    Layer("(Adaptive)?(Avg|Max)Pool1d", ((2, 16, 32),)),
    Layer("(Adaptive)?(Avg|Max)Pool2d", ((2, 16, 32, 32),)),
    Layer("(Adaptive)?(Avg|Max)Pool3d", ((2, 8, 8, 16, 16),)),
    Layer("Unfold|ZeroPad2d|ReflectionPad2d|ReplicationPad2d|PixelUnshuffle", ((2, 3, 32, 32), (2, 64, 16, 16))),
)
GENERIC = (
    Tensor((2, 16, 64)),
    Tensor((2, 3, 32, 32)),
    Tensor((2, 64, 16, 16)),
    Tensor((2, 64)),
    Tensor((2, 64, 16)),
    Tensor((2, 4, 16, 16)),
    Tensor((2, 16), "integer", 64),
    Tensor((2, 3, 8, 16, 16)),
    Tensor((2, 16, 64), "complex"),
    Tensor((2, 3, 32, 32), "complex"),
    Tensor((16,)),
    Tensor((2, 1)),
)


def widths(module: Any) -> tuple[int, ...]:
    """Sizes of what embeddings give and linear layers take, each once: of styles, conditions and features beside a main input."""
    sizes: dict[int, None] = {}
    for layer in module.modules() if module is not None else ():
        sizes |= dict.fromkeys(vars(layer)[name] for name in ("embedding_dim", "in_features") if name in vars(layer))
    return tuple(islice(sizes, MOST_WIDTHS))


def layer_inputs(layer: Any) -> tuple[Tensor, ...]:
    """Inputs that a layer of torch (or a subclass of one) takes."""
    name = next((base.__name__ for base in type(layer).__mro__ if base.__module__.startswith("torch.nn.modules")), "")
    row = next((row for row in LAYERS if re.fullmatch(row.names, name)), None)
    if row is None:
        return ()
    complex_valued = any(parameter.is_complex() for parameter in layer.parameters(recurse=False))
    kind: Kind = "complex" if complex_valued and row.kind == "normal" else row.kind
    high = int(getattr(layer, "num_embeddings", 8))
    shapes = [[_sizes(getattr(layer, size, 8)) if isinstance(size, str) else (size,) for size in shape] for shape in row.shapes]
    return tuple(Tensor(tuple(size for sizes in shape for size in sizes), kind, high) for shape in shapes)


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(map(int, value)) if isinstance(value, tuple | list) else (int(value),)


def main_inputs(module: Any) -> tuple[Tensor, ...]:
    """Main inputs to try: those of the first layers, then such of common shapes."""
    inputs: list[Tensor] = []
    for layer in module.modules():
        inputs += layer_inputs(layer)
        if len(inputs) >= 4:
            break
    complex_valued = any(parameter.is_complex() for parameter in module.parameters())
    generic = sorted(GENERIC, key=lambda tensor: tensor.kind != "complex") if complex_valued else GENERIC
    return tuple(dict.fromkeys([*inputs[:4], *generic]))
