"""Arguments of the call of another kind than tensors and numbers, by the attribute that an error says is missing: words, dictionaries, modules, distributions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from migrate_agent.tools.record.guessing.choices import LAYERS
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, tensors

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
MODULES = frozenset(
    "children named_children modules named_modules parameters named_parameters buffers named_buffers state_dict train eval training zero_grad "
    "register_forward_hook register_forward_pre_hook weight bias forward".split()
)
DISTRIBUTIONS = frozenset("log_prob rsample sample_n stddev variance batch_shape event_shape cdf icdf entropy has_rsample".split())
COMMON_WORDS = ("'relu'", "'mean'", "'gelu'", "'sum'", "'none'", "'linear'", "'same'")
MODULE_TEXTS = ("torch.nn.Linear(64, 64)", "torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))")
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
    texts = list(_texts(attempt, outcome.error))
    of_words = _asks_for(outcome.error, WORDS, OF_WORDS)
    of_tables = _asks_for(outcome.error, TABLES, OF_TABLES)
    names = _suspects(attempt, outcome) if texts or of_words or of_tables else []
    for name in names:
        words = [*words_of(name), *COMMON_WORDS] if of_words else []
        yield from (set_call(attempt, name, word) for word in dict.fromkeys(words))
        yield from (set_call(attempt, name, table) for table in (_tables(attempt, keys) if of_tables else ()))
        yield from (set_call(attempt, name, text) for text in texts)
    yield from _other_tables(attempt, outcome)
    yield from _allowed_words(attempt, outcome)


def _asks_for(error: str, attributes: frozenset[str], said: re.Pattern[str]) -> bool:
    match = LACKS.search(error)
    return said.search(error) is not None or (match is not None and match[1] in attributes)


def _texts(attempt: Attempt, error: str) -> Iterator[str]:
    """Modules and distributions that have the missing attribute."""
    match = LACKS.search(error)
    if match is None:
        return
    if match[1] in DISTRIBUTIONS:
        shape = _main(attempt).shape
        yield from (_normal(sizes) for sizes in dict.fromkeys((shape, shape[-1:])))
        yield f"torch.distributions.Categorical(logits=torch.randn{shape})"
    if match[1] in MODULES:
        yield from MODULE_TEXTS
    yield from (f"torch.nn.{name}({arguments})" for name, arguments in LAYERS.items() if _has(name, match[1]))


def _normal(shape: tuple[int, ...]) -> str:
    return f"torch.distributions.Normal(torch.randn{shape}, torch.rand{shape} + 0.5)"


def _main(attempt: Attempt) -> Tensor:
    """The first tensor of the call, or a common one."""
    return next((tensor for _, value in attempt.call or () for tensor in tensors(value)), Tensor((2, 16, 64)))


def _has(layer: str, attribute: str) -> bool:
    """Whether a layer of torch has an attribute of its own, by its annotations."""
    import torch

    bases = getattr(torch.nn, layer).__mro__
    return any(attribute in vars(base).get("__annotations__", {}) for base in bases if base is not torch.nn.Module)


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


def _is_number(value: Value | None) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?[\d.]+", value) is not None


def _tables(attempt: Attempt, keys: Sequence[tuple[str, ...]]) -> Iterator[Value]:
    """Dictionaries of tensors by the words that the object holds; where it holds none, of numbers by words and back too."""
    main = _main(attempt)
    yield from (Fields(tuple((word, main) for word in words)) for words in keys or (FIRST_KEYS,))
    yield from NUMBER_TABLES


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
        given = {name: value for name, value in attempt.call or () if isinstance(value, str) and value[:1] in "'\""}
        for name, value in given.items():
            yield from (set_call(attempt, name, repr(word)) for word in spelled_words(outcome.error) if repr(word) != value)
