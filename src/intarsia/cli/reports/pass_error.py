"""Errors of commands whose passes raised an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.support.errors import IntarsiaError, VerificationError

if TYPE_CHECKING:
    from intarsia.transform.bisection import RaisedPass


def pass_error(error: Exception, raised: RaisedPass | None) -> IntarsiaError:
    """Return the error of a command: an exception of a plugin is no bug in Intarsia.

    Args:
        error: Exception that ended the passes.
        raised: The pass that raised it; None if it was raised outside of all passes.

    Raises:
        Exception: It is no error of Intarsia's, and was raised outside of all passes.
    """
    if isinstance(error, IntarsiaError):
        return error
    if raised is None:
        raise error
    whose = "Intarsia" if raised.owner is not None and raised.owner.is_ours else "the author of the pass"
    failure = VerificationError(str(raised), help=f"report it to {whose}; --debug shows the traceback")
    failure.__cause__ = error
    return failure
