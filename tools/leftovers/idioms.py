"""Torch idioms that raise an error in JAX: writes into arrays, methods and arguments that JAX arrays lack, values that are read under `jit`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrate_agent.tools.leftovers.kinds import DECLARED, is_array
from migrate_agent.tools.leftovers.program import Definition, File, Function, Program, is_module
from migrate_agent.tools.leftovers.values import Flow, Values

ARRAY_ATTRIBUTES = frozenset(
    """T addressable_data addressable_shards all any argmax argmin argpartition argsort astype at aval block_until_ready byteswap choose clip clone
    committed compress conj conjugate copy copy_to_host_async cumprod cumsum delete device device_buffer device_buffers devices diagonal dot dtype
    flat flatten format global_shards imag is_deleted is_fully_addressable is_fully_replicated is_ready item itemsize mT max mean min nbytes ndim
    nonzero on_device_size_in_bytes platform prod ptp ravel real repeat reshape round searchsorted shape sharding size sort squeeze std sum swapaxes
    take to_device tobytes tolist trace traceback transpose unsafe_buffer_pointer unsafe_raw_buffer var view weak_type""".split()
)
"""Attributes of `jax.Array`."""
VARIABLE_ATTRIBUTES = frozenset("value raw_value get_value set_value get_raw_value set_raw_value type get_metadata set_metadata".split())
"""Attributes of an `nnx.Variable`, which may stand where an array is declared."""
NO_METHODS = frozenset("size shape dtype ndim T mT real imag itemsize nbytes device".split())
"""Attributes of arrays that are no methods, some of which are methods in torch."""
TORCH_ARGUMENTS = frozenset("dim dims keepdim unbiased memory_format non_blocking inplace".split())
SHARED_ARGUMENTS = {("ravel_multi_index", "dims"), *((name, "inplace") for name in ("put_along_axis", "put", "place", "fill_diagonal"))}
"""Functions of `jax.numpy`, and an argument that they have all the same."""
TENSORS_ALONE = frozenset(
    """unsqueeze unsqueeze_ masked_fill masked_fill_ masked_select masked_scatter masked_scatter_ index_select index_add index_add_ index_copy_
    index_fill_ scatter_add scatter_add_ expand_as view_as type_as contiguous is_contiguous requires_grad_ detach_ new_zeros new_ones new_full
    new_empty new_tensor data_ptr storage_offset clamp_ clamp_min_ clamp_max_ addmm_ addcmul_ addcdiv_ sigmoid_ relu_ bernoulli_ uniform_
    normal_ zero_ retain_grad""".split()
)
"""Methods that torch's tensors alone have."""
FAMILIAR = (
    "jax",
    "flax",
    "numpy",
    "optax",
    "einops",
    "math",
    "functools",
    "typing",
    "dataclasses",
    "collections",
    "__future__",
    "itertools",
)
"""Packages of which it is known that their objects have none of `TENSORS_ALONE`."""
READS = ("item", "tolist")
CASTS = ("float", "int", "bool")
CONCRETE = ("Tracer", "is_concrete", "ensure_compile_time_eval", "pure_callback")


def find(program: Program) -> Iterator[tuple[File, int, str]]:
    """(file, line, message) of each idiom."""
    values = Values(program)
    for file in program.files:
        rows: list[tuple[int, str]] = []
        alone = TENSORS_ALONE - program.attribute_names if _is_familiar(file, program) else frozenset()
        traced = traced_functions(program, file)
        for definition in functions_of(file, program):
            look = Look(rows, alone, definition.node.name if definition.node in traced else "")
            Flow(values, definition, look).run()
        yield from ((file, line, what) for line, what in sorted(set(rows)))


class Look:
    """Reports the idioms in one function, of whose name it is told where `jit` traces it."""

    def __init__(self, rows: list[tuple[int, str]], alone: frozenset[str], traced: str) -> None:
        self.rows, self.alone, self.traced = rows, alone, traced

    def report(self, line: int, what: str) -> None:
        """Note one idiom."""
        self.rows.append((line, what))

    def __call__(self, node: ast.AST, flow: Flow) -> None:
        """Report what is wrong at this node, but not inside it."""
        match node:
            case ast.Assign(targets=targets):
                for target in targets:
                    self._written(target, flow)
            case ast.AugAssign(target=target):
                self._written(target, flow)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._written(target, flow)
            case ast.Attribute(ctx=ast.Load()):
                self._read(node, flow)
            case ast.Call():
                self._called(node, flow)

    def _written(self, target: ast.expr, flow: Flow) -> None:
        match target:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._written(element, flow)
            case ast.Subscript(value=value) if is_array(kind := flow.kind(value)):
                # `x[...] = y` sets an `nnx.Variable`, which may stand where an array is declared.
                if not (kind == DECLARED and isinstance(target.slice, ast.Constant) and target.slice.value is ...):
                    self.report(target.lineno, f"writes into the array {ast.unparse(value)}: use `.at[…].set(…)`")
            case ast.Attribute(value=value, attr=name) if is_array(kind := flow.kind(value)) and name not in VARIABLE_ATTRIBUTES:
                self.report(target.lineno, f"sets .{name} of the array {ast.unparse(value)}")

    def _read(self, node: ast.Attribute, flow: Flow) -> None:
        name = node.attr
        if name in ARRAY_ATTRIBUTES or name.startswith("__"):
            return
        kind = flow.kind(node.value)
        if is_array(kind) and not (kind == DECLARED and name in VARIABLE_ATTRIBUTES):
            self.report(node.lineno, f"reads .{name} of the array {ast.unparse(node.value)}: JAX arrays have none")
        elif kind is None and name in self.alone and not flow.file.dotted(node):
            self.report(node.lineno, f"reads .{name} of {ast.unparse(node.value)}: only torch's tensors have it")

    def _called(self, node: ast.Call, flow: Flow) -> None:
        keywords = [one.arg for one in node.keywords if one.arg in TORCH_ARGUMENTS]
        module, _, function = flow.file.dotted(node.func).rpartition(".")
        foreign = [name for name in keywords if (function, name) not in SHARED_ARGUMENTS]
        if foreign and module in ("jax.numpy", "jax.nn", "jax.lax"):
            self.report(node.lineno, f"hands {foreign[0]}= to {module}.{function}")
        if isinstance(node.func, ast.Attribute) and is_array(flow.kind(node.func.value)):
            self._method(node, node.func, keywords)
        elif isinstance(node.func, ast.Name) and node.func.id in CASTS and node.args and self.traced and node.func.id not in flow.names:
            if flow.kind(node.args[0]) and is_array(flow.kind(node.args[0])):
                self.report(node.lineno, f"{node.func.id}() of an array in {self.traced}, which jit traces")

    def _method(self, node: ast.Call, func: ast.Attribute, keywords: list[str]) -> None:
        name, receiver = func.attr, ast.unparse(func.value)
        if keywords:
            self.report(node.lineno, f"hands {keywords[0]}= to .{name} of the array {receiver}")
        if name in NO_METHODS:
            self.report(node.lineno, f"calls .{name} of the array {receiver}, which is no method")
        elif name == "view" and is_shape(node.args):
            self.report(node.lineno, f"hands a shape to .view of the array {receiver}: use .reshape")
        elif name == "transpose" and swaps(node.args):
            self.report(node.lineno, f"hands two axes to .transpose of the array {receiver}: use .swapaxes")
        elif name in READS and self.traced:
            self.report(node.lineno, f"reads .{name}() of an array in {self.traced}, which jit traces")


def is_shape(arguments: list[ast.expr]) -> bool:
    """Whether the arguments of `.view` are a shape and no dtype."""
    first = arguments[0] if arguments else None
    number = isinstance(first, (ast.UnaryOp, ast.Tuple, ast.Starred)) or (isinstance(first, ast.Constant) and isinstance(first.value, int))
    return len(arguments) > 1 or number or (isinstance(first, ast.Attribute) and first.attr == "shape")


def swaps(arguments: list[ast.expr]) -> bool:
    """Whether the arguments of `.transpose` are two axes of more than two."""
    try:
        axes = [ast.literal_eval(argument) for argument in arguments]
    except ValueError:
        return False
    # Of a matrix these two axes are all that there are, and JAX takes them too.
    whole = all(axis in (-2, -1, 0, 1) for axis in axes) and {axis % 2 for axis in axes if isinstance(axis, int)} == {0, 1}
    return len(axes) == 2 and all(isinstance(axis, int) for axis in axes) and not whole


def functions_of(file: File, program: Program) -> Iterator[Definition]:
    """The functions of a file, and the methods of its classes, wherever the classes stand."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef):
            owner = program.definitions.get(node.name)
            owner = owner if owner and owner.node is node else None
            yield from (Definition(file, one, owner) for one in node.body if isinstance(one, Function))
    yield from (Definition(file, node) for node in file.tree.body if isinstance(node, Function))


def traced_functions(program: Program, file: File) -> frozenset[Function]:
    """The functions of a file that run whenever `__call__` of a module does, and not while a value can be looked at."""
    found: set[Function] = set()
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef) and is_module(file, node):
            methods = {one.name: one for one in node.body if isinstance(one, Function)}
            found |= _reached(methods, "__call__")
    return frozenset(one for one in found if not any(word in ast.unparse(one) for word in CONCRETE))


def _reached(methods: dict[str, Function], name: str) -> set[Function]:
    """The methods that a method calls, and they in turn."""
    waiting, reached = [name], set()
    while waiting:
        method = methods.get(waiting.pop())
        if method is None or method in reached:
            continue
        reached.add(method)
        waiting += [
            call.func.attr for call in _calls(method) if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
        ]
    return reached


def _calls(node: ast.AST) -> Iterable[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _is_familiar(file: File, program: Program) -> bool:
    """Whether a file imports nothing but packages whose objects are known, and these files."""
    own = {one.path.removesuffix(".py").rpartition("/")[2] for one in program.files}
    return all(
        dotted.startswith(".") or dotted.partition(".")[0] in FAMILIAR or set(dotted.split(".")) & own for dotted in file.imports.values()
    )
