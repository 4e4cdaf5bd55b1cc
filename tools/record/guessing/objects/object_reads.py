"""Arguments of a call that are objects with attributes, or lists of such: `data.x`, `for graph in graphs: graph.features`, by what its code reads of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.configs import MODULE_NAMES, TENSOR_NAMES
from migrate_agent.tools.record.guessing.reads import arguments, called_part, names_around
from migrate_agent.tools.record.guessing.rows import call_values
from migrate_agent.tools.record.guessing.tensor_uses import OF_SIZES
from migrate_agent.tools.record.guessing.trials.trial import parameters
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value
from migrate_agent.tools.record.guessing.values import Sequence as Items

DEPTH = 4
"""Through how many calls of methods and parts, one inside the other, an argument is followed."""
AROUND = frozenset({"enumerate", "zip", "reversed", "sorted", "list", "tuple", "iter"})
EXTREMES = frozenset({"max", "min"})
COUNT = "4"
"""Of what is counted to, or sizes are computed from."""
OF_GRAPHS = re.compile(r"(.*_)?(edges?|adj(acency)?|neighbou?rs?|nodes?|batch)(_.*)?")
"""Names of what stands beside features of nodes, which have no axis of samples."""


@dataclass(eq=False)
class Read:
    """What code reads of a value: its attributes, keys and items, what it calls on it, and how it uses it."""

    attributes: dict[str, Read] = field(default_factory=dict)
    keys: dict[str, Read] = field(default_factory=dict)
    items: list[Read] = field(default_factory=list)
    """One for all items; none where none is read."""
    methods: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    """Attributes that the code has set itself."""
    counts: bool = False
    """Whether it is a number that sizes are computed from."""
    finds: bool = False
    """Whether others are indexed with it."""
    tested: bool = False
    """Whether the code asks what it is, and may do without attributes."""

    def attribute(self, name: str) -> Read:
        """The attribute; of one that the code has set itself, nothing is asked of the argument."""
        return Read() if name in self.stored else self.attributes.setdefault(name, Read())

    def key(self, name: str) -> Read:
        """What lies under a key."""
        return self.keys.setdefault(name, Read())

    def item(self) -> Read:
        """What stands for all items."""
        if not self.items:
            self.items.append(Read())
        return self.items[0]

    @property
    def is_object(self) -> bool:
        """Whether it has attributes that neither tensors nor modules have, and no methods, which a plain object could not answer."""
        return bool(self.attributes.keys() - names_of_tensors()) and not (self.methods or self.keys or self.tested)

    @property
    def objects(self) -> Iterator[Read]:
        """It, or its items, where these are objects."""
        yield from (read for read in (self, *self.items) if read.is_object)


@cache
def names_of_tensors() -> frozenset[str]:
    """The attributes that tensors and modules have."""
    import torch

    return frozenset({*dir(torch.Tensor), *MODULE_NAMES, *TENSOR_NAMES})


def object_inputs(called: Any, instance: Any, name: str, main: Tensor) -> tuple[Value, ...]:
    """Objects with the attributes, or lists of two objects, that the code of a function, and of the methods and parts of `instance` to which it hands the
    parameter, reads of it; none where it may be a tensor."""
    if called is None or name not in {item.name for item in parameters(called)}:
        return ()
    read = Read()
    _Walk(called, instance, {name: read}, DEPTH)
    if not any(read.objects) or (read.items and read.is_object):
        return ()
    mains = [main]
    if any(OF_GRAPHS.fullmatch(attribute) for one in read.objects for attribute in one.attributes) and len(main.shape) > 2:
        mains = [replace(main, shape=main.shape[-2:]), main]
    return tuple(dict.fromkeys(_value(read, name, tensor) for tensor in mains))


def _value(read: Read, name: str, main: Tensor) -> Value:
    """What is read so: an object, a list of two, a dictionary by its keys, a number, or what the name suggests beside the main tensor."""
    if read.is_object:
        return Fields(tuple((key, _value(inner, key, main)) for key, inner in read.attributes.items()), "namespace")
    if any(read.objects):
        return Items((_value(read.items[0], name, main),) * 2)
    if read.keys:
        return Fields(tuple((key, _value(inner, key, main)) for key, inner in read.keys.items()), "dict")
    if read.counts and not (read.attributes or read.methods):
        return COUNT
    usual = call_values(name, "", main)
    if read.attributes or read.methods or read.finds:
        usual = tuple(value for value in usual if isinstance(value, Tensor)) or (main,)
    first = usual[0]
    return replace(first, kind="integer") if read.finds and isinstance(first, Tensor) else first


class _Walk:
    """Goes through the statements of a function in their order, and notes what they read of the values that some of its names stand for."""

    def __init__(self, called: Any, instance: Any, names: Mapping[str, Read], depth: int) -> None:
        self._called, self._instance, self._names, self._depth = called, instance, dict(names), depth
        self._parts: dict[str, Any] = {}
        """Names of loops over parts of the instance → the first of them."""
        functions = (node for node in nodes_of(called) if isinstance(node, ast.FunctionDef))
        self._go_through(next((node.body for node in functions), []))

    def _go_through(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.For(target=target, iter=row):
                    self._look(row)
                    self._bind_items(target, row)
                case ast.Assign(targets=targets, value=value):
                    self._look(value)
                    for target in targets:
                        self._assign(target, value)
                case _:
                    for child in ast.iter_child_nodes(statement):
                        self._look(child) if not isinstance(child, ast.stmt) else None
            for block in ("body", "orelse", "finalbody"):
                self._go_through(getattr(statement, block, []))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                rows = [(one, self._at(other)) for one, other in zip(targets, values, strict=True)]
            case ast.Tuple(elts=targets), _:
                rows = [(one, None) for one in targets]
            case _:
                rows = [(target, self._at(value))]
        for one, read in rows:
            self._set(one, read)

    def _set(self, target: ast.expr, read: Read | None) -> None:
        """Let a name stand for a value; what is assigned anew is another one."""
        match target:
            case ast.Name(id=name) if read is not None:
                self._names[name] = read
            case ast.Name(id=name):
                self._names.pop(name, None)
            case ast.Attribute(value=owner, attr=attribute) if (holder := self._at(owner)) is not None:
                holder.stored.add(attribute)
            case _:
                self._look(target)

    def _bind_items(self, target: ast.expr, row: ast.expr) -> None:
        """Let the variables of a loop stand for the items of what it goes through."""
        match row, target:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]), ast.Tuple(elts=[_, item]):
                self._bind_items(item, inner)
            case ast.Call(func=ast.Name(id="zip"), args=rows), ast.Tuple(elts=targets):
                for one, other in zip(targets, rows, strict=False):
                    self._bind_items(one, other)
            case ast.Call(func=ast.Name(id=function), args=[inner, *_]), _ if function in AROUND:
                self._bind_items(target, inner)
            case _, ast.Name(id=name):
                read = self._at(row)
                self._set(target, read.item() if read is not None else None)
                self._parts |= {name: part} if (part := self._part(ast.Subscript(row, ast.Constant(0)))) is not None else {}

    def _look(self, node: ast.AST) -> None:
        """Note what an expression reads."""
        for part in ast.walk(node):
            if isinstance(part, ast.comprehension):
                self._bind_items(part.target, part.iter)
        self._look_into(node)

    def _look_into(self, node: ast.AST) -> None:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=method) as function, args=args):
                if (read := self._at(owner)) is not None:
                    read.methods.add(method)
                else:
                    self._look_into(function)
                for argument in args if method in OF_SIZES else ():
                    self._count(argument)
                self._hand_on(node)
                children: list[ast.AST] = [*args, *node.keywords]
            case ast.Call(func=ast.Name(id="range" | "int"), args=args):
                for argument in args:
                    self._count(argument)
                children = [*args]
            case ast.Call(func=ast.Name(id="hasattr" | "isinstance"), args=[tested, *_]) if (read := self._at(tested)) is not None:
                read.tested = True
                children = []
            case ast.Call(func=ast.Name(), args=args):
                self._at(node)
                self._hand_on(node)
                children = [*args, *node.keywords]
            case ast.BinOp(left=ast.List(), op=ast.Mult(), right=number):
                self._count(number)
                children = [node.left, number]
            case ast.Subscript(slice=index):
                whole = self._at(node)  # first: the fields of an object stand in the order in which they are read
                for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                    if (read := self._at(part)) is not None:
                        read.finds = True
                children = [index] if whole is not None else [node.value, index]
            case ast.expr() if self._at(node) is not None:
                children = []
            case _:
                children = list(ast.iter_child_nodes(node))
        for child in children:
            self._look_into(child)

    def _count(self, node: ast.expr) -> None:
        """Note that an expression is a number that sizes are computed from."""
        match node:
            case ast.BinOp(left=left, right=right):
                self._count(left)
                self._count(right)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._count(part)
            case _ if (read := self._at(node)) is not None:
                read.counts = True

    def _at(self, node: ast.AST) -> Read | None:
        """What is noted of the value that an expression stands for; `None` where it is none of an argument."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Attribute(value=owner, attr=attribute, ctx=ast.Load()):
                read = self._at(owner)
                return read.attribute(attribute) if read is not None else None
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(attribute)), *_]):
                read = self._at(owner)
                return read.attribute(attribute) if read is not None else None
            case ast.Call(func=ast.Name(id=function), args=[ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner)]) if function in EXTREMES:
                return self._at(inner)
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                read = self._at(owner)
                return read.key(key) if read is not None else None
            case ast.Subscript(value=owner, slice=ast.Slice()):
                return self._at(owner)
            case ast.Subscript(value=owner, slice=index) if not isinstance(index, ast.Tuple):
                read = self._at(owner)
                return read.item() if read is not None else None
        return None

    def _hand_on(self, call: ast.Call) -> None:
        """Go through the code of what is handed a value that is followed: a method, a part of the instance, a function of the program."""
        called, owner = self._callee(call.func) if self._depth else (None, None)
        if inspect.isfunction(called) and not (called.__module__ or "").startswith("torch."):
            handed = {name: read for name, value in arguments(called, call) if (read := self._at(value)) is not None}
            if handed:
                _Walk(called, owner, handed, self._depth - 1)

    def _callee(self, function: ast.expr) -> tuple[Any, Any]:
        """The function that is called, and the object whose method it is."""
        if (part := self._part(function)) is not None:
            return getattr(type(part), "forward", None), part
        match function:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._method(name), self._instance
        return value_of_name(function, names_around(self._called)), None

    def _method(self, name: str) -> Any:
        """A method of the instance, a private one of the class around the code too."""
        owner = self._called.__qualname__.rpartition(".")[0].rpartition(".")[2].lstrip("_")
        private = f"_{owner}{name}" if name.startswith("__") and not name.endswith("__") else name
        method = inspect.getattr_static(type(self._instance), private, None)
        return getattr(method, "__func__", method)

    def _part(self, function: ast.expr) -> Any:
        """The module of the instance that an expression stands for, the first one of several in a row."""
        part = called_part(function, self._instance, self._parts)
        match function:
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                held: Any = getattr(self._instance, name, None)
                part = next(iter(held), None) if type(held).__name__ == "ModuleList" else None
        return part if hasattr(part, "forward") else None


__all__ = ["Read", "names_of_tensors", "object_inputs"]
