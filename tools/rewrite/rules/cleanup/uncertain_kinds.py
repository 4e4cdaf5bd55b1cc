"""Places that no example reached, where nothing tells whether a value is a tensor, and where the rewrite depends on it."""

from __future__ import annotations

import ast
from functools import cached_property

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

WRITES = "whether {text}, which is written into, is a tensor was neither observed nor inferred"
READS = "whether {text}, of which {name} is read, is a tensor was neither observed nor inferred"
ABSENT = frozenset(
    """data grad grad_fn is_cuda is_leaf backward register_hook retain_grad retains_grad share_memory_ record_stream storage untyped_storage
    get_device coalesce to_sparse dequantize resize_ set_ apply_ map_""".split()
)
"""Attributes of tensors that arrays lack, and that have no row."""
AMBIGUOUS = ("split", "sort", "add")
"""Methods of tensors that built-in types have too."""
CONTAINERS = frozenset("dict list set OrderedDict defaultdict Counter deque bytearray vars globals locals state_dict sorted".split())
"""Functions that give something other than a tensor that can be written into."""
ANNOTATIONS = CONTAINERS | frozenset("Dict List DefaultDict MutableMapping MutableSequence ndarray NDArray".split())


class RefuseUncertainKinds(Rule):
    """Refuse what depends on whether an unknown value is a tensor, in a block that no example ran: `y[i] = 0`, `y.grad`, `y.split(n)` → a hole.

    `StubUnexercised` turns it into an error that says what to add. Declines for what is certainly no tensor: what is
    indexed by a text, and what is assigned from displays, containers and NumPy alone.
    """

    KEEP = ("def f(y, i):\n    y[i] = 0\n    return y\n",)

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> None:
        for target in original.targets:
            self._check_target(target.target)

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.AugAssign) -> None:
        self._check_target(original.target)

    def leave_Del(self, original: cst.Del, updated: cst.Del) -> None:
        self._check_target(original.target)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> None:
        name = original.attr.value
        if name in ABSENT and name not in self._own_attributes and self._is_unknown(original.value) and self._is_unreached():
            self._refuse(original, READS, name=name)

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        func = original.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in AMBIGUOUS or isinstance(self.context.parent(), cst.Expr):
            return
        # `text.split(", ")`
        if not original.args or any(self._is_text(argument.value) for argument in original.args):
            return
        if self._is_unknown(func.value) and self._is_unreached():
            self._refuse(func, READS, name=func.attr.value)

    def _check_target(self, target: cst.BaseExpression) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._check_target(element.value)
        if not isinstance(target, cst.Subscript) or not self._is_unknown(target.value) or not self._is_unreached():
            return
        if not any(isinstance(part.slice, cst.Index) and self._is_text(part.slice.value) for part in target.slice):
            self._refuse(target, WRITES)

    def _refuse(self, node: cst.Subscript | cst.Attribute, reason: str, name: str = "") -> None:
        text = cst.Module([]).code_for_node(node.value)
        self.context.hole(node, reason.format(text=text, name=name), "unknown-receiver")

    def _is_text(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return isinstance(node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)) or (
            fact is not None and fact.kinds == ("str",)
        )

    def _is_unknown(self, node: cst.BaseExpression) -> bool:
        """Whether an expression may be a tensor for all that is known."""
        context = self.context
        if not context.file.names_torch or not context.functions or context.observed(node) is not None or context.dotted(node):
            return False
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super":
            return False
        return not self._is_no_tensor(ast.parse(f"({cst.Module([]).code_for_node(node)}\n)", mode="eval").body)

    def _is_unreached(self) -> bool:
        """Whether no example ran the block around."""
        context = self.context
        if not (context.observed_lines or context.exercised):
            return False
        block = next((node for node in reversed(context.stack) if isinstance(node, cst.IndentedBlock)), None)
        if block is None or not block.body:
            return False
        first, last = context.span(block.body[0]).line, context.span(block.body[-1]).end_line
        return not any(first <= line <= last for line in context.observed_lines)

    def _is_no_tensor(self, node: ast.expr, depth: int = 3) -> bool:
        """Whether an expression is certainly no tensor: a display, a container, an array of NumPy, or a name that stands for nothing else."""
        match node:
            case ast.Dict() | ast.List() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.Constant() | ast.JoinedStr():
                return True
            case ast.BinOp(left=left, op=ast.Mult() | ast.Add()):
                return isinstance(left, ast.List)
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in CONTAINERS:
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr="copy")):
                return self._is_no_tensor(inner, depth)
            case ast.Call(func=function) | function if (dotted := self._dotted(function)) and dotted.partition(".")[0] in (
                "numpy",
                "os",
                "sys",
            ):
                return True
            case ast.Attribute(attr="__dict__" | "__annotations__" | "_modules" | "_parameters" | "_buffers"):
                return True
            case ast.Name() | ast.Attribute() if depth:
                values = self._values(node)
                return bool(values) and all(self._is_no_tensor(value, depth - 1) for value in values)
        return False

    def _dotted(self, node: ast.expr) -> str:
        head, _, rest = ast.unparse(node).partition(".") if isinstance(node, (ast.Name, ast.Attribute)) else ("", "", "")
        base = self.context.file.bindings.get(head, "")
        return f"{base}.{rest}" if base and rest else base

    def _values(self, target: ast.expr) -> list[ast.expr]:
        """What is assigned to a name in the function (or else at the top of the file), or to an attribute in the class.

        An annotation counts as a call of what it names.
        """
        context, text = self.context, ast.unparse(target)
        scopes: list[ast.AST] = [node for node in (context.function,) if node]
        if isinstance(target, ast.Attribute):
            scopes = [context.cls.node] if context.cls else []
        values: list[ast.expr] = []
        for scope in [*scopes, *([context.file.tree] if isinstance(target, ast.Name) else [])]:
            for node in walk(scope):
                match node:
                    case ast.Assign(targets=targets, value=value) if any(ast.unparse(one) == text for one in targets):
                        values.append(value)
                    case ast.AnnAssign(target=one, annotation=annotation) if ast.unparse(one) == text:
                        values.append(node.value or _annotated(annotation))
                    case ast.arg(arg=name, annotation=ast.expr() as annotation) if name == text:
                        values.append(_annotated(annotation))
            if values or (isinstance(target, ast.Name) and self._binds(scope, text)):
                break
        return values

    def _binds(self, scope: ast.AST, name: str) -> bool:
        return any(
            (isinstance(n, ast.arg) and n.arg == name) or (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load))
            for n in walk(scope)
        )

    @cached_property
    def _own_attributes(self) -> frozenset[str]:
        """Attributes that classes of the repository assign, and methods that they define."""
        files = self.context.repo.files.values()
        return frozenset(name for file in files for model in file.classes.values() for name in (*model.attributes, *model.methods))


def _annotated(annotation: ast.expr) -> ast.expr:
    """A call of the class that an annotation names."""
    text = ast.unparse(annotation).strip("'\"")
    for wrapper in ("Optional[", "typing.Optional["):
        text = text.removeprefix(wrapper)
    name = text.partition("[")[0].rpartition(".")[2].partition(" ")[0].strip("]")
    return ast.Call(ast.Name("dict" if name in ANNOTATIONS else "unknown"), [], [])
