"""`verify` with the knowledge of operators: the rules of the language, and the types of operator calls."""

from __future__ import annotations

from intarsia.ir import Call, IRModule, Op, is_compatible
from intarsia.op.infer import infer_call_type
from intarsia.support.errors import ModelError


def verify(module: IRModule) -> None:
    """Check scopes, arity, devices, purity, and every operator call against its schema.

    Raises:
        VerifyError: The program with each complaint in place.
    """
    from intarsia.ir.verify import verify as verify_language

    verify_language(module, check_call=_complaint)


def _complaint(call: Call) -> str | None:
    if not isinstance(call.op, Op):
        return None
    try:
        inferred = infer_call_type(call.op, call.args, call.attrs)
    except ModelError as error:
        return error.problem
    if not is_compatible(inferred, call.checked_type):
        return f"the call returns {inferred}, but is annotated {call.checked_type}"
    return None
