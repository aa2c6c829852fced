"""Whether weights are written into a function that is cut out, or handed to it."""

from __future__ import annotations

from enum import Enum

from intarsia.ir import Call, Constant, Expr
from intarsia.op.constant_argument import constant_arguments


class ConstantPlacement(Enum):
    """What becomes of constants that a sub-graph uses and does not hold; scalars are always written inside.

    BOUND is the default everywhere, whatever else uses the constant: toolchains fold and pack weights when
    they compile, and can do so only with constants that they see; shapes, axes and pads must be constants
    for most of them to compile at all; and a function that is measured by itself would be given random
    weights otherwise. The Constant node is shared between all functions that use it, the array is never
    copied here; each toolchain may pack a copy of its own.

    PARAMETERS is what the seed does: such constants are arguments, unless a rule put them inside of the
    sub-graph. Shapes, axes and pads (`op.constant_argument`) stay inside even then.
    """

    BOUND = "bound"
    PARAMETERS = "parameters"

    def is_parameter(self, constant: Constant, users: tuple[Expr, ...]) -> bool:
        """Whether a constant is handed to a function with these users of it inside."""
        return (
            self is ConstantPlacement.PARAMETERS
            and constant.data.ndim > 0
            and not any(_must_be_constant(constant, user) for user in users)
        )


def _must_be_constant(constant: Constant, user: Expr) -> bool:
    if not isinstance(user, Call):
        return False
    positions = constant_arguments(user)
    return any(position < len(user.args) and user.args[position] is constant for position in positions)
