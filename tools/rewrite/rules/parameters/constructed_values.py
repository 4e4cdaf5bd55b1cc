"""Initial values that a constructor gives its layers after it has made them: by the layer's own initialisers, where it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule

OPTIONS: Mapping[str, str] = {"kernel": "kernel_init", "bias": "bias_init", "embedding": "embedding_init"}
"""Variable of a layer of Flax's → the argument that initialises it."""
FILLED = {"zeros_like": "nnx.initializers.zeros", "ones_like": "nnx.initializers.ones"}


class InitialiseWhereMade(Rule):
    """In plain style, `self.fc = nnx.Linear(…, bias_init=fan_in_bias(d))` and later `self.fc.bias[...] = jnp.zeros_like(self.fc.bias)` →
    `self.fc = nnx.Linear(…, bias_init=nnx.initializers.zeros)`.

    Declines where anything between the two reads the layer, calls a method or hands the module on, and for values that no initialiser says.
    """

    KEEP = ("class A:\n    def __init__(self, d):\n        self.d = d\n        self.d = 0\n",)
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.fc = nn.Linear(d, 3)\n        self.table = nn.Embedding(5, d)\n        nn.init.kaiming_normal_(self.fc.weight)\n"
            "        nn.init.zeros_(self.fc.bias)\n        nn.init.normal_(self.table.weight, std=0.02)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.fc = nnx.Linear(d, 3, kernel_init=nnx.initializers.variance_scaling(2.0, 'fan_in', 'normal'), "
            "bias_init=nnx.initializers.zeros, rngs=rngs)\n"
            "        self.table = nnx.Embed(5, d, embedding_init=nnx.initializers.normal(0.02), rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.fc = nn.Linear(d, 3)\n        self.first = self.fc.bias.sum()\n        nn.init.zeros_(self.fc.bias)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.fc = nnx.Linear(d, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)\n"
            "        self.first = jnp.sum(self.fc.bias)\n        self.fc.bias[...] = jnp.zeros_like(self.fc.bias)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.fc = nn.Linear(d, 3)\n        std = d**-0.5\n        nn.init.normal_(self.fc.weight, std=std)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.fc = nnx.Linear(d, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)\n        std = d**-0.5\n"
            "        self.fc.kernel[...] = std * jax.random.normal(rngs.params(), self.fc.kernel.shape, self.fc.kernel.dtype)\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if not self.context.repo.is_plain or original.name.value != "__init__" or self.context.cls is None:
            return None
        return joined_statements(updated, self._goes_into_maker)

    def _goes_into_maker(self, before: list[cst.BaseStatement], statement: cst.BaseStatement) -> bool:
        """Whether what a statement writes could be said where the layer is made, one of the statements `before` it; that one then says it."""
        written = _write(statement)
        maker = None if written is None else self._maker(before, *written[:2])
        if written is None or maker is None:
            return False
        attribute, variable, value = written
        initialiser = self._initialiser(value, f"self.{attribute}.{variable}")
        if initialiser is None or bound_between(before[maker:], initialiser):
            return False
        before[maker] = _initialised(before[maker], OPTIONS[variable], initialiser, statement)
        return True

    def _maker(self, statements: Sequence[cst.BaseStatement], attribute: str, variable: str) -> int | None:
        """The statement that makes the layer of an attribute with an initialiser for the variable, if nothing after it could tell when it has its values."""
        for number in reversed(range(len(statements))):
            call = made(statements[number], attribute)
            if call is not None:
                takes_initialiser = any(argument.keyword and argument.keyword.value == OPTIONS[variable] for argument in call.args)
                return number if takes_initialiser else None
            if touches(statements[number], attribute):
                return None
        return None

    def _initialiser(self, value: cst.BaseExpression, filled: str) -> cst.BaseExpression | None:
        """The initialiser that gives a value, or None."""
        text = cst.Module([]).code_for_node
        factor: cst.BaseExpression | None = None
        match value:
            case cst.Call(func=cst.Attribute(value=cst.Name("jnp"), attr=cst.Name(name)), args=[like]) if name in FILLED:
                return cst.parse_expression(FILLED[name]) if _is_of(like.value, filled) else None
            case cst.Call(func=cst.Attribute(value=cst.Name("jnp"), attr=cst.Name("full_like")), args=[like, constant]):
                if not _is_of(like.value, filled) or constant.keyword:
                    return None
                constant_name = {"0": "zeros", "0.0": "zeros", "1": "ones", "1.0": "ones"}.get(text(constant.value))
                template = f"nnx.initializers.{constant_name}" if constant_name else "nnx.initializers.constant({x})"
                return self.context.build(template, x=constant.value)
            case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=cst.Call() as call):
                factor, value = left, call
        if not isinstance(value, cst.Call):
            return None
        shaped = [text(argument.value) for argument in value.args if argument.keyword is None]
        if len(shaped) < 3 or shaped[-2:] != [f"{filled}.shape", f"{filled}.dtype"] or not shaped[0].startswith("rngs"):
            return None
        scale = factor if factor is not None else cst.Float("1.0")
        function = text(value.func)
        if function == "jax.random.normal" and len(value.args) == 3:
            return self.context.build("nnx.initializers.normal({x})", x=scale)
        if function == "jax.random.truncated_normal" and len(value.args) == 5:
            bounds = {"low": value.args[1].value, "high": value.args[2].value}
            return self.context.build("nnx.initializers.truncated_normal({x}, lower={low}, upper={high})", x=scale, **bounds)
        is_initialiser = isinstance(value.func, cst.Call) and text(value.func).startswith("nnx.initializers.")
        return value.func if is_initialiser and factor is None and len(value.args) == 3 else None


def joined_statements(
    function: cst.FunctionDef, goes_into: Callable[[list[cst.BaseStatement], cst.BaseStatement], bool]
) -> cst.FunctionDef | None:
    """The function without the statements that go into one before them, which `goes_into` changes in its list; None where there are none."""
    body = function.body
    if not isinstance(body, cst.IndentedBlock):
        return None
    statements: list[cst.BaseStatement] = []
    for statement in body.body:
        if not goes_into(statements, statement):
            statements.append(statement)
    return None if len(statements) == len(body.body) else function.with_changes(body=body.with_changes(body=statements))


def _write(statement: cst.BaseStatement) -> tuple[str, str, cst.BaseExpression] | None:
    """(attribute, variable, value) of `self.<attribute>.<variable>[...] = value`."""
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[
                        cst.AssignTarget(
                            target=cst.Subscript(
                                value=cst.Attribute(
                                    value=cst.Attribute(value=cst.Name("self"), attr=cst.Name(attribute)), attr=cst.Name(variable)
                                ),
                                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Ellipsis()))],
                            )
                        )
                    ],
                    value=value,
                )
            ]
        ) if variable in OPTIONS:
            return attribute, variable, value
    return None


def made(statement: cst.BaseStatement, attribute: str) -> cst.Call | None:
    """The call in `self.<attribute> = layer(…)`."""
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)))], value=cst.Call() as call
                )
            ]
        ) if name == attribute:
            return call
    return None


def touches(statement: cst.BaseStatement, attribute: str) -> bool:
    """Whether a statement may read or change the layer: it names it, calls a method of the module, or hands the module on."""
    named = m.findall(statement, m.Attribute(value=m.Name("self"), attr=m.Name(attribute)))
    methods = m.findall(statement, m.Call(func=m.Attribute(value=m.Name("self"))))
    uses, attributes = m.findall(statement, m.Name("self")), m.findall(statement, m.Attribute(value=m.Name("self")))
    return bool(named or methods) or len(uses) > len(attributes)


def _is_of(node: cst.BaseExpression, filled: str) -> bool:
    return cst.Module([]).code_for_node(node) in (filled, f"{filled}[...]")


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (name.value for name in m.findall(node, m.Name()) if isinstance(name, cst.Name))


def bound_between(statements: Sequence[cst.BaseStatement], initialiser: cst.BaseExpression) -> bool:
    """Whether a name, or an attribute of the module, that the initialiser reads gets its value only after the layer is made."""
    targets = {
        cst.Module([]).code_for_node(target.target)
        for statement in statements[1:]
        for target in m.findall(statement, m.AssignTarget())
        if isinstance(target, cst.AssignTarget)
    }
    bound = {name for text in targets for name in _names(cst.parse_expression(text)) if name != "self"}
    compound = any(not isinstance(statement, cst.SimpleStatementLine) for statement in statements[1:])
    read = set(_names(initialiser)) - {"nnx", "initializers"}
    return bool(read & bound) or (compound and bool(read - {"self", "jnp", "math"}))


def _initialised(
    statement: cst.BaseStatement, option: str, initialiser: cst.BaseExpression, written: cst.BaseStatement
) -> cst.BaseStatement:
    """The statement that makes the layer, with this initialiser; comments above the other one are kept."""
    call = statement.body[0].value if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign) else None
    if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(call, cst.Call):
        return statement
    arguments = [
        argument.with_changes(value=initialiser) if argument.keyword and argument.keyword.value == option else argument
        for argument in call.args
    ]
    above = [line for line in getattr(written, "leading_lines", ()) if line.comment]
    assignment = statement.body[0]
    return statement.with_changes(
        body=[assignment.with_changes(value=call.with_changes(args=arguments))], leading_lines=[*statement.leading_lines, *above]
    )
