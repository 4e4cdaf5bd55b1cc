"""report: the Markdown report on the branch, the JSON report for scripts."""

from __future__ import annotations

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.markdown import PATH, markdown
from migrate_agent.agent.loop.report import report_rows, write_reports
from migrate_agent.agent.loop.unit_work import load_draft
from migrate_agent.agent.repository.git import manifest
from migrate_agent.agent.runs.commit_message import report_message
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.scan.walk import MANIFEST


def report(context: Context, state: RunState) -> RunState:
    """Commit the Markdown report and the list of our files, write the JSON."""
    context.progress.stage("", "writing the report")
    units = report_rows(context, state["position"])
    files = {PATH: markdown(context, units), MANIFEST: manifest(_committed(context, state))}
    number = state["commits"] + 1
    sha = context.branch.commit(state["head"], files, report_message(context.settings.base, context.settings.branch), number)
    write_reports(context, state["position"])
    return {"outcome": "reported", "head": sha, "commits": number}


def _committed(context: Context, state: RunState) -> dict[str, str]:
    """Path → text of all target files on the branch: those of each verified unit, later ones on top."""
    files: dict[str, str] = {}
    settled = context.settled(state["position"])
    for position, identifier in enumerate(context.plan.order):
        if settled[identifier].status == "verified":
            files.update(load_draft(context.unit_folder(position)).files)
    return files
