"""Helpers of generated training scripts: optimizers, schedules, data order and checkpoints with torch's semantics."""
