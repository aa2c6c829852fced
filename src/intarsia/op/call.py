"""Building calls of operators with their types inferred."""

from __future__ import annotations

from intarsia.ir import Attrs, AttrValue, Call, Expr, Op, Span, Tuple, TupleGetItem, with_fields
from intarsia.op.infer import infer_call_type, returns_tuple, settled
from intarsia.op.node import OUTPUTS

_ABSENT = Tuple(())


def absent() -> Tuple:
    """The argument that stands for an optional input left out."""
    return _ABSENT


def call(
    name: str,
    *args: Expr,
    domain: str = "",
    outputs: int = 1,
    span: Span | None = None,
    **attrs: AttrValue,
) -> Call:
    """Call an operator.

    Args:
        name: Operator type, such as "Conv".
        args: Its inputs in order; `absent()` for one left out. Trailing absent ones are dropped. Loop, Scan
            and SequenceMap take their body as the last argument.
        domain: Operator domain; the empty one is ONNX's default.
        outputs: Number of results that are used; with more than one (or for an operator with a variable
            number of results) the call returns a tuple.
        span: Location in the source of the program.
        attrs: Its attributes; lists become tuples.

    Raises:
        InvalidModelError: Unknown operator or attribute, or types that do not fit.
        UnsupportedModelError: The operator's domain is unknown.
    """
    op = Op(name, domain)
    present = list(args)
    while present and present[-1] is _ABSENT:
        present.pop()
    if returns_tuple(name, domain, outputs):
        attrs[OUTPUTS] = outputs
    untyped = Call(op, tuple(present), Attrs(attrs), span=span)
    return settled(with_fields(untyped, checked_type=infer_call_type(op, untyped.args, untyped.attrs)))


def tuple_get(value: Expr, index: int) -> TupleGetItem:
    """One field of a tuple, with the tuple's span."""
    return TupleGetItem(value, index, span=value.span)
