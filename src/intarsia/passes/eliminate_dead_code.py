"""Values that nothing uses are not computed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from intarsia.ir import (
    Attrs,
    Call,
    Expr,
    Function,
    IRModule,
    Let,
    Op,
    TupleGetItem,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.op import infer_call_type, rewrite_typed
from intarsia.op.infer import typed
from intarsia.op.node import OUTPUTS
from intarsia.op.opset import INTARSIA_DOMAIN, schema_of
from intarsia.support.errors import InvalidModelError
from intarsia.target import UNCONSTRAINED
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class EliminateDeadCode(FunctionPass, opt_level=1, required=("InferType",)):
    """Drops lets whose variable is not used, and trailing results that are not used.

    What is not bound by a let is in the program only because it is used; so unused lets (values, closures)
    are all the dead code there is. A let goes even if its value draws random numbers, which share no state,
    or calls a function that might not end. A tuple keeps its fields, an If its branches.

    A call that returns several results no longer returns those at the end that the operator's schema calls
    optional and that no TupleGetItem takes (the mask of a Dropout, the states of an LSTM); what returns one
    result is no tuple. Linear in the function; lets on several devices may take more rounds.

    Before:
        def @main(%x: Tensor[(2, 3), float32]) {
          let %a = Relu(%x);
          let %b = Neg(%a);
          Dropout(%x, outputs=2).0
        }
    After:
        def @main(%x: Tensor[(2, 3), float32]) { Dropout(%x) }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without dead code."""
        before: Expr = function  # a let may stay for the device of a dead one, gone in the next round
        while (after := _without_dead_lets(before)) is not before:
            before = after
        after = _fewer_results(after)
        assert isinstance(after, Function)
        return after


def _without_dead_lets(function: Expr) -> Expr:
    live = _live(function)

    def rule(expr: Expr) -> Expr:
        return expr.body if isinstance(expr, Let) and expr.var not in live else expr

    lets = (expr for expr in post_order(function) if isinstance(expr, Let))
    return function if all(let.var in live for let in lets) else rewrite_typed(function, rule)


def _live(function: Expr) -> set[Expr]:
    """What the function's result depends on; of the variables, those that are used or must stay bound."""
    live: set[Expr] = set()
    bound: defaultdict[Expr, list[Expr]] = defaultdict(list)
    waiting: list[Expr] = [function]
    while waiting:
        expr = waiting.pop()
        if expr in live:
            continue
        live.add(expr)
        match expr:
            case Let():
                bound[expr.var].append(expr.value)
                waiting.append(expr.body)
                if expr.virtual_device not in (UNCONSTRAINED, expr.body.virtual_device):
                    waiting.append(expr.var)  # the let says where the body's value is to be copied
                if expr.var in live:
                    waiting.append(expr.value)
            case Var():
                waiting.extend(bound[expr])
            case Function():
                waiting.append(expr.body)
            case _:
                waiting.extend(children(expr))
    return live


def _fewer_results(function: Expr) -> Expr:
    """The function whose calls return no more results than are used."""
    counts = _result_counts(function)
    if not counts:
        return function
    done: dict[Expr, Expr] = {}
    for node in post_order(function):
        current = with_children(node, tuple(done[child] for child in children(node)))
        if isinstance(current, Call) and node in counts:
            current = with_fields(current, attrs=_attrs_for(current, counts[node]), checked_type=None)
        elif isinstance(node, TupleGetItem) and counts.get(node.tuple_value) == 1:
            current = done[node.tuple_value]
        done[node] = current if current is node else typed(current)
    return done[function]


def _result_counts(function: Expr) -> dict[Expr, int]:
    """How many results each call should return that returns too many."""
    items: defaultdict[Expr, list[TupleGetItem]] = defaultdict(list)
    used_whole: set[Expr] = {function}
    for node in post_order(function):
        if isinstance(node, TupleGetItem):
            items[node.tuple_value].append(node)
        else:
            used_whole.update(children(node))
    counts: dict[Expr, int] = {}
    for value, taken in items.items():
        if isinstance(value, Call) and value not in used_whole and isinstance(value.op, Op):
            count = _count(value, value.op, taken)
            if count < _outputs(value) and _is_valid(value, count):
                counts[value] = count
    return counts


def _count(call: Call, op: Op, taken: list[TupleGetItem]) -> int:
    """As many results as are taken, and as the operator must have."""
    formals = schema_of(op.name, op.domain).outputs if op.domain != INTARSIA_DOMAIN else ()
    required = [i for i, formal in enumerate(formals) if formal.option.name != "Optional"]
    if any(formals[i].option.name == "Variadic" for i in required):
        return _outputs(call)
    count = max(*(item.index + 1 for item in taken), *(i + 1 for i in required), 1)
    is_moved = any(item.virtual_device not in (UNCONSTRAINED, call.virtual_device) for item in taken)
    return 2 if count == 1 and is_moved else count


def _outputs(call: Call) -> int:
    outputs = call.attrs.get(OUTPUTS, 1)
    assert isinstance(outputs, int)
    return outputs


def _attrs_for(call: Call, count: int) -> Attrs:
    return call.attrs.updated(**{OUTPUTS: None if count == 1 else count})


def _is_valid(call: Call, count: int) -> bool:
    """Whether the operator may return that many results; batch normalization in training may not."""
    try:
        infer_call_type(call.op, call.args, _attrs_for(call, count))
    except InvalidModelError:
        return False
    return True
