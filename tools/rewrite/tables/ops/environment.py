"""Functions that ask for the machine or the mode of execution, and their constant answers under JAX."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

NO = (
    "torch.cuda.is_available",
    "torch.backends.mps.is_available",
    "torch.backends.mps.is_built",
    "torch.backends.cudnn.is_available",
    "torch.backends.cudnn.is_acceptable",
    "torch.backends.mkldnn.is_available",
    "torch.xpu.is_available",
    "torch.mps.is_available",
    "torch.accelerator.is_available",
    "torch.cuda.is_initialized",
    "torch.cuda.is_bf16_supported",
    "torch.cuda.is_current_stream_capturing",
    "torch.is_inference_mode_enabled",
    "torch._C._get_tracing_state",
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

# One program drives all devices: there are no other processes to send to, and under `jit` a sharded array is whole.
# Constants, so that the rules for branches can drop the arm that never runs under JAX.
ROWS = (
    *(Op(name, "*args, **kwargs", "False", returns="bool") for name in NO),
    # What a compiler runs is the same function or module; `jit` stands around the whole program.
    *(
        Op(name, f"{argument}=None, *args, **kwargs", f"{{{argument}}}", returns="")
        for name, argument in (("torch.compile", "model"), ("torch.jit.script", "obj"), ("torch.compiler.disable", "fn"))
    ),
    Op("torch.cuda.device_count", "", "0", returns="int"),
    Op("torch.backends.cudnn.version", "", "None", returns="none"),
    Op("torch.cuda.current_device", "", "None", returns=""),
    Op("torch.distributed.get_world_size", "group=None", "1", returns="int"),
    Op("torch.distributed.get_rank", "group=None", "0", returns="int"),
    Op(
        "torch.distributed.nn.functional.all_reduce",
        "tensor, op=None, group=None",
        "{tensor}",
        aliases=("torch.distributed.nn.all_reduce",),
    ),
    Op(
        "torch.distributed.nn.functional.all_gather",
        "tensor, group=None",
        "({tensor},)",
        aliases=("torch.distributed.nn.all_gather",),
        returns="tuple",
    ),
    Op("torch.device", "*args, **kwargs", "None", returns=""),
    Op("torch.is_grad_enabled", "", "True", returns="bool", samples=("torch.is_grad_enabled()",)),
)
