"""Graph functions as tensor expressions, operator by operator, and ONNX's backend tests run that way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.backend.cases import Case

from intarsia.frontend.onnx import from_onnx
from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
    rewrite,
    substitute,
    with_fields,
)
from intarsia.native import te
from intarsia.native.te.operators import NotCoveredError, compute, compute_call_of
from intarsia.op import infer_types
from intarsia.op.constant_argument import constant_arguments

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tensors:
    """A graph function as tensor expressions.

    Attributes:
        outputs: Its results.
        feeds: Values of the placeholders, by name.
    """

    outputs: tuple[te.Tensor, ...]
    feeds: Mapping[str, Array]


def tensors_of(function: Function, values: Sequence[Array]) -> Tensors:
    """A function's body as tensor expressions, one rule a call.

    Args:
        function: Without branches, loops and calls of functions; typed, for values of these shapes.
        values: For its parameters.

    Raises:
        NotCoveredError: A call has no rule, or its rule does not cover it.
    """
    made: dict[Expr, tuple[te.Tensor | None, ...]] = {}
    feeds: dict[str, Array] = {}
    given = dict(zip(function.params, values, strict=True))
    for number, node in enumerate(post_order(function.body)):
        match node:
            case Var() | Constant():
                value = node.data if isinstance(node, Constant) else given[node]
                name = f"in{number}"
                feeds[name] = np.asarray(value)
                made[node] = (te.placeholder(value.shape, DType.of(value), name),)
            case Tuple():
                made[node] = tuple(each for field in node.fields for each in made[field])
            case TupleGetItem():
                made[node] = (made[node.tuple_value][node.index],)
            case Call():
                made[node] = _computed(node, made, f"op{number}")
            case Op():
                pass
            case _:
                raise NotCoveredError(f"{type(node).__name__} is no call of an operator")
    outputs = tuple(tensor for tensor in made[function.body] if tensor is not None)
    return Tensors(outputs, feeds)


def _computed(
    call: Call, made: Mapping[Expr, tuple[te.Tensor | None, ...]], name: str
) -> tuple[te.Tensor, ...]:
    described = compute_call_of(call, name)
    inputs = tuple(None if arg.checked_type == ABSENT else made[arg][0] for arg in call.args)
    return compute(replace(described, inputs=inputs))


def case_operators(case: Case) -> set[str]:
    """The operators of ONNX's default domain that a backend test's model calls."""
    import onnx

    return {node.op_type for node in onnx.load_from_string(case.model).graph.node if not node.domain}


def case_function(case: Case, inputs: Sequence[Array]) -> tuple[Function, list[Array]]:
    """A backend test's model for these inputs: those that say what the result looks like are constants."""
    module = from_onnx(case.model)
    main = module["main"]
    assert isinstance(main, Function)
    used = {
        call.args[position]
        for call in post_order(main)
        if isinstance(call, Call) and isinstance(call.op, Op)
        for position in (*constant_arguments(call), *_MORE.get(call.op.name, ()))
        if position < len(call.args)
    }
    fixed: dict[Expr, Expr] = {
        param: Constant(_read_only(value))
        for param, value in zip(main.params, inputs, strict=True)
        if param in used
    }
    free = [(param, value) for param, value in zip(main.params, inputs, strict=True) if param not in fixed]
    body = rewrite(substitute(main.body, fixed), _untyped)
    function = Function(tuple(param for param, _ in free), body)
    typed = infer_types(IRModule.from_expr(function))
    after = typed["main"]
    assert isinstance(after, Function)
    return after, [value for _, value in free]


_MORE = {"Dropout": (1, 2)}


def _untyped(expr: Expr) -> Expr:
    return with_fields(expr, checked_type=None) if isinstance(expr, Call) else expr


def _read_only(value: Array) -> Array:
    value = np.array(value)
    value.flags.writeable = False
    return value
