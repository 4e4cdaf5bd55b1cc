"""Random numbers of Python and NumPy that are drawn while a module is called, and functions that seed streams of them."""
