"""PyTorch programs → JAX programs."""
