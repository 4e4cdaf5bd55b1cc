"""Data sets, samplers and loaders (https://pytorch.org/docs/stable/data.html)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.arguments import Arguments, parse_signature
from migrate_agent.tools.programs.tables.registry import Function, Refused
from migrate_agent.tools.rewrite.tables.registry import Refuse

DATA = "torch.utils.data"
LOADER = (
    "dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, "
    "timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False, "
    "pin_memory_device='', in_order=True"
)
WITHOUT_EFFECT = ("pin_memory", "timeout", "multiprocessing_context", "prefetch_factor", "pin_memory_device", "in_order")


def _same(name: str, signature: str) -> Function:
    """A class or function whose helper has torch's name and arguments."""
    defaults = parse_signature(signature).parameters

    def text(arguments: Arguments) -> str:
        passed = [
            argument.text if defaults[key].default is defaults[key].empty else f"{key}={argument.text}"
            for key, argument in arguments.items()
            if argument.text != defaults[key].default
        ]
        return f"vendored.{name}({', '.join(passed)})"

    return Function(f"{DATA}.{name}", signature, text)


def _tensors(arguments: Arguments) -> str:
    return f"vendored.TensorDataset({arguments['tensors'].text})"


def _loader(arguments: Arguments) -> str:
    if not arguments["worker_init_fn"].is_default(None):
        raise Refuse("worker_init_fn seeds each worker process of torch's, and there are none here")
    kept = {key: argument for key, argument in arguments.items() if key not in WITHOUT_EFFECT}
    # Workers draw nothing of the order; only those that stay draw their seed once for all epochs.
    if arguments["persistent_workers"].is_default(False):
        kept = {key: argument for key, argument in kept.items() if key != "num_workers"}
    return _same("DataLoader", LOADER).to(kept)


ROWS = (
    Function(f"{DATA}.TensorDataset", "*tensors", _tensors),
    _same("Subset", "dataset, indices"),
    _same("ConcatDataset", "datasets"),
    _same("random_split", "dataset, lengths, generator=None"),
    _same("SequentialSampler", "data_source"),
    _same("RandomSampler", "data_source, replacement=False, num_samples=None, generator=None"),
    _same("SubsetRandomSampler", "indices, generator=None"),
    _same("BatchSampler", "sampler, batch_size, drop_last"),
    _same("DistributedSampler", "dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False"),
    _same("default_collate", "batch"),
    Function(f"{DATA}.DataLoader", LOADER, _loader, "NumPy batches in torch's order by seed; workers and pinned memory have no effect"),
    Refused(f"{DATA}.WeightedRandomSampler", "WeightedRandomSampler draws by torch.multinomial, whose numbers are not reproduced"),
    Refused(f"{DATA}.ChainDataset", "ChainDataset of iterable data sets has no helper: itertools.chain"),
    Refused(f"{DATA}.StackDataset", "StackDataset has no helper"),
    Refused(f"{DATA}.IterDataPipe", "data pipes have no counterpart: write a data set"),
)
BASES = {f"{DATA}.{name}": name for name in ("Dataset", "IterableDataset", "Sampler")}
"""Classes that programs derive from: dotted name → helper."""
