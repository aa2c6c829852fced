"""Whether a program, or a sequence of passes, can be used at all."""

from __future__ import annotations

from intarsia.ir import IRModule
from intarsia.ir.verify import verify
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext, Sequential
from intarsia.transform.pass_order import check_order


def validate(what: IRModule | Sequential, ctx: PassContext | None = None) -> None:
    """Check a program by the rules of the language, or a sequence by the constraints of its passes.

    Args:
        what: A module or a sequence (seed relax_pass_infra has both under this name).
        ctx: Context that a sequence would run in; default: the current one.

    Raises:
        VerifyError: The program breaks a rule; the message shows each place.
        PassOrderError: The sequence breaks a constraint.
        UsageError: It is neither.
    """
    if isinstance(what, IRModule):
        verify(what)
    elif isinstance(what, Sequential):
        check_order(what, PassContext.current() if ctx is None else ctx)
    else:
        raise UsageError(f"validate takes an IRModule or a Sequential, got {type(what).__name__}")
