"""Each format of a log gives the same series, and a bad log one line."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from migrate_agent.tools.compare.kinds import canonical, kind_of
from migrate_agent.tools.compare.log import LogError
from migrate_agent.tools.compare.runs import read_side
from migrate_agent.tools.compare.tensorboard import _masked_crc

STEPS = (0, 10, 20)
LOSSES = (4.0, 2.5, 1.25)


def jsonl(folder: Path) -> Path:
    rows = [{"step": step, "train/loss": loss, "time": step / 2, "run": "a"} for step, loss in zip(STEPS, LOSSES, strict=True)]
    file = folder / "log.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def half_written(folder: Path) -> Path:
    file = jsonl(folder)
    file.write_text(file.read_text() + '{"step": 30, "lo')
    return file


def csv(folder: Path) -> Path:
    file = folder / "log.csv"
    file.write_text("step,loss,seconds\n" + "".join(f"{step},{loss},{step / 2}\n" for step, loss in zip(STEPS, LOSSES, strict=True)))
    return file


def wandb_page(folder: Path) -> Path:
    rows = "".join(f'"{step}","{loss}","{loss}","{loss}"\n' for step, loss in zip(STEPS, LOSSES, strict=True))
    file = folder / "wandb.csv"
    file.write_text(f'"Step","brisk-sun-4 - train/loss","brisk-sun-4 - train/loss__MIN","brisk-sun-4 - train/loss__MAX"\n{rows}')
    return file


def wandb_history(folder: Path) -> Path:
    rows = [{"_step": step, "loss": loss, "_runtime": step / 2, "val": None} for step, loss in zip(STEPS, LOSSES, strict=True)]
    file = folder / "history.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def trainer_state(folder: Path) -> Path:
    file = folder / "trainer_state.json"
    file.write_text(json.dumps({"log_history": [{"step": step, "loss": loss} for step, loss in zip(STEPS, LOSSES, strict=True)]}))
    return file


def mlflow_history(folder: Path) -> Path:
    rows = [{"key": "loss", "value": loss, "step": step, "timestamp": 1} for step, loss in zip(STEPS, LOSSES, strict=True)]
    file = folder / "history.json"
    file.write_text(json.dumps(rows))
    return file


def mlflow(folder: Path) -> Path:
    metrics = folder / "0" / "metrics"
    metrics.mkdir(parents=True)
    (folder / "0" / "meta.yaml").write_text("")
    (metrics / "loss").write_text("".join(f"{1000 + step * 500} {loss} {step}\n" for step, loss in zip(STEPS, LOSSES, strict=True)))
    return folder


def record(data: bytes) -> bytes:
    header = struct.pack("<Q", len(data))
    return header + struct.pack("<I", _masked_crc(header)) + data + struct.pack("<I", _masked_crc(data))


def part(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def event(step: int, value: bytes) -> bytes:
    return record(b"\x09" + struct.pack("<d", 100.0 + step / 2) + bytes([2 << 3, step]) + part(5, part(1, part(1, b"train/loss") + value)))


def tensorboard(folder: Path) -> Path:
    """As `SummaryWriter.add_scalar` writes it."""
    values = [b"\x15" + struct.pack("<f", loss) for loss in LOSSES]
    file = folder / "events.out.tfevents.1.host"
    version = record(b"\x09" + struct.pack("<d", 100.0) + part(3, b"brain.Event:2"))
    file.write_bytes(version + b"".join(event(step, value) for step, value in zip(STEPS, values, strict=True)))
    return folder


def tensorboard_tensors(folder: Path) -> Path:
    """As `tf.summary.scalar` writes it; the last record is half written."""
    values = [part(8, b"\x08\x01" + part(4, struct.pack("<f", loss))) for loss in LOSSES]
    records = [event(step, value) for step, value in zip(STEPS, values, strict=True)]
    file = folder / "events.out.tfevents.2.host"
    file.write_bytes(b"".join(records) + records[0][:-7])
    return file


FORMATS = (jsonl, half_written, csv, wandb_page, wandb_history, trainer_state, mlflow_history, mlflow, tensorboard, tensorboard_tensors)


@pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)
def test_formats_give_the_same_series(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (log,) = read_side(str(write(tmp_path)))
    assert log.base == "step" and list(log.metrics) == ["loss"]
    np.testing.assert_array_equal(log.metrics["loss"].positions, STEPS)
    np.testing.assert_array_equal(log.metrics["loss"].values, LOSSES)
    if "seconds" in log.axes and len(log.axes["seconds"].positions) == 3 and write is not mlflow_history:
        np.testing.assert_allclose(np.diff(log.axes["seconds"].values), [5, 5])


def test_a_resumed_run_counts_the_later_value(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {step}, "loss": {loss}}}\n' for step, loss in [(1, 9), (2, 8), (1, 3)]))
    (log,) = read_side(str(tmp_path / "log.jsonl"))
    np.testing.assert_array_equal(log.metrics["loss"].values, [3, 8])


def test_a_folder_has_a_run_for_each_log(tmp_path: Path) -> None:
    for seed in range(3):
        (tmp_path / str(seed)).mkdir()
        jsonl(tmp_path / str(seed))
    (tmp_path / "notes.txt").write_text("no log")
    assert len(read_side(str(tmp_path))) == 3
    assert len(read_side(f"{tmp_path}/0/log.jsonl,{tmp_path}/1")) == 2


BAD = {
    "empty": ("log.jsonl", "", "is empty"),
    "blank": ("log.jsonl", "\n\n", "is empty"),
    "text": ("log.jsonl", "step 1: loss 3\n{}\n", ":1: is not JSON"),
    "no row": ("log.jsonl", "[1, 2]\n", ":1: is no row"),
    "no axis": ("log.jsonl", '{"loss": 3}\n', "holds no numbers beside a step"),
    "no numbers": ("log.csv", "step,loss\n1,high\n", "holds no numbers"),
    "no list": ("log.json", '{"a": 1}', "holds no list of rows"),
    "half json": ("log.json", '{"a": 1', "is not JSON"),
    "no events": ("events.out.tfevents.1", "hello hello hello", "is no TensorBoard event file"),
}


@pytest.mark.parametrize(("name", "text", "reason"), BAD.values(), ids=BAD)
def test_bad_logs_give_one_line(name: str, text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(LogError, match=reason) as error:
        read_side(str(tmp_path / name))
    assert "\n" not in str(error.value)


def test_absent_logs_give_one_line(tmp_path: Path) -> None:
    for text, reason in ((f"{tmp_path}/no", "no such file"), (str(tmp_path), "holds no log"), (",", "names no log")):
        with pytest.raises(LogError, match=reason):
            read_side(text)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train/loss", "loss"),
        ("val_loss", "loss"),
        ("eval/accuracy", "quality"),
        ("tokens_per_sec", "throughput"),
        ("latency_p99_ms", "latency"),
        ("error_rate", "error_rate"),
        ("lr", "other"),
        ("grad_norm", "other"),
        ("loss_scale", "other"),
        ("step_time", "step_time"),
    ],
)
def test_kinds_by_name(name: str, kind: str) -> None:
    assert kind_of(canonical(name)) == kind


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("Train Loss", "loss"),
        ("Loss/train", "loss"),
        ("training_loss", "loss"),
        ("train", "train"),
        ("Loss/validation", "val_loss"),
        ("valid/loss", "val_loss"),
        ("Accuracy/test", "test_accuracy"),
        ("train_loss_val", "loss_val"),
        ("loss_trained", "loss_trained"),
    ],
)
def test_one_spelling(name: str, spelling: str) -> None:
    assert canonical(name) == spelling
