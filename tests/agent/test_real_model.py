"""A whole run with a real model behind a real server: far too small to be right, so all of it must be counted, bounded and refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrate_agent.agent.model.connect import TRAJECTORY
from migrate_agent.agent.model.ledger import read
from migrate_agent.evals.model_loop.model_server import MODEL, missing, serving
from migrate_agent.tests.agent.repositories import git, repository
from migrate_agent.tests.agent.test_end_to_end import migrate

FUNCTIONS = ("tanh", "sinh", "expm1")
"""Called as `torch.ops.aten.…`, for which the rules have no row."""
FILES = {
    f"unit_{number}.py": f'''import torch
from torch import nn


class Unit{number}(nn.Module):
    """A function by its other name."""

    def forward(self, x):
        return torch.ops.aten.{function}(x)
'''
    for number, function in enumerate(FUNCTIONS)
}
EXAMPLE = '[[example]]\nmodule = "unit_{0}.py:Unit{0}"\ninit = ""\ncall = "torch.rand(2, 3) + 0.5"\n'
CONFIG = "".join(EXAMPLE.format(number) for number in range(3)) + (
    '[model]\nstructured = "text"\ncontext_tokens = 1600\noutput_tokens = 40\ntimeout = 300\ntries = 1\n'
    f'[budget]\nattempts = 2\ntokens = 1000\n[[price]]\nmodel = "{MODEL}"\ninput = 1.0\noutput = 2.0\n'
)


@pytest.mark.slow
def test_every_call_is_counted_and_garbage_is_refused(tmp_path: Path) -> None:
    lacking = missing()
    if lacking:
        assert "MIGRATE_AGENT_REQUIRE" not in os.environ, f"CI leaves nothing out: {lacking}"
        pytest.skip(lacking)
    root, report = repository(tmp_path / "repo", {**FILES, "migrate.toml": CONFIG}), tmp_path / "report.json"
    with serving() as url:
        model = ("--model", MODEL, "--base-url", url)
        done = migrate("run", "--yes", "--sandbox", "process", *model, "--repo", str(root), "--report", str(report), timeout=900)
    assert done.returncode == 1, done.stderr
    document = json.loads(report.read_text())
    assert document["totals"] == {"verified": 0, "failed": 3, "unverified": 0, "skipped": 0, "torchax": 0}, done.stderr
    (saved,) = root.glob(f".git/migrate-agent/runs/*/{TRAJECTORY}")
    calls = read(saved)
    for unit in document["units"]:
        own = [entry.reply for entry in calls if entry.unit == f"{unit['source']}:{unit['name']}"]
        assert unit["llm"]["calls"] == len(own)
        assert unit["llm"]["input_tokens"] == sum(reply.input_tokens for reply in own)
        assert unit["llm"]["output_tokens"] == sum(reply.output_tokens for reply in own)
        assert unit["llm"]["seconds"] == pytest.approx(sum(reply.seconds for reply in own), abs=0.01)
        cost = sum(reply.input_tokens + 2 * reply.output_tokens for reply in own) / 1e6
        assert unit["llm"]["cost"] == pytest.approx(cost, abs=1e-6)
        assert ("all 2 attempts are spent" if own else "the run's budget is spent (tokens: ") in unit["reason"]
    tokens = [entry.reply.input_tokens + entry.reply.output_tokens for entry in calls]
    assert 1 <= len(calls) <= 2 and sum(tokens[:-1]) < 1000 <= sum(tokens), "the bound is passed by one call at most"
    assert all(entry.reply.output_tokens <= 40 and entry.reply.input_tokens > 200 and entry.reply.seconds > 0 for entry in calls)
    files = [json.loads(path.read_text()) for path in root.glob(".git/migrate-agent/runs/*/units/*/attempts/*.json")]
    assert all(each["refused"] or each["evidence"]["verdicts"] for each in files if each["by"] == "llm")
    assert git(root, "log", "--format=%s", document["branch"]).splitlines() == ["Report the migration", "first"]
