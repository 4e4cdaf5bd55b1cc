"""Dropout (https://docs.pytorch.org/docs/stable/nn.html#dropout-layers)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

ROWS = (
    Layer(
        "torch.nn.Dropout",
        "p=0.5, inplace=False",
        "Dropout",
        # Only this one masks single elements; the others mask whole channels, which NNX has no
        # layer for.
        to="nnx.Dropout({p=0.5}, rngs={rngs})",
        # NNX calls the probability `rate`.
        reads={"p": "{self}.rate"},
        samples=("0.1",),
    ),
    Layer("torch.nn.modules.dropout._DropoutNd", "p=0.5, inplace=False", "DropoutNd", samples=("0.1",)),
    Layer("torch.nn.Dropout1d", "p=0.5, inplace=False", "Dropout1d", samples=("0.1",)),
    Layer("torch.nn.Dropout2d", "p=0.5, inplace=False", "Dropout2d", samples=("0.1",)),
    Layer("torch.nn.Dropout3d", "p=0.5, inplace=False", "Dropout3d", samples=("0.1",)),
    Layer("torch.nn.AlphaDropout", "p=0.5, inplace=False", "AlphaDropout", samples=("0.1",)),
    Layer("torch.nn.FeatureAlphaDropout", "p=0.5, inplace=False", "FeatureAlphaDropout", samples=("0.1",)),
)
