"""Units compiled for a TPU ahead of time by its real compiler, without a TPU: their costs, the sizes that fit, and refusals."""
