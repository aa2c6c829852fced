"""Helpers for every layer: errors, registries, digests, files. It imports nothing else of Intarsia."""
