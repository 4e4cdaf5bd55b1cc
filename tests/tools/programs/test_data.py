"""Data sets, samplers and loaders against torch's, sample by sample over several epochs."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.utils.data

from migrate_agent.tests.tools.programs.problem import evaluate
from migrate_agent.tools.programs.tables.arguments import parse_signature
from migrate_agent.tools.programs.tables.data import BASES, DATA, LOADER, WITHOUT_EFFECT
from migrate_agent.tools.programs.tables.registry import function_text, functions
from migrate_agent.tools.programs.vendored import datasets, loader, samplers
from migrate_agent.tools.rewrite.tables.helpers import symbols
from migrate_agent.tools.rewrite.tables.registry import Refuse
from migrate_agent.tools.vendored.torch_random import TorchGenerator, default_generator

torch_data: Any = torch.utils.data
N = 103
X = np.arange(N * 2.0).reshape(N, 2)
EPOCHS = 3


def as_numpy(value: Any) -> Any:
    """A batch of torch's with NumPy arrays for tensors."""
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: as_numpy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_numpy(item) for item in value]
    return value


def same(ours: Any, theirs: Any) -> bool:
    """Whether two nested batches are equal, dtypes too."""
    if isinstance(theirs, np.ndarray):
        return bool(ours.dtype == theirs.dtype and np.array_equal(ours, theirs))
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


LOADERS: dict[str, dict[str, Any]] = {
    "in order": {"batch_size": 8},
    "shuffled": {"batch_size": 8, "shuffle": True},
    "last left out": {"batch_size": 8, "shuffle": True, "drop_last": True},
    "own generator": {"batch_size": 10, "shuffle": True, "generator": 7},
    "single samples": {"batch_size": None, "shuffle": True},
    "replacement": {"batch_size": 8, "sampler": ("RandomSampler", {"replacement": True, "num_samples": 75})},
    "more than there are": {"batch_size": 16, "sampler": ("RandomSampler", {"num_samples": 250})},
    "subset": {"batch_size": 4, "sampler": ("SubsetRandomSampler", {})},
    "batch sampler": {"batch_sampler": 6},
}


def arguments(options: dict[str, Any], room: Any, generator: Any, dataset: Any) -> dict[str, Any]:
    """The options with samplers and generators of one of the two sides."""
    made = dict(options)
    if "generator" in made:
        made["generator"] = generator.manual_seed(made["generator"])
    if "batch_sampler" in made:
        made["batch_sampler"] = room.BatchSampler(room.RandomSampler(dataset), made["batch_sampler"], True)
    if "sampler" in made:
        name, more = made["sampler"]
        made["sampler"] = getattr(room, name)(range(5, 50) if name.startswith("Subset") else dataset, **more)
    return made


@pytest.mark.parametrize("label", LOADERS)
def test_batches_are_torchs(label: str) -> None:
    options = LOADERS[label]
    theirs_of, ours_of = torch_data.TensorDataset(torch.from_numpy(X), torch.arange(N)), datasets.TensorDataset(X, np.arange(N))
    torch.manual_seed(42)
    theirs = torch_data.DataLoader(theirs_of, **arguments(options, torch_data, torch.Generator(), theirs_of))
    expected = [as_numpy(list(theirs)) for _ in range(EPOCHS)]
    default_generator.manual_seed(42)
    ours = loader.DataLoader(ours_of, **arguments(options, samplers, TorchGenerator(), ours_of))
    assert same([list(ours) for _ in range(EPOCHS)], expected)
    assert len(ours) == len(theirs)
    # What the program draws next is torch's too.
    assert default_generator.integer() == int(torch.empty((), dtype=torch.int64).random_())


@pytest.mark.slow
@pytest.mark.parametrize("stay", [False, True], ids=["new workers", "workers that stay"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_workers_change_nothing(stay: bool) -> None:
    torch.manual_seed(42)
    theirs = torch_data.DataLoader(torch_data.TensorDataset(torch.arange(N)), 8, True, num_workers=2, persistent_workers=stay)
    expected = [as_numpy(list(theirs)) for _ in range(2)]
    default_generator.manual_seed(42)
    ours = loader.DataLoader(datasets.TensorDataset(np.arange(N)), 8, True, num_workers=2, persistent_workers=stay)
    assert same([list(ours) for _ in range(2)], expected)


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_iterable_data_sets(batch_size: int | None, drop_last: bool) -> None:
    if batch_size is None and drop_last:
        with pytest.raises(ValueError, match="drop_last"):
            torch_data.DataLoader(Count(), None, drop_last=True)
        return
    theirs = torch_data.DataLoader(Count(), batch_size, drop_last=drop_last)
    ours = loader.DataLoader(OurCount(), batch_size, drop_last=drop_last)
    assert same(list(ours), [as_numpy(batch) for batch in theirs])


class Count(torch.utils.data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


class OurCount(datasets.IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


@pytest.mark.parametrize("lengths", [[80, 23], [0.5, 0.3, 0.2], [0.9, 0.1]], ids=str)
@pytest.mark.parametrize("seeded", [False, True])
def test_random_split(lengths: list[Any], seeded: bool) -> None:
    torch.manual_seed(5)
    default_generator.manual_seed(5)
    theirs = torch_data.random_split(range(N), lengths, **({"generator": torch.Generator().manual_seed(3)} if seeded else {}))
    ours = datasets.random_split(range(N), lengths, **({"generator": TorchGenerator().manual_seed(3)} if seeded else {}))
    assert [part.indices for part in ours] == [list(part.indices) for part in theirs]
    assert [part[0] for part in ours] == [part[0] for part in theirs]


def test_random_split_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="100"):
        datasets.random_split(range(N), [50, 50])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("length", [3, 100, 103])
def test_distributed_sampler(shuffle: bool, drop_last: bool, length: int) -> None:
    options: dict[str, Any] = {"shuffle": shuffle, "drop_last": drop_last, "seed": 3}
    for rank in range(4):
        if drop_last and length < 4:
            continue
        theirs = torch_data.DistributedSampler(range(length), 4, rank, **options)
        ours = samplers.DistributedSampler(range(length), 4, rank, **options)
        for epoch in range(2):
            theirs.set_epoch(epoch)
            ours.set_epoch(epoch)
            assert list(ours) == list(theirs)
        assert len(ours) == len(theirs)


Point = namedtuple("Point", "x y")
SAMPLES: dict[str, list[Any]] = {
    "numbers": [1, 2, 3],
    "floats": [1.0, 2.5],
    "flags": [True, False],
    "scalars of NumPy": [np.float32(1), np.float32(2)],
    "texts": ["a", "b"],
    "tuples": [(np.ones(2), 1), (np.zeros(2), 2)],
    "lists": [[1, 2.0], [3, 4.0]],
    "mappings": [{"x": np.ones(2), "y": 1}, {"x": np.zeros(2), "y": 2}],
    "named tuples": [Point(1, np.ones(1)), Point(2, np.zeros(1))],
}


@pytest.mark.parametrize("label", SAMPLES)
def test_collate(label: str) -> None:
    batch = SAMPLES[label]
    assert same(loader.default_collate(batch), as_numpy(torch_data.default_collate(batch)))
    assert type(loader.default_collate(batch)) is type(torch_data.default_collate(batch)) or isinstance(batch[0], (int, float, np.generic))


def test_samples_without_a_batch() -> None:
    with pytest.raises(TypeError, match="collate_fn"):
        loader.default_collate([object(), object()])


def test_concatenation_and_subsets() -> None:
    theirs = torch_data.ConcatDataset([torch_data.TensorDataset(torch.arange(3)), torch_data.TensorDataset(torch.arange(10, 14))])
    ours = datasets.TensorDataset(np.arange(3)) + datasets.TensorDataset(np.arange(10, 14))
    assert len(ours) == len(theirs) == 7
    assert [int(ours[i][0]) for i in range(-7, 7)] == [int(theirs[i][0]) for i in range(-7, 7)]
    part = datasets.Subset(ours, [5, 1])
    assert [int(sample[0]) for sample in (part[0], part[1])] == [12, 1]
    for wrong in (lambda: ours[7], lambda: datasets.ConcatDataset([]), lambda: datasets.TensorDataset(np.ones(2), np.ones(3))):
        with pytest.raises((IndexError, ValueError)):
            wrong()


CALLS = [
    ("DataLoader(data, 8, True, num_workers=4, pin_memory=True)", "DataLoader(data, batch_size=8, shuffle=True)"),
    (
        "DataLoader(data, batch_size=args.b, num_workers=2, persistent_workers=True)",
        "DataLoader(data, batch_size=args.b, num_workers=2, persistent_workers=True)",
    ),
    ("TensorDataset(x, y)", "TensorDataset(x, y)"),
    ("random_split(data, [0.9, 0.1])", "random_split(data, [0.9, 0.1])"),
    ("random_split(data, [80, 20], generator=g)", "random_split(data, [80, 20], generator=g)"),
]


@pytest.mark.parametrize(("call", "expected"), CALLS, ids=[call for call, _ in CALLS])
def test_texts(call: str, expected: str) -> None:
    name = call.partition("(")[0]
    text = function_text(f"{DATA}.{name}", call)
    assert (text.code, text.helpers) == (expected, frozenset({name}))


def test_text_runs_as_the_target_holds_it() -> None:
    text = function_text(f"{DATA}.DataLoader", "DataLoader(data, 4, shuffle=True, num_workers=3)")
    batches = list(evaluate(text, data=datasets.TensorDataset(np.arange(10))))
    assert sorted(np.concatenate([batch[0] for batch in batches])) == list(range(10))


@pytest.mark.parametrize("call", ["DataLoader(data, worker_init_fn=seed)", "WeightedRandomSampler(w, 3)", "StackDataset(a, b)"])
def test_refused(call: str) -> None:
    with pytest.raises(Refuse):
        function_text(f"{DATA}.{call.partition('(')[0]}", call)
    if call.startswith("DataLoader"):
        with pytest.raises(ValueError, match="worker_init_fn"):
            loader.DataLoader([1], num_workers=1, worker_init_fn=print)  # type: ignore[arg-type]


def test_rows_name_torchs_arguments() -> None:
    for name, row in functions().items():
        if name.startswith(DATA):
            theirs = inspect.signature(getattr(torch_data, name.rpartition(".")[2])).parameters
            assert set(parse_signature(row.signature).parameters) <= {*theirs, "lengths"}
    assert set(WITHOUT_EFFECT) < set(parse_signature(LOADER).parameters)
    assert set(BASES.values()) <= set(symbols())


class Doubled(datasets.TensorDataset):
    """A data set whose samples are another's, changed."""

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(2 * part for part in super().__getitem__(index))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: datasets.TensorDataset(x),
        lambda x: Doubled(x),
        lambda x: datasets.Subset(datasets.TensorDataset(x), [5, 1, 7, 3]),
        lambda x: datasets.Subset(Doubled(x), [5, 1, 7, 3]),
        lambda x: datasets.ConcatDataset([datasets.TensorDataset(x), Doubled(x)]),
    ],
)
def test_samples_that_are_read_at_once_are_the_same(make: Any) -> None:
    dataset = make(jnp.arange(8.0))
    indices = [3, 0, 2, len(dataset) - 1]
    assert datasets.samples_of(dataset, indices) == [tuple(map(float, dataset[index])) for index in indices]


def test_rows_are_read_from_the_host_and_follow_what_they_are_of() -> None:
    dataset = datasets.TensorDataset(jnp.arange(4.0))
    assert isinstance(datasets.samples_of(dataset, [1])[0][0], np.floating)
    dataset.tensors = (jnp.arange(4.0) + 10,)
    assert datasets.samples_of(dataset, [1]) == [(11.0,)]
