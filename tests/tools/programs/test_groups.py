"""Groups of parameters: two optimizers at once, frozen parameters, and parameters that never get a gradient."""

from __future__ import annotations

import jax
import libcst as cst
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.programs.problem import (
    Model,
    deviation,
    double_precision,
    evaluate,
    noise,
    randomised,
    torch_gradients,
    torch_parameters,
    train_step,
)
from migrate_agent.tests.tools.programs.test_optimizers import as_numpy
from migrate_agent.tools.programs.optimizer_state import OptimizerStateError, load_optimizer, save_optimizer
from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError
from migrate_agent.tools.programs.rewrite.groups import OptimizerCall
from migrate_agent.tools.programs.rewrite.optimizers import transform
from migrate_agent.tools.programs.tables.groups import Group, partition
from migrate_agent.tools.programs.tables.registry import Text, optimizer_arguments, optimizer_text
from migrate_agent.tools.programs.vendored.parameter_groups import by_layer, parameter_name
from migrate_agent.tools.rewrite.tables.registry import Refuse
from migrate_agent.tools.vendored.containers import LayerStack
from migrate_agent.tools.weights import leaves, variable_paths

AXES = {"embed.embedding": 2, "fc.kernel": 2, "fc.bias": 1, "conv.kernel": 3, "conv.bias": 1}
NORMS = {"body.0.norm.scale": 1, "body.0.norm.bias": 1, "body.0.fc.kernel": 2, "body.1.fc.kernel": 2, "head.kernel": 2, "head.bias": 1}


def group(label: str, *names: str, optimizer: str = "optax.sgd(0.1)") -> Group:
    return Group(label, frozenset(names), Text(optimizer))


RULES = [
    ([group("decay", *[n for n in NORMS if NORMS[n] > 1]), group("rest", *[n for n in NORMS if NORMS[n] == 1])], "p.ndim", NORMS),
    ([group("head", "head.kernel", "head.bias"), group("body", *[n for n in NORMS if n[0] == "b"])], 'name.startswith("head.")', NORMS),
    ([group("a", "body.0.norm.scale"), group("b", *(set(NORMS) - {"body.0.norm.scale"}))], 'name.endswith(".scale")', NORMS),
    ([group("a", "fc.kernel"), group("b", "conv.kernel", "conv.bias", "embed.embedding")], '"fc.kernel"', AXES),
    ([group("only", *(set(AXES) - {"fc.bias", "conv.bias"}))], '"frozen" if p.ndim < 2 else "only"', AXES),
]


@pytest.mark.parametrize(("groups", "rule", "axes"), RULES, ids=[rule for _, rule, _ in RULES])
def test_rule_is_short_and_right(groups: list[Group], rule: str, axes: dict[str, int]) -> None:
    text = partition(groups, axes)
    assert rule in text.code
    function = eval(text.code.partition("label_parameters(")[2].removesuffix("))").strip(), {})
    labels = {name: function(name, np.zeros((1,) * count)) for name, count in axes.items()}
    assert labels == {name: next((g.label for g in groups if name in g.parameters), "frozen") for name in axes}


def test_one_group_of_all_is_no_partition() -> None:
    assert partition([group("all", *AXES)], AXES) == Text("optax.sgd(0.1)")


@pytest.mark.parametrize("groups", [[group("a", "fc.bias"), group("b", "fc.bias")], [group("a", "gone.kernel")]])
def test_refused(groups: list[Group]) -> None:
    with pytest.raises(Refuse):
        partition(groups, AXES)


def test_two_rates_frozen_and_absent() -> None:
    """AdamW on the matrices, another rate on a bias, one parameter frozen and one without gradients: torch's values, state in and out."""
    name = "torch.optim.AdamW"
    texts = [optimizer_text(name, optimizer_arguments(name, f"AdamW(p, {options})")) for options in ("0.02, weight_decay=0.5", "1e-3")]
    groups = [
        Group("decay", frozenset({"embed.embedding", "fc.kernel"}), texts[0]),
        Group("no_decay", frozenset({"fc.bias"}), texts[1]),
    ]
    tx = evaluate(partition(groups, AXES))
    with double_precision():
        module = randomised(Model(nnx.Rngs(0)))
        drawn, params = noise(module), torch_parameters(module)
        names = [["embed.weight", "fc.weight"], ["fc.bias", "conv.bias"]]
        torch_groups = [
            {"params": [(n, params[n]) for n in names[0]], "weight_decay": 0.5},
            {"params": [(n, params[n]) for n in names[1]], "lr": 1e-3},
        ]
        original = torch.optim.AdamW(torch_groups, lr=0.02)
        optimizer = nnx.Optimizer(module, tx, wrt=nnx.Param)
        for step in range(20):
            if step == 10:
                optimizer = nnx.Optimizer(module, tx, wrt=nnx.Param)
                load_optimizer(optimizer, module, name, as_numpy(original.state_dict()))
            torch_gradients(params, drawn, step)
            params["conv.bias"].grad = None
            original.step()
            train_step(module, optimizer, {n: array[step] for n, array in drawn.items()})
        assert deviation(module, params) < 1e-12
        state = as_numpy(original.state_dict())
        saved = save_optimizer(optimizer, module, name, state["param_groups"], names)
        assert sorted(saved["state"]) == sorted(state["state"]) == [0, 1, 2]
        assert all(
            np.allclose(saved["state"][i][key], state["state"][i][key], rtol=1e-12) for i in saved["state"] for key in saved["state"][i]
        )


def test_state_that_does_not_fit() -> None:
    module = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(module, evaluate(Text("optax.adam(lambda count: 0.1)")), wrt=nnx.Param)
    names = list(leaves(module))
    shapes = {name: leaf.shape for name, leaf in leaves(module).items()}
    slots = {i: {"step": np.array(3.0), "exp_avg": np.zeros(shapes[n]), "exp_avg_sq": np.zeros(shapes[n])} for i, n in enumerate(names)}
    state = {"state": slots, "param_groups": [{"params": list(range(len(names)))}]}
    load_optimizer(optimizer, module, "torch.optim.Adam", state, [names])
    assert int(optimizer.step.get_value()) == 3
    for wrong, message in (
        ([names[:-1]], "parameters"),
        ([[*names[:-1], "gone"]], "gone"),
        ([names[::-1]], "shape"),
        (None, "does not name"),
    ):
        with pytest.raises(OptimizerStateError, match=message):
            load_optimizer(optimizer, module, "torch.optim.Adam", state, wrong)
    slots[0]["step"] = np.array(2.0)
    with pytest.raises(OptimizerStateError, match="step differs"):
        load_optimizer(optimizer, module, "torch.optim.Adam", state, [names])
    assert sorted(variable_paths(module)) == sorted(names)


STACKED = [
    ("AdamW", "p.ndim >= 2", "mask=by_layer(model, lambda p: p.ndim >= 2)"),
    ("AdamW", "'bias' not in name", "label_parameters("),
    ("AdamW", "'bias' not in name and p.ndim > 1", "rank"),
    ("AdamW", "", "optax.adamw("),
    ("Muon", "", "axes"),
    ("Adafactor", "", "axes"),
]


def test_a_condition_on_axes_is_of_one_layer() -> None:
    class Stacked(nnx.Module):
        def __init__(self) -> None:
            self.h = LayerStack(lambda rngs: nnx.Linear(4, 4, rngs=rngs), 3, rngs=nnx.Rngs(0))
            self.head = nnx.Linear(4, 2, rngs=nnx.Rngs(1))

    model = Stacked()
    mask = by_layer(model, lambda p: p.ndim >= 2)
    for params in (nnx.state(model, nnx.Param), nnx.as_pure(nnx.state(model, nnx.Param))):
        chosen = {parameter_name(path): bool(value) for path, value in jax.tree_util.tree_leaves_with_path(mask(params))}
        assert chosen == {"h.layers.kernel": True, "h.layers.bias": False, "head.kernel": True, "head.bias": False}


@pytest.mark.parametrize(("name", "decays", "outcome"), STACKED)
def test_optimizers_of_stacked_layers(name: str, decays: str, outcome: str) -> None:
    call = cst.ensure_type(cst.parse_expression(f"torch.optim.{name}(groups, lr=0.1)"), cst.Call)
    optimizer = OptimizerCall("model", False, decays=decays, weight_decay="0.1" if decays else "", stacked=True)
    if outcome in ("axes", "rank"):
        with pytest.raises(NotUnderstoodError, match=outcome):
            transform(f"torch.optim.{name}", call, optimizer, None)
    else:
        made = transform(f"torch.optim.{name}", call, optimizer, None)
        assert outcome in made.code
        assert ("by_layer" in made.helpers) == ("by_layer" in outcome)
