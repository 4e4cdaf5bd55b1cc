"""What is told of an error that a candidate raises."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from migrate_agent.tools.harness.jax_side.errors import describe_error

TEXT = """
import jax
import jax.numpy as jnp

def by_raise():
    raise NotImplementedError(
        "no such option"
    )

def by_assert():
    assert 1 > 2, "no such size"

def by_name():
    return nothing_of_this_name

def by_library():
    return jnp.zeros((2, 3)) @ jnp.zeros((2, 3))

def by_value():
    return jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
"""


@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        ("by_raise", "refusal", "NotImplementedError: no such option at candidate.py:6: raise NotImplementedError("),
        ("by_assert", "refusal", 'AssertionError: no such size at candidate.py:11: assert 1 > 2, "no such size"'),
        ("by_name", "error", "NameError: name 'nothing_of_this_name' is not defined at candidate.py:14: return nothing_of_this_name"),
        ("by_library", "error", "TypeError: "),
        ("by_value", "concretisation", "TracerBoolConversionError: "),
    ],
)
def test_errors_are_told_apart(tmp_path: Path, function: str, kind: str, told: str) -> None:
    path = tmp_path / "candidate.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(Exception) as caught:
        getattr(module, function)()
    found = describe_error(caught.value, tmp_path)
    assert found["kind"] == kind and found["error"].startswith(told)
    raised = found["raised"]
    assert (raised["type"], raised["file"]) == (type(caught.value).__name__, "candidate.py")
    assert raised["code"] == TEXT.splitlines()[raised["line"] - 1].strip()


def test_an_error_from_elsewhere_is_no_refusal(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="elsewhere") as caught:
        raise ValueError("elsewhere")
    raised = {"type": "ValueError", "message": "elsewhere", "file": "", "line": 0, "code": ""}
    assert describe_error(caught.value, tmp_path) == {"error": "ValueError: elsewhere", "kind": "error", "raised": raised}
