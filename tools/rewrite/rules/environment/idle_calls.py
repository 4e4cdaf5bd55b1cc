"""Statements of torch that say something to the machine, to other processes or to a log, and change nothing that is computed."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.apply_tables import bare
from migrate_agent.tools.rewrite.rules.rule import Rule

IDLE = frozenset(
    """
    torch._C._log_api_usage_once torch._C._log_api_usage_metadata
    torch.cuda.empty_cache torch.cuda.synchronize torch.cuda.ipc_collect torch.cuda.reset_peak_memory_stats
    torch.cuda.reset_max_memory_allocated torch.cuda.nvtx.range_push torch.cuda.nvtx.range_pop torch.cuda.nvtx.mark
    torch.mps.empty_cache torch.mps.synchronize torch.xpu.empty_cache torch.xpu.synchronize torch.accelerator.synchronize
    torch._dynamo.graph_break torch._dynamo.mark_dynamic torch._dynamo.maybe_mark_dynamic torch._dynamo.mark_static
    torch.compiler.cudagraph_mark_step_begin
    torch.distributed.barrier torch.distributed.monitored_barrier
    torch.distributed.all_reduce torch.distributed.reduce torch.distributed.broadcast torch.distributed.broadcast_object_list
    """.split()
)
"""XLA schedules streams and memory, and compiles, by itself. In one process, a sum over processes and what is sent to them all is the value itself."""


class DropIdleCalls(Rule):
    """Remove statements such as `torch.cuda.empty_cache()`, `torch._C._log_api_usage_once(name)` and `torch._dynamo.graph_break()`.

    Declines where something is called to make their arguments: that may do something.
    """

    KEEP = ("def f(log, x):\n    log.mark(x)\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    torch._C._log_api_usage_once('f')\n    torch.cuda.empty_cache()\n"
            "    torch.cuda.nvtx.range_push('double')\n    y = x * 2\n    torch.cuda.nvtx.range_pop()\n    return y\n",
            "def f(x: jax.Array):\n    y = x * 2\n    return y\n",
        ),
        (
            "import torch\n\ndef log(module):\n    torch._C._log_api_usage_once(f'{module}.log')\n",
            "def log(module):\n    pass\n",
        ),
        (
            "import torch\nimport torch.distributed as dist\n\ndef f(x: torch.Tensor):\n    total = x.sum()\n    dist.all_reduce(total, group=dist.group.WORLD)\n"
            "    dist.barrier()\n    return total / (len(x) * dist.get_world_size())\n",
            "def f(x: jax.Array):\n    total = jnp.sum(x)\n    return total / len(x)\n",
        ),
        (
            "import torch\nfrom torch import distributed as dist\n\ndef f(x: torch.Tensor, op=dist.ReduceOp.SUM):\n    if dist.get_world_size() == 1:\n"
            "        return x\n    dist.all_reduce(x, op=op)\n    return x\n",
            "def f(x: jax.Array, op='sum'):\n    return x\n",
        ),
    )

    def leave_BinaryOperation(self, original: cst.BinaryOperation, updated: cst.BinaryOperation) -> cst.BaseExpression | None:
        """A product with the number of processes, which is one."""
        if not isinstance(original.operator, cst.Multiply):
            return None
        for side, other in ((original.left, updated.right), (original.right, updated.left)):
            if isinstance(side, cst.Call) and self.context.dotted(side.func) == "torch.distributed.get_world_size":
                return self.context.parenthesise(bare(other))
        return None

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.RemovalSentinel | None:
        call = original.value
        if not isinstance(call, cst.Call) or self.context.dotted(call.func) not in IDLE:
            return None
        if any(m.findall(argument, m.Call() | m.Await() | m.NamedExpr()) for argument in call.args):
            return None
        self.context.drop_holes(original)
        return cst.RemoveFromParent()
