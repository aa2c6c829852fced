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
AXIS_NAMES: Final = (ALWAYS_UNROLL_INNER, NO_SPLIT_AT_INNER, SIMPLIFY_CONST)
"""The attributes that list names of axes."""
ATTENTION_INPUTS: Final = "attention_inputs"
"""Names of the placeholders of queries, keys, values and biases of attention among any number of tokens."""
ATTENTION_REPLACES: Final = "attention_replaces"
"""1 if the second bias stands in place of the scores of later keys; else it is added."""
ATTENTION_SCALE: Final = "attention_scale"
"""Factor of the scores of that attention."""
