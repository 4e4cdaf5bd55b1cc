"""Measurements of speed and memory, run by hand: `python -m migrate_agent.evals.bench.scan PATH`. Never a timed test.

Each repetition is a process of its own, so that nothing is cached between them and its peak memory is its own. Absolute times vary with the
machine and what else runs on it: they say something beside their neighbours, and with the JSON's `machine`.
"""
