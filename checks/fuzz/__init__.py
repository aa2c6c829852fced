"""Fuzzers of everything that reads what others wrote: see `python -m checks.fuzz --help`."""
