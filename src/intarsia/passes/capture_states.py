"""States of loops that no iteration changes become values that the body captures."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    Attrs,
    Call,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    substitute,
    with_fields,
)
from intarsia.op import rewrite_typed
from intarsia.op.infer import typed
from intarsia.passes.rules.tuple_field import tuple_field
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class CaptureStates(FunctionPass, opt_level=0, required=("InferType",)):
    """Gives bodies of Loop and Scan the states that no iteration changes as values from outside.

    Converters of scikit-learn write distances as a Scan over one matrix with the other one as its state.
    Without such states the iterations do not depend on one another, and constants are known inside.

    Linear, times the depth of bodies inside of bodies.

    Before:
        def @main(%x: Tensor[(4, 2), float32], %rows: Tensor[(3, 2), float32]) {
          %step = fn (%s: Tensor[(4, 2), float32], %row: Tensor[(2,), float32]) {
            (%s, Sub(%s, %row))
          };
          Scan(%x, %rows, %step, num_scan_inputs=1, outputs=2).1
        }
    After:
        def @main(%x: Tensor[(4, 2), float32], %rows: Tensor[(3, 2), float32]) {
          %step = fn (%row: Tensor[(2,), float32]) {
            (Sub(%x, %row),)
          };
          Scan(%rows, %step, num_scan_inputs=1, outputs=1).0
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with bodies that capture such states."""
        after = rewrite_typed(function, _captured)
        assert isinstance(after, Function)
        return after


def _captured(expr: Expr) -> Expr:
    if isinstance(expr, TupleGetItem):
        return tuple_field(expr)
    match expr:
        case Call(op=Op(name="Loop", domain=""), args=(trips, condition, *initial, Function() as body)):
            return _without_states(expr, (trips, condition), initial, body)
        case Call(op=Op(name="Scan", domain=""), args=(*given, Function() as body)):
            scanned = expr.attrs["num_scan_inputs"]
            assert isinstance(scanned, int)
            return _without_states(expr, (), given[: len(given) - scanned], body)
        case _:
            return expr


def _without_states(loop: Call, front: tuple[Expr, ...], initial: list[Expr], body: Function) -> Expr:
    """The results of a loop whose body captures the states that it returns as they are.

    Args:
        loop: A Loop or Scan.
        front: Its arguments before the states; a Loop's body has as many parameters there.
        initial: The initial values of the states.
        body: The body.
    """
    results = body.body
    first = len(front)  # the position of the first state among the parameters
    shift = 1 if front else 0  # a Loop's body returns whether it goes on before the states
    if not isinstance(results, Tuple) or not isinstance(loop.checked_type, TupleType):
        return loop
    params = body.params[first : first + len(initial)]
    unchanged = [_is_kept(param, results.fields[shift + at]) for at, param in enumerate(params)]
    fits = [param.checked_type == value.checked_type for param, value in zip(params, initial, strict=True)]
    is_captured = [kept and fit for kept, fit in zip(unchanged, fits, strict=True)]
    if not any(is_captured) or (len(results.fields) - shift == sum(is_captured)):
        return loop
    new_body = _without_parameters(
        body,
        {param: value for param, value, out in zip(params, initial, is_captured, strict=True) if out},
        {shift + at for at, out in enumerate(is_captured) if out},
    )
    arguments = (
        *front,
        *(value for value, out in zip(initial, is_captured, strict=True) if not out),
        *loop.args[first + len(initial) : -1],
        new_body,
    )
    count = len(loop.checked_type.fields)
    is_left = [not (at < len(initial) and is_captured[at]) for at in range(count)]
    if not any(is_left):
        return Tuple(tuple(initial[:count]))
    attrs = Attrs({**loop.attrs, "outputs": sum(is_left)})
    after = typed(with_fields(loop, args=arguments, attrs=attrs, checked_type=None))
    left = (TupleGetItem(after, number) for number in range(sum(is_left)))
    return Tuple(tuple(next(left) if is_left[at] else initial[at] for at in range(count)))


def _is_kept(param: Var, result: Expr) -> bool:
    """Whether a body returns a state as it is."""
    while isinstance(result, Call) and str(result.op) == "Identity":
        result = result.args[0]
    return result is param


def _without_parameters(body: Function, values: dict[Var, Expr], results: set[int]) -> Function:
    """A body with values in place of some parameters, and without some results."""
    after = substitute(body.body, dict(values.items()))
    assert isinstance(after, Tuple)
    fields = tuple(field for at, field in enumerate(after.fields) if at not in results)
    params = tuple(param for param in body.params if param not in values)
    return Function(params, typed(Tuple(fields)), body.attrs, span=body.span)
