"""What parameters of a call are by what its code does with them: `k` may be a key, and it may be a number; `y` may be an image, and a label."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

from migrate_agent.tools.record.guessing.choices import nodes_of

OF_TENSORS = frozenset(
    "shape size view reshape permute transpose unsqueeze squeeze contiguous flatten detach chunk split repeat expand ndim dim numel mean "
    "masked_fill type_as new_zeros new_ones data".split()
)
"""Attributes that tensors have, and numbers, words and lists have not."""
OF_SIZES = frozenset("view reshape expand repeat new_zeros new_ones new_full new_empty zeros ones empty full rand randn eye".split())
"""Methods, and functions of torch, whose arguments are sizes."""
MAKING = frozenset(f"torch.{name}" for name in "zeros ones empty full rand randn randint randperm eye arange linspace".split())
"""Functions that take no tensor first."""
OPTION_TEXTS: Mapping[str, tuple[str, ...]] = {"float": ("0.1", "0.0"), "bool": ("True", "False")}
"""Texts of the options of torch's functions, by their annotation."""
LIBRARIES = ("torch.", "F.", "nn.functional.", "functional.")
Called = Callable[..., Any] | None


def used_as_tensors(called: Called) -> frozenset[str]:
    """Names whose tensor's attributes the code of a function reads, that it multiplies by `@`, or hands to torch's functions or to a layer
    that the object holds."""
    own = _own_methods(called)
    return frozenset(name for node in nodes_of(called) for name in _tensor_names(node, own))


def used_as_lists(called: Called) -> frozenset[str]:
    """Names of which the code reads tensors by number: `xs[0].shape`, `self.layers[i](xs[i])`."""
    own = _own_methods(called)
    return frozenset(name for node in nodes_of(called) for part in _tensors(node, own) for name in _indexed(part))


def least_items(called: Called, name: str) -> int:
    """How many items a list has at least of which the code reads some by number: 4 for `x[0]` and `x[3]`."""
    indices = (
        node.slice.value
        for node in nodes_of(called)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Constant)
    )
    return max((index + 1 for index in indices if type(index) is int and index >= 0), default=0)


def used_as_numbers(called: Called) -> frozenset[str]:
    """Names of numbers: what sizes are computed from (`x.view(b, h // size, size)`), what is counted to, and what `int` is asked of."""
    return frozenset(name for node in nodes_of(called) for part in _numbers(node) for name in _terms(part))


def used_as_options(called: Called) -> dict[str, tuple[str, ...]]:
    """Texts of the names that the code hands to options of `torch.nn.functional`, by the annotation there: `F.dropout(x, drop_prob)`."""
    pairs = (pair for node in nodes_of(called) if isinstance(node, ast.Call) for pair in _options(node))
    return {name: OPTION_TEXTS[kind] for name, kind in pairs}


def used_as_arrays(called: Called) -> frozenset[str]:
    """Names of NumPy's arrays: annotated so, handed to functions of NumPy or to `torch.from_numpy`, or asked for a method that tensors have not."""
    libraries = {name for name, value in getattr(called, "__globals__", {}).items() if getattr(value, "__name__", "") == "numpy"}
    annotations = {name: str(item) for name, item in getattr(called, "__annotations__", {}).items()}
    annotated = {name for name, kind in annotations.items() if re.search(r"ndarray|NDArray", kind) and "Tensor" not in kind}
    return frozenset(annotated | {name for node in nodes_of(called) for name in _array_names(node, libraries)})


MAKERS = frozenset(
    {"zeros", "ones", "full", "empty", "arange", "linspace", "eye", "identity", "prod", "log", "log2", "sqrt", "ceil", "floor"}
)
"""Functions of NumPy that make arrays of sizes, or that are as often given numbers."""


def _array_names(node: ast.AST, libraries: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr="astype"):
            yield name
        case ast.Call(func=ast.Attribute(attr="from_numpy"), args=[ast.Name(id=name), *_]):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=library), attr=function), args=args) if (
            library in libraries and function not in MAKERS
        ):
            yield from (name for argument in args for name in _whole(argument))


def _whole(node: ast.AST) -> Iterator[str]:
    """The names of an expression of which no attribute is read, nor a length: `len(x)`, `x.shape` and `x.numpy()` are no `x`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif not isinstance(node, ast.Attribute) and not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        for child in ast.iter_child_nodes(node):
            yield from _whole(child)


def _options(node: ast.Call) -> Iterator[tuple[str, str]]:
    """The names among the arguments of a call of a function of `torch.nn.functional` → the plain kinds that its signature names."""
    import torch.nn.functional

    text = ast.unparse(node.func)
    before, _, name = text.rpartition(".")
    function = getattr(torch.nn.functional, name, None) if f"{before}." in LIBRARIES else None
    if not isinstance(function, types.FunctionType):
        return
    items = list(inspect.signature(function).parameters.values())
    given = [
        *zip(items, node.args, strict=False),
        *((item, word.value) for word in node.keywords for item in items if item.name == word.arg),
    ]
    for item, value in given:
        kind = item.annotation if isinstance(item.annotation, str) else getattr(item.annotation, "__name__", "")
        if isinstance(value, ast.Name) and kind in OPTION_TEXTS:
            yield value.id, kind


def used_as_sizes(called: Called) -> frozenset[str]:
    """Names of tuples of sizes: `x.view(b, c, size[0], size[1])`, `h, w = size` beside `x.view(b, c, h, w)`."""
    parts = [part for node in nodes_of(called) for part in _numbers(node)]
    indexed = {name for part in parts for node in ast.walk(part) if isinstance(node, ast.expr) for name in _indexed(node)}
    terms = {name for part in parts for name in _terms(part)}
    return frozenset(indexed | {name for node in nodes_of(called) for name in _taken_apart(node, terms)})


def _taken_apart(node: ast.AST, terms: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)):
            if all(isinstance(part, ast.Name) for part in parts) and any(isinstance(part, ast.Name) and part.id in terms for part in parts):
                yield name


def used_as_places(called: Called, instance: Any) -> frozenset[str]:
    """Names of integers: what tensors of the instance are indexed with, and what its embeddings look up."""
    return frozenset(name for node in nodes_of(called) for name in _place_names(node, instance))


def embeds_others(called: Called, instance: Any, name: str) -> bool:
    """Whether all that the embeddings of the instance look up are other parameters than this one: labels beside noise."""
    import torch

    embeddings = [module for module in instance.modules() if isinstance(module, torch.nn.Embedding)]
    own = [module for module in instance.children() if isinstance(module, torch.nn.Embedding)]
    looked_up = {read for node in nodes_of(called) if isinstance(node, ast.Call) for read in _place_names(node, instance)}
    return 0 < len(embeddings) == len(own) and bool(looked_up) and name not in looked_up


Parts: TypeAlias = "tuple[str | Parts, ...]"
"""Names, and what is taken apart further."""


def unpacked(called: Called, name: str) -> Parts:
    """The names that the code takes a parameter apart into: `features, edges = data`, `x, (h, c) = inputs`; () where it does not."""
    for node in nodes_of(called) if called is not None else ():
        match node:
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Name(id=read)) if read == name:
                return _parts(target) or ()
    return ()


def _parts(target: ast.Tuple) -> Parts | None:
    parts: list[str | Parts] = []
    for node in target.elts:
        inner = node.id if isinstance(node, ast.Name) else _parts(node) if isinstance(node, ast.Tuple) else None
        if inner is None:
            return None
        parts.append(inner)
    return tuple(parts)


def _numbers(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(attr=method), args=args) if method in OF_SIZES:
            for argument in args:
                yield from argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]
        case ast.Call(func=ast.Name(id="range" | "int"), args=args):
            yield from args


def _terms(node: ast.expr) -> Iterator[str]:
    """The names that a number is computed from."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.BinOp(left=left, right=right):
            yield from (*_terms(left), *_terms(right))
        case ast.UnaryOp(operand=inner) | ast.Call(func=ast.Name(id="int"), args=[inner]):
            yield from _terms(inner)


def _own_methods(called: Any) -> Collection[str]:
    """Names of the methods of the class around a function: what is called on `self` and is none of them is a layer."""
    names = getattr(called, "__globals__", {})
    owner = names.get(getattr(called, "__qualname__", "").partition(".")[0])
    return frozenset(vars(owner)) if isinstance(owner, type) else ()


def _tensor_names(node: ast.AST, own: Collection[str]) -> Iterator[str]:
    yield from (part.id for part in _tensors(node, own) if isinstance(part, ast.Name))


def _tensors(node: ast.AST, own: Collection[str]) -> Iterator[ast.expr]:
    """The expressions below a node that stand for tensors."""
    match node:
        case ast.Attribute(value=value, attr=attribute) if attribute in OF_TENSORS:
            yield value
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):
            yield from (left, right)
        case ast.Call(func=function, args=[first, *_]) if _is_layer(function, own):
            yield first
        case ast.Call(func=ast.Attribute() as function, args=[first, *_]) if _takes_tensor(ast.unparse(function)):
            yield from first.elts if isinstance(first, ast.List | ast.Tuple) else [first]


def _takes_tensor(function: str) -> bool:
    """Whether a function of torch takes a tensor first: those that make one of sizes take none."""
    return function.startswith(LIBRARIES) and function not in MAKING


def _is_layer(function: ast.expr, own: Collection[str]) -> bool:
    """`self.layer` that is no method, `self.layers[i]`."""
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=layer):
            return layer not in own
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"))):
            return True
    return False


def _indexed(part: ast.expr) -> Iterator[str]:
    match part:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int()) | ast.Name()):
            yield name


def _place_names(node: ast.AST, instance: Any) -> Iterator[str]:
    import torch

    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=held), slice=ast.Name(id=name)):
            if isinstance(getattr(instance, held, None), torch.Tensor):
                yield name
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            yield from (part.id for part in parts if isinstance(part, ast.Name))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=held), args=[ast.Name(id=name)]):
            if isinstance(getattr(instance, held, None), torch.nn.Embedding):
                yield name
