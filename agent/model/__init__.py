"""The language model: how it is reached, what its calls cost, and what becomes of its answers."""
