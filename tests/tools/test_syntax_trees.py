"""Syntax trees that several threads build at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import ast, sys, threading
import jax
from migrate_agent.tools.syntax_trees import build_one_at_a_time

build_one_at_a_time()
build_one_at_a_time()
text, errors = open(sys.argv[1]).read(), []

def build(depth):
    if depth:
        return build(depth - 1)
    for _ in range(60):
        try:
            ast.parse(text)
        except SystemError as error:
            errors.append(error)

threads = [threading.Thread(target=build, args=(depth,)) for depth in (0, 5, 9, 20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(len(errors))
"""


def test_threads_do_not_disturb_each_other() -> None:
    long = Path(__file__).parents[2] / "tools" / "rewrite" / "analysis" / "inference.py"
    assert subprocess.run([sys.executable, "-c", SCRIPT, str(long)], check=False).returncode == 0
