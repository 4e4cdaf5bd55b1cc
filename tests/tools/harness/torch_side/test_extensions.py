"""Files that compile an extension on import, on a machine that cannot compile it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.utils.cpp_extension as cpp_extension

from migrate_agent.tools.harness.common.example_text import import_module
from migrate_agent.tools.harness.torch_side.extensions import MissingExtension, spare_extensions

SOURCE = """
import torch
from torch.utils.cpp_extension import load, load_inline

kernels = load(name="kernels_of_{name}", sources=["kernels.cpp", "kernels.cu"])
inline = load_inline("inline_of_{name}", cpp_sources="no C++ at all", functions=["f"], extra_cflags=["--no-such-flag-of-any-compiler"])


def halve(x):
    return x / 2 if x.device.type == "cpu" else kernels.halve(x)
"""


@pytest.fixture(autouse=True)
def own_loaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own functions, before and after."""
    for name in ("load", "load_inline"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU the CUDA sources are compiled")
def test_what_runs_on_the_cpu_does_without_the_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halving.py").write_text(SOURCE.format(name="halving"))
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("halving")
    assert torch.equal(module.halve(torch.ones(2)), torch.full((2,), 0.5))
    for extension in (module.kernels, module.inline):
        assert isinstance(extension, MissingExtension)
        with pytest.raises(RuntimeError, match="could not be compiled here"):
            extension.halve(torch.ones(2))
    assert not hasattr(module.kernels, "__path__")
    sys.modules.pop("halving")


def test_other_failures_of_an_import_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("from torch.utils import cpp_extension\n\nraise KeyError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError, match="broken"):
        import_module("broken")


def test_torch_is_changed_once() -> None:
    assert spare_extensions()
    assert not spare_extensions()
