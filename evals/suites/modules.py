"""PyTorch's own module database (`module_db`): each sample in a small class, rewritten, its state loaded, forward and gradients compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from flax import nnx

from migrate_agent.evals.operators.mirror import Source, load_mirror, rewrite
from migrate_agent.evals.operators.module_source import Sample, samples
from migrate_agent.evals.operators.op_source import Unspelled
from migrate_agent.evals.operators.parity import compare_modules, randomise, set_up_jax, to_jax
from migrate_agent.evals.suite import Group, Options, Outcome, Status, Suite
from migrate_agent.evals.zoo_packages.tidiness import static_problems

GROUP = 3
Problems = dict[str, list[tuple[Status, str]]]
"""Class → what is wrong with it."""


class Chosen(NamedTuple):
    """A sample of a class."""

    name: str
    sample: Sample


LAZY = "lazy: its first call gives it its shapes, which this suite makes no program of; migrated where an example calls it"
EXCLUDED = {f"Lazy{kind}{n}d": LAZY for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)}
RANDOM = {"RReLU": "random while training", "AlphaDropout": "random", "FeatureAlphaDropout": "random"}
"""Modules whose values in training mode are random: they are compared in evaluation mode. (The verifier judges distributions.)"""

CONSTANT = {"SoftMarginLoss": (1,)}
"""Class → the inputs for which torch has no gradient, though they are floats."""


@cache
def entries() -> dict[str, Any]:
    """Name → entry."""
    from torch.testing._internal.common_modules import module_db

    return {info.name.removeprefix("nn."): info for info in module_db}


def groups(options: Options) -> Sequence[Group]:
    """A few classes at a time."""
    names = [name for name in entries() if options.wanted(name)]
    return [tuple(names[start : start + GROUP]) for start in range(0, len(names), GROUP)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge these classes: `right` means every sample, in training and evaluation mode, forward, gradients, buffers and `state_dict`."""
    problems, chosen = select(group, options)
    static = judge(chosen, problems) if chosen else []
    for name in group:
        yield outcome(name, problems[name], sum(owner == name for owner, _ in chosen))
    if static:
        yield Outcome(f"static check of {', '.join(group)}", "untidy", "; ".join(static[:5])[:500])


def select(group: Group, options: Options) -> tuple[Problems, list[Chosen]]:
    """The samples of these classes, and what of them cannot be written. Sets this process up for float64."""
    torch.set_default_dtype(torch.float64)
    set_up_jax()
    problems: Problems = {name: [] for name in group}
    chosen: list[Chosen] = []
    for name in group:
        for sample in samples(entries()[name], options.samples) if name not in EXCLUDED else ():
            if isinstance(sample, Unspelled):
                problems[name].append(("refused", f"not written: {sample}"))
            elif not (sample.training and name in RANDOM):
                chosen.append(Chosen(name, sample))
    return problems, chosen


def judge(chosen: Sequence[Chosen], problems: Problems) -> list[str]:
    """Rewrite the samples and compare; adds to `problems`, and gives what the static check finds."""
    sources = [Source(sample.text(f"M{index}"), sample.names) for index, (_, sample) in enumerate(chosen)]
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        holes, draft = rewrite(sources, Path(folder))
        mirror = load_mirror(Path(folder))
        for index, ((name, sample), hole) in enumerate(zip(chosen, holes, strict=True)):
            if hole:
                problems[name].append(("refused", f"{hole} | {sample.title}"))
            elif problem := _problem(sample, getattr(mirror, f"M{index}")):
                problems[name].append(("wrong", f"{problem} | {sample.title}"))
    return [] if any(holes) else static_problems(draft.files)


def original(sample: Sample) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """The sample's class around the module, with random parameters, in the sample's mode; and what to call it with."""
    names: dict[str, Any] = {"torch": torch}
    exec(sample.text("Original"), names)
    torch.manual_seed(0)
    module: torch.nn.Module = names["Original"](*sample.tensors)
    inputs = [tensor.detach() for tensor in sample.inputs]
    if any(torch.nn.parameter.is_lazy(tensor) for tensor in (*module.parameters(), *module.buffers())):
        module(*inputs)  # a lazy module gets its shapes
    module.train(sample.training)
    randomise(module)
    return module, inputs


def _problem(sample: Sample, rewritten: Any) -> str:
    """What is wrong with a rewritten module, or nothing."""
    module, inputs = original(sample)
    try:
        rewrite = rewritten(*map(to_jax, sample.tensors), rngs=nnx.Rngs(0))
        rewrite.train() if sample.training else rewrite.eval()
        compare_modules(module, rewrite, inputs, {}, constant=CONSTANT.get(sample.module, ()))
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def outcome(name: str, problems: list[tuple[Status, str]], samples: int) -> Outcome:
    """How the class did."""
    if name in EXCLUDED:
        return Outcome(name, "excluded", EXCLUDED[name])
    if not problems:
        return Outcome(name, "right", "", {"samples": samples})
    details = {"samples": samples, "failed": len(problems), "reasons": [reason for _, reason in problems[:8]]}
    status: Status = "wrong" if any(status == "wrong" for status, _ in problems) else "refused"
    return Outcome(name, status, next(reason for kind, reason in problems if kind == status)[:500], details)


def versions(outcomes: object) -> dict[str, str]:
    """What the suite was measured on."""
    return {package: version(package) for package in ("torch", "jax", "flax", "numpy")}


MODULES = Suite("modules", "Layers (PyTorch's `module_db`)", "classes", groups, run, 900.0, versions, kept=True)
