"""The tables of rows as Markdown: `python -m migrate_agent.tools.programs.tables.page` prints what `docs/programs.md` holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrate_agent.tools.programs.tables.arguments import Argument, parse_signature
from migrate_agent.tools.programs.tables.registry import (
    function_text,
    functions,
    optimizer_arguments,
    optimizer_text,
    optimizers,
    refused,
    schedules,
)
from migrate_agent.tools.programs.tables.schedule_text import CHAINED, SEQUENTIAL, schedule_call, schedule_text

BEGIN, END = "<!-- rows: python -m migrate_agent.tools.programs.tables.page -->", "<!-- end of rows -->"


def page() -> str:
    """All tables, between the lines that mark them."""
    parts = [
        ("### Optimizers", "torch.optim", _optimizers()),
        ("### Schedules", "torch.optim.lr_scheduler", _schedules()),
        ("### Clipping, averages and data", "torch", _functions()),
    ]
    lines = [BEGIN]
    for title, room, rows in parts:
        lines += ["", title, "", f"| `{room}` | JAX | beside |", "|---|---|---|", *rows]
    lines += ["", "### Refused", "", "| torch | reason |", "|---|---|"]
    lines += [f"| `{name.removeprefix('torch.')}` | {row.reason} |" for name, row in sorted(refused().items())]
    return "\n".join([*lines, "", END])


def _row(torch: str, jax: str, note: str) -> str:
    return f"| `{torch}` | `{jax}` | {note} |"


def _optimizers() -> Iterator[str]:
    for name, row in sorted(optimizers().items()):
        forms: set[frozenset[str]] = set()
        for options in row.options:
            short = name.rpartition(".")[2]
            arguments = optimizer_arguments(name, f"{short}(params, lr{', ' + options if options else ''})")
            text = optimizer_text(name, arguments).code
            # One line for each form: other numbers are no news.
            form = frozenset(re.findall(r"[\w.]+(?=\()", text))
            if form not in forms:
                yield _row(f"{short}({', '.join(filter(None, ('lr', options)))})", text, "" if forms else row.note)
            forms.add(form)


def _schedules() -> Iterator[str]:
    for name, row in sorted(schedules().items()):
        short = name.rpartition(".")[2]
        if row.host:
            yield _row(f"{short}(…)", f"{row.host}(optimizer, …)", f"on the host, by `optax.inject_hyperparams`; {row.note}")
            continue
        for options in row.options[:1]:
            text = schedule_text(schedule_call(name, f"{short}(optimizer, {options})"), Argument("lr"))
            yield _row(f"{short}({options})", text.code, row.note)
    yield _row(f"{SEQUENTIAL.rpartition('.')[2]}([a, b], [n])", "optax.join_schedules([a, b], [n])", "")
    yield _row(f"{CHAINED.rpartition('.')[2]}([a, b])", "chained(lr, a, b)", "only of those that multiply the rate that they find")
    yield _row("scheduler.step() once an epoch", "per_epoch(schedule, steps_per_epoch)", "")


def _functions() -> Iterator[str]:
    for name, row in sorted(functions().items()):
        parameters = parse_signature(row.signature).parameters.values()
        required = ", ".join(p.name for p in parameters if p.default is p.empty)
        call = f"{name.rpartition('.')[2]}({required})"
        yield _row(f"{name.removeprefix('torch.').rpartition('.')[0]}.{call}", function_text(name, call).code, row.note)


if __name__ == "__main__":
    print(page())
