"""One trial of a guess: how it is run, where it failed, and what the operation that failed asks for."""
