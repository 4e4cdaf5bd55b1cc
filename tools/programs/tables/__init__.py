"""What optimizers, schedules, clipping and averages of torch become in JAX: one row each."""
