"""Overrides of the settings of a script: --key=value on the command line, or the name of a file of settings."""
import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if '=' not in arg:
        print(f"Overriding config with {arg}:")
        exec(open(arg).read())
    else:
        key, val = arg.split('=')
        key = key[2:]
        if key not in globals():
            raise ValueError(f"Unknown config key: {key}")
        try:
            attempt = literal_eval(val)
        except (SyntaxError, ValueError):
            attempt = val
        assert type(attempt) == type(globals()[key])
        print(f"Overriding: {key} = {attempt}")
        globals()[key] = attempt
