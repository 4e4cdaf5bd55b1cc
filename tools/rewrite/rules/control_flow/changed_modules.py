"""Modules whose state a branch changes where it runs: `nnx.cond` takes them as operands, since a branch must not change what it closes over."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.context import Context

PURE = frozenset(
    f"torch.nn.{name}"
    for name in """Linear Bilinear Identity Flatten Unflatten Embedding LayerNorm GroupNorm RMSNorm Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d ConvTranspose3d ReLU ReLU6 LeakyReLU PReLU ELU GELU SELU SiLU Mish Sigmoid Tanh Softplus Softmax LogSoftmax Hardswish
    MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample PixelShuffle
    LSTMCell GRUCell RNNCell""".split()
)
"""Layers that neither draw nor keep anything of a call."""


def changed_modules(context: Context, original: cst.CSTNode, updated: cst.CSTNode) -> list[str] | None:
    """The names of the modules whose state a branch may change: of `self` where it draws, and of what it calls.

    `None` where a module is called that no name stands for.
    """
    own = context.self_name()
    names: list[str] = []
    for function in [call.func for node in _arms(original) for call in m.findall(node, m.Call()) if isinstance(call, cst.Call)]:
        root = _root(function)
        fact = context.observed(function)
        kinds = {kind.removeprefix("module:") for kind in fact.kinds if kind.startswith("module:")} if fact else set()
        called_on_self = isinstance(function, cst.Attribute) and root == own and bool(own)
        if kinds and kinds <= PURE:
            continue
        if kinds or (called_on_self and fact is None and not context.dotted(function)):
            if not root:
                return None
            names.append(root)
    return list(dict.fromkeys([*drawing_modules(context, _arms(updated)), *names]))


def drawing_modules(context: Context, nodes: Sequence[cst.CSTNode]) -> list[str]:
    """What counts the draws of rewritten code: `self` where it draws by `self.rngs`, the function's own `rngs` where by that."""
    own, text = context.self_name(), "".join(cst.Module([]).code_for_node(node) for node in nodes)
    return [own] if own and f"{own}.rngs" in text else ["rngs"] if re.search(r"(?<![.\w])rngs\b", text) else []


def _arms(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The suites of a branch, without its test; any other node is its own."""
    if not isinstance(node, cst.If):
        return [node]
    other = node.orelse
    return [node.body, *(_arms(other) if isinstance(other, cst.If) else [other.body] if other else [])]


def _root(node: cst.BaseExpression) -> str:
    """`self` of `self.layers[0]`, or "" where the expression begins with no name."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
