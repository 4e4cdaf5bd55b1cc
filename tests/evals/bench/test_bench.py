"""The benchmarks run, and count what is there. What they measure is nobody's assertion."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from flax import nnx

from migrate_agent.evals.bench import measure, plainness, rewrite, step, steps
from migrate_agent.evals.zoo_packages.zoo_quick import Call
from migrate_agent.tools.vendored.linear import Linear

VISION = Path(__file__).parents[3] / "examples" / "vision"
HERE = "migrate_agent.evals.bench"


def test_scan_counts_what_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    measure.report("scan", [measure.repeat(f"{HERE}.scan:measured", VISION, 2)])
    (row,) = json.loads(capfd.readouterr().out)["rows"]
    assert row["files"] == 5
    assert row["files_with_torch"] == 4
    assert row["files_not_parsed"] == 0
    assert row["units"] == {"rewrite": 12}
    assert len(row["samples"]["wall_seconds"]) == 2
    assert row["peak_bytes"] == max(row["samples"]["peak_bytes"])


def test_rewrite_counts_the_lines_that_came_out() -> None:
    row = measure.repeat(f"{HERE}.rewrite:measured", VISION, 1)
    rewritten = [VISION / "vision" / name for name in ("layers.py", "resnet.py", "vit.py")]
    lines = sum(file.read_text(encoding="utf-8").count("\n") for file in rewritten)
    package = (VISION / "vision" / "__init__.py").read_text(encoding="utf-8").count("\n")
    assert (row["units"], row["lines"]) in [(12, lines), (12, lines + package)]
    assert 0 < row["lines_per_second_with_parsing"] < row["lines_per_second"]


def test_nothing_to_rewrite_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="no unit to rewrite"):
        rewrite.measured(tmp_path)


def test_failure_in_the_measured_process_is_not_swallowed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        measure.repeat(f"{HERE}.rewrite:measured", tmp_path, 1)
    assert "no unit to rewrite" in capfd.readouterr().err


def test_arguments() -> None:
    options = measure.arguments("x", ["a", "b", "--repeat", "5"])
    assert (options.paths, options.repeat) == ([Path("a"), Path("b")], 5)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"unit": "a", "ratio": 0.5}, {"unit": "b", "ratio": 2.0}, {"unit": "c", "skipped": "x"}], (2, 1, 1.0, ["b"])),
        ([{"unit": "a", "skipped": "x"}], (0, 1, None, [])),
    ],
)
def test_steps_are_summed_up(rows: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    found = step.document(rows)
    names = [row["unit"] for row in found["outliers"]]
    assert (found["timed"], found["not_timed"], found["jit_over_eager"], names) == expected
    assert len(list(step.lines(rows))) == 2 + len(names) + found["not_timed"]


def test_the_fastest_repetition_counts() -> None:
    calls: list[str] = []
    found = step.fastest({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 5
    assert all(0 <= seconds < math.inf for seconds in found.values())


def test_steps_of_both_sides_agree() -> None:
    call = Call(torch.nn.Linear(3, 2), (torch.ones(4, 3),), {})
    ours = steps.jax_step(call, Linear(3, 2, rngs=nnx.Rngs(0)))
    assert steps.difference(steps.torch_step(call, call.module), ours.run) < 1e-6
    assert steps.difference(lambda: torch.ones(()), ours.run) > 1e-6
    assert step.operations(ours.text() + "\n  x = f32[2]{0} sort(y)")["sort"] == 1


def test_plainness_tells_layers_of_flax_from_copied_ones(tmp_path: Path) -> None:
    model = "from nnx_layers_jax import ChannelsFirstConv, Linear, split\n\nhead, conv = Linear(2, 3), ChannelsFirstConv(2, 3, (3,))\n"
    model += "norm = nnx.LayerNorm(3)\n\nact = jax.nn.relu\nparts = nnx.List([])\n"
    (tmp_path / "model_jax.py").write_text(model)
    (tmp_path / "model.py").write_text("import torch\n")
    (tmp_path / "nnx_layers_jax.py").write_text("def split(x):\n\n    return x\n\n\nclass Linear:\n    pass\n")
    mirror = plainness.measure(tmp_path)
    assert (mirror.lines, mirror.helper_lines, mirror.ratio, mirror.share, mirror.share_with_moved) == (5, 4, 0.8, 2 / 4, 3 / 4)
    assert (set(mirror.plain), set(mirror.copied)) == ({"nnx.LayerNorm", "jax.nn.relu"}, {"Linear", "ChannelsFirstConv"})
