"""Groups of parameters that a function makes."""

from __future__ import annotations

import pytest

from migrate_agent.tools.programs.rewrite.function_groups import grouped
from migrate_agent.tools.programs.rewrite.method_optimizers import RecordedOptimizer

FUNCTION = """
def groups(model, decay=0.1):
    one, other = [], []
    for name, p in model.named_parameters():
        (other if p.ndim < 2 else one).append(p)
    return [{"params": one, "weight_decay": decay}, {"params": other, "weight_decay": 0.0}]
"""
AXES = {"fc.weight": 2, "fc.bias": 1, "norm.weight": 1}
SMALL = frozenset({"fc.bias", "norm.weight"})


def written(call: str, text: str = FUNCTION, groups: tuple[frozenset[str], ...] = (frozenset({"fc.weight"}), SMALL)) -> str:
    """What stands in place of a construction."""
    found = grouped(call, [text], [RecordedOptimizer(groups, AXES)], "torch")
    return found.text if found is not None else ""


@pytest.mark.parametrize(
    ("call", "decay", "rest"),
    [
        ("torch.optim.AdamW(groups(net, args.decay), lr=args.lr)", "args.decay", "lr=args.lr"),
        ("optim.AdamW(groups(model=net), 1e-3)", "0.1", "0.001"),
    ],
)
def test_the_groups_stand_in_the_call(call: str, decay: str, rest: str) -> None:
    """With the rule that tells the recorded groups apart, and the function's defaults."""
    lists = [f"[p for n, p in net.named_parameters() if {rule}]" for rule in ("not (p.dim() < 2)", "p.dim() < 2")]
    rows = f'{{"params": {lists[0]}, "weight_decay": {decay}}}, {{"params": {lists[1]}, "weight_decay": 0.0}}'
    assert written(call) == f"{call.partition('(')[0]}([{rows}], {rest})"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        # what the function computes by itself, other options than decays, two ends, and parameters in no group
        (FUNCTION.replace('"weight_decay": decay', '"weight_decay": len(one)'), (frozenset({"fc.weight"}), SMALL)),
        (FUNCTION.replace('"weight_decay": decay', '"lr": decay'), (frozenset({"fc.weight"}), SMALL)),
        (FUNCTION.replace("    one, other", "    if decay:\n        return []\n    one, other"), (frozenset({"fc.weight"}), SMALL)),
        (FUNCTION, (frozenset({"fc.weight"}), frozenset({"fc.bias"}))),
    ],
)
def test_other_forms_stay(text: str, groups: tuple[frozenset[str], ...]) -> None:
    assert written("torch.optim.AdamW(groups(net), lr=1e-3)", text, groups) == ""
