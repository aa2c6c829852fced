"""Checks of the source text that no linter has; `make check` runs them."""
