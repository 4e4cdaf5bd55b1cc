"""What the text of a module-level function tells: whether it works on tensors, and whether it is part of a program. Reads syntax only."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from migrate_agent.tools.scan.scripts import ACTING, TRAINING, acts
from migrate_agent.tools.scan.size_tensors import size_parameters
from migrate_agent.tools.scan.symbols import is_main

TENSOR_METHODS = frozenset(
    """abs add amax amin argmax argmin argsort bmm ceil chunk clamp clamp_ clamp_max clamp_min clone contiguous cos cosh cross cumprod cumsum
    detach diag diagonal dim div div_ dot double eq exp expand expand_as fill_ flatten flip float floor gather ge gt half index_add
    index_add_ index_copy index_fill index_select isnan item le lerp log log10 log1p log2 log_softmax logical_and logical_not logical_or
    logsumexp long lt masked_fill masked_fill_ masked_scatter masked_select matmul mean median mm movedim mul mul_ narrow ne neg new_full
    new_ones new_tensor new_zeros nonzero norm numel permute pow prod reciprocal relu repeat_interleave requires_grad_ reshape roll round
    rsqrt scatter scatter_ scatter_add scatter_add_ select sigmoid sign sin sinh size softmax sort split sqrt square squeeze std sub sub_
    sum t take_along_dim tan tanh to topk transpose tril tril_ triu triu_ type_as unbind unfold unique unsqueeze var view view_as
    zero_""".split()
)
"""Methods of tensors. Some are NumPy's too: they count only in a file that imports torch."""
HANDLING = frozenset(
    """apply children cuda eval load_state_dict modules named_buffers named_children named_modules named_parameters parameters
    register_buffer register_parameter state_dict train zero_grad""".split()
)
"""Methods of modules and optimizers."""
READING = frozenset("memmap fromfile frombuffer imdecode imwrite listdir scandir isfile isdir iglob makedirs".split())
"""Further calls that reach out of the program."""
DRAWING = frozenset("rand randn randint randperm rand_like randn_like multinomial bernoulli normal choice".split())
"""Last names of calls that draw random numbers."""
FILLING = frozenset("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_".split())
"""Methods that fill a tensor with random numbers."""
_TENSOR = frozenset({"Tensor", "FloatTensor", "LongTensor", "BoolTensor"})


class FunctionShape(NamedTuple):
    """`tensors`: it calls methods of tensors, or its annotations name them. `reason`: why it is part of a program, else "".

    `applies`: it calls what it makes itself, as `nn.MSELoss()(x, y)` does and `return nn.ReLU()` does not. `initialises`: it draws into what it
    is given.
    """

    tensors: bool
    reason: str
    applies: bool
    initialises: bool = False


def function_shapes(tree: ast.Module) -> Mapping[str, FunctionShape]:
    """The top-level functions of a file, by name."""
    loaded = {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign) and not is_main(statement) and acts(statement)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    trains = bool(set(_methods(tree)) & TRAINING)
    modules = _imported_modules(tree)
    loaded |= _preparing(tree)
    return {
        node.name: _shape(node, loaded, trains, modules) for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _imported_modules(tree: ast.Module) -> set[str]:
    """The names that `import …` binds: what is called on them is a function of a module (`math.cos`), not a tensor's method."""
    aliases = [alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    return {alias.asname or alias.name.partition(".")[0] for alias in aliases}


def _preparing(tree: ast.Module) -> set[str]:
    """The names of what turns pictures into tensors: torchvision's transforms, but for its functions of tensors."""
    names = set[str]()
    for node in tree.body:
        match node:
            case ast.Import(names=aliases):
                names |= {alias.asname for alias in aliases if alias.name == "torchvision.transforms" and alias.asname}
            case ast.ImportFrom(module="torchvision", names=aliases):
                names |= {alias.asname or alias.name for alias in aliases if alias.name == "transforms"}
            case ast.ImportFrom(module="torchvision.transforms", names=aliases):
                names |= {alias.asname or alias.name for alias in aliases if alias.name != "functional"}
    return names


def _shape(node: ast.FunctionDef | ast.AsyncFunctionDef, loaded: set[str], trains: bool, modules: set[str]) -> FunctionShape:
    methods = set(_methods(node))
    annotations = {name for annotation in _annotations(node) for name in _names(annotation)}
    reason = _reason(node, methods, loaded)
    # The order of a program's draws is the program's: its batches are judged with it.
    if trains and not reason and methods & DRAWING:
        reason = "it draws random numbers beside a training loop, and is part of a program"
    own = set(_methods_of_values(node, modules))
    drawn = _drawn_into(node)
    if drawn and not reason:
        reason = f"it draws into {drawn}: it initialises what it is given, and is judged with what calls it"
    tensors = bool(annotations & _TENSOR) or (bool(own & TENSOR_METHODS) and not _is_of_arrays(node, own))
    return FunctionShape(tensors, reason, _applies(node), bool(drawn))


def _is_of_arrays(node: ast.AST, methods: Collection[str]) -> bool:
    """Whether a function does what NumPy's arrays take and tensors do not: `x.astype(…)`, `x[::-1]`, `x.transpose(1, 0, 2)`."""
    if "astype" in methods:
        return True
    for part in ast.walk(node):
        match part:
            case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
                return True
            case ast.Call(func=ast.Attribute(attr="transpose"), args=[_, _, _, *_] | [ast.Tuple()]):
                return True
    return False


def _drawn_into(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A parameter whose tensor the function fills with random numbers (`tensor.uniform_(0, 1)`, `w.data.normal_()`), else ""."""
    names = {item.arg for item in (*node.args.posonlyargs, *node.args.args)}
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in FILLING:
            owner = (
                part.func.value.value if isinstance(part.func.value, ast.Attribute) and part.func.value.attr == "data" else part.func.value
            )
            if isinstance(owner, ast.Name) and owner.id in names:
                return owner.id
    return ""


def _applies(node: ast.AST) -> bool:
    """Whether a function calls the result of a call, or a name that it assigns."""
    assigned = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(isinstance(one, ast.Call) or (isinstance(one, ast.Name) and one.id in assigned) for one in called)


def _reason(node: ast.FunctionDef | ast.AsyncFunctionDef, methods: set[str], loaded: set[str]) -> str:
    own = list(_own_nodes(node))
    if isinstance(node, ast.AsyncFunctionDef) or any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in own):
        return "it is a generator: it runs with the program that takes its values"
    called = methods | {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    if acting := sorted(called & (ACTING | READING)):
        return f"it calls {acting[0]}: it trains, or reads or writes files, and is part of a program"
    if handling := sorted(methods & HANDLING):
        return f"it calls {handling[0]}: it handles modules, and is part of a program"
    if any(isinstance(part, ast.Name) and part.id in loaded for part in ast.walk(node)):
        return "it reads data that its file loads, or prepares images, and is part of a program"
    if loader := _loader(node):
        return f"it goes through {loader}: it is a loop over batches, and part of a program"
    if sizes := sorted(size_parameters(node)):
        return f"it reads sizes out of {sizes[0]}, a tensor, and is judged with what calls it"
    if not any(isinstance(part, ast.Return) and part.value is not None for part in own):
        return "it returns nothing, so that there is nothing to compare"
    return ""


LOADER = re.compile(r"(\w*_)?(data_?)?loader")


def _loader(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A parameter by whose name batches are loaded, where a loop goes through it: `for x, y in loader`, `for i, batch in enumerate(val_loader)`."""
    names = {item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if LOADER.fullmatch(item.arg)}
    loops = [part.iter for part in ast.walk(node) if isinstance(part, (ast.For, ast.comprehension))]
    read = {part.id for loop in loops for part in ast.walk(loop) if isinstance(part, ast.Name)}
    return min(names & read, default="")


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _own_nodes(child)


def _methods(node: ast.AST, modules: Collection[str] = ()) -> Iterator[str]:
    """The names of the methods that are called, except on what is read from these modules."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return (func.attr for func in calls if _root(func) not in modules)


def _methods_of_values(node: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """The names of the methods that may be a tensor's: not those whose value nothing takes (`names.sort()` of a list, `seen.add(name)`), but for updates in
    place, and not `split` of words (`line.split(",")`, `line.split()`)."""
    alone = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Expr)}
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and _root(part.func) not in modules:
            words = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in part.args[:1])
            if not (part.func.attr == "split" and (words or not (part.args or part.keywords))) and (
                id(part) not in alone or part.func.attr.endswith("_")
            ):
                yield part.func.attr


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if node.returns is not None:
        yield node.returns


def _names(annotation: ast.expr) -> Iterator[str]:
    for part in ast.walk(annotation):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part.id if isinstance(part, ast.Name) else part.attr
