"""`migrate-agent weights`: a checkpoint of the original as one of the port, and back."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from rich.markup import escape

from migrate_agent.agent.config.config import Config, load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.judging import lay_out
from migrate_agent.agent.loop.scope import find_unit
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.torchax import side_of
from migrate_agent.agent.loop.verified_units import Present, load_verified, read_mirror
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.agent.runs.progress import Progress, stdout
from migrate_agent.agent.runs.tables import weight_table
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.checkpoint.convert import to_jax, to_torch
from migrate_agent.tools.checkpoint.files import CheckpointError, save
from migrate_agent.tools.checkpoint.load import describe
from migrate_agent.tools.checkpoint.load import load as load_checkpoint
from migrate_agent.tools.checkpoint.matching import Entry, Group, Match, match, match_port
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Example, Observations, Unit

UNOBSERVED: Observations = {}
"""How a module is built is read from the text alone: nothing of the original is run."""
TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")


@dataclass(frozen=True)
class WeightsOptions:
    """The command's options. `check` writes nothing; `ignore` are patterns of names in the checkpoint that the port does not take."""

    output: Path | None = None
    check: bool = False
    to: Literal["jax", "torch"] = "jax"
    init: str | None = None
    setup: str = ""
    ignore: tuple[str, ...] = ()
    sandbox: str = ""


def weights(root: Path, module: str, checkpoint: Path, options: WeightsOptions, services: Services, progress: Progress) -> int:
    """Compare, print the table, convert; gives 0 where every name has its place, else 1. Raises `UserError` where there is nothing to compare."""
    repository = open_repository(root)
    config = load_config(repository.root)
    inventory = services.scanned(repository.root, config)
    unit = find_unit(inventory, module)
    present = Present(inventory, services.examples(inventory, config), read_mirror(repository.root, load_verified(repository.root)))
    if unit.target not in present.mirror:
        raise UsageError(f"{unit.target} is not there: migrate {unit.id} first, and check its branch out")
    examples = _examples(present, unit, options, services)
    output = _output(checkpoint, options)
    limits = config.limits.limits()
    opened = closing(services.open_sandbox(options.sandbox or config.run.sandbox, config.run.device))
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch, opened as box, progress.live():
        try:
            progress.stage(unit.id, "reading the checkpoint")
            groups = load_checkpoint(checkpoint, box, Path(scratch) / "read", limits)
            progress.stage(unit.id, "building the port")
            entries = _entries(present, unit, examples, Path(scratch) / "port", box, config)
            best = _best_match(entries, [_without_ignored(group, options.ignore) for group in groups], options.to)
            stdout().print(weight_table(best.rows, options.to))
            _print_match(best, unit, examples, options)
            if best.fits and not options.check:
                _write(output, best, options.to)
                stdout().print(f"written: {escape(str(output))}\n\n{escape(_usage(unit, present, output, options.to))}", soft_wrap=True)
        except CheckpointError as error:
            raise UsageError(str(error)) from None
    return 0 if best.fits else 1


def _examples(present: Present, unit: Unit, options: WeightsOptions, services: Services) -> list[Example]:
    """How to construct the port: as the command line says, or as the unit's own examples do."""
    own, used = present.exercising(unit)
    examples = [Example(unit.id, options.init, "", options.setup)] if options.init is not None else list(used if own else ())
    if not examples:
        raise UsageError(
            f"how is {unit.name} built for this checkpoint? say it with --init 'ARGUMENTS', or add an [[example]] to migrate.toml"
        )
    try:
        return [services.translate(present.inventory, UNOBSERVED, replace(example, call="")) for example in examples]
    except Untranslatable as error:
        raise UsageError(f"the constructor's arguments have no equivalent in the port's names: {error}") from None


def _output(checkpoint: Path, options: WeightsOptions) -> Path:
    stem = checkpoint.name.partition(".")[0] if checkpoint.suffix else checkpoint.name
    output = options.output or Path(f"{stem}_{options.to}.safetensors")
    if options.to == "jax" and output.suffix != ".safetensors":
        raise UsageError(f"--output {output}: a port's weights are written as .safetensors")
    if options.to == "torch" and output.suffix not in (".safetensors", *TORCH_SUFFIXES):
        raise UsageError(f"--output {output}: torch's weights are written as .safetensors or {', '.join(TORCH_SUFFIXES)}")
    if not options.check and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise UsageError(f"--output {output}: {'is a folder' if output.is_dir() else 'its folder is not there'}")
    if output.exists() and checkpoint.exists() and output.samefile(checkpoint):
        raise UsageError(f"--output {output}: is the checkpoint itself")
    return output


def _entries(present: Present, unit: Unit, examples: Sequence[Example], folder: Path, box: Sandbox, config: Config) -> list[list[Entry]]:
    """What the port holds, for each way to build it that works."""
    file = next(file for file in present.inventory.files if file.path == unit.source)
    tree = lay_out(folder, present.candidate())
    side = side_of(unit, present.inventory, tree)
    built = describe(unit, file, examples, tree, box, config.limits.limits(), side)
    working = [entries for entries in built if not isinstance(entries, str)]
    if not working:
        raise UsageError(f"{unit.target}:{unit.name} cannot be built with ({examples[0].init}): {built[0]}")
    return working


def _without_ignored(group: Group, patterns: Sequence[str]) -> Group:
    tensors = {name: tensor for name, tensor in group.tensors.items() if not any(fnmatch(name, pattern) for pattern in patterns)}
    return Group(group.path, tensors)


def _best_match(built: Sequence[Sequence[Entry]], groups: Sequence[Group], to: str) -> Match:
    """The way to build the port that fits the checkpoint best."""
    matches = [match(entries, groups) if to == "jax" else match_port(entries, groups[0].tensors) for entries in built]
    return max(matches, key=lambda candidate: (candidate.fits, candidate.count("matches", "tied"), -candidate.count("extra", "missing")))


def _print_match(checkpoint_match: Match, unit: Unit, examples: Sequence[Example], options: WeightsOptions) -> None:
    out = stdout()
    for line in checkpoint_match.wrappers:
        out.print(f"note: {escape(line)}")
    kinds: Mapping[str, Any] = {
        "match": checkpoint_match.count("matches", "tied"),
        "missing": checkpoint_match.count("missing"),
        "of another shape": checkpoint_match.count("shape"),
        "extra": checkpoint_match.count("extra"),
    }
    out.print(", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    if checkpoint_match.count("missing", "shape") and options.init is None:
        built = escape(f"{unit.name}({examples[0].init})")
        out.print(f"the port was built as {built}: where the checkpoint's model is another, give its arguments with --init", soft_wrap=True)
    elif not checkpoint_match.count("missing", "shape") and checkpoint_match.count("extra"):
        out.print("what the port does not take can be left out with --ignore PATTERN")


def _write(output: Path, checkpoint_match: Match, to: str) -> None:
    arrays = to_jax(checkpoint_match) if to == "jax" else to_torch(checkpoint_match)
    if output.suffix == ".safetensors":
        save(output, arrays)
        return
    import torch
    from safetensors.numpy import save as as_bytes
    from safetensors.torch import load as as_tensors

    tensors = as_tensors(as_bytes(arrays))
    first = {row.entry.place: row.entry.name for row in reversed(checkpoint_match.rows) if row.entry}
    torch.save({row.entry.name: tensors[first[row.entry.place]] for row in checkpoint_match.rows if row.entry}, output)


def _usage(unit: Unit, present: Present, output: Path, to: str) -> str:
    """How to load what was written."""
    file = next(file for file in present.inventory.files if file.path == unit.source)
    first = unit.name.partition(".")[0]
    if to == "torch":
        safe = output.suffix == ".safetensors"
        loaded = f'safetensors.torch.load_file("{output}")' if safe else f'torch.load("{output}", weights_only=True)'
        return f"from {file.module} import {first}\n\nmodel = {unit.name}(...)\nmodel.load_state_dict({loaded})"
    return (
        "from flax import nnx\nfrom safetensors.flax import load_file\n"
        f"from {file.target_module} import {first}\n\n"
        f'model, arrays = {unit.name}(..., rngs=nnx.Rngs(0)), load_file("{output}")\n'
        "for path, variable in nnx.iter_graph(model):\n"
        '    if (name := ".".join(map(str, path))) in arrays:\n'
        "        variable.set_value(arrays[name])"
    )
