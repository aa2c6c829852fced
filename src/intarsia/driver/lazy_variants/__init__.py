"""Variants that are made while a program is used, for the sizes that its calls have.

watched_calls        the public function: counts calls, and swaps variants in
make_variant         what a process beside does: build, check and time a variant
sized_executables    the variants by size
"""

from intarsia.driver.lazy_variants.watched_calls import LazyVariants, specialize_lazily

__all__ = ["LazyVariants", "specialize_lazily"]
