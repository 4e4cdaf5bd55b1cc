"""The logs of one side: a file, a folder with a log for each run, or several with commas between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from migrate_agent.tools.compare import tensorboard
from migrate_agent.tools.compare.log import Log, LogError, Point, log_of
from migrate_agent.tools.compare.rows import read_rows

_ROWS = (".jsonl", ".ndjson", ".csv", ".tsv")
_EVENTS = "events.out.tfevents"


def read_side(text: str) -> tuple[Log, ...]:
    """One log a run, in the order of their names. Raises `LogError` where one cannot be read, or there is none."""
    logs = [log for part in text.split(",") if part.strip() for log in _read(Path(part.strip()))]
    if not logs:
        raise LogError(f"{text}: names no log")
    return tuple(logs)


def _read(path: Path) -> Iterator[Log]:
    if not path.exists():
        raise LogError(f"{path}: there is no such file or folder")
    if path.is_file():
        yield _events((path,)) if _EVENTS in path.name else read_rows(path)
        return
    runs = sorted(set(_runs(path)))
    if not runs:
        raise LogError(f"{path}: holds no log ({', '.join(_ROWS)}, TensorBoard's event files, MLflow's metrics)")
    for run in runs:
        if run.is_file():
            yield read_rows(run)
        elif run.name == "metrics":
            yield _mlflow(run)
        else:
            yield _events(tuple(sorted(run.glob(f"*{_EVENTS}*"))))


def _runs(folder: Path) -> Iterator[Path]:
    """The files of rows, the folders of event files and MLflow's folders of metrics at and below a folder."""
    for file in folder.rglob("*"):
        if not file.is_file():
            continue
        if _EVENTS in file.name:
            yield file.parent
        elif metrics := next(
            (parent for parent in file.parents if parent.name == "metrics" and (parent.parent / "meta.yaml").exists()), None
        ):
            yield metrics
        elif file.suffix.lower() in _ROWS:
            yield file


def _events(files: tuple[Path, ...]) -> Log:
    """Event files of one folder are one run: a writer begins a new one when the run is resumed."""
    return log_of(str(files[0].parent if len(files) > 1 else files[0]), (point for file in files for point in tensorboard.points(file)))


def _mlflow(folder: Path) -> Log:
    """MLflow's file store: a file for each metric, with lines `milliseconds value step` (mlflow/store/tracking/file_store.py)."""
    points: list[Point] = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        name = file.relative_to(folder).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                time, value, step = (float(part) for part in line.split())
            except ValueError:
                raise LogError(f"{file}:{number}: is no line `time value step` of MLflow") from None
            points += [Point("step", step, name, value), Point("step", step, "seconds", time / 1000)]
    return log_of(str(folder.parent), points)
