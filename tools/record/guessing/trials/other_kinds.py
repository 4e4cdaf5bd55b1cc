"""Arguments of the call of another kind than tensors and numbers, by the attribute that an error says is missing: words and dictionaries."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, as_array, tensors
from migrate_agent.tools.record.guessing.values import Sequence as Items

LACKS = re.compile(r"'\w+' object has no attribute '(\w+)'")
WORDS = frozenset(
    "upper lower casefold title capitalize strip lstrip rstrip startswith endswith splitlines rsplit replace encode format isdigit isalpha join "
    "partition rpartition zfill removeprefix removesuffix".split()
)
"""Methods of words that tensors, numbers and lists have not."""
OF_WORDS = re.compile(
    r"must be (str|string)\b|attribute name must be string|must be tuple of ints, not str|expected string or bytes|sequence item \d+: expected str"
)
"""What Python and torch say of something else where a word is needed. `x.split("_")` of a tensor asks for sizes."""
TABLES = frozenset("items keys get values update pop setdefault".split())
OF_TABLES = re.compile(r"values expected sparse tensor|is not a mapping|must be a mapping|argument after \*\*")
"""What is said of a tensor where a dictionary is needed: sparse tensors have values too."""
COMMON_WORDS = ("'relu'", "'mean'", "'gelu'", "'sum'", "'none'", "'linear'", "'same'")
FIRST_KEYS = ("a", "b")
"""By which a dictionary is tried whose words nothing tells."""
SEPARATE = re.compile(r"\s*(?:,|\||/|\bor\b|\band\b)\s*(?:or |and )?")
LISTED = re.compile(
    r"(?:one of|choose from|choose between|choices?|available|supported|valid|allowed|options?|possible|expected|known|either|use|must be)"
    r"[\w ]{0,30}?\s*[:=]?\s*[\[({]?\s*([A-Za-z]\w*(?:\s*(?:,|\||/|\bor\b|\band\b)\s*(?:or |and )?[A-Za-z]\w*)+)",
    re.I,
)
"""Words without quotes that an error lists: `Use one of: gaussian, laplace`."""
MOST_WORDS = 8


def spelled_words(error: str) -> list[str]:
    """The words that an error says are allowed: those in quotes, else those of a list without any."""
    quoted = re.findall(r"""['"]([\w-]{1,24})['"]""", error)
    listed = [word for match in LISTED.finditer(error) for word in SEPARATE.split(match[1])]
    return list(dict.fromkeys([*quoted, *listed]))[:MOST_WORDS]


def other_kinds(
    attempt: Attempt, outcome: Outcome, words_of: Callable[[str], Sequence[str]], keys: Sequence[tuple[str, ...]]
) -> Iterator[Attempt]:
    """The call with an argument of the kind that has what is missing, those first that the failed statement asks for it.

    `words_of`: the words that the code compares a parameter with. `keys`: the words by which the object holds what it looks up.
    """
    of_words = _asks_for(outcome.error, WORDS, OF_WORDS)
    of_tables = _asks_for(outcome.error, TABLES, OF_TABLES)
    names = _suspects(attempt, outcome) if of_words or of_tables else []
    for name in names:
        words = [*words_of(name), *COMMON_WORDS] if of_words else []
        yield from (set_call(attempt, name, word) for word in dict.fromkeys(words))
        yield from (set_call(attempt, name, table) for table in (_tables(attempt, keys) if of_tables else ()))
    yield from _lists_of_tables(attempt, outcome, names) if of_tables else ()
    yield from _arrays(attempt, outcome)
    yield from _other_tables(attempt, outcome)
    yield from _allowed_words(attempt, outcome)


def _asks_for(error: str, attributes: frozenset[str], said: re.Pattern[str]) -> bool:
    match = LACKS.search(error)
    return said.search(error) is not None or (match is not None and match[1] in attributes)


def _main(attempt: Attempt) -> Tensor:
    """The first tensor of the call, or a common one."""
    return next((tensor for _, value in attempt.call or () for tensor in tensors(value)), Tensor((2, 16, 64)))


def _suspects(attempt: Attempt, outcome: Outcome) -> list[str]:
    """The arguments of the call that are no such thing yet: those of which the statement reads the missing attribute, then those that it names."""
    match = LACKS.search(outcome.error)
    try:
        nodes = list(ast.walk(ast.parse(outcome.place.statement)))
    except SyntaxError:  # the head of a compound statement may be none of its own
        nodes = []
    read = [
        node.value.id
        for node in nodes
        if match and isinstance(node, ast.Attribute) and node.attr == match[1] and isinstance(node.value, ast.Name)
    ]
    present = dict(attempt.call or ())
    return [
        name
        for name in dict.fromkeys([*read, *outcome.place.call])
        if isinstance(present.get(name), Tensor) or _is_number(present.get(name))
    ]


OF_ARRAYS = re.compile(
    r"unsupported operand type\(s\) for [^:]+: 'numpy\.ndarray' and 'Tensor'"
    r"|expected np\.ndarray|expects? (a )?numpy|must be a numpy|not a numpy\.ndarray|numpy\.ndarray is expected"
)
ARRAY_METHODS = frozenset("astype copy tobytes flat itemset".split())
"""Methods of arrays that tensors have not."""


def _arrays(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """NumPy's arrays where an operation takes no others: in the place of what the failed statement depends on, then of each tensor."""
    if _asks_for(outcome.error, ARRAY_METHODS, OF_ARRAYS):
        main, call = _main(attempt), dict(attempt.call or ())
        named = [name for name in outcome.place.call if name in call]
        arrays = [(name, as_array(value if isinstance(value := call[name], Tensor) else main)) for name in named]
        yield from (set_call(attempt, name, array) for name, array in arrays if call[name] != array)
        yield with_arrays(attempt, call)


def with_arrays(attempt: Attempt, names: Collection[str]) -> Attempt:
    """The call with NumPy's arrays in the place of the tensors of these names."""
    call = [(name, as_array(value) if name in names and isinstance(value, Tensor) else value) for name, value in attempt.call or ()]
    return replace(attempt, call=tuple(call)) if attempt.call is not None else attempt


def _is_number(value: Value | None) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?[\d.]+", value) is not None


def _tables(attempt: Attempt, keys: Sequence[tuple[str, ...]]) -> Iterator[Value]:
    """Dictionaries of tensors by the words that the object holds; where it holds none, of numbers by words and back too."""
    main = _main(attempt)
    yield from (Fields(tuple((word, main) for word in words)) for words in keys or (FIRST_KEYS,))
    yield from NUMBER_TABLES


def _lists_of_tables(attempt: Attempt, outcome: Outcome, names: Sequence[str]) -> Iterator[Attempt]:
    """A list of three dictionaries where an element of an argument is asked for what tensors lack: the states of models that are averaged."""
    try:
        nodes = list(ast.walk(ast.parse(outcome.place.statement)))
    except SyntaxError:
        nodes = []
    direct = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    table = Fields(tuple((word, _main(attempt)) for word in FIRST_KEYS))
    yield from (set_call(attempt, name, Items((table, table, table))) for name in names if name not in direct)


NUMBER_TABLES = ("{'a': 0, 'b': 1}", "{0: 'a', 1: 'b'}")


def _other_tables(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Dictionaries of numbers, where one of tensors by words that nothing told did not fit."""
    for name, value in attempt.call or ():
        if isinstance(value, Fields) and tuple(dict(value.items)) == FIRST_KEYS and name in outcome.place.call:
            yield from (set_call(attempt, name, table) for table in NUMBER_TABLES)


def _allowed_words(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where the call refuses a word on purpose: the words that its error allows."""
    if outcome.error.startswith(
        ("ValueError", "AssertionError", "KeyError", "NotImplementedError", "TypeError", "RuntimeError", "Exception")
    ):
        words = {name: value for name, value in attempt.call or () if isinstance(value, str) and value[:1] in "'\""}
        for name, value in words.items():
            yield from (set_call(attempt, name, repr(word)) for word in spelled_words(outcome.error) if repr(word) != value)
