"""From the keeper's report to a `Run`: what came from the job's side is checked here, on the host, before anything else looks at it."""

from __future__ import annotations

import hmac
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from migrate_agent.sandbox.child import ERROR_CHARACTERS, RESULT_BYTES, TRACEBACK_CHARACTERS
from migrate_agent.tools.types import Limits

OUT_OF_LIMITS = {
    "timeout": ("timeout", "took longer than {seconds:g} s"),
    "memory": ("memory", "used more than {memory_bytes} bytes of memory"),
    "processes": ("crash", "started more than {processes} processes"),
    "threads": ("crash", "started too many threads (limit: {processes} processes)"),
    "disk": ("disk", "wrote more than {file_bytes} bytes or too many files"),
}
"""How the keeper ended a job → status, error."""

OUT_OF_LIMITS_SIGNALS: dict[int, str] = {signal.SIGKILL: "memory", signal.SIGXCPU: "timeout", signal.SIGXFSZ: "disk"}
"""What the kernel ends a process with → status. A job may send itself these as well, and gains nothing by it."""

REPORT: dict[str, tuple[type, ...]] = {
    "end": (str,),
    "wait_status": (int, type(None)),
    "result": (str,),
    "log": (str,),
    "seconds": (float, int),
    "peak_memory_bytes": (int,),
    "nonce": (str,),
}
"""What a keeper's report holds."""


def genuine(report: object, nonce: str) -> bool:
    """Whether this is a whole report, and of the keeper that was given this nonce."""
    if not isinstance(report, dict) or report.keys() != REPORT.keys():
        return False
    return all(isinstance(report[key], kinds) for key, kinds in REPORT.items()) and hmac.compare_digest(
        report["nonce"].encode(), nonce.encode()
    )


def outcome(report: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """The fields `status`, `result`, `error`, `traceback`, `log`, `seconds`, `peak_memory_bytes` of the `Run`."""
    common = {"log": printable(report["log"], lines=True), "seconds": report["seconds"], "peak_memory_bytes": report["peak_memory_bytes"]}
    if report["end"] in OUT_OF_LIMITS:
        status, error = OUT_OF_LIMITS[report["end"]]
        return {**common, "status": status, "error": error.format(**vars(limits))}
    if report["wait_status"] != 0 or not report["result"]:
        return {**common, "status": _status_of_death(report["wait_status"]), "error": _death(report["wait_status"])}
    return {**common, **claimed(report["result"])}


def _status_of_death(wait_status: int | None) -> str:
    code = 0 if wait_status is None else os.waitstatus_to_exitcode(wait_status)
    return OUT_OF_LIMITS_SIGNALS.get(-code, "crash")


def _death(wait_status: int | None) -> str:
    if wait_status is None:
        return "ended without a trace"
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return f"ended with exit status {code} and no result"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (" (by the kernel for want of memory, or by the code itself)" if name == "SIGKILL" else "")


def claimed(text: str) -> dict[str, Any]:
    """What the job says about itself, from its JSON. Anything but a well-formed claim is an error of the job."""
    if len(text) > RESULT_BYTES:
        return _malformed(f"more than {RESULT_BYTES} bytes")
    try:
        claim = json.loads(text)
        json.dumps(claim, ensure_ascii=False).encode()  # lone surrogates would fail much later, in somebody's file
    except (ValueError, RecursionError) as error:
        return _malformed(f"no proper JSON: {type(error).__name__}")
    status = claim.get("status") if isinstance(claim, dict) else None
    if status == "ok" and claim.keys() == {"status", "result"}:
        return {"status": "ok", "result": claim["result"]}
    if status not in ("error", "memory", "disk") or not all(isinstance(claim.get(key), str) for key in ("error", "traceback")):
        return _malformed("not of the expected form")
    message, traceback = claim["error"][: 2 * ERROR_CHARACTERS], claim["traceback"][-TRACEBACK_CHARACTERS:]
    return {"status": status, "error": printable(message), "traceback": printable(traceback, lines=True)}


def _malformed(reason: str) -> dict[str, Any]:
    return {"status": "error", "error": f"malformed result: {printable(reason)}"}


def printable(text: str, *, lines: bool = False) -> str:
    """Without what would steer a terminal, or break a line unless `lines`."""
    return "".join(c if c.isprintable() or (lines and c in "\n\t") else " " if c in "\n\t" else "�" for c in text)
