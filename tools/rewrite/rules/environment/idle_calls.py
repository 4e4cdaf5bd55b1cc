"""Statements of torch that say something to the machine or to a log, and change nothing that is computed."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule

IDLE = frozenset(
    """
    torch._C._log_api_usage_once torch._C._log_api_usage_metadata
    torch.cuda.empty_cache torch.cuda.synchronize torch.cuda.ipc_collect torch.cuda.reset_peak_memory_stats
    torch.cuda.reset_max_memory_allocated torch.cuda.nvtx.range_push torch.cuda.nvtx.range_pop torch.cuda.nvtx.mark
    torch.mps.empty_cache torch.mps.synchronize torch.xpu.empty_cache torch.xpu.synchronize torch.accelerator.synchronize
    torch._dynamo.graph_break torch._dynamo.mark_dynamic torch._dynamo.maybe_mark_dynamic torch._dynamo.mark_static
    torch.compiler.cudagraph_mark_step_begin
    """.split()
)
"""XLA schedules streams and memory, and compiles, by itself."""


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
    )

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.RemovalSentinel | None:
        call = original.value
        if not isinstance(call, cst.Call) or self.context.dotted(call.func) not in IDLE:
            return None
        if any(m.findall(argument, m.Call() | m.Await() | m.NamedExpr()) for argument in call.args):
            return None
        self.context.drop_holes(original)
        return cst.RemoveFromParent()
