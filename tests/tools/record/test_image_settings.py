"""Sizes of images that settings name."""

from typing import Any

import pytest

from migrate_agent.tools.record.guessing.objects.image_settings import image_sizes, with_images_of_settings
from migrate_agent.tools.record.guessing.values import Tensor

TABLES = [
    ({"img_size": [94, 24], "lr": 0.1}, [(94, 24), (24, 94)]),
    ({"imgH": 32, "imgW": 100}, [(32, 100), (100, 32)]),
    ({"image_size": 64, "crop_size": 48}, [(64, 64), (48, 48)]),
    ({"input_shape": (3, 28, 20)}, [(28, 20), (20, 28)]),
    ({"image_size": 4096, "img_size": "large", "size": 32, "imgH": 32}, []),
]


@pytest.mark.parametrize(("table", "sizes"), TABLES, ids=str)
def test_sizes_are_read_from_settings(table: dict[str, Any], sizes: list[tuple[int, int]]) -> None:
    assert list(image_sizes([table])) == sizes


ROWS, IMAGE, FEATURES = Tensor((2, 7)), Tensor((2, 1, 32, 32)), Tensor((2, 48, 8, 8))


@pytest.mark.parametrize(
    ("mains", "shapes"),
    [
        ([ROWS, IMAGE, FEATURES], [(2, 7), (2, 1, 30, 20), (2, 1, 20, 30), (2, 1, 32, 32), (2, 48, 8, 8)]),
        ([FEATURES, IMAGE], [(2, 48, 8, 8), (2, 48, 30, 20), (2, 48, 20, 30), (2, 1, 32, 32)]),
        ([ROWS, FEATURES, IMAGE], [(2, 7), (2, 48, 8, 8), (2, 1, 30, 20), (2, 1, 20, 30), (2, 1, 32, 32)]),
        ([ROWS, FEATURES], [(2, 7), (2, 48, 8, 8)]),
    ],
)
def test_images_have_the_channels_of_the_first_one(mains: list[Tensor], shapes: list[tuple[int, ...]]) -> None:
    assert [tensor.shape for tensor in with_images_of_settings([{"img_size": [30, 20]}], mains)] == shapes
