"""Branches that do the same to one value."""
