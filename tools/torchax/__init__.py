"""Helpers of mirrors that run originals through torchax (docs/torchax.md)."""
