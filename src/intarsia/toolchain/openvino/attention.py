"""Attention with as many queries as heads, which OpenVINO mixes up.

Measured with OpenVINO 2026.4.1 on the CPU: where both axes have the same known length and queries were
transposed from positions x heads, it takes the one axis for the other and returns results of other heads.
Keys do not matter, and axes of unknown length do not either. It is right where queries are not scaled, and
results go back to positions x heads and are reshaped there, as in most encoders: it does that in one step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from intarsia.ir import Call, Dim, Expr, Function, GlobalVar, IRModule, Op, children, post_order
from intarsia.toolchain.call_facts import known_shape

_SCALED: Final = frozenset({"Mul", "Div", "Add", "Sub", "Where"})
"""Operators between the scores of attention and their softmax."""

_HEADS_AND_POSITIONS: Final = (0, 2, 1, 3)

_Readers = Mapping[Expr, list[Expr]]


def mixes_heads(call: Call) -> bool:
    """Whether a call is attention with as many queries as heads, as far as itself and its arguments show."""
    is_product = _is_operator(call, "MatMul") and _is_operator(call.args[0], "Softmax")
    if not is_product and not _is_operator(call, "Attention"):
        return False
    return _are_heads_and_queries_equal(known_shape(call, 0))


def mixed_up_attention(function: Function, module: IRModule | None = None) -> bool:
    """Whether a function, or one that it calls, has attention that OpenVINO mixes up.

    Args:
        function: A function with inferred types.
        module: The global functions that it calls.
    """
    return any(map(_has_mixed_up_attention, _with_called(function, module)))


def _has_mixed_up_attention(function: Function) -> bool:
    calls = [expr for expr in post_order(function) if isinstance(expr, Call) and mixes_heads(expr)]
    if not calls:
        return False
    readers: dict[Expr, list[Expr]] = defaultdict(list)
    for expr in post_order(function):
        for child in dict.fromkeys(children(expr)):
            readers[child].append(expr)
    return not all(_is_transposed(_queries(call)) and _goes_back(call, readers) for call in calls)


def _with_called(function: Function, module: IRModule | None) -> Iterator[Function]:
    functions, names = [function], set[str]()
    for item in functions:  # grows while it is walked
        yield item
        for expr in post_order(item):
            if isinstance(expr, GlobalVar) and module is not None and expr.name not in names:
                names.add(expr.name)
                callee = module.functions.get(expr)
                functions += [callee] if isinstance(callee, Function) else []


def _queries(call: Call) -> Expr | None:
    """The queries of attention as they are multiplied with keys; None if they cannot be determined."""
    if _is_operator(call, "Attention"):
        return call.args[0]
    softmax = call.args[0]
    assert isinstance(softmax, Call)
    waiting = [softmax.args[0]]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Call) and _is_operator(expr, "MatMul"):
            return expr.args[0]
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _SCALED:
            waiting += reversed(expr.args)
    return None


def _is_transposed(expr: Expr | None) -> bool:
    """Whether a value is made by one transposition of positions x heads."""
    if not isinstance(expr, Call) or not _is_operator(expr, "Transpose"):
        return False
    return expr.attrs.get("perm") == _HEADS_AND_POSITIONS


def _goes_back(call: Call, readers: _Readers) -> bool:
    """Whether every reader of a result transposes it to positions x heads and only reshapes that."""
    transposed = readers[call]
    return bool(transposed) and all(
        _is_transposed(reader) and all(_is_operator(item, "Reshape") for item in readers[reader])
        for reader in transposed
    )


def _are_heads_and_queries_equal(shape: tuple[Dim, ...] | None) -> bool:
    """Whether axes 1 and 2 of batch x heads x queries x anything are equal and longer than 1."""
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return False
    return shape[1] == shape[2] and shape[1] > 1


def _is_operator(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain and expr.op.name == name
