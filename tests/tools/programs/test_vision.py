"""Images without torch: transforms, data sets and grids against values that are known, and against torchvision where it is installed."""

from __future__ import annotations

import importlib
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate_agent.tools.programs.vendored import vision_datasets, vision_images, vision_transforms
from migrate_agent.tools.vendored.torch_random import default_generator

IMAGE = np.random.default_rng(0).integers(0, 256, (10, 12, 3), dtype=np.uint8)
GREY = IMAGE[..., 0]


def torchvision() -> Any:
    """torchvision, which the tests' environment may lack: it is no dependency, and its compiled part has no build for each torch."""
    try:
        return importlib.import_module("torchvision")
    except Exception as error:
        pytest.skip(f"torchvision does not load: {error}")


CASES: dict[str, tuple[Any, ...]] = {
    "ToTensor": (),
    "RandomHorizontalFlip": (),
    "RandomVerticalFlip": (),
    "RandomCrop": (8, 2),
    "CenterCrop": (7,),
    "Resize": (5,),
}


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("grey", [True, False])
def test_transforms(name: str, grey: bool) -> None:
    """The same image as torchvision's, by the same stream of random numbers."""
    import torch

    transforms, Image = torchvision().transforms, pytest.importorskip("PIL.Image", reason="Pillow is no dependency of the product")
    image = Image.fromarray(GREY if grey else IMAGE)
    torch.manual_seed(3)
    default_generator.manual_seed(3)
    for _ in range(4):
        theirs = getattr(transforms, name)(*CASES[name])(image)
        for given in (image, np.asarray(image)):
            state = default_generator.get_state()
            ours = getattr(vision_transforms, name)(*CASES[name])(given)
            if given is image:
                default_generator.set_state(state)
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_images_become_arrays_in_the_range_of_one() -> None:
    """Channels first, and normalised by channel."""
    array = vision_transforms.ToTensor()(IMAGE)
    assert array.shape == (3, 10, 12) and array.dtype == np.float32
    np.testing.assert_array_equal(array[1], IMAGE[..., 1].astype(np.float32) / np.float32(255))
    normal = vision_transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.25, 0.5))(array)
    np.testing.assert_allclose(normal[1], (array[1] - 0.5) / 0.25, rtol=1e-6)


def test_a_crop_of_the_middle() -> None:
    """Of an image, and of one that is too small."""
    np.testing.assert_array_equal(vision_transforms.CenterCrop((4, 6))(GREY), GREY[3:7, 3:9])
    assert vision_transforms.CenterCrop(16)(GREY).shape == (16, 16)


def test_data_sets_read_what_torchvision_downloads(tmp_path: Path) -> None:
    """MNIST's own format, and the batches of CIFAR."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    images, labels = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28), np.array([7, 3], np.uint8)
    (raw / "t10k-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">iii", *images.shape) + images.tobytes())
    (raw / "t10k-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">i", 2) + labels.tobytes())
    data = vision_datasets.MNIST(tmp_path, train=False, transform=vision_transforms.ToTensor())
    image, label = data[1]
    assert (len(data), label, image.shape) == (2, 3, (1, 28, 28))
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    flat = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    (folder / "test_batch").write_bytes(pickle.dumps({"data": flat, "labels": [1, 9]}))
    cifar = vision_datasets.CIFAR10(tmp_path, train=False)
    np.testing.assert_array_equal(cifar[1][0][..., 2], flat[1, 2048:].reshape(32, 32))
    with pytest.raises(FileNotFoundError, match="torchvision downloads"):
        vision_datasets.CIFAR10(tmp_path)


def test_images_of_nothing() -> None:
    """The same numbers for an index each time, and torchvision's where it is installed."""
    data = vision_datasets.FakeData(20, (3, 8, 8), 7, random_offset=2)
    assert (len(data), data[3][0].shape, data[3][0].dtype) == (20, (8, 8, 3), np.uint8)
    np.testing.assert_array_equal(data[3][0], data[3][0])
    assert vision_datasets.FakeData(2, (1, 8, 8))[0][0].shape == (8, 8)
    with pytest.raises(IndexError):
        data[20]
    theirs = torchvision().datasets.FakeData(20, (3, 8, 8), 7, random_offset=2)
    for index in range(20):
        assert data[index][1] == theirs[index][1]
        # Normal numbers are torch's to rounding, which may move a byte by one.
        difference = data[index][0].astype(int) - np.asarray(theirs[index][0]).astype(int)
        assert np.abs((difference + 128) % 256 - 128).max() <= 1


def test_images_by_folder(tmp_path: Path) -> None:
    """Classes and files in the order of their names."""
    Image = pytest.importorskip("PIL.Image", reason="Pillow is no dependency of the product")
    for name in ("dog/b.png", "dog/a.JPG", "cat/deep/c.png", "cat/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGE).save(tmp_path / name, format="png") if not name.endswith("txt") else (tmp_path / name).write_text("")
    data = vision_datasets.ImageFolder(tmp_path, transform=vision_transforms.ToTensor())
    assert data.classes == ["cat", "dog"]
    assert [(Path(path).name, number) for path, number in data.samples] == [("c.png", 0), ("a.JPG", 1), ("b.png", 1)]
    assert (len(data), data[2][0].shape, data[2][1]) == (3, (3, 10, 12), 1)
    (tmp_path / "bird").mkdir()
    with pytest.raises(FileNotFoundError, match="no images of bird"):
        vision_datasets.ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folders"):
        vision_datasets.ImageFolder(tmp_path / "bird")
    torchvision_data = torchvision().datasets
    (tmp_path / "bird").rmdir()
    assert torchvision_data.ImageFolder(tmp_path).samples == data.samples


def test_grids() -> None:
    """Images beside each other with a border."""
    grid = vision_images.make_grid(np.ones((3, 1, 4, 5), np.float32), nrow=2, padding=1)
    assert grid.shape == (3, 11, 13)
    assert grid[:, 1:5, 1:6].min() == 1 and grid[:, 6:10, 7:12].max() == 0
    utils = torchvision().utils
    import torch

    images = np.random.default_rng(1).standard_normal((5, 3, 4, 5)).astype(np.float32)
    theirs = utils.make_grid(torch.from_numpy(images), nrow=3, normalize=True).numpy()
    np.testing.assert_allclose(vision_images.make_grid(images, nrow=3, normalize=True), theirs, atol=1e-6)
