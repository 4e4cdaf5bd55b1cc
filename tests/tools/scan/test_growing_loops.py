"""Which loops append to a sequence what is made of its end, and which only look like it."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from migrate_agent.tools.scan.growing_loops import GrowingLoop, growing_loops

TEMPLATE = """
def generate(model, x, limit, n, state, eos):
    out = []
    for _ in range({count}):
{body}
    return x
"""
CROPPED = """
    context = x if x.size(1) <= limit else x[:, -limit:]
    logits = model(context)[:, -1, :]
    x = torch.cat((x, logits.argmax(-1, keepdim=True)), dim=1)
"""
GROWING = {
    "a cut context": CROPPED,
    "cut in the call": "x = torch.cat([x, model(x[:, -limit:])[0][:, -1].argmax(-1, True)], 1)",
    "the other way round": CROPPED.replace("x if x.size(1) <= limit else x[:, -limit:]", "x[:, -limit:] if x.shape[1] > limit else x"),
    "a pair": CROPPED.replace("logits = model(context)[:, -1, :]", "logits, _ = model(context)\n    logits = logits[:, -1]"),
    "an object": CROPPED.replace("logits = model(context)[:, -1, :]", "y = model(tokens=context)\n    logits = y.logits[:, -1]"),
    "the last element alone": "y, state = model(x[:, -1:], state)\nx = torch.cat((x, y), dim=1)",
    "time first": "x = torch.cat((x, model(x)[-1].unsqueeze(0)))",
}
OTHER = {
    "two limits": CROPPED.replace("x[:, -limit:]", "x[:, -(limit - 1):]"),
    "another axis is asked for": CROPPED.replace("x.size(1)", "x.size(0)"),
    "the result is read elsewhere": CROPPED.replace("[:, -1, :]", "[:, 0, :]"),
    "the whole result is read": CROPPED.replace("model(context)[:, -1, :]", "model(context).mean(1)"),
    "the number of the step": CROPPED.replace("model(context)", "model(context, _)"),
    "it may end early": CROPPED + "    if (x == eos).any():\n        break\n",
    "a list outside": CROPPED + "    out.append(logits)\n",
    "the length is asked for": CROPPED.replace("model(context)", "model(context, x.size(1))"),
    "the state of a padded call": CROPPED.replace(
        "logits = model(context)[:, -1, :]", "y, state = model(context, state)\n    logits = y[:, -1]"
    ),
    "appended before it is read": "x = torch.cat((x, x[:, -1:]), 1)\ny = model(x)[:, -1]",
    "put in front": "x = torch.cat((model(x)[:, -1:], x), 1)",
}


def found(body: str, count: str = "n") -> tuple[GrowingLoop, ...]:
    source = TEMPLATE.format(body=indent(dedent(body).strip("\n"), "        "), count=count)
    return growing_loops(ast.parse(source).body[0])


@pytest.mark.parametrize("body", GROWING.values(), ids=GROWING)
def test_growing(body: str) -> None:
    (growing,) = found(body)
    assert growing.sequence == "x"
    assert growing.readings or growing.ends


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER)
def test_other(body: str) -> None:
    assert found(body) == ()


def test_what_it_says() -> None:
    (growing,) = found("y, state = model(x[:, -1:], state)\nx = torch.cat((x, y), dim=1)", "x.size(1), n")
    assert growing.carried == ("state",)
    assert growing.start is not None and ast.unparse(growing.start) == "x.size(1)"
    (growing,) = found(GROWING["an object"])
    (reading,) = growing.readings
    assert (reading.argument, reading.part, reading.axis) == ("tokens", "logits", 1)
    assert [ast.unparse(context.limit) for context in growing.contexts if context.limit] == ["limit"]
