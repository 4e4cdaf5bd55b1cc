"""Traces by OpenTelemetry, where `OTEL_EXPORTER_OTLP_ENDPOINT` says that somebody wants them: a span for each node and each call of a model.

Names of attributes follow OpenTelemetry's conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/). No code and no
prompt is sent. Without that variable nothing is imported, and a span costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from migrate_agent.agent.config.errors import require

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NAME = "migrate-agent"
_tracers: list[Any] = []


def begin() -> None:
    """Send spans to where the environment says; nothing where it says nothing. Raises `MissingError` without the packages that it takes."""
    if not os.environ.get(ENDPOINT) or _tracers:
        return
    require("trace", ENDPOINT, alternative="unset it")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider)


def use(provider: Any) -> None:
    """Send spans to this tracer provider from now on, to none where it is `None`."""
    _tracers[:] = [] if provider is None else [provider.get_tracer(NAME)]


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[dict[str, Any]]:
    """A span around the block. What the block puts into the mapping that it gets becomes attributes, too; an exception is noted on it."""
    values: dict[str, Any] = dict(attributes)
    if not _tracers:
        yield values
        return
    with _tracers[0].start_as_current_span(name, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield values
        except BaseException as error:
            values["error.type"] = type(error).__name__
            raise
        finally:
            current.set_attributes({key: value for key, value in values.items() if value is not None and value != ""})
