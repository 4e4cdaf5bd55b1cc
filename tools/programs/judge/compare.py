"""Compares the traces of two runs of a program: each function asks one question and gives one verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from migrate_agent.tools.programs.judge.beside import Missed
from migrate_agent.tools.programs.judge.contract import numbers, plain
from migrate_agent.tools.programs.judge.fingerprints import is_among
from migrate_agent.tools.programs.judge.plain_lines import same_lines
from migrate_agent.tools.programs.judge.reach import ranges
from migrate_agent.tools.types import Outcome, Verdict

FLOOR = 1e-10
"""Largest relative error in float64 that passes whatever rounding does to the original."""
ROUNDING = 1e3
"""How many times the effect of one rounding on the original passes."""
CEILING = 1e-6
"""Where rounding alone moves a value by so much (times `ROUNDING`), it cannot be judged."""
NATIVE = 5e-3
"""Largest relative distance of two loss curves in the program's own precision."""
SPREADS = 3.0
"""How many times the distance of the original's curves with other draws passes, where modules draw."""


@dataclass(frozen=True)
class Ran:
    """The trace of one run: its events, lines and tensors, and what else its side reported."""

    trace: Mapping[str, Any]
    tensors: Mapping[str, Any]

    @property
    def lines(self) -> list[str]:
        """What it printed, without empty lines."""
        return [plain(line) for line in self.trace["lines"] if line.strip()]

    @property
    def losses(self) -> list[list[float]]:
        """The losses whose gradients went into each optimizer step."""
        steps: list[list[float]] = [[]]
        for event in self.trace["events"]:
            if event["kind"] == "backward":
                steps[-1].append(math.nan if event["loss"] is None else event["loss"])
            elif event["kind"] == "step":
                steps.append([])
        return steps[:-1]


@dataclass(frozen=True)
class Pair:
    """A run of the original, the same with weights moved by one rounding, and a run of the candidate."""

    original: Ran
    moved: Ran
    candidate: Ran


def verdict(
    stage: str, check: str, status: Outcome, detail: str = "", measured: float | None = None, limit: float | None = None
) -> Verdict:
    """A verdict in the words of the judge."""
    return Verdict(stage, check, status, measured, limit, detail)


def distance(one: Any, other: Any) -> float:
    """Root mean square of the difference, relative to that of `other`. Equal places that are not finite count as equal."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if one.shape != other.shape:
        return math.inf
    equal = (one == other) | (np.isnan(one) & np.isnan(other))
    difference = float(np.sqrt(np.sum(np.where(equal, 0.0, one - other) ** 2)))
    scale = float(np.sqrt(np.sum(np.where(np.isfinite(other), other, 0.0) ** 2)))
    return 0.0 if difference == 0 else difference / max(scale, 1e-12)


def state_fits(pair: Pair) -> Verdict:
    """Whether the candidate's parameters have the names and shapes of the original's."""
    problems = pair.candidate.trace["problems"]
    if not pair.candidate.trace["steps"]:
        return verdict(
            "spec",
            "optimizer_steps",
            "unverified",
            "no step of an nnx.Optimizer, and no optax.apply_updates of a whole module's parameters, was seen",
        )
    return verdict("spec", "state_names", "fail" if problems else "pass", "; ".join(problems)[:300])


def step_count(pair: Pair) -> Verdict:
    """Whether both make as many optimizer steps."""
    ours, theirs = pair.candidate.trace["steps"], pair.original.trace["steps"]
    return verdict(
        "spec", "step_count", "pass" if ours == theirs else "fail", f"{ours} optimizer steps, {theirs} in the original", ours, theirs
    )


def printed_text(pair: Pair) -> Verdict:
    """Whether both print the same lines, numbers aside."""
    ours, theirs = pair.candidate.lines, pair.original.lines
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if numbers(one)[0] != numbers(other)[0]:
            return verdict("spec", "printed_text", "fail", f"printed line {number}: {one!r}, in the original {other!r}")
    if len(ours) != len(theirs):
        return verdict("spec", "printed_text", "fail", f"{len(ours)} printed lines, {len(theirs)} in the original")
    return verdict("spec", "printed_text", "pass", f"{len(ours)} printed lines")


def files_written(pair: Pair) -> Verdict:
    """Whether both write files to the same places, whatever their format."""
    ours = {_stem(prefix) for file in pair.candidate.trace["files"] for prefix in _prefixes(file)}
    missing = sorted(file for file in pair.original.trace["files"] if _stem(file) not in ours)
    return verdict("spec", "files_written", "fail" if missing else "pass", f"not written: {', '.join(missing[:5])}" if missing else "")


def _prefixes(file: str) -> list[str]:
    """A file and all folders that it lies in."""
    parts = file.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _stem(path: str) -> str:
    # A checkpoint may become a folder, and may get another suffix; its name stays.
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.rpartition('.')[0] or name}"


def losses(pair: Pair) -> Verdict:
    """Whether the losses of every step are the same in float64."""
    rows = zip(pair.original.losses, pair.moved.losses, pair.candidate.losses, strict=False)
    worst, allowed = 0.0, FLOOR
    for step, (theirs, moved, ours) in enumerate(rows, 1):
        limit = limit_of(distance(moved, theirs))
        if limit > CEILING:
            return verdict(
                "numeric", "losses_fp64", "pass" if step > 3 else "unverified", f"rounding alone moves the losses from step {step} on"
            )
        error = _loss_distance(ours, theirs)
        if not error <= limit:
            return verdict(
                "numeric", "losses_fp64", "fail", f"step {step}: {_listed(ours)}, in the original {_listed(theirs)}", error, limit
            )
        worst, allowed = (error, limit) if error >= worst else (worst, allowed)
    return verdict("numeric", "losses_fp64", "pass", f"{len(pair.original.losses)} steps", worst, allowed)


def _loss_distance(ours: list[float], theirs: list[float]) -> float:
    if len(ours) == len(theirs):
        return distance(ours, theirs)
    # Micro-batches may be folded into one value: their sum or their mean.
    return min(distance([sum(ours)], [sum(theirs)]), distance([np.mean(ours or [math.nan])], [np.mean(theirs or [math.nan])]))


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.12g}" for value in values[:4]) + (", …" if len(values) > 4 else "")


def limit_of(noise: float) -> float:
    """The largest error that passes where one rounding moves the original by `noise`."""
    return max(FLOOR, ROUNDING * noise)


def parameters(pair: Pair) -> Verdict:
    """Whether all parameters and buffers are the same after the steps that are kept, in float64."""
    pair = _with_unpickled(pair)
    worst, allowed, count, blurred = 0.0, FLOOR, 0, set()
    trained = {name.split("/", 3)[-1] for name in pair.candidate.tensors if name.startswith("step/")}
    for name, theirs in _in_order(pair.original.tensors):
        # Without an `nnx.Optimizer` the update shows parameters alone; what buffers do shows in what is printed of evaluations.
        if pair.candidate.trace["partial"] and name.split("/", 3 if name.startswith("step/") else 2)[-1] not in trained:
            continue
        if name not in pair.candidate.tensors:
            return verdict("numeric", "parameters_fp64", "fail", f"{_place(name)} was not seen in the candidate")
        limit = limit_of(distance(pair.moved.tensors.get(name, theirs), theirs))
        if limit > CEILING:
            blurred.add(_place(name))
            continue
        error, count = distance(pair.candidate.tensors[name], theirs), count + 1
        if not error <= limit:
            return verdict("numeric", "parameters_fp64", "fail", f"{_place(name)} differs first", error, limit)
        worst, allowed = (error, limit) if error >= worst else (worst, allowed)
    if not count:
        return verdict("numeric", "parameters_fp64", "unverified", "no parameter could be compared")
    note = f"; rounding alone moves {len(blurred)} others: {sorted(blurred)[0]}, …" if blurred else ""
    return verdict("numeric", "parameters_fp64", "pass", f"{count} tensors compared{note}", worst, allowed)


def _with_unpickled(pair: Pair) -> Pair:
    """The pair, where the original read a whole module in place of the one that it trained and the candidate ends with that one's weights, with these
    as the original's last."""
    theirs, moved, ours = dict(pair.original.tensors), dict(pair.moved.tensors), pair.candidate.tensors
    for number in {name.split("/")[1] for name in theirs if name.startswith("unpickled/")}:
        names = [
            name.split("/", 2)[2]
            for name in theirs
            if name.startswith(f"unpickled/{number}/") and f"end/{number}/{name.split('/', 2)[2]}" in ours
        ]
        read, last = (
            sum(distance(ours[f"end/{number}/{name}"], theirs[f"{kind}/{number}/{name}"]) for name in names)
            for kind in ("unpickled", "end")
        )
        if read < last:
            for name in names:
                theirs[f"end/{number}/{name}"] = theirs[f"unpickled/{number}/{name}"]
                moved[f"end/{number}/{name}"] = moved.get(f"unpickled/{number}/{name}", theirs[f"end/{number}/{name}"])
    return Pair(replace(pair.original, tensors=theirs), replace(pair.moved, tensors=moved), pair.candidate)


def _in_order(tensors: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    def place(name: str) -> tuple[int, int]:
        parts = name.split("/")
        return (0, int(parts[1])) if parts[0] == "step" else (1, 0)

    for name in sorted((n for n in tensors if n.startswith(("step/", "end/"))), key=place):
        # Torch counts batches in an integer that decides nothing unless a momentum is missing.
        if not name.endswith("num_batches_tracked"):
            yield name, tensors[name]


def _place(name: str) -> str:
    parts = name.split("/")
    return f"{parts[3]} after step {parts[1]}" if parts[0] == "step" else f"{parts[2]} at the end"


def printed_numbers(pair: Pair) -> Verdict:
    """Whether all printed numbers are the same in float64, to the digits that are printed."""
    count = 0
    for line, (ours, theirs, moved) in enumerate(zip(pair.candidate.lines, pair.original.lines, pair.moved.lines, strict=False), 1):
        unstable = numbers(theirs)[1] != numbers(moved)[1]
        for one, other in zip(numbers(ours)[1], numbers(theirs)[1], strict=False):
            count += 1
            if not (_same_number(one, other) or unstable):
                return verdict("numeric", "printed_fp64", "fail", f"printed line {line}: {ours!r}, in the original {theirs!r}")
    return verdict("numeric", "printed_fp64", "pass", f"{count} numbers")


def _same_number(one: str, other: str) -> bool:
    if one == other:
        return True
    first, second = float(one), float(other)
    decimals = len(other.partition(".")[2].partition("e")[0])
    tie = decimals >= 4 and abs(first - second) <= 1.01 * 10.0**-decimals
    return tie or abs(first - second) <= 1e-9 * abs(second)


def native_losses(pair: Pair, native: Pair) -> Verdict:
    """Whether the loss curves of the whole run are alike in the program's own precision."""
    rows = [[row for row in run.losses if row] for run in (native.original, native.candidate)]
    exact = [float(np.mean(row)) for row in pair.original.losses if row]
    if len(rows[0]) != len(exact):
        # Rounding decides when the program ends, and the ends in float64 were compared.
        common = min(len(rows[0]), len(rows[1]), len(exact))
        rows, exact = [row[:common] for row in rows], exact[:common]
    if len(rows[0]) != len(rows[1]) or not rows[0]:
        return verdict("behavioural", "loss_curve", "fail", f"{len(rows[1])} losses, {len(rows[0])} in the original")
    theirs, ours = _curves(*rows)
    spread = distance([float(np.mean(row)) for row in rows[0]], exact)
    if spread <= NATIVE:
        # Draws of modules are others in the original's own two runs too: that is how far two right runs lie apart.
        error, limit = distance(ours, theirs), max(NATIVE, SPREADS * spread if pair.original.trace.get("drew") else 0.0)
        return verdict("behavioural", "loss_curve", "pass" if error <= limit else "fail", f"{len(theirs)} steps", error, limit)
    half = len(theirs) // 2
    error = float(abs(np.mean(ours[half:]) - np.mean(theirs[half:]))) / max(abs(float(np.mean(theirs[half:]))), 1e-12)
    limit = max(0.05, 3 * float(np.std(theirs[half:])) / max(abs(float(np.mean(theirs[half:]))), 1e-12))
    text = "draws of its own (dropout): means of the second half"
    return verdict("behavioural", "loss_curve", "pass" if error <= limit else "fail", text, error, limit)


def _curves(theirs: list[list[float]], ours: list[list[float]]) -> tuple[list[float], list[float]]:
    """The loss of each step, of both sides: where one folds several losses into one value, their sum or their mean, whichever that is."""
    curves: tuple[list[float], list[float]] = ([], [])
    for one, other in zip(theirs, ours, strict=True):
        folds = (np.mean,) if len(one) == len(other) else (np.sum, np.mean)
        pairs = [(float(fold(one)), float(fold(other))) for fold in folds]
        best = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
        curves[0].append(best[0])
        curves[1].append(best[1])
    return curves


def compiled_once(pair: Pair, native: Pair) -> Verdict:
    """Whether the step is compiled, and only once for each set of shapes and for each structure of its arguments."""
    traces, eager = native.candidate.trace["compiled"], native.candidate.trace["eager"]
    if eager:
        return verdict("compile", "compiles_once", "fail", f"{eager} gradients were computed outside of jit", eager, 0)
    # One program may take several gradients of the same shapes, such as those of parts of a batch.
    programs = {(number, kind) for number, kind in traces}
    kinds = {kind for _, kind in programs}
    again = len(programs) - len(kinds)
    text = f"{len(programs)} programs for {len(kinds)} shapes and structures of arguments"
    return verdict("compile", "compiles_once", "fail" if again else "pass", text, again, 0)


def reach(missed: tuple[Sequence[int], Sequence[int]], idle: Sequence[tuple[int, str]] = (), beside: Sequence[Missed] = ()) -> Verdict:
    """Whether the runs of each side reach every line of its script, given those that are `missed`: what did not run was not compared. `idle` are lines
    and parts of conditions of the original that change nothing in them, and that the rewrite has not; `beside` is what is missed of other files."""
    texts = [
        f"lines of {side} that no run reaches, so that nothing says whether they are right: {ranges(lines)}"
        for side, lines in zip(("the original", "the rewrite"), missed, strict=True)
        if lines
    ]
    texts += [f"line {line} of the original: {text} changes nothing in any run, and the rewrite has it not" for line, text in idle]
    both = [(one.file.source, one.original) for one in beside] + [(one.file.target, one.rewrite) for one in beside]
    texts += [f"lines of {path} that no run reaches: {ranges(lines)}" for path, lines in both if lines]
    count = sum(map(len, missed)) + len(idle) + sum(len(lines) for _, lines in both)
    return verdict("behavioural", "reach", "unverified" if texts else "pass", "; ".join(texts), count, 0)


def missed_lines(originals: Sequence[Ran], candidates: Sequence[Ran]) -> tuple[list[int], list[int]]:
    """The lines of either script that none of its runs, in pairs, reaches. Plain Python that is the same on both sides in each pair needs none."""
    matches = [same_lines(one.trace["plain"], other.trace["plain"]) for one, other in zip(originals, candidates, strict=True)]

    def missed(runs: Sequence[Ran], number: int) -> list[int]:
        unrun = set.intersection(*(set(run.trace["unrun"]) for run in runs))
        return sorted(line for line in unrun if not all(line in pair[number] for pair in matches))

    return missed(originals, 0), missed(candidates, 1)


def idle_parts(originals: Sequence[Ran], candidates: Sequence[Ran]) -> list[tuple[int, str]]:
    """Lines and texts of what the original has and what changes nothing in any run: parts of conditions that never decide, which the rewrite has
    not, and loads of a file's weights where the rewrite reads no file that it wrote."""
    parts = set.intersection(*({tuple(row) for row in run.trace["undecided"]} for run in originals))
    kept = set(candidates[0].trace["conditions"])
    rows = [(line, f"`{text}`") for line, text, key in parts if key not in kept]
    loads: dict[int, bool] = {}
    for one, other in zip(originals, candidates, strict=True):
        for line, changed in one.trace["loads"]:
            loads[line] = loads.get(line, False) or changed or bool(other.trace["reads"])
    return sorted([*rows, *((line, "what it loads") for line, shown in loads.items() if not shown)])


def contents(pair: Pair) -> Verdict:
    """Whether what the original's checkpoints hold is in the rewrite's: every tensor, its axes aside, and the numbers beside them.

    `unverified` where a file cannot be read. A file of values that one rounding moves is named, and not compared.
    """
    unread, unsteady = [], []
    for file, theirs in pair.original.trace["contents"].items():
        ours = [row for row in pair.candidate.trace["contents"] if any(_stem(prefix) == _stem(file) for prefix in _prefixes(row["path"]))]
        if theirs is None:
            unread.append(file)
            continue
        tensors, numbers = [t for row in ours for t in row["tensors"]], [n for row in ours for n in row["numbers"]]
        missing = [name for name, tensor in theirs["tensors"].items() if not is_among(tensor, tensors)]
        missing += [name for name, number in theirs["numbers"].items() if not any(math.isclose(number, n, rel_tol=1e-7) for n in numbers)]
        if missing and not _is_steady(pair, file, missing):
            unsteady.append(file)
        elif missing:
            return verdict("numeric", "checkpoints", "fail", f"{file}: the rewrite's has no {', '.join(missing[:3])} of these values")
    left = [*sorted(unread), *sorted(unsteady)]
    count = len(pair.original.trace["contents"]) - len(left)
    text = f"{count} files compared{f'; not compared: {left[0]}' if left else ''}"
    return verdict("numeric", "checkpoints", "unverified" if unread or (left and not count) else "pass", text if count or left else "")


def _is_steady(pair: Pair, file: str, names: Sequence[str]) -> bool:
    """Whether the named values of a file are the same where the weights were moved by one rounding."""
    one, other = pair.original.trace["contents"][file], pair.moved.trace["contents"].get(file)
    if other is None:
        return False
    tensors = [name for name in names if name in one["tensors"]]
    numbers = [name for name in names if name in one["numbers"]]
    steady = all(name in other["tensors"] and is_among(one["tensors"][name], [other["tensors"][name]]) for name in tensors)
    return steady and all(math.isclose(one["numbers"][name], other["numbers"].get(name, math.nan), rel_tol=1e-7) for name in numbers)


RATES = 1e-7
"""Largest relative error of a rate after the run: schedules of optax count in int32 and round once more."""


def schedules(pair: Pair) -> Verdict:
    """Whether the rates are the same after the run too, to twice the length that a schedule is configured for."""
    for row, ours in zip(pair.original.trace["schedules"], pair.candidate.trace["schedules"], strict=True):
        name = f"{row['class']}, which the run leaves at count {row['count']}"
        if not row["rates"] or min((_rate_distance(rates, row["rates"]) for rates in ours), default=math.inf) <= RATES:
            continue
        if not ours:
            return verdict("numeric", "schedules", "unverified", f"{name}: no schedule of the rewrite that could be looked at later")
        first = row["rates"][: 1 + next((i for i in range(len(row["rates"])) if not any(_same_rate(r, row["rates"], i) for r in ours)), 0)]
        return verdict(
            "numeric", "schedules", "fail", f"{name}: no schedule of the rewrite has its rates to count {row['count'] + len(first)}"
        )
    count = len(pair.original.trace["schedules"])
    return verdict("numeric", "schedules", "pass", f"{count} schedules looked at after the run" if count else "")


def _same_rate(ours: Sequence[float], theirs: Sequence[float], count: int) -> bool:
    return abs(ours[count] - theirs[count]) <= RATES * abs(theirs[count])


def _rate_distance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    scale = max(map(abs, theirs))
    return max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) / max(scale, 1e-300)


EXACT: tuple[Callable[[Pair], Verdict], ...] = (
    state_fits,
    step_count,
    printed_text,
    files_written,
    losses,
    parameters,
    printed_numbers,
    schedules,
    contents,
)
NATIVE_CHECKS: tuple[Callable[[Pair, Pair], Verdict], ...] = (native_losses, compiled_once)
