"""Functions that ask for the machine or the mode of execution, and their constant answers under JAX."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

NO = (
    "torch.cuda.is_available",
    "torch.backends.mps.is_available",
    "torch.backends.cuda.is_built",
    "torch.is_autocast_enabled",
    "torch.is_autocast_cpu_enabled",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch._C._is_tracing",
    "torch.onnx.is_in_onnx_export",
    "torch.compiler.is_compiling",
    "torch.compiler.is_dynamo_compiling",
    "torch.compiler.is_exporting",
    "torch._dynamo.is_compiling",
    "torch.distributed.is_initialized",
    "torch.distributed.is_available",
    "torch.are_deterministic_algorithms_enabled",
)

# Constants, so that the rules for branches can drop the arm that never runs under JAX.
ROWS = (
    *(Op(name, "*args, **kwargs", "False", returns="bool") for name in NO),
    Op("torch.device", "*args, **kwargs", "None", returns=""),
    Op("torch.is_grad_enabled", "", "True", returns="bool", samples=("torch.is_grad_enabled()",)),
)
