"""Repositories in the style of code for GPUs (`examples/fused/`), migrated and verified with `--no-llm`, and the kernels that they came to.

The packages themselves are for GPUs and are not installed: each repository falls back to plain torch where they are missing, which is what the
rewrite is compared with, and the rewrite takes the branch that calls the package's kernel. Two have kernels of their own and no fallback: these
run as they are, in Triton's interpreter and compiled for the CPU.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.zoo_packages.zoo_run import branch_files, commit_all, run_repository

REPOSITORIES = Path(__file__).parents[2] / "examples" / "fused"
KERNELS: Mapping[str, str] = {
    "apex": "cross_entropy",
    "bitsandbytes": "Linear",
    "causal_conv1d": "causal_depthwise_conv",
    "cpp_extension": "scaled_residual_torch",
    "flash_attn": "flash_attention",
    "liger": "FusedLinearCrossEntropyLoss",
    "mamba_ssm": "selective_scan",
    "triton": "silu",
    "triton_only": "swiglu_reference",
    "xformers": "memory_efficient_attention",
}
"""Repository → what stands for the kernel in the rewrite: the kernel library's, or the torch function that the repository has beside its own."""
NEEDED: Mapping[str, tuple[str, Callable[[], object]]] = {
    "cpp_extension": ("a C++ compiler and ninja", lambda: shutil.which("c++") and shutil.which("ninja")),
    "triton_only": ("triton, whose interpreter runs its kernels on the CPU", lambda: importlib.util.find_spec("triton")),
}
"""Repository → what its original needs in order to run here."""


def groups(options: Options) -> Sequence[Group]:
    """One repository at a time."""
    return [(name,) for name in sorted(KERNELS) if options.wanted(name)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Migrate each repository by the command line: one outcome a unit, and one that says whether the kernel stands in the rewrite."""
    for name in group:
        needed, present = NEEDED.get(name, ("", lambda: True))
        if not present():
            yield Outcome(f"{name}/model.py", "excluded", f"its original does not run here without {needed}")
            continue
        with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
            repository = Path(folder) / "repository"
            shutil.copytree(REPOSITORIES / name, repository)
            commit_all(repository)
            report = Path(folder) / "report.json"
            yield from run_repository(name, repository, report, options.sandbox)
            if report.exists():
                yield _kernel(name, branch_files(repository, json.loads(report.read_text(encoding="utf-8"))["branch"]))


def _kernel(name: str, files: Mapping[str, str]) -> Outcome:
    """Whether the model's rewrite calls what stands for the package's kernel, and imports nothing of the package."""
    text = files.get("model_jax.py", "")
    called = f"{KERNELS[name]}(" in text
    package = name.removesuffix("_only")
    clean = f"import {package}" not in text and f"from {package}" not in text
    reason = "" if called and clean else f"{KERNELS[name]} is not called" if not called else f"{package} is imported"
    return Outcome(f"{name}/kernel", "wrong" if reason else "right", reason)


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Our frameworks."""
    return {name: version(name) for name in ("torch", "jax", "flax", "numpy")}


FUSED = Suite("fused", "Repositories written around GPU kernels", "module classes and kernels", groups, run, 3600.0, versions, kept=True)
