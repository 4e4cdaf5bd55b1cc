"""Initial values that a constructor gives its own parameters after it has made them: as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.parameters.constructed_values import bound_between, joined_statements, made, touches
from migrate_agent.tools.rewrite.rules.rule import Rule

FILLED = {"empty", "zeros", "ones"}
WORDS = {"0": "zeros", "0.0": "zeros", "1": "ones", "1.0": "ones"}
BOUNDS = ("minval", "maxval")
LIKE = {"zeros_like": "zeros", "ones_like": "ones", "full_like": "full"}


class Blank(NamedTuple):
    """What a new variable is filled with until it gets its values: `jnp.empty(shape, dtype=dtype)`."""

    whole: cst.Call
    shape: cst.BaseExpression
    dtype: cst.Arg | None


class GiveValuesWhereMade(Rule):
    """In plain style, `self.w = nnx.Param(jnp.empty(shape))` and later `self.w[...] = init_normal(rngs.params(), self.w)` →
    `self.w = nnx.Param(init_normal(rngs.params(), jnp.empty(shape)))`.

    Values that ask the parameter for its shape and dtype alone get these as they are written. Declines where anything between the two reads the
    parameter, calls a method or hands the module on, and where the values depend on what the parameter held.
    """

    KEEP = ("class A:\n    def __init__(self, d):\n        self.d = d\n        self.d = 0\n",)
    PLAIN = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, d))\n        self.v = nn.Parameter(torch.Tensor(d, d))\n"
            "        self.b = nn.Parameter(torch.empty(d))\n        self.c = nn.Parameter(torch.empty(d))\n"
            "        nn.init.normal_(self.w, std=0.02)\n        nn.init.xavier_uniform_(self.v)\n        nn.init.zeros_(self.b)\n"
            "        nn.init.constant_(self.c, 2.0)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.w = nnx.Param(0.02 * jax.random.normal(rngs.params(), (3, d)))\n"
            "        self.v = nnx.Param(init_xavier_uniform(rngs.params(), jnp.empty((d, d), dtype=jnp.float32)))\n"
            "        self.b = nnx.Param(jnp.zeros(d))\n        self.c = nnx.Param(jnp.full(d, 2.0, dtype=float))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.zeros(3, d))\n        self.first = self.w.sum()\n        nn.init.normal_(self.w, std=0.02)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.zeros((3, d)))\n"
            "        self.first = jnp.sum(self.w[...])\n"
            "        self.w[...] = 0.02 * jax.random.normal(rngs.params(), self.w.shape, self.w.dtype)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.empty(3, d))\n        std = d**-0.5\n        nn.init.normal_(self.w, std=std)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.empty((3, d)))\n"
            "        std = d**-0.5\n        self.w[...] = std * jax.random.normal(rngs.params(), self.w.shape, self.w.dtype)\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if not self.context.repo.is_plain or original.name.value != "__init__" or self.context.cls is None:
            return None
        return joined_statements(updated, self._goes_into_maker)

    def _goes_into_maker(self, before: list[cst.BaseStatement], statement: cst.BaseStatement) -> bool:
        """Whether what a statement writes could be said where the parameter is made, one of the statements `before` it; that one then says it."""
        write = _write(statement)
        number = None if write is None else _maker(before, write[0])
        if write is None or number is None:
            return False
        attribute, value = write
        maker = made(before[number], attribute)
        blank = None if maker is None else _blank(maker)
        if blank is None or bound_between(before[number:], value):
            return False
        values = self._values(value, f"self.{attribute}", blank)
        if values is None or maker is None:
            return False
        above = [line for line in getattr(statement, "leading_lines", ()) if line.comment]
        joined = maker.with_changes(args=[cst.Arg(values), *maker.args[1:]])
        line = cst.ensure_type(before[number], cst.SimpleStatementLine)
        assignment = cst.ensure_type(line.body[0], cst.Assign).with_changes(value=joined)
        before[number] = line.with_changes(body=[assignment], leading_lines=[*line.leading_lines, *above])
        return True

    def _values(self, value: cst.BaseExpression, name: str, blank: Blank) -> cst.BaseExpression | None:
        """The values with what was blank in the parameter's place, or None where they need more of it."""
        code = cst.Module([]).code_for_node
        names = (name, f"{name}[...]")
        match value:
            case cst.Call(func=cst.Attribute(value=cst.Name("jnp"), attr=cst.Name(function)), args=[like, *rest]) if function in LIKE:
                if code(like.value) not in names or any(argument.keyword for argument in rest):
                    return None
                result: cst.BaseExpression = _constant(LIKE[function], rest, blank)
            case cst.BinaryOperation(operator=cst.Multiply(), right=cst.Call() as call):
                result = value.with_changes(right=_filled(call, names, blank))
            case cst.Call():
                result = _filled(value, names, blank)
            case _:
                return None
        attribute = name.removeprefix("self.")
        return None if m.findall(result, m.Attribute(m.Name("self"), m.Name(attribute))) else result


def _constant(function: str, values: Sequence[cst.Arg], blank: Blank) -> cst.Call:
    """`jnp.zeros(shape)`, `jnp.ones(shape)` or `jnp.full(shape, value)`."""
    known = WORDS.get(cst.Module([]).code_for_node(values[0].value)) if values else None
    function, values = (known, []) if known else (function, values)
    dtype = [blank.dtype] if blank.dtype else []
    if values and not dtype:
        # Of a Python number alone `jnp.full` makes an array that takes any other dtype.
        dtype = [cst.Arg(cst.Name("float"), keyword=cst.Name("dtype"))]
    call = cst.ensure_type(cst.parse_expression(f"jnp.{function}()"), cst.Call)
    return call.with_changes(args=tidy([cst.Arg(blank.shape), *values, *dtype]))


def _filled(call: cst.Call, names: Sequence[str], blank: Blank) -> cst.Call:
    """The call with shape and dtype, or the blank array, in the place of the parameter."""
    code = cst.Module([]).code_for_node
    arguments: list[cst.Arg] = []
    for argument in call.args:
        text = code(argument.value)
        if text == f"{names[0]}.shape":
            arguments.append(argument.with_changes(value=blank.shape))
        elif text == f"{names[0]}.dtype":
            if blank.dtype is not None:
                arguments.append(argument.with_changes(value=blank.dtype.value))
                continue
            # The default of what draws is that of what makes a blank.
            rest = call.args[call.args.index(argument) + 1 :]
            if len(rest) not in (0, len(BOUNDS)) or (rest and code(call.func) != "jax.random.uniform"):
                return call
            named = [cst.Arg(bound.value, keyword=cst.Name(name)) for bound, name in zip(rest, BOUNDS, strict=False)]
            return call.with_changes(args=tidy([*arguments, *named]))
        elif text in names:
            arguments.append(argument.with_changes(value=blank.whole))
        else:
            arguments.append(argument)
    return call.with_changes(args=tidy(arguments))


def _blank(maker: cst.Call) -> Blank | None:
    """What a new variable holds, where its values are written after it: `nnx.Param(jnp.empty(shape))`."""
    match maker:
        case cst.Call(
            func=cst.Attribute(value=cst.Name("nnx"), attr=cst.Name("Param")),
            args=[
                cst.Arg(value=cst.Call(func=cst.Attribute(value=cst.Name("jnp"), attr=cst.Name(function)), args=[shape, *rest]) as whole)
            ],
        ) if function in FILLED and shape.keyword is None and not shape.star:
            dtypes = [argument for argument in rest if argument.keyword and argument.keyword.value == "dtype"]
            return Blank(whole, shape.value, dtypes[0] if dtypes else None) if len(dtypes) == len(rest) else None
    return None


def _maker(statements: Sequence[cst.BaseStatement], attribute: str) -> int | None:
    """The statement that makes a parameter, if nothing after it could tell when it has its values."""
    for number in reversed(range(len(statements))):
        if made(statements[number], attribute) is not None:
            return number
        if touches(statements[number], attribute):
            return None
    return None


def _write(statement: cst.BaseStatement) -> tuple[str, cst.BaseExpression] | None:
    """(attribute, value) of `self.<attribute>[...] = value`."""
    whole = [cst.SubscriptElement(slice=cst.Index(value=cst.Ellipsis()))]
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=parameter, slice=index))], value=value)]
        ) if len(index) == 1 and index[0].deep_equals(whole[0]):
            if m.matches(parameter, m.Attribute(value=m.Name("self"), attr=m.Name())):
                return cst.ensure_type(parameter, cst.Attribute).attr.value, value
    return None
