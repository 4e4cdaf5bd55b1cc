"""The kernel library on every shape of its catalogue: `python -m migrate_agent.evals.bench.kernels [--only NAME]… [--compile v5e,v6e,tpu7x] [--strict] [--time]`.

Each case runs in float32 and bfloat16, forward and gradient, by the kernel in pallas' interpreter and by the reference; the error is the relative root
mean square of the difference. `--strict` runs the tiny shapes in the interpreter that sees races, unset memory and reads out of bounds, too. With
`--compile` each is compiled for these generations by the TPU compiler (extra `tpu`); with `--time` the sizes of real models are timed on the accelerator
that jax finds: the kernel, or on a GPU cuDNN's attention, beside plain XLA. What the result file has of other runs stays in it; `--docs FILE` writes how
many shapes compile into the page between its two marks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.pallas.mosaic.interpret import interpret_pallas_call
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.evals import records
from migrate_agent.evals.bench.tpu import between
from migrate_agent.tools.harness.jax_side.interpreted import interpreted
from migrate_agent.tools.kernels.catalogue import Case, Kernel, kernels

OUTPUT = records.FOLDER / "bench" / "kernels.json"
LIMITS = {"float32": 2e-5, "bfloat16": 1.5e-2}
"""The largest relative error: some roundings of the dtype, as sums run in another order, and bfloat16 results are rounded once more."""
GENERATIONS = {"v5e": "v5e:1x1", "v6e": "v6e:1x1", "tpu7x": "tpu7x:1x1x1"}
MARKS = ("<!-- kernels -->", "<!-- end of the kernels -->")
READY: Callable[[Any], Any] = jax.block_until_ready
RESET: Callable[[], None] = pltpu.reset_tpu_interpret_mode_state
STRICT = pltpu.InterpretParams(detect_races=True, uninitialized_memory="nan", out_of_bounds_reads="raise")


def step(kernel: Kernel, case: Case, implementation: str) -> Callable[..., Any]:
    """A function of the operands: the result, and the gradients for the same random weights of it."""
    positions = kernel.differentiable(case)

    def run(*operands: Any) -> Any:
        def forward(*floats: Any) -> Any:
            by_position = dict(zip(positions, floats, strict=True))
            all_of_them = [by_position.get(i, x) for i, x in enumerate(operands)]
            return kernel.call(*all_of_them, implementation=implementation, **case.options)

        result, pull = jax.vjp(forward, *(operands[i] for i in positions))
        leaves, tree = jax.tree.flatten(result)
        generator = np.random.default_rng(1)
        weights = [
            jnp.asarray(generator.standard_normal(x.shape), x.dtype)
            if jnp.issubdtype(x.dtype, jnp.floating)
            else np.zeros(x.shape, jax.dtypes.float0)
            for x in leaves
        ]
        return result, pull(jax.tree.unflatten(tree, weights))

    return run


def errors(kernel: Kernel, case: Case, dtype: Any) -> list[float]:
    """The relative error of each result and gradient, by the interpreter that costs about what plain JAX does."""
    operands = case.draw(dtype)
    expected = jax.jit(step(kernel, case, "xla"))(*operands)
    with interpreted():
        actual = jax.jit(step(kernel, case, "tpu"))(*operands)
    return distances(expected, actual)


def strict_errors(kernel: Kernel, case: Case, dtype: Any) -> list[float]:
    """The same by the interpreter that sees races, unset memory and reads out of bounds. Raises `AssertionError` on a race."""
    operands = case.draw(dtype)
    RESET()
    with pltpu.force_tpu_interpret_mode(STRICT):
        actual = READY(jax.jit(step(kernel, case, "tpu"))(*operands))
    state = interpret_pallas_call.races
    assert state is not None, "no kernel ran"
    assert not state.races_found, "a race"
    return distances(jax.jit(step(kernel, case, "xla"))(*operands), actual)


def distances(expected: Any, actual: Any) -> list[float]:
    """Relative root mean square differences, leaf by leaf; where the reference is all zero, the difference itself."""
    pairs = zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True)
    wide = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs]
    return [float(np.sqrt(np.mean((a - b) ** 2)) / (np.sqrt(np.mean(a**2)) or 1.0)) for a, b in wide]


def lowered(kernel: Kernel, case: Case, dtype: Any, platform: str, implementation: str = "auto") -> str:
    """The program, forward and gradient, as it is lowered for `tpu` or `cuda` without the device."""
    function = jax.jit(step(kernel, case, implementation))
    return str(jax.export.export(function, platforms=[platform])(*case.avals(dtype)).mlir_module())


def compiled(kernel: Kernel, case: Case, dtype: Any, generation: str) -> dict[str, Any]:
    """What the TPU compiler makes of it: kernels in the program, temporary memory. Raises what it raises."""
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="tpu", topology_name=GENERATIONS[generation], chips_per_host_bounds=(1, 1, 1))
    mesh = jax.sharding.Mesh(np.array(topology.devices).reshape(-1)[:1], ("x",))
    partition: Any = jax.sharding.PartitionSpec
    whole = jax.sharding.NamedSharding(mesh, partition())
    started = time.perf_counter()
    program = jax.jit(step(kernel, case, "auto")).lower(*case.avals(dtype, whole)).compile()
    memory: Any = program.memory_analysis()
    return {
        "kernels": (program.as_text() or "").count('custom_call_target="tpu_custom_call"'),
        "temporary_bytes": memory.temp_size_in_bytes,
        "seconds": round(time.perf_counter() - started, 2),
    }


def timed(kernel: Kernel, case: Case, dtype: Any) -> dict[str, float]:
    """Median seconds of a step on jax's own device, by implementation."""
    device = jax.default_backend()
    ways = {"xla": step(kernel, case, "xla")}
    if device == "tpu":
        ways["tpu"] = step(kernel, case, "tpu")
    if device == "gpu" and kernel.name == "attention" and len(case.operands) == 3 and dtype == jnp.bfloat16:
        ways["cudnn"] = step(_cudnn(kernel), case, "cudnn")
    operands = [None if x is None else jax.device_put(x) for x in case.draw(dtype)]
    return {name: _median(partial(jax.jit(way), *operands)) for name, way in ways.items()}


def _cudnn(kernel: Kernel) -> Kernel:
    def attend(query: Any, key: Any, value: Any, *, causal: bool = False, implementation: str = "cudnn") -> Any:
        return jax.nn.dot_product_attention(query, key, value, is_causal=causal, implementation="cudnn")

    return Kernel(kernel.name, attend, kernel.origin, kernel.gradient, kernel.shapes, kernel.bench)


def _median(call: Callable[[], Any], repeat: int = 20) -> float:
    READY(call())
    samples = []
    for _ in range(repeat):
        started = time.perf_counter()
        READY(call())
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def rows(
    names: Sequence[str],
    generations: Sequence[str],
    timing: bool,
    checking: bool,
    most: int | None = None,
    strictly: bool = False,
    text: str = "",
    earlier: Sequence[Mapping[str, Any]] = (),
) -> Iterator[dict[str, Any]]:
    """One row for each kernel, case with `text` in its label, and dtype; the compiler is not asked again what the rows `earlier` hold."""
    answered = {_key(row): row.keys() for row in earlier}
    for name, kernel in kernels().items():
        if names and name not in names:
            continue
        for case in [case for case in [*kernel.shapes, *kernel.bench][:most] if text in case.label]:
            for dtype in kernel.dtypes:
                row: dict[str, Any] = {"kernel": name, "case": case.label, "dtype": dtype.__name__}
                small = case not in kernel.bench
                if checking and small:
                    row["errors"] = errors(kernel, case, dtype)
                    row["right"] = all(error <= LIMITS[dtype.__name__] for error in row["errors"])
                if strictly and case.tiny and dtype == jnp.float32:
                    row["strict_errors"] = strict_errors(kernel, case, dtype)
                    row["right"] = row.get("right", True) and all(error <= LIMITS["float32"] for error in row["strict_errors"])
                for generation in [name for name in generations if name not in answered.get(_key(row), ())]:
                    row[generation] = _attempt(partial(compiled, kernel, case, dtype, generation))
                if timing and not small:
                    row["seconds"] = _attempt(partial(timed, kernel, case, dtype))
                if len(row) > len(_key(row)):
                    yield row


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kernel"], row["case"], row["dtype"]


def merged(earlier: Sequence[Mapping[str, Any]], current: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of earlier runs, with what was found now in them."""
    by_key: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in (*earlier, *current):
        by_key.setdefault(_key(row), {}).update(row)
    return list(by_key.values())


def table(measured_rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of how many shapes and dtypes of each kernel the compiler makes a program for each generation, as Markdown, and what it refuses."""
    yield f"| kernel | shapes and dtypes | {' | '.join(GENERATIONS)} |"
    yield f"|---|---|{'---|' * len(GENERATIONS)}"
    for name, kernel in kernels().items():
        own = [row for row in measured_rows if row["kernel"] == name]
        cells = []
        for generation in GENERATIONS:
            answers = [row[generation] for row in own if generation in row]
            cells.append(f"{sum('refused' not in row for row in answers)} of {len(answers)}" if answers else "not asked")
        yield f"| {name} | {len(kernel.dtypes) * (len(kernel.shapes) + len(kernel.bench))} | {' | '.join(cells)} |"
    for row in measured_rows:
        for generation in GENERATIONS:
            if reason := row.get(generation, {}).get("refused"):
                yield f"\n{row['kernel']} {row['case']} {row['dtype']} on {generation}: {reason}"


def _attempt(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except Exception as error:  # whatever the compiler refuses is what is wanted here
        return {"refused": f"{type(error).__name__}: {error}"[:500]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, print a line for each row, and store them; 1 where a kernel is wrong or was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], choices=sorted(kernels()), help="this kernel (may be repeated)")
    parser.add_argument("--compile", default="", metavar="GENERATIONS", help="compile for these: v5e,v6e,tpu7x")
    parser.add_argument("--strict", action="store_true", help="look for races, unset memory and reads out of bounds, on the tiny shapes")
    parser.add_argument("--time", action="store_true", help="time the large cases on jax's own device")
    parser.add_argument("--no-check", action="store_true", help="leave the comparison with the reference out")
    parser.add_argument("--shapes", type=int, metavar="N", help="of each kernel the first N shapes only")
    parser.add_argument("--case", default="", metavar="TEXT", help="only the shapes with this in their label")
    parser.add_argument("--missing", action="store_true", help="ask the compiler only what the result file does not hold yet")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the table of what compiles into this page")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the JSON goes")
    options = parser.parse_args(arguments)
    if options.compile:
        os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    earlier = json.loads(options.output.read_text(encoding="utf-8"))["rows"] if options.output.exists() else []
    current = []
    for row in rows(
        options.only,
        options.compile.split(",") if options.compile else (),
        options.time,
        not options.no_check,
        options.shapes,
        options.strict,
        options.case,
        earlier if options.missing else (),
    ):
        current.append(row)
        print(json.dumps(row), flush=True)
        document = {
            "machine": {"platform": platform.platform(), "cpus": os.cpu_count(), "jax": jax.__version__},
            "device": jax.devices()[0].device_kind,
            "rows": merged(earlier, current),
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.docs:
        text = "\n".join(table(json.loads(options.output.read_text(encoding="utf-8"))["rows"]))
        options.docs.write_text(between(options.docs.read_text(encoding="utf-8"), text, MARKS), encoding="utf-8")
    bad = [row for row in current if not row.get("right", True) or any("refused" in x for x in row.values() if isinstance(x, dict))]
    return 1 if bad or not current else 0


if __name__ == "__main__":
    raise SystemExit(main())
