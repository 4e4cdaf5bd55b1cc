"""Losses over values that a script collects: which forms are understood, and that what is computed again is what was computed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import libcst as cst
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tools.programs.rewrite.episodes.collected import CollectedValues
from migrate_agent.tools.programs.rewrite.episodes.kept_lists import KeptLists
from migrate_agent.tools.programs.vendored.collected import random_state, replay, stack_records
from migrate_agent.tools.vendored.torch_random import TorchGenerator

ACT = """\
def act(state):
    probs = policy(state)
    m = Categorical(probs)
    action = m.sample()
    log_probs.append(m.log_prob(action))
    return action.item()


"""
LEARN = """\
def learn(returns):
    losses = []
    for log_prob, R in zip(log_probs, returns):
        losses.append(-log_prob * R)
    loss = torch.stack(losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del log_probs[:]
"""
KEEP = (
    # Nothing acts: what is collected is what the loss is computed by as it stands.
    ACT.replace("m.sample()", "m.probs") + LEARN,
    # Another use of the list, of which nothing is known.
    ACT + LEARN.replace("    del", "    torch.save(log_probs, 'log')\n    del"),
    ACT + LEARN + "\n\nprint(len(log_probs))\n",
    # A pass of the loop needs the one before it.
    ACT
    + LEARN.replace("    losses = []\n", "    losses, total = [], 0\n").replace(
        "losses.append(-log_prob * R)", "total = total + log_prob\n        losses.append(total)"
    ),
    # Another name of the object, whose list something else is done with.
    (ACT + LEARN).replace("log_probs", "memory.log_probs") + "\n\ndef report(agent):\n    print(agent.log_probs)\n",
    # Two places of the script fill one list.
    ACT + ACT.replace("act", "explore", 1) + LEARN,
)
LISTS = """\
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rewards = []


policy = Policy().to(device)
policy.rewards.append(1.0)
"""
KEPT_LISTS = (
    # The module itself reads it.
    LISTS.replace(
        "        self.rewards = []\n", "        self.rewards = []\n\n    def forward(self, x):\n        return len(self.rewards)\n"
    ),
    # Each module has one of its own.
    LISTS + "other = Policy()\n",
    # Another object may be a module of this class.
    LISTS + "def add(agent):\n    agent.rewards.append(0.0)\n",
)


def _collected(text: str) -> str:
    module = cst.parse_module(text)
    return module.visit(CollectedValues(module, frozenset({"policy"}))).code


def test_what_a_call_was_made_with_is_noted_and_the_loss_computes_its_value() -> None:
    text = _collected(ACT + LEARN)
    assert (
        "def compute_log_prob(policy, state, action):\n    probs = policy(state)\n    m = Categorical(probs)\n    return m.log_prob(action)\n"
        in text
    )
    assert "    draws = random_state(policy)\n    probs = policy(state)\n" in text
    assert "    log_probs.append((draws, state, action))\n    return action.item()\n" in text
    assert "    episode = stack_records(log_probs)\n    values = replay(compute_log_prob, policy, episode)\n" in text
    assert "    losses = jax.vmap(compute_loss)(values, returns)\n    loss = torch.stack(losses).sum()\n" in text
    assert "losses = []" not in text


def test_what_is_fetched_in_a_mapped_loop_has_no_gradient() -> None:
    text = _collected(ACT + LEARN.replace("-log_prob * R", "-log_prob * (R - log_prob.item())"))
    assert "    return -log_prob * (R - log_prob.detach().reshape(()))\n" in text


def test_a_list_of_an_object_is_one_too() -> None:
    text = _collected((ACT + LEARN).replace("log_probs", "memory.log_probs") + "\n\ndef forget(agent):\n    agent.log_probs.clear()\n")
    assert "    memory.log_probs.append((draws, state, action))\n" in text
    assert "    episode = stack_records(memory.log_probs)\n" in text


RETURNED = """\
def act(state):
    probs, value = policy(state)
    m = Categorical(probs)
    action = m.sample()
    return action.item(), m.log_prob(action), value


for episode in range(3):
    log_probs, values, done = [], [], False
    while not done:
        action, log_prob, value = act(state)
        log_probs.append(log_prob)
        values.append(value)
        state, done = env.step(action)
    losses = []
    for log_prob, value, R in zip(log_probs, values, returns):
        losses.append(-log_prob * (R - value))
    loss = torch.stack(losses).sum()
    loss.backward()
"""


def test_what_a_function_gives_back_may_be_collected_by_its_caller() -> None:
    """Also several values, by loops over all of them."""
    text = _collected(RETURNED)
    assert "    return action.item(), (draws, state, action), (draws, state)\n" in text
    assert "def compute_value(policy, state):\n    probs, value = policy(state)\n    return value\n" in text
    assert text.count("= stack_records(") == 2
    assert "    losses = jax.vmap(compute_loss)(replayed_log_probs, replayed_values, returns)\n" in text


RETURNED_KEEP = (
    # The value is used beside the list.
    RETURNED.replace("values.append(value)", "values.append(value)\n        print(value)"),
    # Another caller may do something else with it.
    RETURNED + "\n\nact(state)\n",
)


@pytest.mark.parametrize("text", RETURNED_KEEP)
def test_other_values_that_a_function_gives_back_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    assert "stack_records(values)" not in _collected(text)


def test_what_a_value_was_computed_from_must_be_there_when_it_is_noted() -> None:
    """The environment gives the state anew before the value is added."""
    text = ACT.replace("    log_probs.append", "    state = env.step(action)\n    log_probs.append") + LEARN
    assert _collected(text) == text


def test_two_lists_in_one_statement() -> None:
    act = ACT.replace("    return", "    entropies.append(m.entropy())\n    return")
    text = _collected(
        act
        + LEARN.replace("torch.stack(losses).sum()", "torch.stack(log_probs).sum() - torch.stack(entropies).sum()").replace(
            "    losses = []\n    for log_prob, R in zip(log_probs, returns):\n        losses.append(-log_prob * R)\n", ""
        )
    )
    assert "    loss = torch.stack(replayed_log_probs).sum() - torch.stack(replayed_entropies).sum()\n" in text
    assert text.count("= replay(") == 2


def test_other_names_of_the_list_are_followed() -> None:
    text = _collected(
        ACT + LEARN.replace("    losses = []\n", "    saved = log_probs\n    losses = []\n").replace("zip(log_probs", "zip(saved")
    )
    assert "saved = log_probs" not in text
    assert "stack_records(log_probs)" in text


@pytest.mark.parametrize("text", KEEP)
def test_other_collected_values_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    assert _collected(text) == text


def test_a_list_on_a_module_becomes_one_of_the_script() -> None:
    module = cst.parse_module(LISTS)
    text = module.visit(KeptLists(module, frozenset({"policy"}))).code
    assert "self.rewards" not in text
    assert text.endswith("policy = Policy().to(device)\nrewards = []\nrewards.append(1.0)\n")


@pytest.mark.parametrize("text", KEPT_LISTS)
def test_other_lists_of_modules_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    module = cst.parse_module(text)
    assert module.visit(KeptLists(module, frozenset({"policy", "other"}))).code == text


class Dropping(nnx.Module):
    """A module that draws, and counts its calls."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear, self.dropout = nnx.Linear(3, 4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x: jax.Array) -> jax.Array:
        self.calls.set_value(self.calls.get_value() + 1)
        return self.dropout(self.linear(x))


def test_a_replay_draws_what_was_drawn_and_leaves_the_module_alone() -> None:
    """Its gradient is that of the calls as they were, masks included."""
    model, records, outputs = Dropping(nnx.Rngs(0)), [], []
    for row in np.eye(3, dtype=np.float32):
        draws = random_state(model)
        outputs.append(nnx.jit(lambda m, x: m(x))(model, jnp.asarray(row)))
        records.append((draws, row))
    stack = stack_records(records)

    def total(model: Dropping, stack: Any) -> Any:
        return (replay(lambda m, x: m(x), model, stack) * jnp.arange(12.0).reshape(3, 4)).sum()

    value, grads = nnx.value_and_grad(total)(model, stack)
    assert value == (jnp.stack(outputs) * jnp.arange(12.0).reshape(3, 4)).sum()
    masks = jnp.stack(outputs) != 0
    np.testing.assert_allclose(grads["linear"]["kernel"].get_value(), masks * 2.0 * jnp.arange(12.0).reshape(3, 4), rtol=1e-6)
    assert float(model.calls.get_value()) == 3
    assert len({bytes(np.asarray(mask)) for mask in masks}) > 1


@pytest.mark.parametrize("shape", [(3,), (4, 7), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_of_torchs_own_stream(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Indices by weight, and the stream goes on where torch's does."""
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    torch.manual_seed(5)
    generator = TorchGenerator().manual_seed(5)
    distribution: Any = torch.distributions.Categorical(weights)
    probs = distribution.probs
    for _ in range(20):
        assert (distribution.sample().numpy() == np.asarray(generator.categorical(probs.numpy()))).all()
        if len(shape) < 3:
            assert (torch.multinomial(weights, 2).numpy() == np.asarray(generator.multinomial(weights.numpy(), 2))).all()
    assert torch.randint(0, 1000, (3,)).tolist() == generator.integers(0, 1000, (3,)).tolist()
