"""Lowering of tensor expressions and loop states to loop functions (seed ansor_minimum)."""

from intarsia.native.lowering.lower import infer_bound, infer_bounds, lower
from intarsia.native.lowering.naive import lower_naive

__all__ = ["infer_bound", "infer_bounds", "lower", "lower_naive"]
