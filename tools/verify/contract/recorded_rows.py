"""Where the calls of a test beside a hole lie. Imports nothing, so that who writes them needs no jax."""

ROWS = "calls.json"
"""The calls as JSON, with the names of their files of arrays."""
