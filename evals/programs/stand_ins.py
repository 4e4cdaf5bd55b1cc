"""Small files in the formats that public programs download, so that they run without a network: random, the same each time."""

from __future__ import annotations

import importlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def stand_in(folder: Path, data: str) -> None:
    """Write the files of `kind:path` below `folder`. Raises `KeyError` for a kind that is not there."""
    kind, _, path = data.partition(":")
    KINDS[kind](folder / path, np.random.default_rng(0))


def digits(folder: Path, draws: np.random.Generator) -> None:
    """MNIST's four files: 96 images to train with and 32 to test with, some of each class.

    A program that draws two images of one class until they differ never ends where a class has one alone.
    """
    for name, count in (("train", 96), ("t10k", 32)):
        images = draws.integers(0, 256, (count, 28, 28)) * (draws.random((count, 28, 28)) > 0.6)
        _idx(folder / "MNIST" / "raw" / f"{name}-images-idx3-ubyte", images)
        _idx(folder / "MNIST" / "raw" / f"{name}-labels-idx1-ubyte", draws.permutation(np.arange(count) % 10))


def _idx(path: Path, array: np.ndarray) -> None:
    """A file of the IDX format, uint8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(head + array.astype(np.uint8).tobytes())


def words(folder: Path, draws: np.random.Generator) -> None:
    """`train.txt`, `valid.txt` and `test.txt` of lines of ten words."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 160), ("valid", 30), ("test", 30)):
        rows = draws.integers(0, 60, (lines, 10))
        (folder / f"{name}.txt").write_text("".join(f" {' '.join(f'w{n}' for n in row)} \n" for row in rows))


def letters(path: Path, draws: np.random.Generator) -> None:
    """A text file of 3,000 characters."""
    path.write_text("".join(draws.choice(list("abcdefgh O,God!\n"), 3_000)))


def tokens(folder: Path, draws: np.random.Generator) -> None:
    """`train.bin` and `val.bin` of uint16 tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 4_000), ("val", 800)):
        draws.integers(0, 64, count).astype(np.uint16).tofile(folder / f"{name}.bin")


def photographs(folder: Path, draws: np.random.Generator) -> None:
    """Four images below `train` and one below `test`, 300 by 280."""
    from PIL import Image

    for name, count in (("train", 4), ("test", 1)):
        for number in range(count):
            path = folder / name / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draws.integers(0, 256, (280, 300, 3), dtype=np.uint8)).save(path)


def patches(folder: Path, draws: np.random.Generator) -> None:
    """`train.h5` of 14 pairs of patches, and `eval.h5` of three pairs of images, each of another name."""
    h5py: Any = importlib.import_module("h5py")
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "train.h5", "w") as train, h5py.File(folder / "eval.h5", "w") as held_out:
        for kind in ("lr", "hr"):
            train[kind] = draws.integers(0, 256, (14, 33, 33)).astype(np.float32)
            for number in range(3):
                held_out[f"{kind}/{number}"] = draws.integers(0, 256, (36, 30)).astype(np.float32)


def reviews(folder: Path, draws: np.random.Generator) -> None:
    """`rt-polarity.neg` and `rt-polarity.pos` of 32 lines of four to eleven words."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("neg", "pos"):
        rows = [draws.integers(0, 40, int(draws.integers(4, 12))) for _ in range(32)]
        (folder / f"rt-polarity.{kind}").write_text("".join(f"{' '.join(f'w{n}' for n in row)} .\n" for row in rows))


def tiny_images(folder: Path, draws: np.random.Generator) -> None:
    """CIFAR-10's batches: five of 16 images to train with, and 16 to test with."""
    target = folder / "cifar-10-batches-py"
    target.mkdir(parents=True)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        images, labels = draws.integers(0, 256, (16, 3_072), dtype=np.uint8), draws.permutation(np.arange(16) % 10)
        (target / name).write_bytes(pickle.dumps({"data": images, "labels": labels.tolist()}))
    (target / "batches.meta").write_bytes(pickle.dumps({"label_names": [str(number) for number in range(10)]}))


def citations(folder: Path, draws: np.random.Generator) -> None:
    """The files of a Planetoid graph called `cora`: 60 papers with 24 words each, of which 15 are to test with, and about 160 citations."""
    sparse: Any = importlib.import_module("scipy.sparse")
    folder.mkdir(parents=True, exist_ok=True)
    papers, known = 60, 45
    words = sparse.csr_matrix((draws.random((papers, 24)) > 0.8).astype(np.float32))
    cited: dict[int, list[int]] = {paper: [] for paper in range(papers)}
    for one, other in draws.integers(0, papers, (160, 2)).tolist():
        if one != other and other not in cited[one]:
            cited[one].append(other)
    for name, content in (("x", words[:20]), ("allx", words[:known]), ("tx", words[known:]), ("graph", cited)):
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(content))
    rows = draws.permutation(np.arange(known, papers))
    (folder / "ind.cora.test.index").write_text("".join(f"{row}\n" for row in rows))


def empty(folder: Path, draws: np.random.Generator) -> None:
    """A folder for what the program writes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("What the program writes.\n")


def digits_and_results(folder: Path, draws: np.random.Generator) -> None:
    """MNIST's files below `data`, and the folder `vae/results`."""
    digits(folder / "data", draws)
    empty(folder / "vae" / "results", draws)


def digits_and_samples(folder: Path, draws: np.random.Generator) -> None:
    """MNIST's files, and the folder `diffusion_outputs10`."""
    digits(folder, draws)
    empty(folder / "diffusion_outputs10", draws)


KINDS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    one.__name__: one
    for one in (
        digits,
        words,
        letters,
        tokens,
        photographs,
        patches,
        reviews,
        tiny_images,
        citations,
        empty,
        digits_and_results,
        digits_and_samples,
    )
}
