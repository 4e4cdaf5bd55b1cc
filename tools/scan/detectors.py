"""Detects code that is no model maths, with advice for JAX: one row a detector. A new one is a row in `DETECTORS` and its cases in the tests.

A row looks at uses of names (`names`: the dotted name, after imports and aliases), at method calls on objects whose type is not known
(`methods`: their text, such as `loss.backward` or `self.optimizer.step`), or at base classes (`bases`: the dotted names of all ancestors
outside the repository).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from migrate_agent.tools.scan.facts import Use, UseKind
from migrate_agent.tools.types import Strategy

NEVER = r"(?!)"
ANY_NAME: tuple[UseKind, ...] = ("call", "base", "decorator", "load")


@dataclass(frozen=True)
class Detector:
    """One row. Patterns are regular expressions that must match the whole name.

    `strategy` is that of the finding and `detail` the advice. `unit` is the strategy that a module gets that does this, itself or through
    helpers ("rewrite": none but the ordinary one). `forward`: only inside `forward` and `__call__` of a module.
    """

    kind: str
    strategy: Strategy
    detail: str
    names: str = NEVER
    methods: str = NEVER
    bases: str = NEVER
    uses: tuple[UseKind, ...] = ANY_NAME
    unit: Strategy = "rewrite"
    forward: bool = False

    @cached_property
    def base_pattern(self) -> re.Pattern[str]:
        return re.compile(self.bases)

    def applies(self, use: Use) -> bool:
        """Whether the row looks at uses of this kind in this place (that the name matches is known)."""
        if self.forward and not (use.method == "__call__" or use.method.startswith("forward")):
            return False
        return use.kind == "method" or use.kind in self.uses


class Hit(NamedTuple):
    """One use that a row matched; `row` is its index in `DETECTORS`. `optional`: the owner can do without every such use."""

    row: int
    name: str
    line: int
    owner: str
    optional: bool = False


_QUERY = r"(torch\.distributed|deepspeed|horovod|accelerate)\.(.+\.)?(is_\w+|get_rank|get_world_size|get_backend|rank|size|local_rank)"
"""Queries of the process group: in a single process their answers are constants, so that they do not change a module's strategy."""

_EXCHANGE = (
    r"torch\.distributed\.(all_reduce|reduce|broadcast|broadcast_object_list|barrier|monitored_barrier|all_gather"
    r"|nn\.(functional\.)?all_(reduce|gather))"
)
"""What processes send each other, and what is in a single process the value itself: no module needs another strategy for it."""

DETECTORS: tuple[Detector, ...] = (
    Detector(
        "training-loop",
        "redesign",
        "write one jitted step: nnx.value_and_grad of the loss, then an optax update through nnx.Optimizer",
        names=r"torch\.autograd\.backward",
        methods=r".*\.backward|(.*[._])?(optim\w*|opt|opt_\w+|\w+_opt|scaler)\.step",
    ),
    Detector(
        "optimizer",
        "redesign",
        "use the optax optimiser or schedule of the same name; check its defaults (weight decay, epsilon) against torch's",
        names=r"torch\.optim\.[A-Z]\w*|torch\.optim\.lr_scheduler\.[A-Z]\w*",
        uses=("call",),
    ),
    Detector(
        "optimizer",
        "redesign",
        "write it as an optax.GradientTransformation: pure init and update functions over a pytree",
        bases=r"torch\.optim\.([A-Z]\w*|lr_scheduler\.\w+)",
    ),
    Detector(
        "distributed",
        "redesign",
        "place arrays with a jax.sharding.Mesh and NamedSharding under jit; processes start with jax.distributed.initialize",
        names=rf"(?!{_QUERY}|({_EXCHANGE})$)(torch\.distributed\..+|torch\.nn\.parallel\.DistributedDataParallel|torch\.multiprocessing\.spawn)",
        uses=("call", "decorator"),
        bases=r"torch\.nn\.(parallel\.)?(DataParallel|DistributedDataParallel)|torch\.distributed\.fsdp\..+",
        unit="redesign",
    ),
    Detector(
        "distributed",
        "redesign",
        "drop it, or keep the layer that only calls its module: the sharding of a batch decides where each part is computed",
        names=r"torch\.nn\.(parallel\.)?DataParallel",
        uses=("call", "decorator"),
    ),
    Detector(
        "distributed",
        "redesign",
        "drop it: sharded and mixed-precision state are a matter of NamedSharding and dtypes, not of wrappers",
        names=rf"(?!{_QUERY})((deepspeed|fairscale|horovod|accelerate|megatron|colossalai)\..+"
        r"|torch\.nn\.SyncBatchNorm\.convert_sync_batchnorm)",
        uses=("call", "base", "decorator"),
    ),
    Detector(
        "distributed",
        "redesign",
        "drop it: one process drives all its devices, and under jit an array that is sharded over a Mesh is whole",
        names=_EXCHANGE,
        uses=("call",),
    ),
    Detector(
        "distributed",
        "redesign",
        "one process drives all its devices: jax.process_index, jax.process_count and len(jax.devices()) answer this",
        names=_QUERY,
        uses=("call",),
    ),
    Detector(
        "cuda-kernel",
        "substitute",
        "write it as a Pallas kernel, or as plain jax.numpy and let XLA fuse it",
        names=r"torch\.utils\.cpp_extension\.\w+|torch\.ops\.load_library|cupy\.(RawKernel|RawModule)|numba\.cuda\.jit"
        r"|torch\.cuda\._compile_kernel|tilelang\..+",
        unit="substitute",
    ),
    Detector(
        "cuda-kernel",
        "substitute",
        "it calls a compiled extension: write it as a Pallas kernel, or as plain jax.numpy and let XLA fuse it",
        names=r"(?!torch\.|torchvision\._C)(.+\.)?(_C|_ext|\w+_(cuda|ext|cuda_ext|cpp_ext))\.\w+(\.\w+)*",
        uses=("call",),
        unit="substitute",
    ),
    Detector(
        "triton-kernel",
        "substitute",
        "write it as a Pallas kernel (the block program carries over), or as plain jax.numpy and let XLA fuse it",
        names=r"triton\.(jit|autotune|heuristics)|triton\.runtime\..+|torch\.library\.(triton_op|wrap_triton)",
        unit="substitute",
    ),
    Detector(
        "fused-kernel",
        "substitute",
        "use jax.nn.dot_product_attention, a Pallas kernel of the same function, or plain jax.numpy",
        names=r"(flash_attn|flash_attn_interface|xformers|apex|mamba_ssm|causal_conv1d|transformer_engine|natten|sageattention|bitsandbytes|fbgemm_gpu"
        r"|liger_kernel|flash_mla|deep_gemm|spconv|MinkowskiEngine|torchsparse|fla)\..+|kernels\.get_kernel|torch\.nn\.attention\.flex_attention\..+",
        uses=("call", "base", "decorator"),
        unit="substitute",
    ),
    Detector(
        "storage",
        "redesign",
        "JAX arrays have no strides or storage: build the windows with indexing, jnp.stack or lax.conv_general_dilated_patches",
        names=r"torch\.as_strided|torch\.(Tensor\.)?(as_strided|as_strided_scatter)|torch\.(Untyped|Typed)Storage(\..+)?|torch\.utils\.dlpack\..+|torch\.from_file",
        methods=r".*\.(as_strided|as_strided_|storage|untyped_storage|storage_offset|set_|share_memory_)",
        unit="redesign",
    ),
    Detector(
        "storage",
        "redesign",
        "JAX arrays have no address: compare identities of modules and variables, or drop the check",
        methods=r".*\.data_ptr",
    ),
    Detector(
        "hooks",
        "redesign",
        "NNX modules have no hooks: return or nnx.Module.sow what they look at; gradients are changed in the optax chain",
        names=r"torch\.nn\.modules\.module\.register_.+",
        methods=r".*\.(register_forward_hook|register_forward_pre_hook|register_full_backward_hook|register_full_backward_pre_hook"
        r"|register_backward_hook|register_hook|register_post_accumulate_grad_hook)",
    ),
    Detector(
        "cuda-runtime",
        "redesign",
        "drop it: XLA schedules streams, memory and compiled graphs itself",
        names=r"torch\.cuda\.(Stream|Event|stream|current_stream|CUDAGraph|graph|make_graphed_callables|synchronize|empty_cache)(\..+)?",
    ),
    Detector(
        "logging",
        "redesign",
        "under jit it runs once, while tracing: move it out of the module, or use jax.debug.print; return what should be logged",
        names=r"builtins\.print|(logging|wandb|warnings|tqdm|loguru|mlflow|neptune|comet_ml|absl\.logging|torch\.utils\.tensorboard)\.\w.*",
        methods=r"(.*[._])?(log|logger|_logger|writer|wandb|experiment)\.(debug|info|warn|warning|warning_once|error|exception|critical|log|add_\w+)|self\.log(_dict)?",
        uses=("call",),
        forward=True,
    ),
    Detector(
        "data-loading",
        "keep",
        "stays as it is on the host: pass NumPy arrays to the step, or load with grain or tf.data",
        names=r"torch\.utils\.data\.[A-Za-z]\w*|torchvision\.datasets\..+|torchdata\..+",
        bases=r"torch\.utils\.data\..+|torchvision\.datasets\..+|(pytorch_lightning|lightning)\..*LightningDataModule",
        uses=("call",),
    ),
    Detector(
        "checkpoint-io",
        "keep",
        "read old checkpoints with migrate_agent.tools.weights.load_state_dict; save new ones with orbax.checkpoint or safetensors.numpy",
        names=r"torch\.(save|load)|safetensors\.torch\..+|torch\.hub\..+|torch\.utils\.model_zoo\..+|huggingface_hub\.\w+download",
        uses=("call",),
    ),
    Detector(
        "export",
        "redesign",
        "use jax.jit where it was for speed, and jax.export where the model leaves Python",
        names=r"torch\.onnx\..+|torch\.export\..+|torch\.jit\.(save|load|trace|trace_module|script|freeze)|torch\.fx\.[A-Za-z].*|torch\.ao\..+|torch\.quantization\..+",
        uses=("call", "decorator"),
    ),
    Detector(
        "autograd-function",
        "rewrite",
        "a function with jax.custom_vjp: forward gives the residuals that ctx.save_for_backward kept, backward takes them",
        bases=r"torch\.autograd\.Function",
    ),
    Detector(
        "lightning",
        "redesign",
        "split it: the network as an NNX module, training_step and configure_optimizers as a plain optax training step",
        bases=r"(pytorch_lightning|lightning)\..*LightningModule",
        unit="redesign",
    ),
    Detector(
        "trainer",
        "redesign",
        "write the training loop out: one jitted step with optax, called from plain Python",
        names=r"(pytorch_lightning|lightning)\.(pytorch\.|fabric\.)?(Trainer|Fabric)|transformers\.(Seq2Seq)?Trainer|ignite\..+",
        bases=r"transformers\.(.*\.)?(Seq2Seq)?Trainer|(pytorch_lightning|lightning)\..*Callback",
        uses=("call",),
    ),
)


@lru_cache(maxsize=1 << 16)
def _rows(name: str, is_method: bool) -> tuple[int, ...]:
    """The indices of the rows whose pattern matches a name."""
    patterns = enumerate(row.methods if is_method else row.names for row in DETECTORS)
    return tuple(number for number, pattern in patterns if re.fullmatch(pattern, name))


def detect(uses: Iterable[Use]) -> tuple[Hit, ...]:
    """The first use of one file that each row matches, for each owner, in source order; a needed use before an optional one."""
    hits: dict[tuple[int, str], Hit] = {}
    # Needed uses come first, because `setdefault` keeps the first: one needed use outweighs any
    # number of optional ones.
    for use in sorted(uses, key=lambda use: (use.optional, use.line)):
        for row in _rows(use.name, use.kind == "method"):
            if DETECTORS[row].applies(use):
                hits.setdefault((row, use.owner), Hit(row, use.name, use.line, use.owner, use.optional))
    return tuple(sorted(hits.values(), key=lambda hit: hit.line))
