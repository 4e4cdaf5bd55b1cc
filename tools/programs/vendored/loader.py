"""Batches without torch, in torch's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from migrate_agent.tools.programs.vendored.datasets import IterableDataset, samples_of
from migrate_agent.tools.programs.vendored.samplers import BatchSampler, RandomSampler, SequentialSampler
from migrate_agent.tools.vendored.torch_random import TorchGenerator, default_generator


def default_collate(batch: Any) -> Any:
    """`torch.utils.data.default_collate` (https://pytorch.org/docs/stable/data.html): samples as one batch of NumPy arrays with a new first axis.

    Numbers become int64 and float64 as there, tuples and lists become lists, and texts stay a list. Raises `TypeError` for other samples.
    """
    first = batch[0]
    if isinstance(first, (np.ndarray, jax.Array)):
        return np.stack([np.asarray(sample) for sample in batch])
    if isinstance(first, (bool, int, float, np.generic)):
        return np.asarray(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        return [default_collate(samples) for samples in zip(*batch, strict=True)]
    raise TypeError(f"samples of type {type(first).__name__} have no batch: give collate_fn")


def default_convert(sample: Any) -> Any:
    """`torch.utils.data.default_convert`: what a loader without batches does to a sample. Arrays stay arrays."""
    return sample


class DataLoader:
    """`torch.utils.data.DataLoader` (https://pytorch.org/docs/stable/data.html): the batches of a data set, in torch's order by seed.

    An epoch takes one integer from the generator, as torch does for its workers, before its samples are drawn. Samples are read in this process:
    `num_workers`, `pin_memory`, `timeout`, `prefetch_factor` and `multiprocessing_context` are taken and have no effect.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: None = None,
        multiprocessing_context: Any = None,
        generator: TorchGenerator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if worker_init_fn is not None and num_workers:
            raise ValueError("worker_init_fn has no meaning here: samples are read in one process")
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        if sampler is None and not isinstance(dataset, IterableDataset):
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        # Workers that stay have drawn their seed once for all epochs.
        self._seeded_once = persistent_workers and num_workers > 0
        self._seeded = False

    def __iter__(self) -> Iterator[Any]:
        # Not part of the generator below, which would draw with the first batch only.
        if not (self._seeded_once and self._seeded):
            (self.generator or default_generator).integer()
        self._seeded = True
        return self._batches()

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if self.sampler is not None:
            return len(self.sampler)
        if self.batch_size is None:
            return len(self.dataset)
        return len(self.dataset) // self.batch_size if self.drop_last else -(-len(self.dataset) // self.batch_size)

    def _batches(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            for indices in self.batch_sampler:
                yield self.collate_fn(samples_of(self.dataset, indices))
        elif self.sampler is not None:
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
        elif self.batch_size is None:
            for sample in self.dataset:
                yield self.collate_fn(sample)
        else:
            batch = []
            for sample in self.dataset:
                batch.append(sample)
                if len(batch) == self.batch_size:
                    yield self.collate_fn(batch)
                    batch = []
            if batch and not self.drop_last:
                yield self.collate_fn(batch)
