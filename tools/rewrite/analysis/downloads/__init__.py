"""Weights that code downloads, and what it does with them."""
