"""Follows values of places through the expressions of a function, and through the functions that these call."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.autograd_functions.sparse_products import SPARSE, sparse_product
from migrate_agent.tools.rewrite.analysis.custom_kernels import FUNCTION_BASES
from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, dotted_name
from migrate_agent.tools.rewrite.analysis.routing.place_operations import PlaceOperations
from migrate_agent.tools.rewrite.analysis.routing.place_values import Kind, PlaceValue, Unfit, axis_of, index_parts, is_full, whole_number
from migrate_agent.tools.rewrite.analysis.routing.row_functions import LAYERS, POINTWISE, acts_on_rows
from migrate_agent.tools.rewrite.tables.registry import public_name

WRITES = frozenset({"index_copy_", "index_add_", "index_copy", "index_add"})
ELEMENTWISE = POINTWISE | {"isnan", "isinf", "isfinite"}
POINTWISE_LAYERS = LAYERS - {"torch.nn.Linear", "torch.nn.LayerNorm", "torch.nn.RMSNorm", "torch.nn.PReLU"}
PRODUCTS = frozenset({"matmul", "mm"})
DEEPEST = 3
"""How many calls within each other are followed."""


class Callee(NamedTuple):
    """A method that is called on an instance of `owner`, and the file that defines it."""

    owner: ClassModel
    file: FileModel
    function: FunctionNode


@dataclass
class PlaceExpressions(PlaceOperations, ABC):
    """Says of each expression what it holds of places."""

    @abstractmethod
    def result_of(self, callee: Callee, values: Mapping[str, PlaceValue]) -> PlaceValue | None:
        """What a function gives whose parameters have these values."""

    def value(self, node: ast.expr) -> PlaceValue | None:
        """What an expression holds of places; `None` where it holds nothing of them."""
        if (selected := self.selected(node)) is not None:
            if selected.kind == Kind.TABLES:
                raise Unfit(selected)
            return selected
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=inner, attr="dtype" | "device"):
                if not isinstance(inner, ast.Name):
                    self.nothing(inner)
                return None
            case ast.Attribute(value=inner, attr="T" | "mT"):
                return self.turned(self.value(inner), node)
            case ast.Subscript():
                return self._part(node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self.pointwise([(operand, self.value(operand))])
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self.product(self.value(left), self.value(right))
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return self.pointwise([(left, self.value(left)), (right, self.value(right))])
            case ast.Call():
                return self._call(node)
        self.nothing(node)
        return None

    def nothing(self, node: ast.AST) -> None:
        """Raises where anything of places stands inside."""
        match node:
            case (
                ast.Tuple()
                | ast.List()
                | ast.Dict()
                | ast.BoolOp()
                | ast.IfExp()
                | ast.Slice()
                | ast.Starred()
                | ast.JoinedStr()
                | ast.FormattedValue()
                | ast.UnaryOp(op=ast.Not() | ast.UAdd())
                | ast.Compare(comparators=[_, _, *_])
            ):
                for child in ast.iter_child_nodes(node):
                    self.nothing(child)
            case ast.Name() | ast.Subscript() | ast.Call() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                if (value := self.value(node)) is not None:
                    raise Unfit(value)
            case _:
                if values := self.held(node):
                    raise Unfit(*values)

    def _part(self, node: ast.Subscript) -> PlaceValue | None:
        first, *rest = parts = index_parts(node)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self.size(self.value(node.value.value), whole_number(node.slice), node)
        match self.value(node.value):
            case PlaceValue(Kind.TABLE, selection) if len(rest) == 1 and is_full(first) and whole_number(rest[0]) is not None:
                return PlaceValue(Kind.LIST, selection)
            case PlaceValue(Kind.COLUMNS, selection) if whole_number(first) is not None and all(map(is_full, rest)):
                return PlaceValue(Kind.LIST, selection)
            case PlaceValue(Kind.TURNED, selection) if whole_number(first) is not None and all(map(is_full, rest)):
                return PlaceValue(Kind.ROWS, selection)
            case PlaceValue(Kind.ROWS) as rows if is_full(first) and all(map(self.is_simple, rest)):
                return rows
            case PlaceValue() as value:
                raise Unfit(value)
        if not isinstance(first, ast.Slice) and (index := self.value(first)) is not None:
            if index.kind == Kind.LIST and all(map(is_full, rest)) and is_tensor(self.fact(node.value)):
                return self.read(node, index)
            raise Unfit(index)
        for part in parts:
            self.nothing(part)
        return None

    # -- functions of torch -----------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> PlaceValue | None:
        function, dotted = node.func, self.dotted(node.func)
        receiver = function.value if isinstance(function, ast.Attribute) and not dotted.startswith("torch") else None
        name = function.attr if isinstance(function, ast.Attribute) else dotted.rpartition(".")[2]
        arguments = [*node.args, *(option.value for option in node.keywords)]
        if not self.held(node):
            for argument in arguments:  # a selection inside counts where it is read
                self.nothing(argument)
            return None
        if dotted in SPARSE:
            self.check_sparse([self.value(argument) for argument in arguments])
            return None
        if name in ("cat", "concat", "stack") and dotted.startswith("torch."):
            return self._joined(name, node)
        if (callee := self._own_method(node)) is not None:
            return self._inside(callee, node)
        fact = self.fact(function)
        if fact is not None and all(kind.startswith("module:") for kind in fact.kinds):
            return self._module([kind.removeprefix("module:") for kind in fact.kinds], node)
        if dotted.startswith("torch.") or receiver is not None:
            operands = [receiver, *node.args] if receiver is not None else node.args
            return self._torch(name, node, operands)
        if dotted in ("", "len") and isinstance(function, ast.Name) and function.id == "len" and len(arguments) == 1:
            return self.size(self.value(arguments[0]), 0, node)
        raise Unfit(*self.held(node))

    def _joined(self, name: str, node: ast.Call) -> PlaceValue | None:
        parts = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple | ast.List) else []
        values = [self.value(part) for part in parts]
        axis = axis_of(node, 1)
        if not values or len(set(values)) != 1 or values[0] is None:
            raise Unfit(*values, *self.held(node))
        value = values[0]
        if name == "stack":
            if value.kind == Kind.LIST and axis in (None, 0):
                return PlaceValue(Kind.COLUMNS, value.selection)
        elif value.kind == Kind.ROWS and self.is_behind(axis, node):
            return value
        raise Unfit(value)

    def _torch(self, name: str, node: ast.Call, operands: Sequence[ast.expr]) -> PlaceValue | None:
        """A function of torch, or a method of its first operand."""
        options = [option.value for option in node.keywords]
        if name == "index_select" and len(operands) == 3 and not options:
            return self._index_select(node, operands)
        values, option_values = ([self.value(operand) for operand in group] for group in (operands, options))
        if not values:
            raise Unfit(*option_values)
        first, axis = values[0], axis_of(node, 1 if operands[0] in node.args else 0)
        if any(option_values) or (first is None and name not in (*PRODUCTS, *ELEMENTWISE)):
            if name in WRITES and self.writes(node):
                return None
            raise Unfit(*values, *option_values)
        if name in PRODUCTS and len(values) == 2:
            return self.product(*values)
        if name in ELEMENTWISE and not (name == "dropout" and first is None):
            arrays = [(option, None) for option in options if is_tensor(self.fact(option))]
            return self.pointwise([*zip(operands, values, strict=True), *arrays])
        assert first is not None
        if any(values[1:]) and name != "type_as":
            if name == "gather" and len(values) == 3 and values == [first, None, first] and not options:
                return self.gather(node, operands, first)
            raise Unfit(*values)
        return self.of_one(name, node, operands, first, axis)

    def _index_select(self, node: ast.Call, operands: Sequence[ast.expr]) -> PlaceValue | None:
        array, axis, index = (self.value(operand) for operand in operands)
        if (
            array is None
            and axis is None
            and index is not None
            and index.kind in (Kind.LIST, Kind.SQUEEZED)
            and whole_number(operands[1]) == 0
        ):
            return self.read(node, index)
        raise Unfit(array, axis, index)

    def writes(self, call: ast.Call) -> bool:
        """`out.index_copy_(0, places, rows)`: whether there are places in it, which raises where anything else is written by them."""
        assert isinstance(call.func, ast.Attribute)
        values = [self.value(call.func.value), *(self.value(argument) for argument in call.args)]
        if not any(values):
            return False
        match values, call.args:
            case [None, None, PlaceValue(Kind.LIST | Kind.SQUEEZED, selection), rows], [ast.Constant(value=0), *_] if (
                rows in (None, PlaceValue(Kind.ROWS, selection)) and not call.keywords
            ):
                return True
        raise Unfit(*values)

    # -- modules, and methods of the repository's own ---------------------------------------------------------------

    def _module(self, classes: Sequence[str], node: ast.Call) -> PlaceValue | None:
        values = [self.value(argument) for argument in (*node.args, *(option.value for option in node.keywords))]
        names = {public_name(name) for name in classes}
        match values:
            case [PlaceValue(Kind.ROWS | Kind.TURNED) as value] if names <= POINTWISE_LAYERS:
                return value
            case [PlaceValue(Kind.ROWS) as value] if names == {"torch.nn.Embedding"} and node.args and not self.depth:
                self.result.lookups[self.span(node.args[0])] = ast.unparse(node.func)
                return value
            case [PlaceValue(Kind.ROWS) as value] if node.args and self.rank(node.args[0]) >= 2:
                if all(acts_on_rows(self.repo, name, self.source, self.owner) for name in classes):
                    return value
        model = self.repo.class_of(classes[0]) if len(classes) == 1 else None
        callee = self._method(model, "forward") if model is not None else None
        if callee is None:
            raise Unfit(*values)
        return self._inside(callee, node)

    def _method(self, model: ClassModel, name: str) -> Callee | None:
        """The method that instances of a class have under a name, from the class itself or from one of its bases."""
        bases = self.repo.ancestors(model)
        return next((Callee(model, base.file, base.methods[name]) for base in bases if name in base.methods), None)

    def _own_method(self, node: ast.Call) -> Callee | None:
        """The method of `self` that is called."""
        parameters = self.function.args.args
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if self.owner is not None and parameters and name == parameters[0].arg:
                overridden = any(attr in model.methods for model in self.repo.descendants.get(self.owner.id, []))
                callee = self._method(self.owner, attr)
                if callee is not None and not overridden and not callee.function.decorator_list:
                    return callee
        return None

    def _inside(self, callee: Callee, node: ast.Call) -> PlaceValue | None:
        """What a function gives for values of places. It is rewritten for all its callers, so that it must be right for a padded list as it is."""
        function = callee.function
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:]
        plain = not function.args.vararg and not function.args.kwarg and isinstance(function, ast.FunctionDef)
        arguments = {**dict(zip(names, node.args, strict=False)), **{option.arg or "": option.value for option in node.keywords}}
        if not plain or len(node.args) > len(names) or any(isinstance(argument, ast.Starred) for argument in node.args) or "" in arguments:
            raise Unfit(*self.held(node))
        values = {name: value for name, argument in arguments.items() if (value := self.value(argument)) is not None}
        if self.depth >= DEEPEST:
            raise Unfit(*values.values())
        return None if self._sparse_product(callee, values) else self.result_of(callee, values)

    def _sparse_product(self, callee: Callee, values: Mapping[str, PlaceValue]) -> bool:
        """Whether a function only hands its arguments to an autograd function that is the product of a sparse matrix with a dense one."""
        _, file, function = callee
        statements = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
        match statements:
            case [ast.Return(value=ast.Call(func=ast.Attribute(value=target, attr="apply"), args=args, keywords=[]))]:
                model = self.repo.class_of(dotted_name(target, file) or file.own(ast.unparse(target)))
                if model is None or not set(self.repo.bases(model)) & set(FUNCTION_BASES) or not sparse_product(model):
                    return False
                self.check_sparse([values.get(argument.id) if isinstance(argument, ast.Name) else None for argument in args])
                return True
        return False
