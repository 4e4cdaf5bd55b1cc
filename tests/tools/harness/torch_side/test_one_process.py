"""Functions for several processes, in one process without a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.nn import functional

from migrate_agent.tools.harness.torch_side.one_process import ANSWERS, EXCHANGES, run_alone

collectives: Any = functional
untyped: Any = dist
X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own functions, before and after."""
    for name in {*ANSWERS, *EXCHANGES} & set(dir(dist)):
        monkeypatch.setattr(dist, name, getattr(dist, name))
    run_alone()


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one, of torch's own."""
    dist.init_process_group("gloo", store=untyped.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def received(call: Callable[[Any], object], target: Any) -> Any:
    assert call(target) is None
    return target


CALLS: dict[str, Callable[[], Any]] = {
    "size": lambda: (dist.get_world_size(), dist.get_rank()),
    "all_reduce": lambda: received(lambda x: dist.all_reduce(x, op=dist.ReduceOp.MAX), X.clone()),
    "broadcast": lambda: received(lambda x: dist.broadcast(x, src=0), X.clone()),
    "reduce": lambda: received(lambda x: dist.reduce(x, 0), X.clone()),
    "all_gather": lambda: received(lambda xs: dist.all_gather(xs, X), [torch.zeros(2, 3)]),
    "by_name": lambda: received(lambda xs: dist.all_gather(tensor=X, tensor_list=xs), [torch.zeros(2, 3)]),
    "into_tensor": lambda: received(lambda x: dist.all_gather_single(x, X), torch.zeros(2, 3)),
    "gather": lambda: received(lambda xs: dist.gather(X, xs, dst=0), [torch.zeros(2, 3)]),
    "scatter": lambda: received(lambda x: dist.scatter(x, [X], src=0), torch.zeros(2, 3)),
    "reduce_scatter": lambda: received(lambda x: dist.reduce_scatter(x, [X]), torch.zeros(2, 3)),
    "objects": lambda: received(lambda values: dist.all_gather_object(values, {"a": 1}), [None]),
    "barrier": lambda: dist.barrier(),
    "differentiable": lambda: collectives.all_reduce(X),
}


@pytest.mark.filterwarnings("ignore:torch.distributed.nn.functional:FutureWarning")  # of torch itself
@pytest.mark.parametrize("name", CALLS)
def test_one_process_gives_what_a_group_of_one_gives(name: str, request: pytest.FixtureRequest) -> None:
    assert not dist.is_initialized()
    alone = CALLS[name]()
    request.getfixturevalue("group")
    torch.testing.assert_close(CALLS[name](), alone)


def test_what_is_gathered_has_no_gradient() -> None:
    x, targets = X.clone().requires_grad_(), [torch.zeros(2, 3)]
    handle: Any = dist.all_gather(targets, x, async_op=True)
    assert handle.wait() and handle.is_completed()
    assert not targets[0].requires_grad


@pytest.mark.parametrize(
    "targets", [[], [torch.zeros(2, 3), torch.zeros(2, 3)], [torch.zeros(3)], [torch.zeros(2, 3, dtype=torch.float64)]]
)
def test_what_cannot_be_received_is_an_error(targets: list[torch.Tensor]) -> None:
    with pytest.raises(ValueError, match="receive"):
        dist.all_gather(targets, X)


def test_a_group_of_the_user_is_asked(group: None) -> None:
    assert dist.get_backend() == "gloo"
    assert isinstance(dist.new_group([0]), dist.ProcessGroup)
