"""Methods without arguments of objects that a constructor is handed, such as `dataset.graph()`: functions that give a value, another one where an error says
so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.rows import parameter_texts
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_init
from migrate_agent.tools.record.guessing.values import Fields, Value

GIVES = "lambda: "
MODULE = "torch.nn.Identity()"
SIDE = 64
LARGEST_SIDE = 1024
GRAPHS = re.compile(r"(.*_)?(\w*graph|adj|adjacency|laplacian|sparse\w*|\w*matrix|adj_?mat)(_.*)?", re.I)
"""Names of what gives a square matrix."""
SQUARE = re.compile(r"\.reshape\((\d+), \1\)")
TYPE = re.compile(
    r"must be Tensor, not (int|float|list)|'(int|float|list|Tensor)' object (has no attribute|is not)|cannot unpack non-iterable|object of type 'int'"
    r"|[Ss]parse|SparseCPU|layout|unsupported operand|must be (an )?int"
)
"""What is said of a value that is of another kind than is asked for."""
SIZE = re.compile(r"size|shape|mismatch|dimension|multipl|broadcast|incompatible|out of (range|bounds)")


def called_text(name: str) -> str:
    """A function that gives what the name of a method suggests: a sparse square matrix, or a number."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"^(get|load|make|build|create)_?", "", name)).lower()
    return GIVES + (f"{_square(SIDE)}.to_sparse()" if GRAPHS.fullmatch(plain) else parameter_texts(plain, "")[0])


def _square(side: int) -> str:
    """A square matrix whose products stay as large as what they are made of."""
    return f"torch.linspace(0, {round(2 / side, 5)}, {side * side}).reshape({side}, {side})"


def called_fields(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with other values given by the functions in the objects of its constructor: of another size or kind, as the error says, or given
    whatever a method is called with."""
    for name, value in attempt.init:
        for field, text in value.items if isinstance(value, Fields) else ():
            if isinstance(text, str) and text.startswith(GIVES):
                for other in _others(text.removeprefix(GIVES), outcome):
                    yield set_init(attempt, name, _with_field(value, field, other if other.startswith("lambda") else GIVES + other))
            elif (
                "object is not callable" in outcome.error and isinstance(text, str) and re.search(rf"\.{field}\(", outcome.place.statement)
            ):
                # What a call of the unit hands something is a part of a model: `self.stem = model.stem`.
                if attempt.call and re.search(rf"\.{field}\([^)]", outcome.place.statement):
                    yield set_init(attempt, name, _with_field(value, field, MODULE))
                yield set_init(attempt, name, _with_field(value, field, called_text(field)))


def _others(text: str, outcome: Outcome) -> Iterator[str]:
    if re.search(r"<lambda>\(\) (takes 0 positional|got an unexpected keyword)", outcome.error):
        yield f"lambda *_, **__: {text}"
    square, numbers = SQUARE.search(text), [number for number in outcome.place.numbers if 1 < number <= LARGEST_SIDE]
    suffix = ".to_sparse()" if text.endswith(".to_sparse()") else ""
    if square and SIZE.search(outcome.error):
        yield from (_square(number) + suffix for number in numbers if number != int(square[1]))
    if text.isdigit() and SIZE.search(outcome.error):
        yield from (str(number) for number in numbers if str(number) != text)
    if TYPE.search(outcome.error):
        side = int(square[1]) if square else numbers[0] if numbers else SIDE
        kinds = (f"{_square(side)}.to_sparse()", _square(side), str(SIDE), "[0, 1]", f"torch.linspace(0, 1, {side})")
        yield from (kind for kind in kinds if kind != text)


def _with_field(fields: Value, name: str, text: str) -> Fields:
    assert isinstance(fields, Fields)
    return replace(fields, items=tuple((field, text if field == name else inner) for field, inner in fields.items))
