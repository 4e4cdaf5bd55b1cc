"""Attributes of the instance, or of an argument, that are read by evaluating text: `eval("self.layer%d" % i)`."""

from __future__ import annotations

import re

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

PLAIN = re.compile(r"[\w%{}]*")
"""Text of one name, with places for others: none that ends the name, takes a part of it or calls it."""


class LookUpAttributes(Rule):
    """Look up attributes that are read by evaluating text: `eval("self.fc_" + name)` → `getattr(self, "fc_" + name)`, likewise with `%`, `format`
    and f-strings.

    Where a name has a dot in it after all, the lookup finds none, and says so. Declines where the text does more than name one attribute.
    """

    KEEP = ("class M:\n    def f(self, i):\n        return getattr(self, i)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc_a, self.fc_1 = nn.Linear(2, 2), nn.Linear(2, 2)\n\n"
            "    def forward(self, x, n='a', i=1):\n        x = eval('self.fc_' + n)(x)\n        x = eval('self.fc_%d' % i)(x)\n"
            "        x = eval('self.fc_{}'.format(i))(x)\n        return eval(f'self.fc_{i}')(eval('self.' + n)) if n != 'a' else x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.fc_a, self.fc_1 = Linear(2, 2, rngs=rngs), Linear(2, 2, rngs=rngs)\n\n"
            "    def __call__(self, x, n='a', i=1):\n        x = getattr(self, 'fc_' + n)(x)\n        x = getattr(self, 'fc_%d' % i)(x)\n"
            "        x = getattr(self, 'fc_{}'.format(i))(x)\n        return getattr(self, f'fc_{i}')(getattr(self, n)) if n != 'a' else x\n",
        ),
        (
            "import torch\n\ndef f(rnn, n: int):\n    return [eval('rnn.weight_l' + str(i) + '_reverse') for i in range(n)]\n",
            "def f(rnn, n: int):\n    return [getattr(rnn, 'weight_l' + str(i) + '_reverse') for i in range(n)]\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if not isinstance(original.func, cst.Name) or original.func.value != "eval" or "eval" in context.taken or len(original.args) != 1:
            return None
        owners = dict.fromkeys(filter(None, (context.self_name(), *self._parameters())))
        owner, name = next(((one, name) for one in owners if (name := _name_of(updated.args[0].value, f"{one}.")) is not None), ("", None))
        if name is None:
            return None
        # `eval` itself was a hole by its name.
        context.drop_holes(original.func)
        return cst.Call(
            cst.Name("getattr"), [cst.Arg(cst.Name(owner), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))), cst.Arg(name)]
        )

    def _parameters(self) -> list[str]:
        """The parameters of the function around, which name what callers hand in and no module of a library."""
        function = next((node for node in reversed(self.context.stack) if isinstance(node, cst.FunctionDef)), None)
        return [parameter.name.value for parameter in function.params.params] if function is not None else []


def _name_of(text: cst.BaseExpression, prefix: str) -> cst.BaseExpression | None:
    """What follows a prefix in a text that names one attribute; `None` for any other text."""
    match text:
        case cst.SimpleString():
            return _without(text, prefix)
        case cst.BinaryOperation(left=cst.SimpleString() as left, operator=cst.Add(), right=cst.Name() as right) if (
            left.raw_value == prefix
        ):
            return right
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            first = _name_of(left, prefix)
            ends_plain = not isinstance(right, cst.SimpleString) or PLAIN.fullmatch(right.raw_value)
            return text.with_changes(left=first) if first is not None and ends_plain else None
        case cst.BinaryOperation(left=cst.SimpleString() as left, operator=cst.Modulo()):
            first = _without(left, prefix)
            return text.with_changes(left=first) if first is not None else None
        case cst.Call(func=cst.Attribute(value=cst.SimpleString() as left, attr=cst.Name("format")) as func):
            first = _without(left, prefix)
            return text.with_changes(func=func.with_changes(value=first)) if first is not None else None
        case cst.FormattedString(parts=[cst.FormattedStringText(value=head) as start, *rest]) if head.startswith(prefix):
            texts = [head.removeprefix(prefix), *(part.value for part in rest if isinstance(part, cst.FormattedStringText))]
            if all(map(PLAIN.fullmatch, texts)):
                kept = [start.with_changes(value=texts[0])] if texts[0] else []
                return text.with_changes(parts=[*kept, *rest])
    return None


def _without(text: cst.SimpleString, prefix: str) -> cst.SimpleString | None:
    """A plain text without its prefix; `None` where it does not begin with it, or names more than one attribute."""
    name = text.raw_value.removeprefix(prefix)
    if text.prefix or not text.raw_value.startswith(prefix) or not PLAIN.fullmatch(name):
        return None
    return text.with_changes(value=f"{text.quote}{name}{text.quote}")
