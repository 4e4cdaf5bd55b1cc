"""Small training scripts, and what the tools make of them."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from migrate_agent.tools.programs.contained import Contained
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.rewrite.assemble import rewrite_program
from migrate_agent.tools.record.instrument import OBSERVE, OBSERVE_ATTRIBUTE, OBSERVE_CALL, compile_instrumented
from migrate_agent.tools.record.kinds import Kinds
from migrate_agent.tools.record.new_memory import FILLED, filled
from migrate_agent.tools.record.observe import Recorder
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


torch.manual_seed(0)
inputs = torch.randn(40, 6)
targets = torch.randint(0, 3, (40,))
"""
TRAIN = (
    HEAD
    + """
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(6):
    index = torch.randint(0, len(inputs), (8,))
    x, y = inputs[index], targets[index]
    # the usual four lines
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2 == 0:
        accuracy = (logits.argmax(dim=1) == y).float().mean()
        print(f"step {step} loss {loss.item():.4f} accuracy {accuracy.item():.3f}")
"""
)


def rewritten(text: str, folder: Path, path: str = "train.py", contained: Sequence[Contained] = ()) -> Draft:
    """The draft of a script, which runs in this process to be observed. A folder that `path` names is a package. `contained` are modules that are
    parts of others.
    """
    root = folder / "repository"
    (root / path).parent.mkdir(parents=True)
    if "/" in path:
        (root / path).with_name("__init__.py").touch()
    (root / path).write_text(text)
    recorder = Recorder(Kinds(lambda module: path.removesuffix(".py").replace("/", ".") if module == "__main__" else ""))
    for name, function in (
        (OBSERVE, recorder.observe),
        (OBSERVE_CALL, recorder.observe_call),
        (OBSERVE_ATTRIBUTE, recorder.observe_attribute),
        (FILLED, filled),
    ):
        setattr(builtins, name, function)
    compiled = compile_instrumented(text, str(root / path), path, recorder, script=True)
    arguments, sys.argv = sys.argv, [path]
    try:
        with contextlib.chdir(folder):  # what it saves stays in the test's own folder
            exec(compiled, {"__name__": "__main__"})
    finally:
        sys.argv = arguments
    return rewrite_program(scan(root), recorder.table(), Program((path,)), folder, contained=contained)


def body_of(draft: Draft) -> str:
    """The mirror of the script, from its first statement after the class on."""
    return draft.files["train_jax.py"].partition("default_generator.manual_seed")[2].partition("\n")[2]
