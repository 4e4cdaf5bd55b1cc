"""Where a new value goes: names, attributes, parts and views of tensors, and the other names that share their memory."""

from __future__ import annotations

import ast
from collections.abc import Collection

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.aliases import (
    Alias,
    binding_loop,
    bound_names,
    mark_copies,
    read_after,
    shared_names,
    stale_aliases,
)
from migrate_agent.tools.rewrite.analysis.autograd_functions.saves import SAVE, movable_save
from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.inplace_effects.untouched_arguments import SIZES
from migrate_agent.tools.rewrite.analysis.loop_slices import loop_part, parts_name
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.padded_rows import is_full
from migrate_agent.tools.rewrite.rules.mutation.handed_back import handed_back
from migrate_agent.tools.rewrite.rules.parameters.variables import (
    PARAMETER_CONTAINERS,
    overwritten,
    own_layer,
    plain_read,
    subscript,
    variable,
    written,
)
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers, methods, ops
from migrate_agent.tools.rewrite.tables.signatures import parse_signature
from migrate_agent.tools.rewrite.tables.templates import wrap
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

RESHAPES = frozenset("view reshape flatten unflatten squeeze unsqueeze view_as reshape_as".split())
VIEWING = frozenset({"T", "mT", "data"})
THROUGH = frozenset("data detach contiguous".split())
FILLED = m.Call(
    m.Attribute(m.Name("jnp"), m.Name(m.SaveMatchedNode(m.MatchIfTrue(lambda name: name in ("zeros_like", "ones_like")), "name"))),
    [m.Arg(keyword=None)],
) | m.Call(
    m.Attribute(m.Name("jnp"), m.Name("full_like")),
    [
        m.Arg(keyword=None),
        m.Arg(m.SaveMatchedNode(m.Float() | m.Integer() | m.UnaryOperation(m.Minus(), m.Float() | m.Integer()), "number"), None),
    ],
)
"""An array of one number, of the shape and dtype of another."""


SIMPLE = (cst.Assign, cst.Return, cst.Expr)
AROUND = (cst.Call, cst.Arg, cst.Attribute, cst.List, cst.Tuple, cst.Element, cst.BinaryOperation)
"""What may stand around a call that is made in any case."""


def is_inplace(name: str) -> bool:
    """Whether a method name is that of an in-place tensor method with a row."""
    if not name.endswith("_") or name.endswith("__"):
        return False
    row = methods().get(name) or methods().get(name[:-1])
    return row is not None and row.inplace


class _Writes(Rule):
    """Builds the statement that makes an original expression hold a new value."""

    def _assign(self, receiver: cst.BaseExpression, new: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement:
        """The statement that makes `receiver` (original; rewritten `new`) hold `value`."""
        match receiver:
            # A variable is meant, the caller's or a new one: binding the local name would not reach it.
            case cst.Name() if self.context.is_handle(receiver) or variable(self, receiver):
                return cst.Assign([cst.AssignTarget(subscript(receiver))], value)
            case cst.Name():
                return self._with_aliases(receiver, cst.Assign([cst.AssignTarget(cst.Name(receiver.value))], value))
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if is_inplace(name):
                return self._assign(inner, self._receiver_form(inner), value)
            case cst.Attribute(value=inner, attr=cst.Name(value="T" | "mT")):
                return self._assign(inner, self._receiver_form(inner), cst.Attribute(self._parenthesised(value), receiver.attr))
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="t")), args=[]):
                return self._assign(inner, self._receiver_form(inner), cst.Attribute(self._parenthesised(value), cst.Name("T")))
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="transpose" | "swapaxes")), args=[first, second]):
                back = self.context.build("{value}.swapaxes({a}, {b})", value=self._parenthesised(value), a=first.value, b=second.value)
                return self._assign(inner, self._receiver_form(inner), back)
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if name in THROUGH:
                return self._assign(inner, self._receiver_form(inner), value)
            case cst.Attribute() if self._plain_attribute(receiver):
                return self._with_aliases(receiver, cst.Assign([cst.AssignTarget(new)], value))  # type: ignore[arg-type]
            case cst.Attribute():
                return self._with_aliases(receiver, written(self, receiver, value))
            case cst.Subscript(value=inner) if self._holds_parameters(inner):
                return overwritten(self, receiver, value)
            case cst.Subscript(value=inner):
                again = self._rewrite_again(receiver)
                assert isinstance(again, cst.Subscript)
                if kind := self._container_kind(inner):
                    return self._store_in_container(kind, inner, again, value)
                # Indexing by a mask copies in torch, so a write to what was selected reaches nothing but that copy.
                if self._mask_fact(receiver) is not None:
                    raise Refuse("an update of what a boolean mask selects", "dynamic-shape")
                base = self._written_base(receiver, again)
                return self._assign(inner, base, self._at_call(base, again, "set", self._as_number(receiver, value)))
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in RESHAPES | THROUGH:
                base = self._rewrite_again(inner)
                back = (
                    value
                    if name in THROUGH
                    else self.context.build("{value}.reshape({base}.shape)", value=self._parenthesised(value), base=base)
                )
                return self._assign(inner, base, back)
        raise Refuse("a write through a view that is not followed", "alias-write")

    def _as_number(self, part: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression:
        """The number that fills a part of an array, for an array of that number alone: `zeros_like(x[0])` → `0.0`."""
        fact = self.context.observed(part)
        if fact is None or not fact.dtypes or not all(dtype.startswith(("float", "bfloat")) for dtype in fact.dtypes):
            return value
        filled = m.extract(value, FILLED)
        if filled is None:
            return value
        number = filled.get("number") or cst.Float("0.0" if str(filled["name"]) == "zeros_like" else "1.0")
        assert isinstance(number, cst.BaseExpression)
        return number

    def _plain_attribute(self, node: cst.Attribute) -> bool:
        """`self.x` that holds a tensor which is neither parameter nor buffer, inherited ones included."""
        inherited = any(node.attr.value in layers()[base].params for base in own_layer(self))
        return self.context.is_self(node.value) and not variable(self, node) and not inherited

    def _receiver_form(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The rewritten form of a receiver, as far as writing to it needs one."""
        return node if isinstance(node, cst.Call) else self._rewrite_again(node)

    def _rewrite_again(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The rewritten form of an original expression, for a second use."""
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            return self._rewrite_again(node.value)
        if variable(self, node) or self.context.is_parameter_name(node) or self.context.is_buffer_name(node):
            return subscript(node)
        if isinstance(node, cst.Subscript):
            return node.with_changes(value=self._rewrite_again(node.value))
        if isinstance(node, cst.Attribute) and (read := plain_read(self, node, node.value)) is not None:
            return read
        if isinstance(node, (cst.Name, cst.Attribute)):
            return node
        return self._rewrite_view_again(node)

    def _rewrite_view_again(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A view, written anew in JAX's spelling; what its axes or sizes are must be plain."""
        match node:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=args) if all(_is_plain(a) for a in args):
                values = [a.value for a in args]
                if name == "t" and not values:
                    return cst.Attribute(self._rewrite_again(inner), cst.Name("T"))
                if name in ("transpose", "swapaxes") and len(values) == 2:
                    return self.context.build("{x}.swapaxes({a}, {b})", x=self._rewrite_again(inner), a=values[0], b=values[1])
                if name in ("view", "reshape") and values:
                    return cst.Call(cst.Attribute(self._rewrite_again(inner), cst.Name("reshape")), args)
                if name == "unsqueeze" and len(values) == 1:
                    return self.context.build("jnp.expand_dims({x}, {a})", x=self._rewrite_again(inner), a=values[0])
        raise Refuse("a write through a view that is not followed", "alias-write")

    def _written_base(self, target: cst.Subscript, new: cst.Subscript) -> cst.BaseExpression:
        """The array that is written into: `self.x[...]` where `self.x` is a variable."""
        is_variable = variable(self, target.value) or self.context.is_handle(target.value)
        return subscript(new.value) if is_variable and not isinstance(new.value, cst.Subscript) else new.value

    def _at_call(self, base: cst.BaseExpression, new: cst.Subscript, method: str, value: cst.BaseExpression) -> cst.BaseExpression:
        at = cst.Subscript(cst.Attribute(base, cst.Name("at")), new.slice)
        return cst.Call(cst.Attribute(at, cst.Name(method)), [cst.Arg(value)])

    def _mask_fact(self, target: cst.Subscript) -> Observed | None:
        for element in target.slice:
            if isinstance(element.slice, cst.Index):
                fact = self.context.observed(element.slice.value)
                if is_tensor(fact) and fact and set(fact.dtypes) & {"bool"}:
                    if any(other is not element and not is_full(other) for other in target.slice) or element is not target.slice[0]:
                        raise Refuse("a boolean mask beside other indices", "dynamic-shape")
                    return fact
        return None

    def _parenthesised(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return wrap(node, None)

    def _function_with_copies(self) -> ast.AST | None:
        path = ".".join(self.context.path)
        function = self.context.file.functions.get(path)
        if function is None:
            return None
        if path not in self.context.with_copies:
            self.context.with_copies[path] = mark_copies(function, self._copies_elements, self._dtypes)
        return self.context.with_copies[path]

    def _copies_elements(self, index: ast.expr) -> bool:
        """Whether an index was seen to be a tensor of elements or of truth values, or is a list, so that what it selects is a copy."""
        if isinstance(index, ast.List):
            return bool(index.elts) and all(isinstance(element, ast.Constant | ast.UnaryOp) for element in index.elts)
        fact = self.context.facts.observed.get(span_of(index, self.context.file.lines))
        if fact is None or fact.kinds != ("tensor",):
            return False
        return fact.dtypes == ("bool",) or (bool(fact.shapes) and all(fact.shapes))

    def _dtypes(self, node: ast.expr) -> tuple[str, ...]:
        """What dtypes an expression of the source was seen to have."""
        fact = self.context.facts.observed.get(span_of(node, self.context.file.lines))
        return fact.dtypes if fact is not None and fact.kinds == ("tensor",) else ()

    def _inplace_argument(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a torch function writes to by `inplace=True`, or by its name (`torch.relu_(x)`)."""
        if not self.context.dotted(call.func).startswith("torch."):
            return None
        op = ops().get(self.context.dotted(call.func))
        names = parse_signature(op.signature).names if op else ()
        if op and self.context.dotted(call.func) == f"{op.name}_" and call.args and not call.args[0].keyword:
            return call.args[0].value
        for position, argument in enumerate(call.args):
            name = argument.keyword.value if argument.keyword else names[position] if position < len(names) else ""
            if name == "inplace" and isinstance(argument.value, cst.Name) and argument.value.value == "True":
                first = call.args[0]
                return first.value if not first.keyword else None
        return None

    def _container_kind(self, node: cst.BaseExpression) -> str:
        """Which kind of container of tensors an expression was seen to be, or ""."""
        fact = self.context.observed(node)
        kinds = set(fact.kinds) if fact else set()
        return next(iter(kinds)) if len(kinds) == 1 and kinds <= {"list", "dict", "tuple"} else ""

    def _holds_parameters(self, node: cst.BaseExpression) -> bool:
        """Whether an expression was seen to be a list or dictionary of parameters."""
        fact = self.context.observed(node)
        return fact is not None and bool(fact.kinds) and set(fact.kinds) <= PARAMETER_CONTAINERS

    def _store_in_container(
        self, kind: str, container: cst.BaseExpression, element: cst.Subscript, value: cst.BaseExpression
    ) -> cst.BaseSmallStatement:
        """`parts[0] = value`, for a tensor that a list or dictionary holds."""
        # A tuple takes no new element.
        if kind == "tuple":
            raise Refuse("a tensor that a tuple holds is changed in place", "alias-write")
        if isinstance(container, (cst.Name, cst.Attribute)):
            self._check_alias(container)
        return cst.Assign([cst.AssignTarget(element)], value)

    def _check_alias(self, name: cst.Name | cst.Attribute) -> None:
        """A hole where the write cannot be made visible through the other name."""
        for alias in self._aliases(name)[:1]:
            self._refuse_stale(name, alias)

    def _aliases(self, name: cst.Name | cst.Attribute, besides: Collection[str] = ()) -> list[Alias]:
        """Along which a write to this name or attribute must be passed on; to the names in `besides` in any case."""
        function = self._function_with_copies()
        returned = (*handed_back(self.context, self.context.function_key), *besides)
        aliases = (
            stale_aliases(function, _text(name), self.context.span(name).line, returned, self._is_observed_tensor)
            if function is not None
            else []
        )
        # What torch saves for a backward pass is the tensor, and not its value at that point: saved last, the new value is what is saved.
        saved = [alias for alias in aliases if alias.one.endswith(f".{SAVE}")]
        if saved and function is not None and movable_save(function) is not None:
            self.context.saved_last.add(".".join(self.context.path))
            return [alias for alias in aliases if alias not in saved]
        return aliases

    # -- before a statement -----------------------------------------------------------------------------------------
    def _is_hoisted(self, call: cst.Call, name: cst.Name) -> bool:
        """Whether the write that a call makes inside an expression stands before the statement, since the tensor is read otherwise as well."""
        function, parent, grand, statement = self._function_with_copies(), self.context.parent(), self.context.parent(2), self._statement()
        # `y = x.mul_(2)` is two assignments, and of `x.add_(1).mul_(2)` the outermost call decides.
        is_chained = isinstance(parent, cst.Attribute) and isinstance(grand, cst.Call) and is_inplace(parent.attr.value)
        if function is None or is_chained or isinstance(parent, (cst.Expr, cst.Assign)):
            return False
        if not (self._is_read_twice(name) or read_after(function, name.value, self.context.span(statement).end_line)):
            return False
        return self._may_stand_before(call, statement, name) and not self._aliases(name, self._read_in_statement(name))

    def _may_stand_before(self, call: cst.Call, statement: cst.CSTNode, name: cst.Name) -> bool:
        """Whether the statement always makes the call, and has computed nothing with the tensor's old value before it."""
        stack = self.context.stack
        if not isinstance(statement, SIMPLE) or not isinstance(stack[stack.index(statement) - 1], cst.SimpleStatementLine):
            return False
        around = stack[stack.index(statement) + 1 :]
        # `and`, conditional expressions and comprehensions may leave the call out, or make it several times.
        if not all(isinstance(node, AROUND) for node in around):
            return False
        handed = {id(value) for node in around for value in _operands(node)}
        function, start = self._function_with_copies(), self.context.span(call)[:2]
        names = {
            name.value,
            *(shared_names(function, name.value, start[0]) if self._aliases(name, self._read_in_statement(name)) and function else ()),
        }
        is_named = m.Name(m.MatchIfTrue(lambda text: text in names))
        named = [node for node in m.findall(statement, is_named) if self.context.span(node)[:2] < start]
        targets = {id(node) for node in m.findall(statement, m.AssignTarget()) for node in m.findall(node, is_named)}
        return all(id(node) in handed | targets for node in named)

    def _statement(self) -> cst.CSTNode:
        """The statement that is being left."""
        kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
        return next((node for node in reversed(self.context.stack) if isinstance(node, kinds)), self.context.stack[-1])

    def _is_read_twice(self, name: cst.Name) -> bool:
        """Whether the statement around a name reads its values elsewhere too."""
        return self._reads_of_statement(name).count(name.value) > 1

    def _read_in_statement(self, name: cst.Name | cst.Attribute) -> set[str]:
        """The other names whose values the statement around a name reads."""
        return {*self._reads_of_statement(name)} - {_text(name)}

    def _reads_of_statement(self, name: cst.Name | cst.Attribute) -> list[str]:
        """The names of which the statement around a name reads more than sizes."""
        function, line = self._function_with_copies(), self.context.span(name).line
        statements = [node for node in walk(function) if isinstance(node, ast.stmt)] if function is not None else []
        around = [node for node in statements if node.lineno <= line <= (node.end_lineno or line)]
        nodes = list(ast.walk(max(around, key=lambda node: node.lineno))) if around else []
        measured = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in SIZES}
        return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in measured]

    def _is_observed_tensor(self, node: ast.expr) -> bool:
        """Whether an expression of the source was seen to be a tensor."""
        return is_tensor(self.context.facts.observed.get(span_of(node, self.context.file.lines)))

    def _refuse_stale(self, name: cst.Name | cst.Attribute, alias: Alias) -> None:
        other = alias.other if alias.one == _text(name) else alias.one
        self.context.hole(name, f"{_text(name)} is changed in place while {other}, which shares its memory, is read later", "alias-write")

    def _with_aliases(self, name: cst.Name | cst.Attribute, write: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        """The write, followed by an assignment that brings a name of the same memory up to date where one is read later."""
        function, text = self._function_with_copies(), _text(name)
        if isinstance(name, cst.Name) and function is not None:
            self._note_outer_name(function, name)
        if function is not None and (loop := binding_loop(function, text, self.context.span(name).line)):
            if not self._note_slices(function, loop, text):
                self.context.hole(name, f"{text}, an element of what a loop goes through, is changed in place", "alias-write")
                return write
            whole = self.context.parted[loop.lineno][text].base
        else:
            whole = ""
        follow: list[cst.BaseSmallStatement] = []
        fresh = {text}
        for alias in [alias for alias in self._aliases(name) if {alias.one, alias.other} != {text, whole}]:
            before = self.context.assigned.get(alias.line)
            # The other name can only be said again where the statement that made it is known.
            if not alias.exact or before is None or isinstance(self.context.parent(), cst.FlattenSentinel):
                self._refuse_stale(name, alias)
                return write
            original, rewritten = before
            # One name of the pair has its new value; the other follows from it, whichever of them is the view.
            if alias.one in fresh:
                follow.append(self._assign_view(original.value, cst.Name(alias.one)))
            else:
                follow.append(cst.Assign([cst.AssignTarget(cst.Name(alias.one))], rewritten.value.deep_clone()))
            fresh |= {alias.one, alias.other}
        if not follow:
            return write
        return cst.FlattenSentinel([write.with_changes(semicolon=cst.MaybeSentinel.DEFAULT), *follow])  # type: ignore[return-value]

    def _note_outer_name(self, function: ast.AST, name: cst.Name) -> None:
        """Note a name of an enclosing function that the function now binds anew."""
        outer = [self.context.file.functions.get(".".join(self.context.path[:-depth])) for depth in range(1, len(self.context.functions))]
        binding = next((node for node in outer if node is not None and name.value in bound_names(node)), None)
        # A name that the function binds itself is its own: only a free one needs `nonlocal`.
        if name.value in bound_names(function) or binding is None:
            return
        if shared_names(binding, name.value, self.context.span(name).line):
            self.context.hole(
                name, f"{name.value}, of which another name shares the memory, is changed from within a function", "alias-write"
            )
        self.context.nonlocals.setdefault(".".join(self.context.path), set()).add(name.value)

    def _note_slices(self, function: ast.AST, loop: ast.For, name: str) -> bool:
        """Note that the new parts which a loop makes are put together after it; whether that can be done."""
        slices = loop_part(function, loop, name, self._is_observed_tensor)
        if slices is None or parts_name(slices) in self.context.taken:
            return False
        self.context.parted.setdefault(loop.lineno, {})[name] = slices
        return True

    def _assign_view(self, view: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement:
        """The base of a view, brought up to date from the view's new value."""
        if isinstance(view, cst.Name):
            target = subscript(view) if self.context.is_buffer_name(view) else cst.Name(view.value)
            return cst.Assign([cst.AssignTarget(target)], value)
        match view:
            case cst.Attribute(attr=cst.Name(value=name)) if name not in VIEWING:
                return _Quiet(self.context)._assign(view, self._rewrite_again(view), value)
            case cst.Subscript(value=cst.Name() | cst.Attribute()):
                return _Quiet(self.context)._assign(view, self._rewrite_again(view), value)
            case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Attribute() as base)) | cst.Attribute(value=cst.Name() as base):
                return _Quiet(self.context)._assign(view, base, value)
            case cst.Attribute(value=cst.Attribute() as base, attr=cst.Name(value="data")):
                return _Quiet(self.context)._assign(view, base, self._with_gradient(base, value))
        raise Refuse("a write through a view of a view is not followed", "alias-write")

    def _with_gradient(self, parameter: cst.Attribute, value: cst.BaseExpression) -> cst.BaseExpression:
        """What a call writes to a parameter, with the parameter's gradient; see `KeepParameterGradients`."""
        fact, key = self.context.observed(parameter), self.context.function_key
        if fact is None or set(fact.kinds) != {"parameter"} or key in self.context.randomness.constructing:
            return value
        return self.context.build("vendored.keep_gradient({v}, {w})", v=value, w=subscript(parameter))


def _operands(node: cst.CSTNode) -> list[cst.CSTNode]:
    """What an expression takes as it is, and computes with once all is there."""
    match node:
        case cst.Call(args=args):
            return [argument.value for argument in args]
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return [element.value for element in elements]
        case cst.BinaryOperation(left=left, right=right):
            return [left, right]
    return []


def _text(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node)


def _is_plain(argument: cst.Arg) -> bool:
    """Whether an argument is a number or a name, which are the same before and after rewriting."""
    value = argument.value.expression if isinstance(argument.value, cst.UnaryOperation) else argument.value
    return isinstance(value, (cst.Integer, cst.Name)) and not argument.star and argument.keyword is None


class _Quiet(_Writes):
    """The same writes, without looking for further aliases."""

    def _with_aliases(self, name: cst.Name | cst.Attribute, write: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        return write


def part_written(context: Context, part: cst.Subscript, value: cst.BaseExpression) -> cst.BaseSmallStatement:
    """The statement that gives a part of a tensor (original, `w[:2]`) new values. Raises `Refuse`."""
    writes = _Writes(context)
    return writes._assign(part, writes._rewrite_again(part), value)


def places_written(context: Context, part: cst.Subscript, new: cst.Subscript, value: cst.BaseExpression) -> cst.BaseSmallStatement:
    """The statement that gives the places `new` of an array new values, `part` in the source. Raises `Refuse`."""
    writes = _Writes(context)
    base = writes._written_base(part, new)
    return writes._assign(part.value, base, writes._at_call(base, new, "set", value))


def alias_written(context: Context, alias: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement | None:
    """The statement that gives a view, or a local name that shares the memory of something else, new values, and with it all that shares the
    memory; None for any other expression. Raises `Refuse`.
    """
    writes = _Writes(context)
    if isinstance(alias, cst.Name):
        function = writes._function_with_copies()
        # What a loop over parameters gives is the variable itself.
        is_element = function is not None and binding_loop(function, alias.value, context.span(alias).line) is not None
        shares = not is_element and not context.is_handle(alias) and bool(writes._aliases(alias))
        return writes._assign(alias, alias, value) if shares else None
    return writes._assign(alias, alias, value) if isinstance(alias, cst.Call) else None
