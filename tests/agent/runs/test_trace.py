"""Traces, and the graph as LangGraph's server loads it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console

from migrate_agent.agent.cli import guarded
from migrate_agent.agent.commands.langgraph_studio import opened
from migrate_agent.agent.loop.graph import ROUTES
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.model.connect import connect
from migrate_agent.agent.runs import trace
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.evals.model_loop.scripted_endpoint import endpoint
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tests.agent.test_loop import RIGHT, never

ROOT = Path(__file__).parents[3]


def test_each_node_and_each_call_is_a_span(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: fail")})
    trace.use(provider)
    try:
        with endpoint([RIGHT]) as script:
            start(root, Options(model="m", base_url=script.url), scripted.services(connect=connect), Progress(Console(quiet=True)), never)
    finally:
        trace.use(None)
        provider.shutdown()
    spans = {span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans()}
    assert {"node scan", "node verify", "node repair", "node commit", "node report", "chat m"} <= set(spans)
    assert spans["node verify"]["unit"] == "a.py:A" and spans["node verify"]["outcome"] == "passed"
    assert spans["chat m"] == {
        "unit": "a.py:A",
        "purpose": "repair class",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }


def test_without_a_wish_for_traces_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(trace.ENDPOINT, raising=False)
    trace.begin()
    with trace.span("quiet", a=1) as told:
        told["b"] = 2
    assert trace._tracers == []


def test_a_wish_that_cannot_be_met_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv(trace.ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert guarded(["run", "--repo", str(tmp_path)]) == 3
    assert "pip install 'migrate-agent[trace]'" in capsys.readouterr().err


def test_langgraph_json_names_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    file, _, name = document["graphs"]["migrate"].partition(":")
    spec = importlib.util.spec_from_file_location("studio_as_the_server_loads_it", ROOT / file)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    root = repository(tmp_path / "repo", {"a.py": module("A")})
    monkeypatch.setenv("MIGRATE_AGENT_REPO", str(root))
    graph = getattr(loaded, name)({})
    assert set(ROUTES) <= set(graph.get_graph().nodes)
    assert not (root / ".git" / "migrate-agent").exists(), "looking leaves nothing behind"


def test_a_thread_of_the_studio_is_a_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A"), "b.py": module("B")})
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}, "recursion_limit": 100}

    def graph() -> Any:
        return opened(root, "t", scripted.services(), Progress(Console(quiet=True)), saver)

    first = graph().invoke({"outcome": ""}, config)
    assert first["__interrupt__"][0].value["unit"] == "a.py:A"
    second = graph().invoke(Command(resume="accept"), config)
    assert second["__interrupt__"][0].value["unit"] == "b.py:B"
    events = list(graph().stream(Command(resume="skip"), config, stream_mode="updates"))
    assert [next(iter(event)) for event in events][-1] == "report", "events are streamed, node by node"
    branch = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/migrate-agent")
    assert git(root, "log", "--format=%s", branch).splitlines() == ["Report the migration", "Migrate a.py:A to JAX", "first"]
