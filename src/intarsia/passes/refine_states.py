"""States of loops get the types that their initial values have, where the body keeps these."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Type,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import rewrite_typed
from intarsia.op.infer import typed
from intarsia.op.rewrite_typed import over_rewritten
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class RefineStates(FunctionPass, opt_level=0, required=("InferType",)):
    """Gives the states of Loop and Scan static types where a body declares less.

    Exporters write bodies whose states are of unknown rank or size. Where a body that is given states of the
    types of the initial values returns states of these types, all iterations have them, by induction; and the
    types of all that the body computes from them, and of the results, follow.

    Linear, times the number of states whose types are not kept, and the depth of bodies inside of bodies.

    Before:
        def @main(%x: Tensor[(4, 2), float32], %n: Tensor[(), int64], %goes: Tensor[(), bool]) {
          %step = fn (%i: Tensor[(), int64], %on: Tensor[(), bool], %s: Tensor[?, float32]) {
            (%on, Tanh(%s))
          };
          Loop(%n, %goes, %x, %step, outputs=1)
        }
    After:
        def @main(%x: Tensor[(4, 2), float32], %n: Tensor[(), int64], %goes: Tensor[(), bool]) {
          %step = fn (%i: Tensor[(), int64], %on: Tensor[(), bool], %s: Tensor[(4, 2), float32]) {
            (%on, Tanh(%s))
          };
          Loop(%n, %goes, %x, %step, outputs=1)
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with such types."""
        after = rewrite_typed(function, _refined)
        assert isinstance(after, Function)
        return after


def _refined(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="Loop", domain=""), args=(_, _, *initial, Function() as body)):
            params, first_result = body.params[2:], 1
        case Call(op=Op(name="Scan", domain=""), args=(*given, Function() as body)):
            count = len(given) - _integer(expr, "num_scan_inputs")
            initial, params, first_result = given[:count], body.params[:count], 0
        case _:
            return expr
    wanted = {
        param: value.checked_type
        for param, value in zip(params, initial, strict=True)
        if _is_static(value.checked_type) and value.checked_type != param.checked_type
    }
    after = _with_kept_types(body, wanted, {param: first_result + at for at, param in enumerate(params)})
    if after is None:
        return expr
    return with_fields(expr, args=(*expr.args[:-1], after), checked_type=None)


def _with_kept_types(
    body: Function, wanted: dict[Var, Type | None], results: dict[Var, int]
) -> Function | None:
    """A body whose parameters have those of the wanted types that its results have as well; None without any.

    Args:
        body: The body.
        wanted: Types by parameter.
        results: The position of the result that becomes a parameter in the next iteration.
    """
    while wanted:
        after = _with_types(body, wanted)
        if after is None or not isinstance(after.body, Tuple):
            return None
        found = {param: after.body.fields[results[param]].checked_type for param in wanted}
        kept = {param: type_ for param, type_ in wanted.items() if found[param] == type_}
        if len(kept) == len(wanted):
            return after
        wanted = kept
    return None


def _with_types(body: Function, types: dict[Var, Type | None]) -> Function | None:
    """The body with other types of parameters; None where a call in it refuses them."""
    params: dict[Expr, Var] = {
        param: with_fields(param, checked_type=types[param]) for param in body.params if param in types
    }
    done: dict[Expr, Expr] = dict(params.items())
    for node in post_order(body.body, stop=params):
        current = over_rewritten(node, done)
        inner = _refined(current)  # a loop in the body whose states have their first types from these
        done[node] = current if inner is current else typed(inner)
    after = done[body.body]
    if any(node in params for node in post_order(after)):
        return None
    renamed = tuple(params.get(param, param) for param in body.params)
    return Function(renamed, after, body.attrs, span=body.span)


def _is_static(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and type_.is_static


def _integer(call: Call, name: str) -> int:
    value = call.attrs[name]
    assert isinstance(value, int)
    return value
