"""Attributes of operations that schedulers read; the names are TVM's."""

from typing import Final

FLOP: Final = "FLOP"
"""Number of floating-point operations to count for the operation, an integer."""
LAYOUT_FREE: Final = "layout_free_placeholders"
"""Names of placeholders read by the operation whose layout may change."""
ALWAYS_UNROLL_INNER: Final = "auto_scheduler_always_unroll_inner"
"""Names of axes that are unrolled in the innermost tile."""
NO_SPLIT_AT_INNER: Final = "auto_scheduler_no_split_at_inner"
"""Names of axes that are not split."""
SIMPLIFY_CONST: Final = "auto_scheduler_simplify_const_tensor_indices"
"""Names of axes to unroll, so that elements of a constant tensor can be folded."""
PACKING: Final = "packing"
"""How a product of matrices reads the right one, where that was decided: a value of `MatrixPacking`."""
BLOCK_SUMS: Final = "block_sums"
"""Marks the sum over blocks of a product with weights of few bits (`operators.block_products`)."""
AXIS_NAMES: Final = (ALWAYS_UNROLL_INNER, NO_SPLIT_AT_INNER, SIMPLIFY_CONST)
"""The attributes that list names of axes."""
