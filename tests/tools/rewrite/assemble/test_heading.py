"""The comments at the top of a file, in the file that is made of it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.rewrite.assemble.heading import heading
from migrate_agent.tools.scan import scan

LICENCE = "# Copyright 2022 Somebody\n#\n# Licensed under the Apache License, Version 2.0"


@pytest.mark.parametrize(
    ("top", "keeps_first", "expected"),
    [
        (f"{LICENCE}\nimport torch\n", False, LICENCE),
        (f'# coding=utf-8\n{LICENCE}\n"""What it is."""\n', True, f"# coding=utf-8\n{LICENCE}"),
        (f"#!/usr/bin/env python\n{LICENCE}\n\n\n\n# From a paper.\n\nimport torch\n", False, f"{LICENCE}\n\n# From a paper."),
        (f"{LICENCE}\n\n# Twice.\ndef f(x):\n    return x + x\n", True, f"{LICENCE}\n\n# Twice."),
        (f"{LICENCE}\n\n# Twice.\ndef f(x):\n    return x + x\n", False, LICENCE),
        ("# Depth.\nN = 3\n", False, ""),
        ("# flake8: noqa\n# type: ignore\n# mypy: ignore-errors\n# Types of layers.\nimport torch\n", False, "# Types of layers."),
        ("import torch\n", False, ""),
    ],
)
def test_heading(top: str, keeps_first: bool, expected: str) -> None:
    assert heading(cst.parse_module(top), keeps_first) == expected


def test_the_licence_stands_above_what_is_generated(tmp_path: Path) -> None:
    text = f'{LICENCE}\n"""Layers."""\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n        return x * 2\n'
    (tmp_path / "m.py").write_text(text)
    inventory = scan(tmp_path)
    files = compose(inventory, {}, [unit.id for unit in inventory.units]).files
    assert files["m_jax.py"].startswith(f'{LICENCE}\n\n"""Layers."""\n\nfrom flax import nnx\n')
