"""Names of torch that are looked up by a string: `getattr(nn, activation)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.names.looked_up_names import nameable, pattern_of_name
from migrate_agent.tools.rewrite.analysis.randomness import draws
from migrate_agent.tools.rewrite.rules.calls.torch_references import NAMESPACES, ReplaceTorchReferences
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers, ops
from migrate_agent.tools.types import Observed

ACTIVATIONS = frozenset(f"torch.nn.functional.{name}" for name in ("elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"))
"""What a caller chooses from where code looks for a function by name: examples show one or two of them."""
LISTING = frozenset({"dir", "vars"})
"""Functions that list what a namespace has."""
COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


class ReplaceLookups(Rule):
    """Replace lookups by name: `getattr(nn, "ReLU")` → `ReLU`, `getattr(nn, name)` → `{"ELU": ELU, "ReLU": ReLU}[name]`.

    The table has the layers that were observed or are named in the file, all that a text such as `f"Conv{rank}d"` can name where these are few, and
    of activation functions the usual ones; `getattr(F, name)` likewise with functions, and so is `eval(f"nn.{name}")`; `hasattr(F, name)` and
    `name in dir(F)` ask for the same names. Declines (a hole) where there is none, and where one draws random numbers.
    """

    KEEP = ("def f(options, name):\n    return getattr(options, name)\n",)
    CHANGE = (
        ("from torch import nn\n\ndef f():\n    return getattr(nn, 'ReLU')()\n", "def f():\n    return ReLU()\n"),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, act='ELU'):\n        super().__init__()\n"
            "        self.act = getattr(nn, act)(inplace=True)\n",
            "class M(nnx.Module):\n    def __init__(self, act='ELU', *, rngs: nnx.Rngs):\n        self.act = {'ELU': ELU}[act](inplace=True)\n",
        ),
        (
            "from torch import nn\n\ndef f(name='ELU', other='ReLU'):\n    return eval(f'nn.{name}')(0.5), eval('nn.' + other)(), eval(f'nn.{name}()')\n",
            "def f(name='ELU', other='ReLU'):\n    return {'ELU': ELU, 'ReLU': ReLU}[name](0.5), {'ELU': ELU, 'ReLU': ReLU}[other](), "
            "{'ELU': ELU, 'ReLU': ReLU}[name]()\n",
        ),
        (
            "import torch.nn.functional as F\n\ndef f(x, name='relu'):\n    assert name in ('relu', 'tanh', 'sum')\n    return getattr(F, name)\n",
            "def f(x, name='relu'):\n    assert name in ('relu', 'tanh', 'sum')\n"
            "    return {'elu': jax.nn.elu, 'gelu': gelu, 'leaky_relu': leaky_relu, 'relu': jax.nn.relu, "
            "'sigmoid': jax.nn.sigmoid, 'silu': jax.nn.silu, 'tanh': jnp.tanh}[name]\n",
        ),
        (
            "import torch.nn.functional as F\n\ndef f(x, name='relu', other='tanh'):\n    if not hasattr(F, name) or not hasattr(F, 'relu'):\n        raise ValueError\n"
            "    return getattr(F, name)\n",
            "def f(x, name='relu', other='tanh'):\n    if not (name in ('elu', 'gelu', 'leaky_relu', 'relu', 'sigmoid', 'silu', 'tanh')):\n        raise ValueError\n"
            "    return {'elu': jax.nn.elu, 'gelu': gelu, 'leaky_relu': leaky_relu, 'relu': jax.nn.relu, "
            "'sigmoid': jax.nn.sigmoid, 'silu': jax.nn.silu, 'tanh': jnp.tanh}[name]\n",
        ),
        (
            "from torch import nn\n\ndef f(r, rate):\n    n = 'Conv{}d'.format(r)\n    c = getattr(nn, n)(3, 4, 3)\n"
            "    n = f'Dropout{r}d'\n    d = getattr(nn, n)\n    return c, d(rate)\n",
            "def f(r, rate, *, rngs: nnx.Rngs):\n    n = 'Conv{}d'.format(r)\n"
            "    c = {'Conv1d': Conv1d, 'Conv2d': Conv2d, 'Conv3d': Conv3d}[n](3, 4, 3, rngs=rngs)\n"
            "    n = f'Dropout{r}d'\n    d = {'Dropout1d': Dropout1d, 'Dropout2d': Dropout2d, 'Dropout3d': Dropout3d}[n]\n"
            "    return c, d(rate, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\ndef f(name='ELU'):\n    if name not in dir(nn) or name[1:] in vars(nn):\n        raise ValueError\n"
            "    return getattr(nn, name)()\n",
            "def f(name='ELU'):\n    if name not in ('ELU',) or name[1:] in ('ELU',):\n        raise ValueError\n    return {'ELU': ELU}[name]()\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if isinstance(original.func, cst.Name) and original.func.value == "eval" and len(original.args) == 1:
            return self._evaluated(original, updated)
        if isinstance(original.func, cst.Name) and original.func.value == "hasattr" and len(original.args) == 2:
            return self._asked(original, updated)
        if isinstance(original.func, cst.Name) and original.func.value in LISTING and len(original.args) == 1:
            return self._listed(original)
        if not (isinstance(original.func, cst.Name) and original.func.value == "getattr" and len(original.args) in (2, 3)):
            return None
        namespace = self.context.dotted(original.args[0].value)
        if namespace not in NAMESPACES:
            return None
        name = original.args[1].value
        try:
            if isinstance(name, cst.SimpleString):
                return self._by_literal(namespace, name, updated)
            return self._by_table(namespace, original, updated.args[1].value, updated.args[2:])
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def _asked(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`hasattr(nn, name)` → `name in ("ELU", "ReLU")`: the names that the lookups of the file know."""
        namespace = self.context.dotted(original.args[0].value)
        if namespace not in NAMESPACES:
            return None
        name = original.args[1].value
        if isinstance(name, cst.SimpleString):
            return cst.Name("True") if _has_counterpart(f"{namespace}.{name.raw_value}") else None
        table = self._known_names(namespace, original)
        if table is None:
            return None
        return cst.Comparison(
            updated.args[1].value,
            [cst.ComparisonTarget(cst.In(), table)],
            lpar=[cst.LeftParen()] if isinstance(self.context.parent(), cst.UnaryOperation | cst.Comparison) else [],
            rpar=[cst.RightParen()] if isinstance(self.context.parent(), cst.UnaryOperation | cst.Comparison) else [],
        )

    def _listed(self, original: cst.Call) -> cst.Tuple | None:
        """`name in dir(nn)` → `name in ("ELU", "ReLU")`, and `vars(nn)` likewise."""
        namespace, parent = self.context.dotted(original.args[0].value), self.context.parent()
        if (
            namespace not in NAMESPACES
            or not isinstance(parent, cst.ComparisonTarget)
            or not isinstance(parent.operator, cst.In | cst.NotIn)
        ):
            return None
        # `vars` itself was a hole by its name.
        self.context.drop_holes(original)
        return self._known_names(namespace, original)

    def _known_names(self, namespace: str, original: cst.Call) -> cst.Tuple | None:
        """The names that the lookups of the file know; without any, a hole."""
        dotted_names = _with_siblings({*self._names_in_file(namespace), *self._observed_in_file(namespace)})
        names = sorted(dotted.rpartition(".")[2] for dotted in dotted_names)
        if not names:
            self.context.hole(original, "no example shows which layer a computed name stands for", "dynamic-name")
            return None
        ends = [COMMA if i + 1 < len(names) else cst.Comma() if len(names) == 1 else None for i in range(len(names))]
        texts = [cst.SimpleString(repr(name)) for name in names]
        return cst.Tuple([cst.Element(text, end) if end else cst.Element(text) for text, end in zip(texts, ends, strict=True)])

    def _observed_in_file(self, namespace: str) -> Iterator[str]:
        """What the lookups of the file were seen to give."""
        facts, lines = self.context.facts, self.context.file.lines
        for node in ast.walk(self.context.file.tree):
            match node:
                case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]) if facts.dotted.get(span_of(owner, lines)) == namespace:
                    fact = facts.observed.get(span_of(node, lines))
                    kinds = {re.sub("^(class|function):", "", kind) for kind in fact.kinds} if fact else set()
                    yield from (dotted for dotted in kinds if _has_counterpart(dotted))

    def _by_literal(self, namespace: str, name: cst.SimpleString, updated: cst.Call) -> cst.BaseExpression:
        dotted = f"{namespace}.{name.raw_value}"
        if _has_counterpart(dotted):
            return self._value(dotted)
        if len(updated.args) == 3 and not name.raw_value.startswith("_"):
            return updated.args[2].value
        raise Refuse(f"{dotted} is looked up by its name", "unknown-op")

    def _evaluated(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`eval(f"nn.{name}")` → as `getattr(nn, name)`; with parentheses in the text → its call."""
        parts = _parts_of_text(updated.args[0].value)
        namespace = self.context.file.bindings.get(parts.head, "") if parts else ""
        if parts is None or namespace not in NAMESPACES or "eval" in self.context.taken:
            return None
        try:
            value = self._by_table(namespace, original, parts.name, ())
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None
        # `eval` itself was a hole by its name.
        self.context.drop_holes(original.func)
        return cst.Call(value) if parts.is_called else value

    def _by_table(self, namespace: str, original: cst.Call, name: cst.BaseExpression, default: Sequence[cst.Arg]) -> cst.BaseExpression:
        fact = self.context.observed(original)
        observed = {re.sub("^(class|function|module):", "", kind) for kind in fact.kinds} if fact else set()
        if any(dotted in layers() and rngs_of(layers()[dotted].vendored) == "required" for dotted in observed) and _is_made(fact):
            raise Refuse("a layer with parameters is made from text", "dynamic-name")
        if not all(_has_counterpart(dotted) for dotted in observed):
            raise Refuse("what a computed name of torch stands for is not known to be a layer", "dynamic-name")
        candidates = sorted(self._candidates(namespace, original, observed))
        if not candidates:
            raise Refuse("no example shows which layer a computed name stands for", "dynamic-name")
        elements = [cst.DictElement(cst.SimpleString(repr(dotted.rpartition(".")[2])), self._value(dotted)) for dotted in candidates]
        index = cst.SubscriptElement(cst.Index(name))
        if default:
            return cst.Call(cst.Attribute(cst.Dict(elements), cst.Name("get")), [cst.Arg(name, comma=COMMA), *default])
        return cst.Subscript(cst.Dict(elements), [index])

    def _candidates(self, namespace: str, original: cst.Call, observed: set[str]) -> set[str]:
        """What a lookup may give: what it was seen to give and the file names, and all that its text can name where these are few."""
        named = _with_siblings(observed | set(self._names_in_file(namespace)))
        pattern = pattern_of_name(self.context.file, self.context.span(original))
        if pattern is None:
            return named
        fitting = observed | {dotted for dotted in named if pattern.fullmatch(dotted.rpartition(".")[2])}
        more = nameable(namespace, pattern, [dotted.rpartition(".")[2] for dotted in fitting])
        return fitting | {dotted for name in more if _has_counterpart(dotted := f"{namespace}.{name}")}

    def _value(self, dotted: str) -> cst.BaseExpression:
        return ReplaceTorchReferences(self.context).value(dotted)

    def _names_in_file(self, namespace: str) -> Iterator[str]:
        """Layers, or functions of `torch.nn.functional`, whose names stand as strings in the file."""
        for node in ast.walk(self.context.file.tree):
            # Of `torch` itself almost any word in a file is a function (`"sum"`, `"max"`): it says nothing about what is looked up.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and namespace != "torch":
                if _has_counterpart(dotted := f"{namespace}.{node.value}"):
                    yield dotted


class _Text(NamedTuple):
    """Text that names a part of a module: `nn.{name}()` is `head` `nn`, `name`, and `is_called`."""

    head: str
    name: cst.BaseExpression
    is_called: bool


def _parts_of_text(text: cst.BaseExpression) -> _Text | None:
    """The parts of `f"nn.{name}"` or `"nn." + name`; `None` for any other text."""
    match text:
        case cst.FormattedString(parts=[cst.FormattedStringText(value=head), cst.FormattedStringExpression() as part, *rest]):
            tail = "".join(one.value for one in rest if isinstance(one, cst.FormattedStringText))
            if len(rest) <= 1 and tail in ("", "()") and part.conversion is None and part.format_spec is None and head.endswith("."):
                return _Text(head[:-1], part.expression, bool(tail))
        case cst.BinaryOperation(left=cst.SimpleString() as left, operator=cst.Add(), right=name):
            head = left.raw_value
            return _Text(head[:-1], name, False) if head.endswith(".") else None
    return None


def _is_made(fact: Observed | None) -> bool:
    return fact is not None and any(kind.startswith("module:") for kind in fact.kinds)


def _with_siblings(names: set[str]) -> set[str]:
    """These names, and where one is an activation function, the others that a caller may name in its place."""
    return names | ACTIVATIONS if names & ACTIVATIONS else names


def _has_counterpart(dotted: str) -> bool:
    """Whether there is a layer of this name, or a function that needs no key."""
    return dotted in layers() or (dotted in ops() and not draws(ops()[dotted]))
