"""Random numbers of Python and NumPy that are drawn while a module is called."""
