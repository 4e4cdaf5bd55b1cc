"""One draft laid out as a tree of its own and judged against the base commit: a task, done in this process or on a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_agent.agent.cluster.ray_workers import RayWorkers
from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.sandbox.base import Device, Sandbox
from migrate_agent.tools.types import Draft, Evidence, Example, Inventory, KernelCall, Unit, Verdict
from migrate_agent.tools.verify.evidence.recorded_kernels import judge as judge_recorded


@dataclass(frozen=True)
class Bench:
    """What a verification works with."""

    services: Services
    sandbox: Sandbox

    def close(self) -> None:
        """Stop the sandbox."""
        self.sandbox.close()


@dataclass(frozen=True)
class BenchOpener:
    """Makes a `Bench` on a node of a cluster, where `services` is imported."""

    services: Callable[[], Services]
    sandbox: str
    device: Device

    def __call__(self) -> Bench:
        """With a sandbox as on one machine."""
        services = self.services()
        return Bench(services, services.open_sandbox(self.sandbox, self.device))


def cluster_of(address: str, services: Services, sandbox: str, device: Device, jobs: int = 0) -> RayWorkers | None:
    """The cluster at the address; `None` where that is "". Raises `UserError` where none answers."""
    if not address:
        return None
    assert services.on_nodes is not None, "these services cannot be had on a node"
    return RayWorkers(address, BenchOpener(services.on_nodes, sandbox, device), jobs)


@dataclass(frozen=True)
class Verification:
    """A candidate tree, and all that it is judged by: a task of `cluster.workers`.

    `files` is the tree, path → text. What takes the place of a kernel is run first, on the recorded inputs of the kernel. Where its outputs
    differ, no other stage runs.
    """

    unit: Unit
    files: Mapping[str, str]
    examples: Sequence[Example]
    translated: Sequence[Example]
    original: Path
    inventory: Inventory
    config: Config
    kernel_calls: Sequence[KernelCall] = ()
    stubs: bool = True
    reached_before: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The unit's id."""
        return self.unit.id

    @property
    def trees(self) -> Sequence[Path]:
        """The original, and the folders of recorded tensors."""
        recorded = [*(example.tensors for example in self.examples), *(call.tensors for call in self.kernel_calls)]
        folders = dict.fromkeys(tensors.parent for tensors in recorded if tensors is not None)
        return (self.original, *(folder for folder in folders if not folder.is_relative_to(self.original)))

    def keeps(self, result: Evidence) -> bool:
        """Only a failure leaves files that somebody looks at: the candidate, and the input that shows it."""
        return result.status == "failed"

    def run(self, place: Bench, folder: Path, tell: Callable[[str], None]) -> Evidence:
        """The evidence; `folder` receives the candidate tree and the inputs. Raises what the sandbox raises."""
        candidate = lay_out(folder / "candidate", self.files)
        inputs = folder / "verify"
        shutil.rmtree(inputs, ignore_errors=True)
        inputs.mkdir()
        limits = self.config.limits.limits()
        recorded = judge_recorded(self.kernel_calls, self.unit, self.inventory, candidate, place.sandbox, limits)
        # A replacement that is wrong on recorded inputs is wrong for every example that runs it, and this costs seconds.
        if recorded is not None and recorded.status == "fail":
            return Evidence(self.unit.id, (recorded,))
        judged = (self.unit, self.examples, self.translated, self.original, candidate, self.inventory)
        evidence = place.services.verify(*judged, place.sandbox, inputs, self.config, tell, self.stubs, self.reached_before)
        return with_recorded(evidence, recorded)


def verify_draft(context: Context, unit: Unit, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
    """Verify the draft's `unit`; what it leaves lies in `folder`. `tell` is called with the name of each stage.

    Raises `Untranslatable` where an example has no equivalent in the mirror's names, and what the sandbox raises.
    """
    recording, inventory = context.recording, context.inventory
    examples = examples_of(recording, unit.id)
    translated = [context.services.translate(inventory, recording.observations, example) for example in examples]
    task = Verification(
        unit, draft.files, examples, translated, context.original, inventory, context.config, kernel_calls=recording.kernel_calls
    )
    evidence: Evidence = context.workers.call(task, folder, tell)
    return evidence


def with_recorded(evidence: Evidence, recorded: Verdict | None) -> Evidence:
    """The evidence with what the recorded calls of kernels say."""
    return evidence if recorded is None else replace(evidence, verdicts=(*evidence.verdicts, recorded))


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    """Exactly these files as a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, text in files.items():
        write_text(folder / path, text)
    return folder
