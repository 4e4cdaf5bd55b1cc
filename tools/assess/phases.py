"""The order of work: five phases, each with what must hold before and after it, and what to test. Weeks and limits are those of the migration guide."""

from __future__ import annotations

from typing import NamedTuple


class Phase(NamedTuple):
    """`weeks` as the guide has them for a production workload; `enter` and `leave` are conditions, `tests` what shows them."""

    name: str
    weeks: str
    enter: str
    leave: str
    tests: tuple[str, ...]


PHASES = (
    Phase(
        "Development",
        "1–2",
        "the original runs, and each unit in scope has an example",
        "all units in scope are verified, or named with what is missing; JAX runs on the accelerators at hand (a TPU is not needed yet)",
        ("migrate-agent run --repo .", "migrate-agent verify FILE:NAME for what a person wrote", "migrate-agent tpu FILE:NAME"),
    ),
    Phase(
        "Test",
        "3–4",
        "the migrated branch is merged, and data and checkpoints are moved",
        "data is the same, loss within 0.5 % at the chosen epochs, throughput within 5 %",
        ("migrate-agent manifest PATH --verify FILE", "migrate-agent compare RUN_A RUN_B", "migrate-agent weights FILE:NAME CHECKPOINT"),
    ),
    Phase(
        "Staging",
        "5–8",
        "the test phase passed on the real model and data",
        "both sides ran side by side on production's load for at least 24 hours, with latency and error rate within the limits",
        ("migrate-agent compare on serving logs of both sides", "migrate-agent check in CI"),
    ),
    Phase(
        "Cut-over",
        "9–12",
        "staging passed, alerts are set, and going back was tried once",
        "all traffic is on the new side, and none of the reasons to roll back held for 7 days: 10 % slower, 1 % in loss, 0.1 % errors, 25 % latency",
        ("migrate-agent compare after each increase of traffic: exit status 1 is the signal to go back",),
    ),
    Phase(
        "Decommission",
        "13–16",
        "the new side was stable for 30 days",
        "backups of the old side are archived and verified, and nothing calls it any more",
        ("migrate-agent manifest ARCHIVE --verify FILE",),
    ),
)
