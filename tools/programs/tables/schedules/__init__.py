"""Rows of schedules, one file a family."""
