"""Transforms of images without torch: images of PIL, or arrays uint8 (H, W) or (H, W, C), then float arrays (C, H, W)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.vendored.torch_random import default_generator


class Compose:
    """`torchvision.transforms.Compose` (https://docs.pytorch.org/vision/stable/transforms.html): one transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    """`torchvision.transforms.ToTensor`: an image as an array float32 (C, H, W); uint8 becomes the range [0, 1]."""

    def __call__(self, image: Any) -> Any:
        array = np.asarray(image)
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return np.ascontiguousarray(array).astype(jnp.float32) / 255 if array.dtype == np.uint8 else np.ascontiguousarray(array)


class Normalize:
    """`torchvision.transforms.Normalize`: less the mean and divided by the deviation of each channel, of an array (…, C, H, W)."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = mean, std

    def __call__(self, image: Any) -> Any:
        mean, std = (np.asarray(values, np.float64).astype(image.dtype).reshape(-1, 1, 1) for values in (self.mean, self.std))
        return (image - mean) / std


class Lambda:
    """`torchvision.transforms.Lambda`: a function of the program's own."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class RandomHorizontalFlip:
    """`torchvision.transforms.RandomHorizontalFlip`: mirrored with probability `p`, by a number of torch's stream."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        return hflip(image) if float(default_generator.rand(1)[0]) < self.p else image


class RandomVerticalFlip:
    """`torchvision.transforms.RandomVerticalFlip`: upside down with probability `p`, by a number of torch's stream."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        return _changed(image, lambda array: array[::-1]) if float(default_generator.rand(1)[0]) < self.p else image


class CenterCrop:
    """`torchvision.transforms.CenterCrop`: the middle, of a size or of (height, width); too small images get a border of zeros."""

    def __init__(self, size: Any) -> None:
        self.size = _pair(size)

    def __call__(self, image: Any) -> Any:
        height, width = self.size
        rows, columns = _size(image)
        image = _padded(image, *((max(want - have, 0) for want, have in ((height, rows), (width, columns)))))
        rows, columns = _size(image)
        return _crop(image, round((rows - height) / 2.0), round((columns - width) / 2.0), height, width)


class RandomCrop:
    """`torchvision.transforms.RandomCrop`: a part of (height, width) somewhere, by two integers of torch's stream.

    `padding` is a border of zeros on all sides first. Raises `ValueError` for images that are smaller, and for other borders.
    """

    def __init__(
        self, size: Any, padding: int | None = None, pad_if_needed: bool = False, fill: int = 0, padding_mode: str = "constant"
    ) -> None:
        if pad_if_needed or fill or padding_mode != "constant" or not isinstance(padding, int | None):
            raise ValueError("RandomCrop has a border of zeros alone here, as wide on all sides")
        self.size, self.padding = _pair(size), padding or 0

    def __call__(self, image: Any) -> Any:
        image = _padded(image, 2 * self.padding, 2 * self.padding)
        (height, width), (rows, columns) = self.size, _size(image)
        if rows < height or columns < width:
            raise ValueError(f"an image of {rows} x {columns} has no part of {height} x {width}")
        # torch draws nothing where there is no choice.
        if (rows, columns) == (height, width):
            return image
        top, left = (int(default_generator.integers(0, have - want + 1, (1,))[0]) for have, want in ((rows, height), (columns, width)))
        return _crop(image, top, left, height, width)


class Resize:
    """`torchvision.transforms.Resize`: an image of PIL, or an array uint8, in another size by PIL.

    One number is the length of the shorter side, two are (height, width). Raises `ImportError` where Pillow is not there and the size changes.
    """

    def __init__(self, size: Any, interpolation: Any = 2, max_size: None = None, antialias: bool | None = True) -> None:
        self.size, self.interpolation = size, getattr(interpolation, "value", interpolation)

    def __call__(self, image: Any) -> Any:
        rows, columns = _size(image)
        height, width = self._target(rows, columns)
        if (rows, columns) == (height, width):
            return image
        from PIL import Image

        methods = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}
        is_array = isinstance(image, np.ndarray)
        image = Image.fromarray(image) if is_array else image
        resized = image.resize((width, height), methods.get(self.interpolation, self.interpolation))
        return np.asarray(resized) if is_array else resized

    def _target(self, rows: int, columns: int) -> tuple[int, int]:
        size = self.size
        if not isinstance(size, int) and len(size) == 2:
            return int(size[0]), int(size[1])
        short = int(size if isinstance(size, int) else size[0])
        long = int(short * max(rows, columns) / min(rows, columns))
        return (short, long) if rows <= columns else (long, short)


def hflip(image: Any) -> Any:
    """An image mirrored."""
    return _changed(image, lambda array: array[:, ::-1])


def _changed(image: Any, function: Callable[[Any], Any]) -> Any:
    """An image whose array (H, W, …) is changed; float arrays lie as (C, H, W)."""
    if not isinstance(image, np.ndarray):
        from PIL import Image

        return Image.fromarray(np.ascontiguousarray(function(np.asarray(image))))
    if image.ndim == 3 and image.dtype != np.uint8:
        return np.moveaxis(function(np.moveaxis(image, 0, -1)), -1, 0)
    return function(image)


def _size(image: Any) -> tuple[int, int]:
    if not isinstance(image, np.ndarray):
        return int(image.size[1]), int(image.size[0])
    return (image.shape[-2], image.shape[-1]) if image.ndim == 3 and image.dtype != np.uint8 else (image.shape[0], image.shape[1])


def _crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    return _changed(image, lambda array: array[top : top + height, left : left + width])


def _padded(image: Any, rows: int, columns: int) -> Any:
    """With so many rows and columns of zeros more, half of them on each side."""
    if not rows and not columns:
        return image

    def pad(array: Any) -> Any:
        sides = [(count // 2, math.ceil(count / 2)) for count in (rows, columns)]
        return np.pad(array, [*sides, *[(0, 0)] * (array.ndim - 2)])

    return _changed(image, pad)


def _pair(size: Any) -> tuple[int, int]:
    return (int(size), int(size)) if isinstance(size, (int, float)) else (int(size[0]), int(size[-1]))
