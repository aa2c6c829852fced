"""Attributes of operations that schedulers read; the names are the field's."""

from typing import Final

FLOP: Final = "FLOP"
"""How many floating-point operations it counts as, an integer."""
LAYOUT_FREE: Final = "layout_free_placeholders"
"""Names of what it reads whose layout may be changed."""
ALWAYS_UNROLL_INNER: Final = "auto_scheduler_always_unroll_inner"
"""Names of axes that are unrolled in the innermost tile."""
NO_SPLIT_AT_INNER: Final = "auto_scheduler_no_split_at_inner"
"""Names of axes that are not split."""
SIMPLIFY_CONST: Final = "auto_scheduler_simplify_const_tensor_indices"
"""Names of axes to unroll, so that what a constant tensor holds there can be folded."""
AXIS_NAMES: Final = (ALWAYS_UNROLL_INNER, NO_SPLIT_AT_INNER, SIMPLIFY_CONST)
"""The attributes that list names of axes."""
