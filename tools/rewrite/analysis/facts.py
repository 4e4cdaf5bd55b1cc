"""The facts of a file by source position: the kind, shape and dtype of each expression, and the
dotted name it stands for.

`inference.infer` fills it in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.tables.registry import methods
from migrate_agent.tools.types import Observed, Span

TENSOR = Observed(("tensor",))
INT, FLOAT, BOOL, STR, NONE = (Observed((kind,)) for kind in ("int", "float", "bool", "str", "none"))
TUPLE, LIST, DICT, SIZE, DTYPE, DEVICE = (Observed((kind,)) for kind in ("tuple", "list", "dict", "size", "dtype", "device"))
PLAIN_METHODS = frozenset(name for kind in (str, bytes, list, dict, set, tuple, int, float) for name in dir(kind))
"""Methods of Python's built-in types, whose name alone does not tell a tensor."""
BUILT_IN = frozenset("none int float bool complex str list tuple dict set".split())
"""Kinds whose only methods are `PLAIN_METHODS`."""
ARRAY_METHODS = frozenset(
    "all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot fill flatten item max mean min nonzero "
    "prod put ravel repeat reshape resize round searchsorted sort squeeze std sum swapaxes take tolist trace transpose "
    "var view conj type to size numpy apply train eval children parameters".split()
)
"""Methods that numpy arrays or modules have too."""
DTYPES = frozenset(
    "float32 float float64 double float16 half bfloat16 complex64 complex128 uint8 int8 int16 short int32 int int64 long bool uint16 uint32 uint64 "
    "float8_e4m3fn float8_e5m2 cfloat cdouble".split()
)


@dataclass
class Facts:
    """Span → what the expression evaluates to (`observed`), and the dotted name it stands for (`dotted`); spans of random numbers of the host."""

    observed: dict[Span, Observed] = field(default_factory=dict)
    dotted: dict[Span, str] = field(default_factory=dict)
    draws: set[Span] = field(default_factory=set)
    """The callees of Python and NumPy that draw while a module is called."""
    shared_draws: set[Span] = field(default_factory=set)
    """Those in functions that constructors call too."""
    traced: set[Span] = field(default_factory=set)
    """The expressions whose value follows from such a draw."""
    absent: dict[str, str] = field(default_factory=dict)
    """Names whose import failed when the examples ran → that import."""


@dataclass(frozen=True)
class Result:
    """The fact of what a function gives; where it is always a tuple of one length that is written out, those of its parts too.

    A result that is unknown has no fact.
    """

    fact: Observed | None = None
    parts: tuple[Observed | None, ...] = ()


UNKNOWN = Result()


def span_of(node: ast.AST, lines: list[str]) -> Span:
    """The node's span with columns in characters (ast counts UTF-8 bytes)."""
    line, end = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    return Span(line, _column(lines, line, node.col_offset), end, _column(lines, end, node.end_col_offset))  # type: ignore[attr-defined]


def _column(lines: list[str], line: int, offset: int) -> int:
    text = lines[line - 1]
    # Decoding is needed only where a line holds characters of several bytes.
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def join(facts: Iterable[Observed | None]) -> Observed | None:
    """The fact that covers all of several facts, without shapes; `None` where one of them is unknown."""
    kinds: dict[str, None] = {}
    dtypes: dict[str, None] = {}
    for fact in facts:
        # One unknown arm makes the whole unknown; a guess would rewrite the wrong method.
        if fact is None:
            return None
        kinds |= dict.fromkeys(fact.kinds)
        dtypes |= dict.fromkeys(fact.dtypes)
    # Shapes are dropped: two arms of different shapes have no common one.
    return Observed(tuple(kinds), (), tuple(dtypes)) if kinds else None


def is_tensor(fact: Observed | None) -> bool:
    """Whether the expression is a tensor or a parameter each time; it may also be `None` at times."""
    kinds = set(fact.kinds) - {"none"} if fact else set()
    return bool(kinds) and kinds <= {"tensor", "parameter"}


def proves_tensor(fact: Observed | None, name: str) -> bool:
    """Whether a method of this name, called on a value that is a tensor or one of Python's own types at times, is called on the tensor."""
    kinds = set(fact.kinds) if fact else set()
    return bool(kinds & {"tensor", "parameter"}) and kinds <= BUILT_IN | {"tensor", "parameter"} and name not in PLAIN_METHODS


def tensor_only(name: str) -> bool:
    """Whether a method of this name exists on tensors alone."""
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return base in methods() and name not in PLAIN_METHODS and name not in ARRAY_METHODS
