"""What rewriting has made constant is decided: code for other devices and modes goes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import bare
from migrate_agent.tools.rewrite.rules.calls.torch_references import VERSION
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers, ops

COMPARED: Mapping[type, Callable[[Any, Any], bool]] = {
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
}


PARSES = frozenset(
    "packaging.version.parse packaging.version.Version distutils.version.LooseVersion distutils.version.StrictVersion "
    "pkg_resources.parse_version".split()
)
"""What makes a version of its text, to be compared part by part."""
NUMBER = re.compile(r"-?\d+")
RELEASE = re.compile(r"\d+(\.\d+)*")


class DecideConstants(Rule):
    """Decide what rewriting made constant: `if torch.cuda.is_available(): …` → nothing, `a if hasattr(nn, "SiLU") else b` → `a`.

    `x and not torch.jit.is_scripting()` → `x`. Declines for constants that the source itself says.
    """

    CHECKS = ()
    KEEP = ("def f(x):\n    if True:\n        x = x + 1\n    return x if False else 3\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if(torch.cuda.is_available()):\n        x = x.cuda()\n    assert(x.dim() == 2)\n"
            "    return(x.size(0))\n",
            "def f(x: jax.Array):\n    assert(x.ndim == 2)\n    return(x.shape[0])\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if torch.cuda.is_available():\n        x = x.cuda()\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if not torch.cuda.is_available():\n        return x\n"
            "    name = torch.cuda.get_device_properties(0)\n    return x * 2\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            'import torch\nfrom torch import nn\n\ndef f(x: torch.Tensor):\n    act = nn.SiLU if hasattr(nn, "SiLU") else None\n    return act\n',
            "def f(x: jax.Array):\n    act = SiLU\n    return act\n",
        ),
        (
            'import torch\n\ndef f(x: torch.Tensor):\n    if torch.__version__ < "1.8":\n        x = x + 1\n    return x\n',
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    if n > 2:\n        x = x + 1\n    elif torch.cuda.device_count() > 1:\n"
            "        x = x.cuda()\n    elif not torch.jit.is_scripting():\n        x = x + 2\n    else:\n        x = x + 3\n    return x\n",
            "def f(x: jax.Array, n: int):\n    if n > 2:\n        x = x + 1\n    else:\n        x = x + 2\n    return x\n",
        ),
        (
            "import torch\nfrom packaging import version\n\nnew = version.parse(torch.__version__) >= version.parse('1.10')\n\n"
            "def f(x: torch.Tensor, flash: bool):\n"
            "    assert not (flash and version.parse(torch.__version__) < version.parse('2.0')), 'too old'\n    return x\n",
            "from packaging import version\n\nnew = True\n\ndef f(x: jax.Array, flash: bool):\n    return x\n",
        ),
        (
            'import torch\n\nhas_silu = "silu" in dir(torch.nn.functional)\n\ndef f(x: torch.Tensor):\n    return x if has_silu else x * 2\n',
            "has_silu = True\n\ndef f(x: jax.Array):\n    return x if has_silu else x * 2\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, ks: list):\n    return [x * k for k in ks if not torch.cuda.is_available() if k > 1]\n",
            "def f(x: jax.Array, ks: list):\n    return [x * k for k in ks if k > 1]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if x.is_cuda == True:\n        x = x.cpu()\n    assert x.is_cuda is False\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._left: list[cst.CSTNode] = []

    def leave_If(
        self, original: cst.If, updated: cst.If
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        value = self._constant_value(original.test, updated.test)
        if value is None:
            return None
        self.context.drop_holes(original.test)
        # Several statements cannot stand in the place of an `elif`, but an `else` can.
        if isinstance(self.context.parent(), cst.If):
            self.context.drop_holes(*([original.orelse] if value and original.orelse else [] if value else [original.body]))
            return cst.Else(updated.body) if value else updated.orelse or cst.RemoveFromParent()  # type: ignore[return-value]
        if value:
            if original.orelse:
                self.context.drop_holes(original.orelse)
            if leaves(updated.body):
                self._left.append(original)
            return self._body(updated.body, updated)
        self.context.drop_holes(original.body)
        orelse = updated.orelse
        if orelse is None:
            return cst.RemoveFromParent()
        return self._body(orelse.body, updated) if isinstance(orelse, cst.Else) else orelse

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        """What follows a `return` that is always reached goes."""
        at = next((index for index, statement in enumerate(original.body) if statement in self._left), None)
        if at is None:
            return None
        end = next((index for index, statement in enumerate(updated.body) if _is_leaving(statement)), None)
        if end is None:
            return None
        self.context.drop_holes(*original.body[at + 1 :])
        return updated.with_changes(body=updated.body[: end + 1])

    def leave_IfExp(self, original: cst.IfExp, updated: cst.IfExp) -> cst.BaseExpression | None:
        value = self._constant_value(original.test, updated.test)
        if value is None:
            return None
        self.context.drop_holes(original.test, original.orelse if value else original.body)
        return self.context.parenthesise(bare(updated.body if value else updated.orelse))

    def leave_CompFor(self, original: cst.CompFor, updated: cst.CompFor) -> cst.CompFor | None:
        pairs = list(zip(original.ifs, updated.ifs, strict=True))
        left = [new for old, new in pairs if not self._constant_value(old.test, new.test)]
        return updated.with_changes(ifs=left) if len(left) < len(pairs) else None

    def leave_BooleanOperation(self, original: cst.BooleanOperation, updated: cst.BooleanOperation) -> cst.BaseExpression | None:
        absorbing = isinstance(updated.operator, cst.Or)
        sides = (original.left, updated.left), (original.right, updated.right)
        for (old, new), (other, rest) in (sides, sides[::-1]):
            value = self._constant_value(old, new)
            if value is not None:
                self.context.drop_holes(other if value is absorbing else old)
                return new if value is absorbing else self.context.parenthesise(bare(rest))
        return None

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.UnaryOperation) -> cst.BaseExpression | None:
        value = self._constant_value(original.expression, updated.expression)
        return cst.Name(str(not value)) if value is not None and isinstance(updated.operator, cst.Not) else None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not isinstance(original.func, cst.Name) or len(original.args) != 2:
            return None
        if original.func.value == "isinstance":
            return cst.Name("False") if self.context.dotted(original.args[1].value).startswith("torch.cuda.") else None
        if original.func.value != "hasattr":
            return None
        return self._torch_has(original.args[0].value, original.args[1].value)

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        """`"silu" in dir(F)`, `torch.__version__ >= "2.0"`, `version.parse(torch.__version__) < version.parse("2.0")`."""
        sides = original.left, original.comparisons[0].comparator
        if VERSION in {self.context.dotted(side) for side in sides}:
            return _compare_literals(updated)
        if isinstance(original.left, cst.Call) and not isinstance(updated.left, cst.Call):
            return _compare_numbers(updated)
        if (value := self._constant_value(original.left, updated.left)) is not None:
            return _compare_truth(value, updated)
        if all(self._is_version(side) for side in sides) and VERSION in {self.context.dotted(side.args[0].value) for side in sides}:  # type: ignore[attr-defined]
            return _compare_literals(updated, release)
        right = original.comparisons[0].comparator
        only = len(original.comparisons) == 1 and isinstance(original.comparisons[0].operator, cst.In)
        if not only or not isinstance(right, cst.Call) or not isinstance(right.func, cst.Name) or right.func.value != "dir":
            return None
        return self._torch_has(right.args[0].value, original.left) if len(right.args) == 1 else None

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.RemovalSentinel | None:
        return cst.RemoveFromParent() if self._constant_value(original.test, updated.test) else None

    def _is_version(self, node: cst.BaseExpression) -> bool:
        """Whether this makes a version of one text."""
        return isinstance(node, cst.Call) and len(node.args) == 1 and self.context.dotted(node.func) in PARSES

    def _torch_has(self, owner: cst.BaseExpression, name: cst.BaseExpression) -> cst.Name | None:
        """Whether a module of torch has a name; `None` where this is no question about torch."""
        dotted = self.context.dotted(owner)
        if dotted.partition(".")[0] != "torch" or not isinstance(name, cst.SimpleString):
            return None
        full = f"{dotted}.{name.raw_value}"
        return cst.Name(str(full in layers() or full in ops()))

    def _constant_value(self, old: cst.BaseExpression, new: cst.BaseExpression) -> bool | None:
        """The value of a test that rewriting made constant."""
        # `if True:` in the source is its owner's choice.
        was = isinstance(old, cst.Name) and old.value in ("True", "False")
        return new.value == "True" if not was and isinstance(new, cst.Name) and new.value in ("True", "False") else None

    def _body(self, suite: cst.BaseSuite, whole: cst.If) -> cst.FlattenSentinel[cst.BaseStatement]:
        if not isinstance(suite, cst.IndentedBlock):
            small = [s for s in suite.body if isinstance(s, cst.BaseSmallStatement)]
            return cst.FlattenSentinel([cst.SimpleStatementLine(small, leading_lines=whole.leading_lines)])
        body = list(suite.body)
        if not body:
            return cst.FlattenSentinel([])
        first = body[0]
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = first.with_changes(leading_lines=[*whole.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel(body)


def _literal_text(node: cst.BaseExpression) -> str | None:
    """A literal text, or the one that a call is given."""
    value = node.args[0].value if isinstance(node, cst.Call) else node
    text = value.evaluated_value if isinstance(value, cst.SimpleString) else None
    return text if isinstance(text, str) else None


def release(text: str) -> tuple[int, ...] | None:
    """`"1.8.0"` → `(1, 8)`: zeros at the end mean nothing. `None` for what is no plain release."""
    if not RELEASE.fullmatch(text):
        return None
    parts = [int(part) for part in text.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _compare_literals(node: cst.Comparison, read: Callable[[str], Any] = str) -> cst.Name | None:
    """What comparing two literal texts comes to; `None` for anything else."""
    only = node.comparisons[0]
    compare, texts = COMPARED.get(type(only.operator)), (_literal_text(node.left), _literal_text(only.comparator))
    if compare is None or len(node.comparisons) > 1:
        return None
    first, second = (None if text is None else read(text) for text in texts)
    return None if first is None or second is None else cst.Name(str(compare(first, second)))


def _compare_truth(value: bool, node: cst.Comparison) -> cst.Name | None:
    """What comparing a truth value with `True` or `False` comes to: `False == False`, which was `x.is_cuda == False`."""
    only, right = node.comparisons[0], node.comparisons[0].comparator
    if len(node.comparisons) > 1 or not isinstance(right, cst.Name) or right.value not in ("True", "False"):
        return None
    same = value == (right.value == "True")
    if isinstance(only.operator, (cst.Equal, cst.Is)):
        return cst.Name(str(same))
    return cst.Name(str(not same)) if isinstance(only.operator, (cst.NotEqual, cst.IsNot)) else None


def _compare_numbers(node: cst.Comparison) -> cst.Name | None:
    """What comparing two literal whole numbers comes to: `0 > 1`, which was `torch.cuda.device_count() > 1`."""
    only = node.comparisons[0]
    compare = COMPARED.get(type(only.operator))
    sides = [cst.Module([]).code_for_node(side) for side in (node.left, only.comparator)]
    if compare is None or len(node.comparisons) > 1 or not all(NUMBER.fullmatch(side) for side in sides):
        return None
    return cst.Name(str(compare(*(int(side) for side in sides))))


def leaves(suite: cst.BaseSuite) -> bool:
    """Whether a block ends by leaving the function."""
    last = suite.body[-1] if suite.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, (cst.Return, cst.Raise))


def _is_leaving(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], (cst.Return, cst.Raise))
