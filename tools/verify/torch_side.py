"""The original's side of a verification, run inside the sandbox: chooses the scenarios, and writes what the candidate is given and must give.

`given/` (states, inputs, targets, `given.json`) goes to the candidate; `expected/` and the returned JSON never do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.configurations import Changes, never_given
from migrate_agent.tools.verify.torch_author import Author
from migrate_agent.tools.verify.torch_configurations import compare, others
from migrate_agent.tools.verify.torch_lines import Lines
from migrate_agent.tools.verify.torch_results import attempt, one_line
from migrate_agent.tools.verify.torch_unit import Original, flushing


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `examples` (texts, `train`, `domain`), `seed`. `inputs`: `tensors<i>`. Returns the expectations."""
    torch.set_num_threads(max(torch.get_num_threads(), 1))
    torch.backends.mha.set_fastpath_enabled(False)
    scenarios: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    errors = []
    calls: list[Any] = []
    seen: set[str] = set()
    constructed: set[tuple[str, str]] = set()
    base = limits.SEED_STRIDE * int(arguments["seed"])
    lines = Lines(arguments["name"], Path(sys.path[0]))
    for index, texts in enumerate(arguments["examples"]):
        try:
            with lines:
                original = Original(arguments["module"], arguments["name"], texts, inputs.get(f"tensors{index}"), base)
            otherwise = (texts["init"], texts["setup"]) not in constructed
            new = original.likeness() not in seen
            if not new and not otherwise:
                continue
            seen.add(original.likeness())
            calls.append(original.call)
            author = Author(original, len(examples), texts, output, base, lines)
            examples.append({"index": index, "changes": {}, **author.write(first=not examples, otherwise=otherwise, new=new)})
            constructed.add((texts["init"], texts["setup"]))
            scenarios += author.scenarios
        except Exception as error:
            errors.append(f"example {index + 1}: {one_line(error)}")
    if examples:
        try:
            drops = any(draw[0] == "bernoulli" for scenario in scenarios for draw in scenario["draws"])
            more, configured = _configured(arguments, inputs, output, examples[0]["index"], len(examples), lines, drops)
            examples += more
            scenarios += configured
        except Exception as error:
            examples[0]["skipped"].append(f"other configurations ({one_line(error)})")
    unrun = lines.missed(original.cls) if examples else ""
    if examples and (names := attempt(lambda: never_given(original.cls.forward, calls))):
        examples[0]["remarks"].append(f"no example gives the call its {', '.join(names)}, and so what it does with that was not compared")
    return {"examples": examples, "scenarios": scenarios, "errors": errors, "unrun": unrun, "torch": torch.__version__}


def _configured(
    arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path, index: int, number: int, lines: Lines, drops: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """This example with other configurations of the unit: what describes each, and their scenarios."""
    base = limits.SEED_STRIDE * int(arguments["seed"])
    texts, tensors = arguments["examples"][index], inputs.get(f"tensors{index}")

    def make(changes: Changes) -> Original:
        return Original(arguments["module"], arguments["name"], {**texts, "changes": changes}, tensors, base)

    authors = [Author(unit, number + place, texts, output, base, lines) for place, unit in enumerate(others(make({}), make, lines))]
    described = [{"index": index, **item} for item in compare(authors, drops)]
    return described, [scenario for author in authors for scenario in author.scenarios]
