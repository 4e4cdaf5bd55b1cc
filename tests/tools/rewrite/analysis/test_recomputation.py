"""Which autograd functions compute again what they were given, and nothing else."""

import ast
import textwrap

import pytest

from migrate_agent.tools.rewrite.analysis.autograd_functions.recomputation import Recomputation, recomputation

FORWARD = """
def forward(ctx, run, length, *args):
    ctx.run = run
    ctx.inputs = list(args[:length])
    ctx.params = list(args[length:])
    ctx.autocast = {"enabled": torch.is_autocast_enabled()}
    with torch.no_grad():
        outputs = ctx.run(*ctx.inputs)
    return outputs
"""
BACKWARD = """
def backward(ctx, *grads):
    ctx.inputs = [x.detach().requires_grad_(True) for x in ctx.inputs]
    with torch.enable_grad(), torch.cuda.amp.autocast(**ctx.autocast):
        copies = [x.view_as(x) for x in ctx.inputs]
        outputs = ctx.run(*copies)
    found = torch.autograd.grad(outputs, ctx.inputs + ctx.params, grads, allow_unused=True)
    return (None, None) + found
"""
SAVED = """
def forward(ctx, run, x, y):
    ctx.save_for_backward(x, y)
    ctx.run = run
    return ctx.run(x, y)
"""
BACKWARD_OF_SAVED = """
def backward(ctx, grad):
    x, y = ctx.saved_tensors
    with torch.enable_grad():
        out = ctx.run(x, y)
    return (None, *torch.autograd.grad(out, (x, y), grad))
"""
FOUND = [
    (FORWARD, BACKWARD, Recomputation("run", ("*args[:length]",))),
    (SAVED, BACKWARD_OF_SAVED, Recomputation("run", ("x", "y"))),
]
DECLINED = [
    pytest.param(FORWARD.replace("return outputs", "return outputs * 2"), BACKWARD, id="changes the result"),
    pytest.param(FORWARD.replace("    return outputs", "    print(length)\n    return outputs"), BACKWARD, id="does more"),
    pytest.param(FORWARD, BACKWARD.replace("(None, None) + found", "(None, None) + tuple(g * 2 for g in found)"), id="scales gradients"),
    pytest.param(
        FORWARD, BACKWARD.replace("    return", "    if length:\n        found = ()\n    return"), id="gradients under a condition"
    ),
    pytest.param(FORWARD, BACKWARD.replace("ctx.run(*copies)", "other(*copies)"), id="another function in the backward pass"),
    pytest.param(FORWARD.replace("list(args[:length])", "[a.clone() for a in scale(args)]"), BACKWARD, id="inputs from elsewhere"),
    pytest.param(SAVED.replace("ctx.run(x, y)", "torch.mul(x, y)"), BACKWARD_OF_SAVED, id="no function that it was given"),
]


def parsed(source: str) -> ast.FunctionDef:
    """The function that `source` defines."""
    function = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


@pytest.mark.parametrize(("forward", "backward", "wanted"), FOUND)
def test_what_is_computed_again_is_found(forward: str, backward: str, wanted: Recomputation) -> None:
    assert recomputation(parsed(forward), parsed(backward), ast.unparse) == wanted


@pytest.mark.parametrize(("forward", "backward"), DECLINED)
def test_whatever_does_more_is_declined(forward: str, backward: str) -> None:
    assert recomputation(parsed(forward), parsed(backward), ast.unparse) is None
