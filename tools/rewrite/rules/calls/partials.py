"""Torch functions whose options are fixed before they are called: `functools.partial`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import apply_op, takes_options, tidy
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.ops.utilities import HANDED
from migrate_agent.tools.rewrite.tables.registry import Op, Refuse, ops
from migrate_agent.tools.rewrite.tables.signatures import parse_signature
from migrate_agent.tools.types import CALLING


class BindTorchFunctions(Rule):
    """Bind options of torch functions: `partial(torch.sum, dim=-1)` → `lambda input: jnp.sum(input, axis=-1)`.

    The `partial` stays where a vendored helper has torch's parameters. Declines (a hole) where an
    argument is no literal: a lambda would look it up when it is called, a partial when it is made.
    """

    KEEP = ("from functools import partial\n\ndef f(g):\n    return partial(g, 2)\n",)
    CHANGE = (
        (
            "import torch\nfrom functools import partial\n\ntotal = partial(torch.sum, dim=-1)\n",
            "from functools import partial\n\ntotal = lambda input: jnp.sum(input, axis=-1)\n",
        ),
        (
            "import torch\nfrom functools import partial\n\nlimit = partial(torch.clamp, min=-1.0, max=1.0)\n",
            "from functools import partial\n\nlimit = lambda input: clamp(input, -1.0, 1.0)\n",
        ),
        (
            "import torch\nfrom functools import partial\n\nproduct = partial(torch.einsum, 'ij,jk->ik')\n",
            "from functools import partial\n\nproduct = partial(jnp.einsum, 'ij,jk->ik')\n",
        ),
        (
            "from functools import partial\nfrom torch.utils.checkpoint import checkpoint\n\nrun = partial(checkpoint, use_reentrant=False)\n",
            "from functools import partial\n\nrun = checkpoint\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if context.dotted(original.func) != "functools.partial" or not original.args or original.args[0].star:
            return None
        dotted = context.dotted(original.args[0].value)
        if dotted not in ops() or len(original.args) == 1 or self._takes_options(dotted, updated.args[0].value):
            return None
        op = _row_for_later_call(ops()[dotted])
        signature = parse_signature(op.signature)
        count = sum(a.keyword is None for a in original.args[1:])
        named = {a.keyword.value for a in original.args[1:] if a.keyword}
        free = [n for n in signature.names[count:] if n not in signature.defaults and n not in named]
        free = free or [n for n in signature.names[count:] if n not in named][:1]
        loose = [cst.Arg(cst.Name(name), keyword=None if signature.variadic else cst.Name(name)) for name in free]
        loose += [cst.Arg(cst.Name(signature.variadic), star="*")] if signature.variadic else []
        loose += [cst.Arg(cst.Name(signature.keywords), star="**")] if signature.keywords else []
        try:
            body = apply_op(context, op, [*updated.args[1:], *loose], [*original.args[1:], *loose])
        except Refuse as refusal:
            context.hole(original, refusal.reason, refusal.code)
            return None
        if isinstance(body, cst.Call) and (fixed := _bound_arguments(body, loose)) is not None:
            return updated.with_changes(args=tidy([cst.Arg(body.func), *fixed])) if fixed else context.parenthesise(body.func)
        if not all(_is_literal(argument) for argument in updated.args[1:]):
            context.hole(original, f"options of {dotted} that are fixed beforehand by other than literals", "unbound-call")
            return None
        spread = cst.Param(cst.Name(signature.variadic)) if signature.variadic else cst.MaybeSentinel.DEFAULT
        keywords = cst.Param(cst.Name(signature.keywords)) if signature.keywords else None
        parameters = cst.Parameters([cst.Param(cst.Name(name)) for name in free], star_arg=spread, star_kwarg=keywords)
        return context.parenthesise(cst.Lambda(parameters, body))

    def _takes_options(self, dotted: str, rewritten: cst.BaseExpression) -> bool:
        """Whether the function became a vendored one that takes torch's arguments."""
        name = dotted.rpartition(".")[2]
        return takes_options(dotted) and cst.Module([]).code_for_node(rewritten) in (name, f"nnx_layers.{name}")


def _row_for_later_call(op: Op) -> Op:
    """The row for a call to come: whoever calls what a function like `checkpoint` hands on brings the `rngs` that it draws from."""
    template = op.to
    # Only functions that call another one hand `rngs` on.
    if op.name not in CALLING or isinstance(template, str):
        return op
    return replace(op, to=lambda call: template(call).replace(HANDED, ""))


def _bound_arguments(call: cst.Call, loose: Sequence[cst.Arg]) -> list[cst.Arg] | None:
    """Of `g(a, f, *args, k=1)`, whose last positional arguments are the `loose` ones as they are, what stands in front of them and behind;
    None for other calls."""
    positional, options = [a for a in call.args if not a.keyword], [a for a in call.args if a.keyword]
    if any(argument.keyword for argument in loose):
        return None
    texts = [argument.star + cst.Module([]).code_for_node(argument.value) for argument in (*positional, *loose)]
    count = len(positional) - len(loose)
    return [*positional[:count], *options] if count >= 0 and texts[count : len(positional)] == texts[len(positional) :] else None


def _is_literal(argument: cst.Arg) -> bool:
    value = argument.value.expression if isinstance(argument.value, cst.UnaryOperation) else argument.value
    if argument.star:
        return False
    if isinstance(value, (cst.Tuple, cst.List)):
        return all(isinstance(element, cst.Element) and _is_literal(cst.Arg(element.value)) for element in value.elements)
    return isinstance(value, (cst.Integer, cst.Float, cst.SimpleString, cst.Attribute)) or (
        isinstance(value, cst.Name) and value.value in ("True", "False", "None", "int", "float", "bool", "complex")
    )
