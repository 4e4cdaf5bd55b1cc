"""Methods of modules that a script calls outside of its step."""

from __future__ import annotations

from pathlib import Path

from tests.tools.programs.scripts import rewritten

SCRIPT = """import torch
import torch.nn as nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)

    def value(self, x, scale=1.0):
        return self.head(torch.relu(self.body(x))) * scale

    def level(self, x):
        return self.body(x).mean().item()


torch.manual_seed(0)
critic = Critic()
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(5, 3)
    target = torch.randn(5, 1)
    before = critic.value(x)
    optimizer.zero_grad()
    loss = ((critic.value(x, scale=2.0) - target) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item(), before.mean().item(), critic.level(x), critic.value(x, scale=3.0).mean().item())
"""
PARTS = (
    "@nnx.jit\ndef eval_value(model, x):\n    return model.value(x)\n",
    "    before = eval_value(critic, x)\n",
    "(critic.value(x, scale=2.0) - target)",
    "level(critic, x)",
    "jnp.mean(critic.value(x, scale=3.0))",
)


def test_a_method_that_the_loss_calls_is_compiled(tmp_path: Path) -> None:
    """What the loss calls can be traced; what it does not, and calls with other values than tensors, stay."""
    draft = rewritten(SCRIPT, tmp_path)
    assert draft.holes == ()
    assert [part for part in PARTS if part not in draft.files["train_jax.py"]] == []


def test_a_method_that_no_loss_calls_stays(tmp_path: Path) -> None:
    """It may read values."""
    text = SCRIPT.replace("critic.value(x, scale=2.0)", "critic.head(torch.relu(critic.body(x)))")
    draft = rewritten(text, tmp_path)
    assert "eval_value" not in draft.files["train_jax.py"]
