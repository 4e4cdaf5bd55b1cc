"""Optimizers that a method constructs, and groups of parameters by name."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.groups import optimizers_of
from migrate_agent.tools.programs.rewrite.method_optimizers import RecordedOptimizer, inlined
from migrate_agent.tools.programs.rewrite.names import Imports

METHOD = """
import torch

class Net(torch.nn.Module):
    def configure_optimizers(self, weight_decay, config):
        decay, no_decay = self.split()
        groups = [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=config.lr, **extra)
        return optimizer
"""
AXES = {"wte.weight": 2, "h.0.ln.weight": 1, "h.0.fc.weight": 2, "h.0.fc.bias": 1, "h.1.fc.weight": 2, "h.1.fc.bias": 1}


@pytest.mark.parametrize(
    ("undecayed", "rule"),
    [
        ({"h.0.ln.weight", "h.0.fc.bias", "h.1.fc.bias"}, "p.dim() < 2"),
        ({"wte.weight", "h.0.ln.weight", "h.0.fc.bias", "h.1.fc.bias"}, "{'bias', 'ln', 'wte'} & set(n.split('.'))"),
        # Nothing but a layer's number tells these apart, and that says nothing of other sizes.
        ({"h.0.fc.weight", "h.0.fc.bias", "h.0.ln.weight"}, ""),
    ],
)
def test_the_construction_moves_to_the_call(undecayed: set[str], rule: str) -> None:
    """With the groups that the recorded run had, and arguments in place of parameters."""
    recorded = RecordedOptimizer((frozenset(AXES) - undecayed, frozenset(undecayed)), AXES)
    found = inlined("net.configure_optimizers(0.1, args)", "net", "configure_optimizers", [METHOD], [recorded], "torch")
    chosen = [f"'params': [p for n, p in net.named_parameters() if {condition}]" for condition in (f"not ({rule})", rule)]
    expected = f"torch.optim.AdamW([{{{chosen[0]}, 'weight_decay': 0.1}}, {{{chosen[1]}, 'weight_decay': 0.0}}], lr=args.lr)"
    assert (found.text.replace('"', "'") if found else "") == (expected if rule else "")


def test_what_the_method_computes_by_itself_stays_there() -> None:
    """A name of the method means nothing at the call."""
    recorded = RecordedOptimizer((frozenset(AXES) - {"wte.weight"}, frozenset({"wte.weight"})), AXES)
    text = METHOD.replace("lr=config.lr", "lr=self.rate")
    assert inlined("net.configure_optimizers(0.1, args)", "net", "configure_optimizers", [text], [recorded], "torch") is None


PRINTING = """
import inspect
import torch

class Net(torch.nn.Module):
    def configure_optimizers(self, weight_decay, config):
        rows = {pn: p for pn, p in self.named_parameters()}
        rows = {pn: p for pn, p in rows.items() if p.requires_grad}
        decay = [p for n, p in rows.items() if p.dim() >= 2]
        no_decay = [p for n, p in rows.items() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
        count = sum(p.numel() for p in decay)
        print(f"{len(decay)} tensors, {count:,} parameters, decay {weight_decay}")
        available = 'fused' in inspect.signature(torch.optim.AdamW).parameters
        fused = available and config.device == 'cuda'
        optimizer = torch.optim.AdamW(groups, lr=config.lr, fused=fused)
        print(f"fused: {fused}")
        return optimizer
"""
UNDECAYED = frozenset(name for name, rank in AXES.items() if rank < 2)
PRINTED = (
    "rows = {pn: p for pn, p in net.named_parameters()}",
    "decay = [p for n, p in rows.items() if p.dim() >= 2]",
    "count = sum(p.numel() for p in decay)",
    "print(f'{len(decay)} tensors, {count:,} parameters, decay {0.1}')",
    "fused = args.device == 'cuda'",
    "print(f'fused: {fused}')",
)


@pytest.mark.parametrize(
    ("old", "new", "trained", "lines"),
    [
        ("", "", frozenset(AXES), PRINTED),
        # Which parameters are trained is not known at the call.
        ("", "", frozenset(AXES) - {"h.0.fc.weight"}, ()),
        # What a line prints is known in the method alone.
        ("{count:,}", "{tally(decay)}", frozenset(AXES), ()),
        ("print(", "log(", frozenset(AXES), ()),
    ],
)
def test_what_the_method_prints_is_printed_at_the_call(old: str, new: str, trained: frozenset[str], lines: tuple[str, ...]) -> None:
    recorded = RecordedOptimizer((trained - UNDECAYED, UNDECAYED), AXES)
    text = PRINTING.replace(", fused=fused)", ")").replace(old, new) if old else PRINTING.replace(", fused=fused)", ")")
    found = inlined("net.configure_optimizers(0.1, args)", "net", "configure_optimizers", [text], [recorded], "torch")
    assert found is not None
    assert found.printed == lines


@pytest.mark.parametrize(
    ("one", "other", "decays"),
    [
        ("not any(nd in n for nd in no_decay)", "any(nd in n for nd in no_decay)", "not any(nd in name for nd in no_decay)"),
        ("not n.endswith('bias')", "n.endswith('bias')", "not name.endswith('bias')"),
        # Not each other's opposite, so that some parameter is in both groups or in none.
        ("not n.endswith('bias')", "'bias' in n", ""),
        # Torch's name of a weight is another one here.
        ("'ln.weight' not in n", "not 'ln.weight' not in n", ""),
    ],
)
def test_groups_by_name(one: str, other: str, decays: str) -> None:
    """Two conditions on the name, of which one is the other's opposite."""
    rows = [
        f"{{'params': [p for n, p in net.named_parameters() if {test}], 'weight_decay': {wd}}}" for test, wd in ((one, 0.1), (other, 0.0))
    ]
    text = f"import torch\noptimizer = torch.optim.AdamW([{', '.join(rows)}], lr=0.1)\n"
    calls = optimizers_of(cst.parse_module(text), Imports(text), {})
    assert [call.decays for call in calls.values()] == ([decays] if decays else [])
