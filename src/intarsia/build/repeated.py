"""Loop and Scan with a body that is divided between toolchains: a step that repeats the body's block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.build.kernel_table import is_marked
from intarsia.build.slot_value import SlotValue, leaves
from intarsia.build.slots import SlotTable
from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    Op,
    TensorType,
    Type,
    post_order,
)
from intarsia.op.control_flow import body_result_types
from intarsia.runtime.plan import Repeat

_REPEATED: Final = ("Loop", "Scan")


def is_repeated(call: Call, functions: Mapping[str, Function]) -> bool:
    """Whether a Loop or Scan calls a function in its body that is marked for a toolchain, or leads to one.

    Any other one is a kernel as a whole.

    Args:
        call: A call of an operator.
        functions: The functions of the program by name.
    """
    if not isinstance(call.op, Op) or call.op.domain or call.op.name not in _REPEATED:
        return False
    body = call.args[-1]
    return isinstance(body, Function) and _reaches_marked(body, functions)


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A Loop or Scan as a step, and the slots of what the call returns."""

    step: Repeat
    value: SlotValue


def repeat_step(
    call: Call,
    block: str,
    captured: tuple[int, ...],
    slots_of: Callable[[Expr], Sequence[int]],
    table: SlotTable,
) -> RepeatedCall:
    """Return the step of a Loop or Scan.

    Args:
        call: The call.
        block: Name of the body's block.
        captured: Slots of the values that the body uses from around.
        slots_of: The slots of an expression; none for an absent argument.
        table: Gets the slots of the results.
    """
    arguments = [tuple(slots_of(arg)) for arg in call.args[:-1]]
    value = table.results(call, call.checked_type, 0)
    results = len(_results(call)) - _is_loop(call)
    used = tuple(slot for slot in leaves(value) if isinstance(slot, int))
    outputs = (*used, *(table.new(None, 0) for _ in range(results - len(used))))
    states = _state_count(call)
    rows = _row_types(call)
    scanned: tuple[int, ...] = ()
    scan_axes: tuple[tuple[int, bool], ...] = ()
    if _is_loop(call):
        trips, condition, *rest = arguments
        row_axes = ((0, False),) * len(rows)
    else:
        trips = condition = ()
        rest = arguments[:states]
        scanned = tuple(slot for slots in arguments[states:] for slot in slots)
        scan_axes = _axes(call, "scan_input", [_rank(arg.checked_type) for arg in call.args[states:-1]])
        row_axes = _axes(call, "scan_output", [_rank(row) + 1 for row in rows])
    empty = tuple(
        slot for row, (axis, _) in zip(rows, row_axes, strict=True) for slot in slots_of(_no_rows(row, axis))
    )
    initial = tuple(slot for slots in rest for slot in slots)
    return RepeatedCall(
        Repeat(block, trips, condition, initial, scanned, captured, scan_axes, row_axes, empty, outputs),
        value,
    )


def can_repeat(call: Call) -> bool:
    """Whether enough is known of a Loop or Scan: types of its rows, and for a Scan the ranks."""
    if _is_loop(call) and (len(call.args) < 3 or call.args[1].checked_type == ABSENT):
        return False
    states = _state_count(call)
    rows = _results(call)[_is_loop(call) + states :]
    scanned = () if _is_loop(call) else tuple(arg.checked_type for arg in call.args[states:-1])
    typed = [item for item in (*rows, *scanned) if isinstance(item, TensorType)]
    has_ranks = all(item.shape is not None for item in typed)
    return len(typed) == len(rows) + len(scanned) and (_is_loop(call) or has_ranks)


def _is_loop(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name == "Loop"


def _state_count(call: Call) -> int:
    """The number of states of a Loop (behind trip count and condition) or Scan."""
    if _is_loop(call):
        return len(call.args) - 3
    count = call.attrs["num_scan_inputs"]
    assert isinstance(count, int)
    return len(call.args) - 1 - count


def _results(call: Call) -> tuple[Type | None, ...]:
    """Types of all that the body returns."""
    body = call.args[-1]
    assert isinstance(body, Function)
    assert isinstance(body.checked_type, FuncType)
    return body_result_types(body.checked_type)


def _row_types(call: Call) -> list[TensorType]:
    rows = _results(call)[_is_loop(call) + _state_count(call) :]
    return [item for item in rows if isinstance(item, TensorType)]


def _no_rows(row: TensorType, axis: int) -> Constant:
    """What is stacked without an iteration; unknown dimensions are 0."""
    dims = [dim if isinstance(dim, int) else 0 for dim in row.shape or ()]
    return Constant(np.empty((*dims[:axis], 0, *dims[axis:]), row.dtype.numpy))


def _rank(type_: Type | None) -> int:
    assert isinstance(type_, TensorType)
    return len(type_.shape or ())


def _axes(call: Call, prefix: str, ranks: Sequence[int]) -> tuple[tuple[int, bool], ...]:
    """Return axis and direction of the scanned values or stacks, axes counted from the front."""
    zeros = (0,) * len(ranks)
    axes, directions = (call.attrs.get(f"{prefix}_{name}", zeros) for name in ("axes", "directions"))
    assert isinstance(axes, tuple)
    assert isinstance(directions, tuple)
    return tuple(
        (int(str(axis)) % rank, bool(backward))
        for axis, backward, rank in zip(axes, directions, ranks, strict=True)
    )


def _reaches_marked(body: Function, functions: Mapping[str, Function]) -> bool:
    seen: set[str] = set()
    stack = [body]
    while stack:
        for expr in post_order(stack.pop()):
            if isinstance(expr, GlobalVar) and expr.name not in seen and expr.name in functions:
                seen.add(expr.name)
                if is_marked(functions[expr.name]):
                    return True
                stack.append(functions[expr.name])
    return False
