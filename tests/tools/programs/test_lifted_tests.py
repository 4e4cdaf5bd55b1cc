"""Conditions on Python's numbers in the middle of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.programs.scripts import TRAIN, rewritten

LOSS = "    loss = F.cross_entropy(logits, y)\n"
FUNCTION = """
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def fit(x, y, count, rate):
    loss = F.cross_entropy(model(x), y)
    if count > 1 and rate < 1:
        loss = loss * 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for step in range(4):
    print(fit(inputs[:8], targets[:8], step, 0.5).item())
"""


def test_a_condition_on_the_step(tmp_path: Path) -> None:
    """It is asked in the loop, and the step is compiled for each answer."""
    draft = rewritten(TRAIN.replace(LOSS, f"{LOSS}    if step > 2:\n        loss = loss + 0.1 * logits.pow(2).mean()\n"), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert "    chosen = step > 2\n" in text and "    if chosen:\n" in text and 'static_argnames=("chosen",)' in text


def test_what_else_and_elif_ask(tmp_path: Path) -> None:
    """Each condition by itself."""
    more = "    if step == 0:\n        loss = loss * 3\n    elif step < 3:\n        loss = loss * 2\n    else:\n        loss = loss + 1\n"
    draft = rewritten(TRAIN.replace(LOSS, LOSS + more), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert 'static_argnames=("chosen", "chosen_2")' in text
    assert "    chosen = step == 0\n    chosen_2 = not chosen and step < 3\n" in text


def test_a_function_that_is_called_again(tmp_path: Path) -> None:
    """What it is handed may differ from call to call."""
    draft = rewritten(TRAIN.partition("\nmodel = Net()")[0] + FUNCTION, tmp_path)
    assert draft.holes == ()
    assert "chosen = count > 1 and rate < 1" in draft.files["train_jax.py"]


@pytest.mark.parametrize("test", ("len(logits) > 2", "weight > 2", "flag"))
def test_what_does_not_change_stays(test: str, tmp_path: Path) -> None:
    """Numbers of the file and sizes are known when the step is compiled."""
    text = TRAIN.replace("model = Net()", "weight, flag = 3, True\nmodel = Net()").replace(
        LOSS, f"{LOSS}    if {test}:\n        loss = loss * 2\n"
    )
    draft = rewritten(text, tmp_path)
    assert draft.holes == () and "chosen" not in draft.files["train_jax.py"]


LOOP = """\
    first = [True, False, step > 2]
    loss = 0.0
    for i in range(3):
        loss = loss + F.cross_entropy(logits[i : i + 2], y[i : i + 2])
        if {test}:
            loss = loss * 2
"""


@pytest.mark.parametrize(("test", "holes"), [("first[i] and i != 0", 1), ("len(first) > 2", 0), ("first is None", 0)])
def test_a_condition_on_elements_is_a_hole(test: str, holes: int, tmp_path: Path) -> None:
    """The elements of a list are arrays inside of the step, of which no condition may ask."""
    draft = rewritten(TRAIN.replace(LOSS, LOOP.format(test=test)), tmp_path)
    assert len(draft.holes) == holes
    assert not holes or "asks for the value of first" in draft.holes[0].reason
