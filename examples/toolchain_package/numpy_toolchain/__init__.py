"""NumPy as a toolchain of Intarsia, found by the entry points in pyproject.toml.

toolchain   the class
options     the option of its targets
operators   the operators that it computes
kernel      a compiled function: a list of NumPy calls
"""
