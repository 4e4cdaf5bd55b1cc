"""Data sets of images without torch, from the files that torchvision has downloaded."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.vendored.datasets import Dataset


class ImageDataset(Dataset):
    """Images `data` uint8 (N, H, W) or (N, H, W, C) and integers `targets`, and what is done to each of both."""

    def __init__(
        self, root: Any, transform: Callable[[Any], Any] | None = None, target_transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.root, self.transform, self.target_transform = str(root), transform, target_transform
        self.data: Any = np.zeros((0, 1, 1), np.uint8)
        self.targets: Any = []

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        image, target = self.data[index], int(self.targets[index])
        image = self.transform(image) if self.transform is not None else image
        return image, self.target_transform(target) if self.target_transform is not None else target

    def __len__(self) -> int:
        return len(self.data)


class MNIST(ImageDataset):
    """`torchvision.datasets.MNIST` (https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.MNIST.html), from `ROOT/MNIST/raw`.

    Nothing is downloaded. Raises `FileNotFoundError` where the files are not there.
    """

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        folder, part = Path(root) / type(self).__name__ / "raw", "train" if train else "t10k"
        self.train = train
        self.data = _idx(folder / f"{part}-images-idx3-ubyte")
        self.targets = _idx(folder / f"{part}-labels-idx1-ubyte").astype(np.int64)


class FashionMNIST(MNIST):
    """`torchvision.datasets.FashionMNIST`: files like those of MNIST, in `ROOT/FashionMNIST/raw`."""


class CIFAR10(ImageDataset):
    """`torchvision.datasets.CIFAR10` (https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.CIFAR10.html).

    From `ROOT/cifar-10-batches-py`; nothing is downloaded. Raises `FileNotFoundError` where the files are not there.
    """

    folder, labels = "cifar-10-batches-py", "labels"
    parts: tuple[tuple[str, ...], tuple[str, ...]] = (tuple(f"data_batch_{number}" for number in range(1, 6)), ("test_batch",))

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.train = train
        rows = [_pickled(Path(root) / self.folder / name) for name in self.parts[0 if train else 1]]
        self.data = np.vstack([row["data"] for row in rows]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.targets = [label for row in rows for label in row[self.labels]]


class CIFAR100(CIFAR10):
    """`torchvision.datasets.CIFAR100`, from `ROOT/cifar-100-python`."""

    folder, labels = "cifar-100-python", "fine_labels"
    parts = (("train",), ("test",))


def _idx(path: Path) -> Any:
    """The array of a file in the format of MNIST, packed by gzip or not."""
    packed = path.with_name(f"{path.name}.gz")
    if not path.exists() and not packed.exists():
        raise FileNotFoundError(f"{path} is not there: it is what torchvision downloads")
    content = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    axes = content[3]
    shape = np.frombuffer(content, ">i4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _pickled(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: it is what torchvision downloads")
    return pickle.loads(path.read_bytes(), encoding="latin1")
