"""Programs: training scripts and their rewrites."""
