"""One module for each family of idioms. `registry` finds every row."""
