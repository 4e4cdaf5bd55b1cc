"""Data sets of images without torch, from the files that torchvision has downloaded."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.vendored.datasets import Dataset
from migrate_agent.tools.vendored.torch_random import TorchGenerator


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


class FakeData(ImageDataset):
    """`torchvision.datasets.FakeData` (https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.FakeData.html): random images and labels,
    those of an index always the same.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, ...] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__("", transform, target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        if index >= self.size:
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = TorchGenerator().manual_seed(index + self.random_offset)
        # torch's bytes are numbers modulo 256, below zero too.
        pixels = np.asarray(generator.randn(*self.image_size) * 255).astype(np.int64).astype(np.uint8)
        target = int(generator.integers(0, self.num_classes, (1,))[0])
        image: Any = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
        image = self.transform(image) if self.transform is not None else image
        return image, self.target_transform(target) if self.target_transform is not None else target

    def __len__(self) -> int:
        return self.size


class ImageFolder(ImageDataset):
    """`torchvision.datasets.ImageFolder` (https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html): images by class,
    from `ROOT/CLASS/…`.

    Raises `FileNotFoundError` for a folder without classes, and for a class without images.
    """

    suffixes = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

    def __init__(
        self,
        root: Any,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[str], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.loader = loader or _image
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"{self.root} has no folders of classes")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        chosen = is_valid_file or (lambda path: path.lower().endswith(self.suffixes))
        self.samples = [
            (path, number) for name, number in self.class_to_idx.items() for path in _files(Path(self.root) / name) if chosen(path)
        ]
        self.imgs, self.targets = self.samples, [number for _, number in self.samples]
        if empty := [name for name, number in self.class_to_idx.items() if number not in self.targets]:
            raise FileNotFoundError(f"{self.root} has no images of {', '.join(empty)}")

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = self.loader(path)
        image = self.transform(image) if self.transform is not None else image
        return image, self.target_transform(target) if self.target_transform is not None else target

    def __len__(self) -> int:
        return len(self.samples)


def _files(folder: Path) -> list[str]:
    return [os.path.join(root, name) for root, _, names in sorted(os.walk(folder, followlinks=True)) for name in sorted(names)]


def _image(path: str) -> Any:
    from PIL import Image

    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


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
