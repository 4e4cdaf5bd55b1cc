"""The documents tell the truth: the code that the README shows, the paths that pages name, and the verifier's tables."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.agent.config.config import load_config
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.examples import from_config
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Cause
from migrate_agent.tools.verify.checks.base import load_checks
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence import recorded_kernels

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"`((?:agent|evals|prompts|sandbox|tools|tests|examples)/[\w./-]*)[`:]")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its first two lines."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_that_a_page_names_exist(page: Path) -> None:
    assert [path for path in NAMED.findall(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()] == []


def missing(page: str, number: int, text: str) -> list[str]:
    """Lines of a page's Python block that do not stand in the text; `# …` says that something is left out."""
    block = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)[number]
    lines = text.splitlines()
    return [line for line in block.splitlines() if line.strip() != "# …" and line not in lines]


def test_readme_shows_code_of_the_example() -> None:
    assert missing("README.md", 0, (ROOT / "examples/gpt/model.py").read_text(encoding="utf-8")) == []


def test_pages_show_what_the_rules_write(tmp_path: Path) -> None:
    root = shutil.copytree(ROOT / "examples/gpt", tmp_path / "gpt")
    inventory = replace(scan(root), style="plain")
    examples = from_config(inventory, load_config(root).example)
    with ProcessSandbox() as sandbox:
        recording = record(inventory, examples, sandbox, tmp_path / "recording")
    unit = "model.py:CausalSelfAttention"
    draft = compose(inventory, recording.observations, [unit], examples=[example for example in recording.examples if example.unit == unit])
    assert (draft.holes, draft.notes) == ((), ())
    assert missing("README.md", 1, draft.files["model_jax.py"]) == []
    assert missing("docs/tour.md", 0, draft.files["model_jax.py"]) == []


def test_page_lists_every_check_in_its_stage() -> None:
    listed = [(stage, check.strip("`")) for stage, check, *_ in rows("docs/verify.md", "Checks")]
    apart = (recorded_kernels.STAGE, recorded_kernels.CHECK)  # its calls are recorded, so it is no check of scenarios
    assert sorted(listed) == sorted([apart, *((check.stage, check.name) for check in load_checks())])


def test_page_lists_every_role_with_its_maker_and_a_reader() -> None:
    scenarios, checks = rows("docs/verify.md", "Scenarios"), rows("docs/verify.md", "Checks")
    roles = {role.value for role in Role}
    assert {role.strip("`") for role, *_ in scenarios} == roles
    read = {name for *_, reads in checks for name in re.findall(r"`([^`]+)`", reads)}
    assert roles <= read
    for role, _, maker in scenarios:
        text = (ROOT / maker.strip("`")).read_text(encoding="utf-8")
        assert f"Role.{Role(role.strip('`')).name}" in text, role


def test_page_lists_every_cause() -> None:
    listed = [cause.strip("`") for cause, _ in rows("docs/commands.md", "The report")]
    assert listed == [cause.value for cause in Cause if cause]


def test_limits_that_the_page_names_exist() -> None:
    common = ROOT / "tools/harness/common"
    constants = "".join((common / file).read_text(encoding="utf-8") for file in ("tolerances.py", "budgets.py"))
    named = {
        name
        for page in ("docs/verify.md", "docs/verify/numeric.md")
        for name in re.findall(r"`([A-Z_0-9]{4,})`", (ROOT / page).read_text())
    }
    assert [name for name in named if f"\n{name}: Final" not in constants] == []
