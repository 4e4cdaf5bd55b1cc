"""Grids of images, and files of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: Any = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """`torchvision.utils.make_grid` (https://docs.pytorch.org/vision/stable/utils.html): images (N, C, H, W) beside each other, (3, H', W')."""
    images = np.stack([np.asarray(one) for one in tensor]) if isinstance(tensor, (list, tuple)) else np.asarray(tensor)
    images = images[None] if images.ndim == 2 else images
    images = images[None] if images.ndim == 3 else images
    images = np.repeat(images, 3, axis=1) if images.shape[1] == 1 else images
    if normalize:
        images = np.stack([_scaled(one, value_range) for one in images]) if scale_each else _scaled(images, value_range)
    if len(images) == 1:
        return images[0]
    columns = min(nrow, len(images))
    rows = math.ceil(len(images) / columns)
    height, width = images.shape[2] + padding, images.shape[3] + padding
    grid = np.full((images.shape[1], height * rows + padding, width * columns + padding), pad_value, images.dtype)
    for number, image in enumerate(images):
        top, left = number // columns * height + padding, number % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = image
    return grid


def _scaled(images: Any, value_range: Any) -> Any:
    low, high = value_range or (float(images.min()), float(images.max()))
    return (np.clip(images, low, high) - low) / max(high - low, 1e-5)


def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """`torchvision.utils.save_image`: a grid of images, by Pillow. Raises `ImportError` where it is not there."""
    from PIL import Image

    grid = make_grid(tensor, **kwargs)
    pixels = np.clip(grid * 255 + 0.5, 0, 255).transpose(1, 2, 0).astype(np.uint8)
    Image.fromarray(pixels).save(fp, format=format)
