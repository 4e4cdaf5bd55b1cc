"""The extras that this package can be installed with: what each brings, whether it is there, and the line that says how to install it.

Nothing is imported from here, so that every room may ask.
"""

from __future__ import annotations

import importlib.util

PACKAGE = "migrate-agent"
MODULES: dict[str, tuple[str, ...]] = {
    "docker": ("docker",),
    "forges": ("github", "gitlab"),
    "model": ("openai", "tenacity"),
    "torchax": ("torchax",),
    "ray": ("ray",),
    "tpu": ("libtpu",),
    # `opentelemetry` itself is a namespace that other packages bring, too
    "trace": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
}
"""Extra → modules that it brings and that the base installation need not have."""


def installed(extra: str) -> bool:
    """Whether all modules of an extra are there. Imports none of them, at most the packages around them."""
    return all(map(_there, MODULES[extra]))


def advice(extra: str, purpose: str, otherwise: str = "") -> str:
    """The line for people where an extra is missing.

    `purpose` is what asked for it, such as `--sandbox docker`; `otherwise` is what to do without the extra, where anything.
    """
    requirement = f"{PACKAGE}[{extra}]"
    return f"{requirement} is needed for {purpose}: pip install '{requirement}'" + (f", or {otherwise}" if otherwise else "")


def _there(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # the package around it is not there
        return False
    # A folder of this name in the working directory is a namespace package, and no client of anything.
    return spec is not None and spec.origin is not None
