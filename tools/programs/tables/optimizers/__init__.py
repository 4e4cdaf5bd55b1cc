"""Rows of optimizers, one file a family."""
