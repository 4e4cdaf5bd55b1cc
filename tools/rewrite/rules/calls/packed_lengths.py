"""Lengths of packed sequences: PyTorch wants them on the CPU, JAX takes them as arrays."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.analysis.repo import dotted_name
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

PACK = "torch.nn.utils.rnn.pack_padded_sequence"


class KeepLengthsInArrays(Rule):
    """Hand lengths on as an array: `pack_padded_sequence(x, lengths.cpu().numpy())` → `pack_padded_sequence(x, lengths)`.

    Under `jit` no value can be read. Declines in constructors, and where anything but the packing reads the numbers.
    """

    KEEP = ("def f(lengths):\n    return list(lengths)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\ndef f(x: torch.Tensor, lengths: torch.Tensor):\n"
            "    lengths = lengths.cpu().numpy()\n    return pack_padded_sequence(x, lengths)\n",
            "def f(x: jax.Array, lengths: jax.Array):\n    return pack_padded_sequence(x, lengths)\n",
        ),
        (
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\ndef f(x: torch.Tensor, lengths: torch.Tensor):\n"
            "    return pack_padded_sequence(x, lengths.tolist(), batch_first=True)\n",
            "def f(x: jax.Array, lengths: jax.Array):\n    return pack_padded_sequence(x, lengths, batch_first=True)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        func, new = original.func, updated.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in ("numpy", "tolist") or original.args or self.context.constructing:
            return None
        if not isinstance(new, cst.Attribute) or not is_tensor(self.context.observed(func.value)) or not self._is_packed():
            return None
        return new.value

    def _is_packed(self) -> bool:
        match self.context.stack[-1], self.context.stack[-2]:
            case cst.Arg() as argument, cst.Call() as call if self.context.dotted(call.func) == PACK:
                return argument is call.args[1] or (argument.keyword is not None and argument.keyword.value == "lengths")
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement, _:
                return self._is_only_packed(name, self.context.span(statement).line)
        return False

    def _is_only_packed(self, name: str, line: int) -> bool:
        """Whether all that reads a local name from this line on packs sequences of these lengths."""
        function = self.context.function
        if function is None:
            return False
        calls = [one for one in walk(function) if isinstance(one, ast.Call) and dotted_name(one.func, self.context.file) == PACK]
        packed = {id(one.args[1]) for one in calls if len(one.args) > 1}
        packed |= {id(keyword.value) for one in calls for keyword in one.keywords if keyword.arg == "lengths"}
        named = [one for one in walk(function) if isinstance(one, ast.Name) and one.id == name]
        reads = [one for one in named if isinstance(one.ctx, ast.Load) and one.lineno > line]
        writes = [one for one in named if isinstance(one.ctx, ast.Store)]
        return len(writes) == 1 and bool(reads) and all(id(one) in packed for one in reads)
