"""Distances (https://docs.pytorch.org/docs/stable/nn.html#distance-functions)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer("torch.nn.CosineSimilarity", "dim=1, eps=1e-08", "CosineSimilarity", samples=("",)),
    Layer("torch.nn.PairwiseDistance", "p=2.0, eps=1e-06, keepdim=False", "PairwiseDistance", samples=("",)),
)
