"""What a column of a log is, by its name: an axis, a metric of some kind, or a part of a serving request. One row a kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["loss", "quality", "throughput", "step_time", "latency", "error_rate", "other"]

AXES: dict[str, tuple[str, ...]] = {
    "step": ("step", "_step", "global_step", "iteration", "iter", "iter_num", "train_step", "trainer_global_step", "trainer/global_step"),
    "tokens": ("tokens", "tokens_seen", "num_tokens", "total_tokens", "consumed_tokens", "train_tokens", "num_input_tokens_seen"),
    "epoch": ("epoch", "epochs", "train/epoch"),
    "seconds": (
        "seconds",
        "_runtime",
        "elapsed",
        "elapsed_seconds",
        "relative_time",
        "runtime",
        "time",
        "wall_time",
        "_timestamp",
        "timestamp",
    ),
}
"""Axis → names of its column, lower case, the likeliest first."""
BASES = ("step", "tokens", "epoch")
"""The axes that say where a row lies."""


@dataclass(frozen=True)
class KindRow:
    """Metrics of a kind have names that the pattern fits as a whole, in their canonical spelling."""

    kind: Kind
    names: str


_ROWS = (
    KindRow("error_rate", r"(.+_)?(error_rate|errors_rate|failure_rate)"),
    KindRow("latency", r"(.+_)?(latency|response_time|ttft|tpot)(_.+)?"),
    KindRow(
        "throughput",
        r"(.+_)?(tokens|samples|examples|images|steps|iters|it|iterations|tok|requests)_(per_)?(sec|second|s)(_.+)?|throughput(_.+)?|mfu",
    ),
    KindRow("step_time", r"(.+_)?(step_time|seconds_per_step|s_per_step|ms_per_step|iter_time|time_per_step|batch_time)(_.+)?"),
    KindRow("loss", r"(.+_)?(loss|nll|perplexity|ppl|bpb|bpc|cross_entropy|mse|mae|rmse|error)(?!_scale)(_.+)?"),
    KindRow("quality", r"(.+_)?(acc|accuracy|top1|top5|f1|auc|auroc|bleu|rouge|rougel|iou|miou|map|dice|psnr|ssim|fid|wer|cer)(_.+)?"),
)
_PARTS = {
    "train": "",
    "training": "",
    "val": "val_",
    "valid": "val_",
    "validation": "val_",
    "test": "test_",
    "eval": "eval_",
    "evaluation": "eval_",
}
"""Words for the part of the data that a metric is of → how its canonical name begins."""


@cache
def kind_of(metric: str) -> Kind:
    """The kind of a metric by its canonical name."""
    return next((row.kind for row in _ROWS if re.fullmatch(row.names, metric)), "other")


@cache
def canonical(name: str) -> str:
    """One spelling for `train/loss`, `Loss/train`, `Train Loss` and `loss`: lower case, words joined by `_`, without the word for training;
    and one for `val/loss`, `Loss/validation` and `val_loss`.
    """
    words = re.findall(r"[a-z0-9@]+", name.lower())
    part = next((word for word in (words[0], words[-1]) if word in _PARTS), "") if len(words) > 1 else ""
    if not part:
        return "_".join(words) or name
    rest = words[1:] if words[0] == part else words[:-1]
    return _PARTS[part] + "_".join(rest)


@cache
def axis_of(column: str) -> str:
    """The axis that a column holds, or ""."""
    lower = column.strip().lower().replace(" ", "_")
    return next((axis for axis, names in AXES.items() if lower in names), "")
