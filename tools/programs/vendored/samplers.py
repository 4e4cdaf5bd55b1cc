"""The order of samples without torch: the same indices by the same seed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from migrate_agent.tools.vendored.torch_random import TorchGenerator, default_generator


class Sampler:
    """`torch.utils.data.Sampler` (https://pytorch.org/docs/stable/data.html): iterates over indices."""

    def __iter__(self) -> Iterator[Any]:
        """The indices of one epoch."""
        raise NotImplementedError


class SequentialSampler(Sampler):
    """`torch.utils.data.SequentialSampler`: all indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """`torch.utils.data.RandomSampler`: all indices in a new order each epoch, or `num_samples` drawn with replacement.

    Without a generator each epoch has a stream of its own, whose seed the default generator draws.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: TorchGenerator | None = None
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    def __iter__(self) -> Iterator[int]:
        n, total = len(self.data_source), len(self)
        generator = self.generator or TorchGenerator().manual_seed(default_generator.integer())
        if self.replacement:
            # In pieces, since a program may draw from the same generator between two batches.
            for _ in range(total // 32):
                yield from generator.integers(0, n, (32,)).tolist()
            yield from generator.integers(0, n, (total % 32,)).tolist()
        else:
            for _ in range(total // n):
                yield from generator.permutation(n).tolist()
            # torch draws one more order even where nothing of it is used.
            yield from generator.permutation(n).tolist()[: total % n]

    def __len__(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples


class SubsetRandomSampler(Sampler):
    """`torch.utils.data.SubsetRandomSampler`: these indices in a new order each epoch."""

    def __init__(self, indices: Sequence[int], generator: TorchGenerator = default_generator) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in self.generator.permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler):
    """`torch.utils.data.BatchSampler`: lists of `batch_size` indices; the last may be shorter, or is left out with `drop_last`."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return len(self.sampler) // self.batch_size if self.drop_last else -(-len(self.sampler) // self.batch_size)


class DistributedSampler(Sampler):
    """`torch.utils.data.DistributedSampler`: every `num_replicas`-th index of one order for all processes, from `rank` on.

    The order is that of `seed + epoch`. Its first indices are repeated at the end where the processes would get different numbers, or its last ones
    are left out with `drop_last`. Replicas are JAX's processes unless said otherwise.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        self.num_replicas = jax.process_count() if num_replicas is None else num_replicas
        self.rank = jax.process_index() if rank is None else rank
        length = len(dataset)
        self.num_samples = length // self.num_replicas if drop_last else math.ceil(length / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        order = TorchGenerator().manual_seed(self.seed + self.epoch).permutation(length).tolist() if self.shuffle else list(range(length))
        if not self.drop_last:
            order = order * math.ceil(self.total_size / length)
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, so that its order is another one."""
        self.epoch = epoch
