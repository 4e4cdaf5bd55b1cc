"""Data sets without torch: samples are NumPy arrays, numbers, texts, and tuples, lists and mappings of them."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from migrate_agent.tools.vendored.torch_random import TorchGenerator, default_generator


class Dataset:
    """`torch.utils.data.Dataset` (https://pytorch.org/docs/stable/data.html): `dataset[index]` is a sample, `len(dataset)` their number."""

    def __getitem__(self, index: Any) -> Any:
        """The sample of an index."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        """Both data sets, one after the other."""
        return ConcatDataset([self, other])

    def __class_getitem__(cls, kind: Any) -> type[Dataset]:
        """`Dataset[kind]`, for annotations and base classes."""
        return cls


class IterableDataset(Dataset):
    """`torch.utils.data.IterableDataset`: samples come in the order of `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        """The samples."""
        raise NotImplementedError


def samples_of(dataset: Any, indices: Sequence[int]) -> Any:
    """The samples of these indices: at once, where the data set reads several by `__getitems__`, as torch's loader asks for them."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if many else [dataset[index] for index in indices]


class TensorDataset(Dataset):
    """`torch.utils.data.TensorDataset` of arrays with one first axis: a sample is a tuple of one row of each.

    Raises `ValueError` where the arrays have different lengths.
    """

    _host: tuple[Any, tuple[Any, ...]] = (None, ())

    def __init__(self, *tensors: Any) -> None:
        if any(len(tensor) != len(tensors[0]) for tensor in tensors):
            raise ValueError(f"the arrays have different lengths: {[len(tensor) for tensor in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of these indices for a loader, read from memory of the host: each row of a device's array would be a program of its own."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return [self[index] for index in indices]
        tensors, rows = self._host
        if tensors is not self.tensors:
            rows = tuple(np.asarray(tensor) for tensor in self.tensors)
            self._host = (self.tensors, rows)
        return [tuple(row[index] for row in rows) for index in indices]

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """`torch.utils.data.Subset`: the samples of these indices, in their order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of these indices, as the data set below reads several."""
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[index] for index in indices]
        return samples_of(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """`torch.utils.data.ConcatDataset`: data sets one after the other. Raises `ValueError` without any."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("there is no data set to concatenate")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        dataset, within = self._place(index)
        return dataset[within]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of these indices, as the data sets below read them."""
        if type(self).__getitem__ is not ConcatDataset.__getitem__:
            return [self[index] for index in indices]
        return [samples_of(dataset, [within])[0] for dataset, within in map(self._place, indices)]

    def _place(self, index: int) -> tuple[Any, int]:
        """The data set that a sample is in, and its index there."""
        index %= len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[number], index - (self.cumulative_sizes[number - 1] if number else 0)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[float], generator: TorchGenerator = default_generator) -> list[Subset]:
    """`torch.utils.data.random_split`, with the same samples in each part by the same seed. `lengths` are numbers of samples, or fractions of 1.

    Raises `ValueError` where the lengths do not sum to that of the data set.
    """
    total, counts = len(dataset), list(lengths)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        counts = [math.floor(total * fraction) for fraction in counts]
        for i in range(total - int(sum(counts))):
            counts[i % len(counts)] += 1
    if sum(counts) != total:
        raise ValueError(f"the lengths sum to {sum(counts)}, and the data set has {total} samples")
    indices = generator.permutation(total).tolist()
    ends = itertools.accumulate(int(count) for count in counts)
    return [Subset(dataset, indices[end - int(count) : end]) for end, count in zip(ends, counts, strict=True)]
