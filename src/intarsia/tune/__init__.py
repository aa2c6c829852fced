"""Decisions made by measuring (DESIGN section 6). So far: which toolchain runs the whole model fastest."""

from intarsia.tune.tune import tune

__all__ = ["tune"]
