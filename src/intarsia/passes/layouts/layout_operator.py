"""Operators on images, channels last: ONNX has none, so each is a function that says what it computes.

    fn (%x: NHWC) attributes {Composite="Conv", layout="NHWC"} {
      layout_transform(Conv(layout_transform(%x, NHWC to NCHW), W, B), NCHW to NHWC)
    }

Any toolchain runs it as it is written; one that has such an operator recognises the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from intarsia.ir import ABSENT, Attrs, Call, Constant, Expr, Function, Op, Var, with_fields
from intarsia.op.infer import typed
from intarsia.op.layout import Order, channels_last, permuted_type
from intarsia.op.opset import INTARSIA_DOMAIN

LAYOUT: Final = "layout"
COMPOSITE: Final = "Composite"
_SPATIAL: Final = {3: "W", 4: "HW", 5: "DHW"}


@dataclass(frozen=True, slots=True)
class LayoutOperator:
    """A call of an operator channels last, seen as the operator of ONNX inside.

    Attributes:
        inner: The call of ONNX's operator; its first argument is to be replaced.
        data: The argument, channels last.
        order: Permutation from channels first to channels last.
    """

    inner: Call
    data: Expr
    order: Order


def layouts_of(rank: int) -> tuple[str, str] | None:
    """The names of both layouts of a rank, channels first and last; None if there are none."""
    axes = _SPATIAL.get(rank)
    return None if axes is None else (f"NC{axes}", f"N{axes}C")


def channels_last_call(call: Call, data: Expr, rank: int) -> Call:
    """ONNX's call on the image `data` with channels last; so is its result.

    Everything built has span and device of the call. Constants stand inside the function, so that its
    compiler can use them; other arguments are passed.
    """
    names = layouts_of(rank)
    assert names is not None
    assert isinstance(call.op, Op)
    first, last = names
    facts: dict[str, Any] = {"span": call.span, "virtual_device": call.virtual_device}
    passed = [arg for arg in call.args[1:] if not isinstance(arg, Constant) and arg.checked_type != ABSENT]
    params = [Var(f"p{i}", checked_type=arg.checked_type, **facts) for i, arg in enumerate(passed)]
    inside: dict[Expr, Expr] = dict(zip(passed, params, strict=True))
    x = Var("x", checked_type=data.checked_type, **facts)
    others = (inside.get(arg, arg) for arg in call.args[1:])
    inner = typed(with_fields(call, args=(_transform(x, last, first, call), *others)))
    attrs = Attrs({COMPOSITE: call.op.name, LAYOUT: last})
    function = Function((x, *params), _transform(inner, first, last, call), attrs, **facts)
    own_type = permuted_type(call.checked_type, channels_last(rank))
    return Call(function, (data, *passed), checked_type=own_type, **facts)


def _transform(value: Expr, source: str, destination: str, like: Call) -> Expr:
    attrs = Attrs({"src_layout": source, "dst_layout": destination})
    op = Op("layout_transform", INTARSIA_DOMAIN)
    facts: dict[str, Any] = {"span": like.span, "virtual_device": like.virtual_device}
    return typed(Call(op, (value,), attrs, **facts))


def layout_operator(call: Call) -> LayoutOperator | None:
    """The operator of a call that `channels_last_call` made, its arguments those of the call."""
    function = call.op
    if not isinstance(function, Function) or COMPOSITE not in function.attrs or LAYOUT not in function.attrs:
        return None
    match function.body:
        case Call(args=(Call(op=Op()) as inner,)):
            passed: dict[Expr, Expr] = dict(zip(function.params[1:], call.args[1:], strict=True))
            others = tuple(passed.get(arg, arg) for arg in inner.args[1:])
            order = channels_last(len(str(function.attrs[LAYOUT])))
            return LayoutOperator(with_fields(inner, args=(inner.args[0], *others)), call.args[0], order)
        case _:
            return None
