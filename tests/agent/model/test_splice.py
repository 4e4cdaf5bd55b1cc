"""Holes as places in a draft, and answers put there: nothing else may change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.agent.model.answer import Answer, parse_reply
from migrate_agent.agent.model.numbered_holes import Slots, number_holes, number_mentions
from migrate_agent.agent.model.splice import Refused, check_class, fingerprint, splice
from migrate_agent.agent.model.wire import Reply
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Inventory

SOURCE = """import torch
from torch import nn


def helper(x):
    y = torch.unknown_helper(x)
    return y


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        # keep me
        y = torch.unknown_one(self.fc(x), 3)
        if torch.unknown_test(y):
            y = y + 1
        y = torch.unknown_one(self.fc(x), 3)
        z = helper(self.norm(y))
        return torch.unknown_two(z)
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    root = tmp_path_factory.mktemp("slots")
    (root / "m.py").write_text(SOURCE)
    return scan(root)


@pytest.fixture(scope="module")
def slots(inventory: Inventory) -> Slots:
    """The places in what the real rewriter makes of the source."""
    draft = compose(inventory, {}, ["m.py:Net"])
    assert draft.holes
    return number_holes(draft, inventory, {"m.py": SOURCE}, "m.py:Net")


def number(slots: Slots, words: str, nth: int = 0) -> int:
    """The number of the nth place whose present text holds these words."""
    found = [
        slot.number
        for slot in slots.slots
        if words in "\n".join(slots.texts[slot.owner].splitlines()[slot.lines.first - 1 : slot.lines.last])
    ]
    return found[nth]


def same(slots: Slots) -> dict[int, str]:
    """Answers that leave each place as it is."""
    return {slot.number: "\n".join(slots.texts[slot.owner].splitlines()[slot.lines.first - 1 : slot.lines.last]) for slot in slots.slots}


def test_each_hole_is_a_place_of_its_own(slots: Slots) -> None:
    assert set(slots.texts) == {"m.py:Net", "m.py:helper"}
    places = {slot.number: text for slot, text in zip(slots.slots, same(slots).values(), strict=True)}
    assert [text.strip().splitlines()[0] for text in places.values()] == [
        "y = torch.unknown_one(self.fc(x), 3)",
        "if torch.unknown_test(y):",
        "y = torch.unknown_one(self.fc(x), 3)",
        "return torch.unknown_two(z)",
        "y = torch.unknown_helper(x)",
    ]
    marked = slots.marked("m.py:Net")
    assert marked.count(">>> hole") == marked.count("<<< end of hole") == 4
    assert "# keep me" in marked


def test_answers_change_their_places_and_nothing_else(slots: Slots) -> None:
    changed = splice(slots, {**same(slots), number(slots, "unknown_two"): "z = jnp.tanh(z)\nreturn z"})
    before, after = slots.texts["m.py:Net"], changed["m.py:Net"]
    assert after == before.replace("        return torch.unknown_two(z)\n", "        z = jnp.tanh(z)\n        return z\n")
    assert changed["m.py:helper"] == slots.texts["m.py:helper"]


def test_equal_statements_are_told_apart(slots: Slots) -> None:
    changed = splice(slots, {**same(slots), number(slots, "unknown_one", 1): "y = second"})["m.py:Net"]
    assert changed.index("unknown_one") < changed.index("unknown_test") < changed.index("second")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unknown_two": "return ("}, "does not parse"),
        ({"unknown_two": ""}, "answered with nothing"),
        ({"unknown_two": None}, "was not answered"),
        ({9: "x = 1"}, "there is no hole 9"),
        ({"unknown_two": "class Net:\n    pass"}, "takes no class"),
        ({"unknown_two": "return z\ndef other(:"}, "does not parse"),
        ({"unknown_two": "x" * 70_000}, "longer than"),
        ({"unknown_two": "nonlocal z"}, "does not parse"),
    ],
)
def test_what_reaches_further_is_refused(slots: Slots, changes: dict[object, str | None], words: str) -> None:
    answers = same(slots)
    for key, code in changes.items():
        place = key if isinstance(key, int) else number(slots, str(key))
        if code is None:
            del answers[place]
        else:
            answers[place] = code
    with pytest.raises(Refused, match=words):
        splice(slots, answers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Net:\n    def __call__(self):\n        return 1\n", ""),
        ("    class Net:\n        x = 1\n", ""),
        ("import os\nclass Net:\n    x = 1\n", "touches more than Net: it also holds `import os`"),
        ("class Net:\n    x = 1\nclass Other:\n    x = 1\n", "it also holds `Other`"),
        ("class Other:\n    x = 1\n", "does not define Net"),
        ("class Net(:\n", "does not parse"),
        ("", "does not define Net"),
        ("class Net:\n    def f(self, a, a): ...\n", "does not parse"),
    ],
)
def test_a_whole_class_is_that_class_alone(text: str, words: str) -> None:
    if not words:
        assert check_class(text, "Net").startswith("class Net:")
        return
    with pytest.raises(Refused, match=words):
        check_class(text, "Net")


def test_a_method_takes_only_itself(inventory: Inventory) -> None:
    text = "class Net:\n    @staticmethod\n    def f(x):\n        return x\n"
    from migrate_agent.agent.model.numbered_holes import Lines, Slot

    slots = Slots({"m.py:Net": text}, (Slot(1, "m.py:Net", Lines(2, 4), ("unlike",)),))
    assert "return 2" in splice(slots, {1: "@staticmethod\ndef f(x):\n    return 2"})["m.py:Net"]
    with pytest.raises(Refused, match="takes nothing but a definition of that name"):
        splice(slots, {1: "def g(x):\n    return 2"})


def test_statements_that_mention_a_submodule(slots: Slots) -> None:
    found = number_mentions(slots.texts["m.py:Net"], "m.py:Net", "norm")
    texts = [text.strip() for text in same(found).values()]
    assert texts[-1] == "z = helper(self.norm(y))" and texts[0].startswith("self.norm = ") and len(texts) == 2


def test_fingerprint_sees_through_layout_but_not_through_code() -> None:
    one = {"a": "class A:\n    x = 'b'  # why\n"}
    assert fingerprint(one) == fingerprint({"a": 'class A:\n\n    x = "b"\n'})
    assert fingerprint(one) != fingerprint({"a": "class A:\n    x = 'c'\n"})
    assert fingerprint(one) != fingerprint({"b": "class A:\n    x = 'b'\n"})


JSON = {"holes": [{"number": 1, "code": "x = 1"}], "whole_class": "", "reason": ""}


@pytest.mark.parametrize(
    ("text", "form", "answer"),
    [
        (json.dumps(JSON), "json", Answer({1: "x = 1"})),
        (f"Sure!\n```json\n{json.dumps(JSON)}\n```\n", "json", Answer({1: "x = 1"})),
        (json.dumps({"holes": [], "whole_class": "class A: ...", "reason": "no"}), "json", Answer({}, "class A: ...", "no")),
        ("Here:\n```python hole=1\nx = 1\n```\nand\n```python hole 2\ny = 2\n```", "text", Answer({1: "x = 1\n", 2: "y = 2\n"})),
        ("```python\n# hole 1\nx = 1\n```", "text", Answer({1: "# hole 1\nx = 1\n"})),
        ("Reason: it needs state\n```python\nclass A: ...\n```", "text", Answer({}, "class A: ...\n", "it needs state")),
        ("````python hole 1\nx = '''\n```\n'''\n````", "text", Answer({1: "x = '''\n```\n'''\n"})),
    ],
)
def test_answers_are_read(text: str, form: str, answer: Answer) -> None:
    assert parse_reply(replace(Reply(text), form=form)) == answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply('{"holes": [', "json"), "is no JSON"),
        (Reply('{"holes": []}', "json"), "not of the form"),
        (Reply('{"holes": [{"number": "1", "code": "x"}], "whole_class": "", "reason": ""}', "json"), "one number with its code"),
        (Reply('{"holes": [], "whole_class": "", "reason": ""}', "json"), "holds no code"),
        (Reply(json.dumps({**JSON, "whole_class": "class A: ..."}), "json"), "both holes and a whole class"),
        (Reply("I think you should use JAX."), "holds no code"),
        (Reply("```python hole 1\nx\n```\n```python hole 1\ny\n```"), "answered twice"),
        (Reply("```python hole 1\nx\n```\n```python\nimport os\n```"), "belongs to no hole"),
        (Reply("", refusal="no"), "declined: no"),
        (Reply("x = ", cut=True), "tokens ran out"),
    ],
)
def test_answers_of_no_known_form_are_refused(reply: Reply, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_reply(reply)


def test_a_source_without_its_file_gives_no_place(inventory: Inventory, tmp_path: Path) -> None:
    draft = compose(inventory, {}, ["m.py:Net"])
    assert number_holes(draft, inventory, {"m.py": SOURCE}, "m.py:Net").slots
    assert not number_holes(replace(draft, files={}), inventory, {"m.py": SOURCE}, "m.py:Net").texts
