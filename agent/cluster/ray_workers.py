"""Tasks on the nodes of a Ray cluster: one task of Ray for each, done again elsewhere where its node is lost."""

from __future__ import annotations

import importlib
import itertools
import logging
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from migrate_agent.agent.cluster import node
from migrate_agent.agent.cluster.trees import dumps, loads, pack, unpack
from migrate_agent.agent.cluster.workers import Task, Tell
from migrate_agent.agent.config.errors import MissingError, UsageError, require
from migrate_agent.sandbox.base import SandboxError

INTERVAL = 0.25
"""Seconds between two looks at what a task does."""
ANSWER = 10.0
"""Seconds in which a cluster must answer."""
ATTEMPTS = 4
"""How often a task whose node or process is lost is begun."""


class ClusterClosedError(Exception):
    """Ends the threads that wait for tasks when the command ends."""


class RayWorkers:
    """The processors of a cluster. `opener` makes what a node's process works with; it is pickled, and so is each task.

    Raises `MissingError` without Ray, and `UsageError` where no cluster answers.
    """

    remote = True

    def __init__(self, address: str, opener: Callable[[], Any], jobs: int = 0) -> None:
        require("ray", "--cluster")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray: Any = importlib.import_module("ray")  # its types do not know what its decorators take
        ray = self._ray
        if not ray.is_initialized():
            _connect(ray, address)
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._board = ray.remote(num_cpus=0, scheduling_strategy=here)(node.Board).remote()
        self._work = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1, scheduling_strategy="SPREAD")(node.work)
        self._opener, self._versions = pickle.dumps(opener), node.versions_here()
        self._numbers, self._lock, self._closed = itertools.count(), threading.Lock(), threading.Event()
        self._trees: dict[Path, Any] = {}
        processors = int(ray.cluster_resources().get("CPU", 1))
        self.capacity = min(jobs, processors) if jobs else processors

    def call(self, task: Task, folder: Path, tell: Tell) -> Any:
        """The result of the task from the cluster. Raises `SandboxError` where it was lost again and again."""
        number, trees = next(self._numbers), list(task.trees)
        contents = [self._shipped(tree) for tree in trees]
        reference = self._work.remote(dumps(task, trees), self._opener, self._versions, self._board, number, *contents)
        try:
            self._follow(reference, number, tell)
            finished: node.Done = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            words = str(error).strip().splitlines()
            raise SandboxError(f"{task.name} was lost on the cluster: {words[0] if words else type(error).__name__}") from error
        except BaseException:
            self._board.drop.remote(number)
            raise
        if isinstance(finished.error, node.NodeDiffersError):
            raise MissingError(str(finished.error))
        if finished.error is not None:
            raise finished.error
        if finished.files:
            unpack(finished.files, folder)
        return loads(finished.result, [*trees, folder])

    def close(self) -> None:
        """End the threads that wait, and leave the cluster. Its nodes end what nobody waits for at the next stage."""
        self._closed.set()
        self._ray.shutdown()

    def _shipped(self, tree: Path) -> Any:
        """The folder in the cluster's store, which hands it to each node once."""
        with self._lock:
            if tree not in self._trees:
                self._trees[tree] = self._ray.put(pack(tree))
            return self._trees[tree]

    def _follow(self, reference: Any, number: int, tell: Tell) -> None:
        """Tell what the task does until it is finished."""
        last = ""
        while not self._ray.wait([reference], timeout=INTERVAL)[0]:
            if self._closed.is_set():
                raise ClusterClosedError
            stage = self._ray.get(self._board.stage.remote(number))
            if stage != last:
                tell(stage)
                last = stage


def _connect(ray: Any, address: str) -> None:
    """Raises `UsageError` where no cluster answers."""
    stop = signal.getsignal(signal.SIGTERM)
    try:
        # Ray itself asks a silent address again for minutes.
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), ANSWER).close()
        ray.init(address, namespace="migrate-agent", log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError):  # a `ConnectionError` of Ray is one, too
        where = "on this machine" if address == "auto" else f"at {address}"
        raise UsageError(
            f"no Ray cluster answers {where}: start one (`ray start --head`), or name it as HOST:PORT with --cluster"
        ) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)  # Ray's own handler ends the process without what a stopped run tells
