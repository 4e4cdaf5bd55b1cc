"""The training programs of the suite `programs`, and its own comparison of what was claimed about them."""
