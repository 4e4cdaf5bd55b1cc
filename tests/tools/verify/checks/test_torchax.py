"""Where a candidate may import torch and its original: in wrappers, and in the helpers that these derive from."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.verify.checks.static import calls, imports
from migrate_agent.tools.verify.evidence.parsed_source import Source

WRAPPER = "class Odd(TorchaxModule):\n    def __init__(self, *, rngs):\n        from model import Odd as TorchOdd\n"
HELPERS = helpers.render(["TorchaxModule"])
LISTED = (("model_jax.py", "Odd"),)


def refused(text: str, wrapped: tuple[tuple[str, str], ...]) -> list[str]:
    """What the checks `imports` and `calls` say of a file."""
    source = Source("model_jax.py", ast.parse(text), text=text)
    return [words for _, words in (*imports.find(source, "model_jax", ("model",), wrapped), *calls.find(source))]


@pytest.mark.parametrize(
    ("text", "wrapped", "words"),
    [
        (WRAPPER, LISTED, []),
        (WRAPPER, (), ["imports the original (model)"]),
        (WRAPPER.replace("class Odd", "class Other"), LISTED, ["imports the original (model)"]),
        (f"{WRAPPER}\nfrom model import Odd as Other\n", LISTED, ["imports the original (model)"]),
        (f"{WRAPPER}\n\ndef f():\n    import torch\n", LISTED, ["imports torch"]),
        (HELPERS, LISTED, []),
        (
            HELPERS.replace("function(*arguments, **named)", "function(*named, **named)"),
            LISTED,
            ["imports torch", "imports torch", "imports torch"],
        ),
    ],
)
def test_torch_is_imported_by_wrappers_alone(text: str, wrapped: tuple[tuple[str, str], ...], words: list[str]) -> None:
    assert [word.partition(".")[0] for word in refused(text, wrapped)][: len(words) or None] == words
