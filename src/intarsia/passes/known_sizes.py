"""Sizes that are taken out of shapes with symbolic dimensions, where they are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Dim, Expr, Function, IRModule, Op, TensorType, with_fields
from intarsia.op import rewrite_typed
from intarsia.op.evaluate import can_evaluate, evaluate_call

_OPEN: Final = -1
"""Stands for the size of a symbolic dimension; no size is negative."""
_PICKING: Final = frozenset({"Gather", "Slice"})


def with_known_sizes(module: IRModule) -> IRModule:
    """Return a typed program with constants for Gather and Slice of a Shape whose sizes are numbers.

    Exporters compute shapes of initial states like this: of x (steps, 1, 16) they take Shape(x)[1]. The rest
    of a folding is done by `FoldConstant`. Programs that run token by token are recognised by such
    arithmetic, so it is no part of that pass.

    Linear.
    """
    for name, function in module.graph_functions.items():
        folded = rewrite_typed(function, _folded)
        assert isinstance(folded, Function)
        module = module.with_function(name, folded)
    return module


def _folded(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name=name, domain=""), args=(Call() as shape, *rest)) if name in _PICKING:
            sizes = _sizes_of(shape)
            if sizes is None:
                return expr
            picked = with_fields(expr, args=(Constant(sizes), *rest))
            if not can_evaluate(picked):
                return expr
            value = evaluate_call(picked)
            if not isinstance(value, np.ndarray) or (value == _OPEN).any():
                return expr
            return Constant(value)
        case _:
            return expr


def _sizes_of(shape: Call) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    """The result of a Shape, with `_OPEN` in place of symbolic dimensions; None for other calls."""
    if not isinstance(shape.op, Op) or shape.op.domain or shape.op.name != "Shape":
        return None
    type_ = shape.args[0].checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    dims: Sequence[Dim] = type_.shape
    sizes = np.array([dim if isinstance(dim, int) else _OPEN for dim in dims], np.int64)
    start, end = shape.attrs.get("start", 0), shape.attrs.get("end")
    assert isinstance(start, int)
    assert end is None or isinstance(end, int)
    return sizes[start:end]
