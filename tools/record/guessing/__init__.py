"""Guesses an example of a unit: values for its parameters, trials, and what errors say of the next one."""
