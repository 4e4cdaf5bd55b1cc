"""What a unit is for a TPU, found without one: compiled ahead of time by the real compiler, with what it costs, what fits and what was refused."""
