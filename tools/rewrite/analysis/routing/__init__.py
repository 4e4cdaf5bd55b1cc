"""Mixtures of experts: which rows data route to an expert, and whether the expert acts on each row alone."""
