"""Schedules that are computed outside the step (https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)."""

from __future__ import annotations

from migrate_agent.tools.programs.tables.registry import Schedule

ROWS = (
    Schedule(
        "torch.optim.lr_scheduler.LambdaLR", "lr_lambda, last_epoch=-1", host="LambdaLR", note="the program's own function, unchanged"
    ),
    Schedule(
        "torch.optim.lr_scheduler.MultiplicativeLR",
        "lr_lambda, last_epoch=-1",
        host="MultiplicativeLR",
        note="the program's own function, unchanged",
    ),
    Schedule(
        "torch.optim.lr_scheduler.ReduceLROnPlateau",
        "mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel', cooldown=0, min_lr=0, eps=1e-8",
        host="ReduceLROnPlateau",
        note="optax.contrib.reduce_on_plateau counts otherwise",
    ),
)
