"""Data sets and checkpoints on both sides of a move: what there is, hashed here and verified there, and how long the way takes.

`store` lists and opens files, on disk or behind an fsspec address. `manifest` hashes them, and goes on where it was stopped. `difference` compares two
manifests, and `transfer` estimates the way.
"""
