"""In-place updates become new values: `x[i] = y`, `x[i] += y`, `x.add_(y)`, `F.relu(x, inplace=True)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.aliases import read_after, root
from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of, tensor_only
from migrate_agent.tools.rewrite.rules.apply_tables import is_bound_to
from migrate_agent.tools.rewrite.rules.indexing.constructed_masks import as_selected, selects_statically
from migrate_agent.tools.rewrite.rules.indexing.elementwise import scalar, unmasked
from migrate_agent.tools.rewrite.rules.indexing.moving_slices import with_padded_ranges
from migrate_agent.tools.rewrite.rules.indexing.padded_rows import padded_here
from migrate_agent.tools.rewrite.rules.mutation.writes import _Writes, is_inplace
from migrate_agent.tools.rewrite.rules.parameters.variables import subscript, variable
from migrate_agent.tools.rewrite.tables.registry import Refuse
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

AT_METHODS = {cst.AddAssign: "add", cst.MultiplyAssign: "multiply", cst.DivideAssign: "divide"}
SET_ROWS = "vendored.set_padded_rows({x}, {mask}, {rows})"
OPERATORS: Mapping[type[cst.BaseAugOp], Callable[[], cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add, cst.SubtractAssign: cst.Subtract, cst.MultiplyAssign: cst.Multiply, cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide, cst.ModuloAssign: cst.Modulo, cst.PowerAssign: cst.Power, cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr, cst.BitXorAssign: cst.BitXor, cst.MatrixMultiplyAssign: cst.MatrixMultiply,
}  # fmt: skip

WHERE = "jnp.where({mask}, {value}, {x})"
MASKED_SET = "vendored.masked_set({x}, {mask}, {value})"


class ReplaceInplaceUpdates(_Writes):
    """Assign new values in place of updates: `x[i] = y` → `x = x.at[i].set(y)`, `x.add_(y)` → `x = x + y`.

    Writes go through subscripts and views that can be undone. A name that shares the memory and is read later
    gets its new value too. Declines (a hole of class `alias-write`) where the write goes through something else,
    or where such a name cannot be brought up to date.
    """

    CHECKS = ("leave_Call",)
    KEEP = (
        "def f(table: dict):\n    table['a'] = 3\n    return table\n",
        "def f(names: list):\n    names[0] += 1\n",
    )
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    x[:, 0] = 1\n    return x\n",
            "def f(x: jax.Array):\n    x = x.at[:, 0].set(1)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, n: torch.Tensor, i: int):\n    x[i, :n] = 1\n    x[:, n + 1 : -1] = 2\n    return x\n",
            "def f(x: jax.Array, n: jax.Array, i: int):\n    x = x.at[i, padded_range(x.shape[1], 0, n)].set(1)\n"
            "    x = x.at[:, padded_range(x.shape[1], n + 1, -1)].set(2)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    x[1:] += 2\n    return x\n",
            "def f(x: jax.Array):\n    x = x.at[1:].add(2)\n    return x\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.conv = nn.Conv1d(d, d, 1)\n        self.conv.weight.data *= 0.1\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.conv = Conv1d(d, d, 1, rngs=rngs)\n"
            "        self.conv.weight = self.conv.weight[...] * 0.1\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    y = x.view(-1)\n    y[0] = 1\n    return x\n",
            "def f(x: jax.Array):\n    y = x.reshape(-1)\n    y = y.at[0].set(1)\n    x = y.reshape(x.shape)\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    low = x < 0\n    y = torch.zeros_like(x)\n    y[low] = 2 * torch.log(1 - x[low])\n"
            "    y[low] -= x[low]\n    return y\n",
            "def f(x: jax.Array):\n    low = x < 0\n    y = jnp.zeros_like(x)\n    y = masked_set(y, low, 2 * jnp.log(1 - fill_unselected(x, low)))\n"
            "    y = masked_set(y, low, y - x)\n    return y\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    y = x[:, 1:]\n    x[0] = 1\n    return y\n",
            "def f(x: jax.Array):\n    y = x[:, 1:]\n    x = x.at[0].set(1)\n    y = x[:, 1:]\n    return y\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('u', torch.ones(3))\n\n    def forward(self, x: torch.Tensor):\n        u = self.u.mul_(0.9)\n"
            "        return x + u\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.u = nnx.Variable(jnp.ones(3))\n\n"
            "    def __call__(self, x: jax.Array):\n        u = self.u[...] = self.u[...] * 0.9\n        return x + u\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('u', torch.ones(3))\n\n    def forward(self, x: torch.Tensor):\n        self.u.zero_()\n"
            "        u = self.u.add_(2)\n        return x + u\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.u = nnx.Variable(jnp.ones(3))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.u[...] = jnp.zeros_like(self.u[...])\n"
            "        u = self.u[...] = self.u[...] + 2\n        return x + u\n",
        ),
        (
            "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.register_buffer('u', torch.ones(3))\n\n    def forward(self, w: torch.Tensor):\n"
            "        u = self.u\n        u = torch.mv(w, u, out=u)\n        return w / u.sum()\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.u = nnx.Variable(jnp.ones(3))\n\n"
            "    def __call__(self, w: jax.Array):\n        u = self.u[...]\n        u = w @ u\n        self.u[...] = u\n        return w / jnp.sum(u)\n",
        ),
    )

    # -- statements -------------------------------------------------------------------------------------------------

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        target = original.targets[0].target
        # A later write to a view must say again how the view was made (`_with_aliases`).
        self.context.assigned[self.context.span(original).line] = (original, updated)
        if isinstance(target, (cst.Tuple, cst.List)) and any(self._is_part(element.value) for element in target.elements):
            return self._write_or_hole(original, lambda: self._write_all(original, target, updated))
        out = self._written_out(original.value) if original.value is not updated.value else None
        if out is not None and is_bound_to(original, out):  # `v = f(x, out=v)` is `f(x, out=v)`
            return self._write_or_hole(original, lambda: self._assign(out, self._rewrite_again(out), updated.value))
        if (receiver := self._kept_and_named(original)) is not None:
            return self._write_or_hole(original, lambda: self._named_too(receiver, updated))
        if not isinstance(target, cst.Subscript) or not self._is_tensor(target.value):
            return None
        if len(original.targets) > 1:
            self.context.hole(original, "several targets, one of them a part of a tensor", "alias-write")
            return None
        new = updated.targets[0].target
        assert isinstance(new, cst.Subscript)
        return self._write_or_hole(original, lambda: self._write(target, new, updated.value, original.value))

    def _kept_and_named(self, original: cst.Assign) -> cst.Attribute | None:
        """Of `noise = self.noise.normal_()` the attribute, where nothing changes it later in the function, nor what the name stands for, in place."""
        match original.targets, original.value:
            case [cst.AssignTarget(target=cst.Name(value=name))], cst.Call(func=cst.Attribute(value=cst.Attribute() as receiver)) as call:
                changed = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
                if not is_inplace(changed) or self.context.dotted(call.func) or not is_tensor(self.context.observed(receiver)):
                    return None
                function = self._function_with_copies()
                kept = cst.Module([]).code_for_node(receiver)
                changes = list(_changed_in_place(function)) if function is not None else []
                texts = [ast.unparse(change) for change in changes]
                line = self.context.span(original).line
                later = [change for change, text in zip(changes, texts, strict=True) if text == kept and change.lineno > line]
                again = function is not None and _is_in_loop(function, line) and texts.count(kept) > 1
                return receiver if kept in texts and name not in texts and not later and not again else None
        return None

    def _named_too(self, receiver: cst.Attribute, updated: cst.Assign) -> cst.BaseSmallStatement:
        """`noise = self.noise = …`."""
        kept = self._assign(receiver, self._receiver_form(receiver), updated.value)
        if not isinstance(kept, cst.Assign):
            raise Refuse("an in-place update whose value is used as well", "alias-write")
        return kept.with_changes(targets=[updated.targets[0], *kept.targets])

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.AugAssign) -> cst.BaseSmallStatement | None:
        target, new = original.target, updated.target
        is_variable = self.context.is_parameter_name(target) or self.context.is_buffer_name(target)
        if is_variable and type(updated.operator) in OPERATORS:
            assert isinstance(new, (cst.Name, cst.Subscript))
            whole = new if isinstance(new, cst.Subscript) else subscript(new)
            return cst.Assign([cst.AssignTarget(whole)], self._sum(whole, updated))
        if isinstance(target, cst.Name):
            if is_tensor(self.context.observed(target)):
                return self._with_aliases(target, updated)
            return None
        kind = type(updated.operator)
        if isinstance(target, cst.Attribute) and target.attr.value == "data" and self._is_tensor(target.value) and kind in OPERATORS:
            value = cst.BinaryOperation(new, OPERATORS[kind](), self._parenthesised(updated.value))
            return self._write_or_hole(original, lambda: self._assign(target, self._receiver_form(target), value))
        # `self.x += y` alone binds the attribute to a new array: it is wrong only where another name shares the memory.
        if isinstance(target, cst.Attribute) and self._is_tensor(target) and kind in OPERATORS and self._aliases(target):
            value = cst.BinaryOperation(self._rewrite_again(target), OPERATORS[kind](), self._parenthesised(updated.value))
            return self._write_or_hole(original, lambda: self._assign(target, self._receiver_form(target), value))
        if not isinstance(target, cst.Subscript) or not isinstance(new, cst.Subscript) or not self._is_tensor(target.value):
            return None
        # `x.at[index].add(…)` adds once for each time that an index occurs, torch's `x[index] += y` once in all.
        once = selects_statically(self.context, target)
        if kind in AT_METHODS and (once or self._has_no_array(target)):
            return self._write_or_hole(original, lambda: self._update(target, new, AT_METHODS[kind], updated.value))
        operator = OPERATORS.get(kind)
        if operator is None:
            return None
        if not once and (self._has_mask(target) or self.context.span(target) in padded_here(self.context).writes):
            return self._write_or_hole(original, lambda: self._update_masked(original, target, new, updated.value, operator()))
        value = cst.BinaryOperation(new, operator(), self._parenthesised(updated.value))
        return self._write_or_hole(original, lambda: self._write(target, new, value, original.value))

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        call = original.value
        if not isinstance(call, cst.Call) or original.value is updated.value:
            return None
        if isinstance(call.func, cst.Attribute) and is_inplace(call.func.attr.value) and not self.context.dotted(call.func):
            receiver = call.func.value
            fact = self.context.observed(receiver)
            only = tensor_only(call.func.attr.value) and call.func.attr.value not in self.context.repo.method_names
            if not (is_tensor(fact) or (fact is None and only and self.context.file.names_torch)):
                return None
            return self._write_or_hole(original, lambda: self._assign(receiver, self._receiver_form(receiver), updated.value))
        target = self._out_argument(call)
        if target is not None:
            return self._write_or_hole(original, lambda: self._assign(target, self._rewrite_again(target), updated.value))
        return None

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        """An in-place call whose value is used: fine only where nobody else sees the receiver."""
        context = self.context
        inplace_argument = self._inplace_argument(original)
        method = isinstance(original.func, cst.Attribute) and is_inplace(original.func.attr.value) and not context.dotted(original.func)
        if not method and inplace_argument is None:
            return
        parent, grand = context.parent(), context.parent(2)
        # Of `x.add_(1).mul_(2)` the outermost call decides.
        if method and isinstance(parent, cst.Attribute) and isinstance(grand, cst.Call) and is_inplace(parent.attr.value):
            return
        receiver = original.func.value if method and isinstance(original.func, cst.Attribute) else inplace_argument
        assert receiver is not None
        if not is_tensor(context.observed(receiver)) or isinstance(parent, cst.Expr):
            return
        if isinstance(parent, cst.Lambda) and context.initialises(parent):  # whoever calls it writes the value
            return
        if isinstance(receiver, cst.Name):
            parent = context.parent()
            if isinstance(parent, cst.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Name):
                return  # see `RebindChangedArguments`
            if self._is_hoisted(original, receiver):
                return  # see `RebindChangedArguments`
            if self._is_repeated(receiver) or (not isinstance(parent, cst.Return) and self._is_read_later(receiver)):
                context.hole(original, f"{receiver.value} is changed in place inside an expression and read later", "alias-write")
            else:
                self._check_alias(receiver)
        elif isinstance(parent, cst.Assign) and parent.value is original and self._kept_and_named(parent) is not None:
            return  # see `leave_Assign`
        elif not isinstance(receiver, (cst.Call, cst.BinaryOperation)):  # what was just computed has no other name
            context.hole(original, "an in-place update whose value is used as well", "alias-write")

    def _sum(self, base: cst.BaseExpression, updated: cst.AugAssign) -> cst.BaseExpression:
        """The value that `base` has after the update, in an expression."""
        return cst.BinaryOperation(base.deep_clone(), OPERATORS[type(updated.operator)](), self._parenthesised(updated.value))

    # -- writing ----------------------------------------------------------------------------------------------------

    def _write_or_hole(self, original: cst.BaseSmallStatement, make: Callable[[], cst.BaseSmallStatement]) -> cst.BaseSmallStatement | None:
        try:
            return make()
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def _write(
        self, target: cst.Subscript, new: cst.Subscript, value: cst.BaseExpression, source: cst.BaseExpression
    ) -> cst.BaseSmallStatement:
        """`base[index] = value`."""
        if selects_statically(self.context, target):
            fitting = as_selected(self.context, target, source, self._as_bool(target, value))
            base = self._written_base(target, new)
            return self._assign(target.value, base, self._at_call(base, new, "set", fitting))
        mask = self._mask_fact(target)
        base = self._written_base(target, new)
        if mask is not None or self.context.span(target) in padded_here(self.context).writes:
            fact = self.context.observed(source)
            # One number fits however many elements the mask selects.
            if scalar(fact):
                index = new.slice[0].slice
                assert isinstance(index, cst.Index)
                template = WHERE if self._is_of_elements(target, mask, fact) else MASKED_SET
                return self._assign(target.value, base, self.context.build(template, x=base, mask=index.value, value=value))
            if (whole := self._unmasked(target, new, source, value)) is not None:
                index = new.slice[0].slice
                assert isinstance(index, cst.Index)
                template = WHERE if self._is_of_elements(target, mask, self._selected_from(source)) else MASKED_SET
                return self._assign(target.value, base, self.context.build(template, x=base, mask=index.value, value=whole))
            if (rows := self._with_rows(target, new, base, value, fact)) is not None:
                return self._assign(target.value, base, rows)
            raise Refuse("a boolean mask selects a number of elements that depends on the data", "dynamic-shape")
        if scalar(self.context.observed(source)):
            new = with_padded_ranges(self.context, target, new, base) or new
        return self._assign(target.value, base, self._at_call(base, new, "set", self._as_bool(target, value)))

    def _is_of_elements(self, target: cst.Subscript, mask: Observed | None, value: Observed | None) -> bool:
        """Whether a mirror in plain style may select by `jnp.where`: the mask has all axes, and the value, a number or an array, widens nothing."""
        whole = self.context.observed(target.value)
        if not self.context.repo.is_plain or mask is None or whole is None or value is None or not whole.dtypes:
            return False
        if is_tensor(value):
            fits = value.dtypes == whole.dtypes and len(whole.dtypes) == 1 and value.shapes == whole.shapes
        else:
            fits = all(set(value.kinds) <= _numbers_of(dtype) for dtype in whole.dtypes)
        return fits and bool(mask.shapes) and mask.shapes == whole.shapes

    def _selected_from(self, source: cst.BaseExpression) -> Observed | None:
        """What is known of `y` in a value `y[mask]`."""
        return self.context.observed(source.value) if isinstance(source, cst.Subscript) else None

    def _with_rows(
        self, target: cst.Subscript, new: cst.Subscript, base: cst.BaseExpression, value: cst.BaseExpression, fact: Observed | None
    ) -> cst.BaseExpression | None:
        """`base` with the rows that a mask selects taken from `value`: from all rows that there may be, or from as many as there are."""
        index, selected = new.slice[0].slice, target.slice[0].slice
        assert isinstance(index, cst.Index) and isinstance(selected, cst.Index)
        if self.context.span(target) in padded_here(self.context).writes:
            return self.context.build(SET_ROWS, x=base, mask=index.value, rows=value)
        if (deeper := self._axes_before_a_row(target, fact)) is None:
            return None
        template = "vendored.set_next_rows({x}, {mask}, {value})" if deeper else MASKED_SET
        return self.context.build(template, x=base, mask=index.value, value=value)

    def _axes_before_a_row(self, target: cst.Subscript, fact: Observed | None) -> int | None:
        """How many axes a value has before those of one row that a mask selects: 1 where it has one for each, or one for all; else 0.

        `None` where it was not seen, or has more.
        """
        selected = target.slice[0].slice
        assert isinstance(selected, cst.Index)
        whole, mask = self.context.observed(target.value), self.context.observed(selected.value)
        if fact is None or whole is None or mask is None or not is_tensor(fact):
            return None
        ranks = [{len(shape) for shape in one.shapes} for one in (fact, whole, mask)]
        if any(len(one) != 1 for one in ranks):
            return None
        of_value, of_whole, of_mask = (one.pop() for one in ranks)
        deeper = of_value - (of_whole - of_mask)
        return max(deeper, 0) if deeper <= 1 else None

    def _is_part(self, target: cst.BaseExpression) -> bool:
        """Whether a target is a part of a tensor."""
        return isinstance(target, cst.Subscript) and self._is_tensor(target.value)

    def _write_all(self, original: cst.Assign, target: cst.Tuple | cst.List, updated: cst.Assign) -> cst.BaseSmallStatement:
        """`x[0], y = a, b`: the values first, then one write after the other."""
        new, value = updated.targets[0].target, original.value
        names = [f"new_{position}" for position in range(len(target.elements))]
        starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
        sources = list(value.elements) if isinstance(value, cst.Tuple) else []
        if len(original.targets) > 1 or starred or not isinstance(new, (cst.Tuple, cst.List)) or set(names) & self.context.taken:
            raise Refuse("several targets, one of them a part of a tensor", "alias-write")
        if len(new.elements) != len(target.elements):  # `DropUnpackedDevices` has left one out
            raise Refuse("a device beside a part of a tensor: take the device in a statement of its own", "alias-write")
        written = {root(_parse_expression(element.value)) for element in target.elements if self._is_part(element.value)}
        # A value may be a view: in torch the second write would read what the first has changed.
        if any(root(_parse_expression(source)) in written for source in ([source.value for source in sources] or [value])):
            raise Refuse("parts of a tensor take values that share its memory: write one after the other", "alias-write")
        loose: list[cst.BaseElement] = [cst.Element(cst.Name(name)) for name in names]
        statements: list[cst.BaseSmallStatement] = [cst.Assign([cst.AssignTarget(cst.Tuple(loose, lpar=[], rpar=[]))], updated.value)]
        for position, (old, element, name) in enumerate(zip(target.elements, new.elements, names, strict=True)):
            if self._is_part(old.value):
                source = sources[position].value if len(sources) == len(names) else cst.Name(name)
                assert isinstance(old.value, cst.Subscript) and isinstance(element.value, cst.Subscript)
                statement = self._write(old.value, element.value, cst.Name(name), source)
            else:
                assert isinstance(element.value, cst.BaseAssignTargetExpression)
                statement = cst.Assign([cst.AssignTarget(element.value)], cst.Name(name))
            statements += statement if isinstance(statement, cst.FlattenSentinel) else [statement]
        return cst.FlattenSentinel(statements)  # type: ignore[return-value]

    def _as_bool(self, target: cst.Subscript, value: cst.BaseExpression) -> cst.BaseExpression:
        """`mask[0] = 1` sets a boolean, which JAX wants to be one."""
        function, name = self._function_with_copies(), target.value
        if not isinstance(value, cst.Integer) or not isinstance(name, cst.Name) or function is None:
            return value
        named = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name.value]
        facts = [self.context.facts.observed.get(span_of(node, self.context.file.lines)) for node in named]
        dtypes = {dtype for fact in facts if fact is not None for dtype in (fact.dtypes if is_tensor(fact) else ("none",))}
        return cst.Name(str(value.value != "0")) if dtypes == {"bool"} else value

    def _has_mask(self, target: cst.Subscript) -> bool:
        try:
            return self._mask_fact(target) is not None
        # It is refused again, with its reason, where the update is built.
        except Refuse:
            return True

    def _update_masked(
        self,
        original: cst.AugAssign,
        target: cst.Subscript,
        new: cst.Subscript,
        value: cst.BaseExpression,
        operator: cst.BaseBinaryOp,
    ) -> cst.BaseSmallStatement:
        """`base[mask] += value`: the sum everywhere, taken where the mask holds."""
        self._mask_fact(target)
        base, index = self._written_base(target, new), new.slice[0].slice
        assert isinstance(index, cst.Index)
        single = scalar(self.context.observed(original.value))
        right = value if single else self._unmasked(target, new, original.value, value)
        if right is None and self.context.span(target) in padded_here(self.context).writes:
            mask = index.value
            rows = cst.BinaryOperation(
                self.context.build("vendored.padded_rows({x}, {mask})", x=base, mask=mask), operator, self._parenthesised(value)
            )
            return self._assign(target.value, base, self.context.build(SET_ROWS, x=base, mask=mask, rows=rows))
        if right is None:
            right = self._row_of_each(original, target, index.value, value, operator)
        if right is None:
            raise Refuse("a boolean mask selects a number of elements that depends on the data", "dynamic-shape")
        whole = cst.BinaryOperation(base, operator, self._parenthesised(right))
        masked = self.context.build(MASKED_SET, x=base, mask=index.value, value=whole)
        return self._assign(target.value, base, masked)

    def _row_of_each(
        self,
        original: cst.AugAssign,
        target: cst.Subscript,
        mask: cst.BaseExpression,
        value: cst.BaseExpression,
        operator: cst.BaseBinaryOp,
    ) -> cst.BaseExpression | None:
        """What `base[mask] += value` adds at each place: one row for all that the mask selects, or one after the other."""
        if not isinstance(operator, (cst.Add, cst.Subtract, cst.Multiply)):  # defined for what the mask does not select, too
            return None
        if (deeper := self._axes_before_a_row(target, self.context.observed(original.value))) is None:
            return None
        return self.context.build("vendored.next_rows({mask}, {value})", mask=mask, value=value) if deeper else value

    def _unmasked(
        self, target: cst.Subscript, new: cst.Subscript, source: cst.BaseExpression, value: cst.BaseExpression
    ) -> cst.BaseExpression | None:
        texts = (cst.Module([]).code_for_node(target.slice[0]), cst.Module([]).code_for_node(new.slice[0]))
        return unmasked(self.context, source, value, texts)

    def _update(self, target: cst.Subscript, new: cst.Subscript, method: str, value: cst.BaseExpression) -> cst.BaseSmallStatement:
        base = self._written_base(target, new)
        return self._assign(target.value, base, self._at_call(base, new, method, value))

    # -- questions --------------------------------------------------------------------------------------------------

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        return is_tensor(self.context.observed(node)) or variable(self, node)

    def _has_no_array(self, target: cst.Subscript) -> bool:
        """Whether the index has no array in it, so that no element is written twice."""
        for element in target.slice:
            if isinstance(element.slice, cst.Index):
                fact = self.context.observed(element.slice.value)
                if not isinstance(element.slice.value, (cst.Integer, cst.Ellipsis, cst.UnaryOperation)) and not (
                    fact and set(fact.kinds) <= {"int", "none"}
                ):
                    return False
        return True

    def _out_argument(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a torch function called as a statement writes to: `out=`, or its first argument (`inplace=True`, `torch.relu_(x)`)."""
        if not self.context.dotted(call.func).startswith("torch."):
            return None
        out = self._written_out(call)
        return out if out is not None else self._inplace_argument(call)

    def _written_out(self, call: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a function of torch is given as `out=`."""
        if not isinstance(call, cst.Call) or not self.context.dotted(call.func).startswith("torch."):
            return None
        return next((a.value for a in call.args if a.keyword and a.keyword.value == "out"), None)

    def _is_read_later(self, name: cst.Name) -> bool:
        function = self._function_with_copies()
        return function is not None and read_after(function, name.value, self.context.span(name).line)

    def _is_repeated(self, name: cst.Name) -> bool:
        """Whether a comprehension changes what it did not make itself, once for each element."""
        inside = [node for node in self.context.stack if isinstance(node, cst.BaseComp)]
        loop_names = {
            node.value
            for comp in inside
            for target in _targets(comp.for_in)
            for node in m.findall(target, m.Name())
            if isinstance(node, cst.Name)
        }
        return bool(inside) and name.value not in loop_names


def _is_in_loop(function: ast.AST, line: int) -> bool:
    """Whether a line of a function may run again in the same call."""
    loops = [node for node in walk(function) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    return any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for loop in loops)


def _changed_in_place(function: ast.AST) -> Iterator[ast.expr]:
    """What a function writes into: `x` of `x.add_(1)`, `x[0] = 1` and `x += 1`."""
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=written, attr=name)) if is_inplace(name):
                yield written
            case ast.AugAssign(target=written) | ast.Subscript(value=written, ctx=ast.Store()):
                yield written


def _parse_expression(node: cst.BaseExpression) -> ast.expr:
    return ast.parse(f"({cst.Module([]).code_for_node(node)}\n)", mode="eval").body


def _numbers_of(dtype: str) -> frozenset[str]:
    """The kinds of Python's numbers that leave an array of a dtype in it."""
    if dtype.startswith(("float", "bfloat")):
        return frozenset({"float", "int"})
    return frozenset({"bool"} if dtype == "bool" else {"int"} if dtype in ("int32", "int64") else ())


def _targets(clause: cst.CompFor | None) -> Iterator[cst.BaseAssignTargetExpression]:
    while clause is not None:
        yield clause.target
        clause = clause.inner_for_in
