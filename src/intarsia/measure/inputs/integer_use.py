"""Derive the valid ranges of integer inputs from their uses in a program.

A random index must be a row of its table, a mask is 0 or 1, a length is within its axis. Each parameter is
followed through operators to those that make demands (`integer_demands`). Where values are only moved on the
way, the demand holds for the parameter. Where other values are computed from them, such as positions as
cumulative sums of a mask, a search finds ranges that meet all demands by interval arithmetic
(`index_ranges`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Expr, Function, Op, TensorType, TupleGetItem, Var, children, post_order
from intarsia.measure.inputs.index_ranges import WIDEST, BoundedValue, Range, can_be_met, meeting_ranges
from intarsia.measure.inputs.integer_demands import MOVING, Demand, demand_of
from intarsia.toolchain.openvino.integer_ranges import type_interval
from intarsia.toolchain.openvino.integer_rules import RULES

_POSITIONS: Final = frozenset({"Shape", "Size", "NonZero", "ArgMax", "ArgMin", "Unique", "TopK"})
"""Operators with integer results that are positions or counts for any argument."""

_SUMS: Final = frozenset(
    {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceProd", "CumSum", "MatMul", "Gemm", "Einsum"}
)
"""Operators that sum or multiply many integers."""

_SUMMED_BITS: Final = 12
"""Bits that sums may have beyond their terms. Where sums overflow, engines wrap or saturate."""

_LONG_SUM: Final = 2**33 + 1
"""Largest 64-bit term of a sum: beyond 32 bits, and onnxruntime sums in float64, exact below 2**53."""

_WIDE: Final = 2**20
"""Width of a range from which only small numbers are drawn for ordinary inputs."""


@dataclass(frozen=True, slots=True)
class IntegerUse:
    """The range of an integer input.

    Attributes:
        low: Least integer of ordinary inputs.
        high: Least integer above that range.
        is_certain: Whether other integers are wrong; if not, others may be valid as well.
        least: Least integer that may be valid; None if unknown.
        most: Largest integer that may be valid; None if unknown.
    """

    low: int
    high: int
    is_certain: bool = True
    least: int | None = None
    most: int | None = None


UNKNOWN: Final = IntegerUse(0, 8, is_certain=False)
REAL: Final = IntegerUse(0, 8, is_certain=False, least=-1000, most=1000)
"""Use of integers that floats are computed from: with larger ones, cancellation amplifies rounding."""

HARMLESS: Final = IntegerUse(0, 2, is_certain=False, least=0, most=1)
"""Use of integers from which indices are computed in an unknown way."""


def integer_uses(function: Function) -> dict[str, IntegerUse]:
    """Return the use of each integer parameter of a function, by name."""
    users: dict[Expr, list[Expr]] = defaultdict(list)
    for expr in post_order(function.body):
        for child in dict.fromkeys(children(expr)):
            users[child].append(expr)
    params = [
        param
        for param in function.params
        if isinstance(param.checked_type, TensorType) and param.checked_type.dtype.is_integer
    ]
    paths = {param: tuple(_paths(param, users)) for param in params}
    uses = {}
    for param, param_paths in paths.items():
        own_range = _intersection(_own_demands(param_paths))
        uses[param.name] = _free_use(param, param_paths) if own_range is None else _use(own_range)
    return uses | _computed_uses(paths)


def _computed_uses(paths: Mapping[Var, Sequence[_Path]]) -> dict[str, IntegerUse]:
    """Return the uses of parameters that indices or sizes are computed from."""
    bounded = {param: values for param, items in paths.items() if (values := _bounded_values(items))}
    limits = {param: _limits(param, _intersection(_own_demands(paths[param]))) for param in bounded}
    distinct = dict.fromkeys(value for items in bounded.values() for value in items)
    met = {value: can_be_met(limits, value) for value in distinct}
    unclear = {param for param, items in bounded.items() if not all(met[value] for value in items)}
    limits |= dict.fromkeys(unclear, (0, 1))
    ranges = meeting_ranges(limits, [value for value in distinct if met[value]])
    return {
        param.name: HARMLESS if ranges is None or param in unclear else _use(ranges[param], items)
        for param, items in bounded.items()
    }


@dataclass(frozen=True, slots=True)
class _Path:
    """A path from a parameter to an operator that makes a demand, computes real numbers, or sums integers.

    Attributes:
        value: Argument of the operator.
        demand: Demand of the operator, if it makes one.
        is_moved: Whether the argument consists of elements of the parameter.
        is_to_real: Whether the operator computes floating-point numbers of integers.
        is_to_sum: Whether the operator sums many integers.
    """

    value: Expr
    demand: Demand | None
    is_moved: bool
    is_to_real: bool
    is_to_sum: bool


def _paths(param: Var, users: Mapping[Expr, list[Expr]]) -> Iterator[_Path]:
    waiting: list[tuple[Expr, bool]] = [(param, True)]
    seen: set[tuple[Expr, bool]] = set()
    while waiting:
        value, is_moved = item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        for user in users.get(value, ()):
            if isinstance(user, TupleGetItem):
                waiting.append((user, is_moved))
            elif isinstance(user, Call) and isinstance(user.op, Op):
                for position in (
                    position for position, argument in enumerate(user.args) if argument is value
                ):
                    demand = demand_of(user, position, users)
                    is_to_real = demand is None and _is_real(user) and not _is_real(value)
                    is_to_sum = demand is None and user.op.name in _SUMS
                    if demand is not None or is_to_real or is_to_sum:
                        yield _Path(value, demand, is_moved, is_to_real, is_to_sum)
                    if position in MOVING.get(user.op.name, ()) or _keeps_integers(user):
                        waiting.append((user, is_moved))
                    elif _computes(user):
                        waiting.append((user, False))


def _computes(call: Call) -> bool:
    """Return whether a result is computed from an argument's numbers, rather than looked up or counted."""
    assert isinstance(call.op, Op)
    type_ = call.checked_type
    if call.op.name in _POSITIONS or call.op.name in MOVING or not isinstance(type_, TensorType):
        return False
    return type_.dtype.is_integer or call.op.name in RULES or call.op.name == "Cast"


def _is_real(expr: Expr) -> bool:
    type_ = expr.checked_type
    return isinstance(type_, TensorType) and type_.dtype.is_float


def _keeps_integers(call: Call) -> bool:
    """Return whether it is a Cast to another type of integers: its users use the same numbers."""
    type_ = call.checked_type
    is_cast = isinstance(call.op, Op) and call.op.name == "Cast"
    return is_cast and isinstance(type_, TensorType) and type_.dtype.is_integer


def _free_use(param: Var, paths: Sequence[_Path]) -> IntegerUse:
    """Return the use of a parameter without demands."""
    if any(path.is_to_real for path in paths):
        return REAL
    if not any(path.is_to_sum for path in paths):
        return UNKNOWN
    _, most = type_interval(param) or WIDEST
    largest = _LONG_SUM if most >= 2**62 else max(7, int(most) >> _SUMMED_BITS)
    return IntegerUse(0, 8, is_certain=False, least=-largest, most=largest)


def _own_demands(paths: Sequence[_Path]) -> list[Demand]:
    return [path.demand for path in paths if path.demand is not None and path.is_moved]


def _intersection(demands: Sequence[Demand]) -> Range | None:
    """Return the range that meets all demands, if there are any; needed demands come before sensible ones."""
    chosen: Range | None = None
    for demand in sorted(demands, key=lambda demand: not demand.is_needed):
        least, most = demand.low, demand.high - 1
        if chosen is not None:
            least, most = max(least, chosen[0]), min(most, chosen[1])
        if least <= most:
            chosen = least, most
    return chosen


def _bounded_values(paths: Sequence[_Path]) -> tuple[BoundedValue, ...]:
    return tuple(
        BoundedValue(path.value, path.demand.low, path.demand.high - 1)
        for path in paths
        if path.demand is not None and path.demand.is_needed and not path.is_moved
    )


def _limits(param: Var, own_range: Range | None) -> Range:
    """Return the widest range that a parameter may get."""
    if own_range is not None:
        return own_range
    least, most = type_interval(param) or WIDEST
    return int(max(least, WIDEST[0])), int(min(most, WIDEST[1]))


def _use(range_: Range, bounded: Sequence[BoundedValue] = ()) -> IntegerUse:
    """Return the use of a parameter with a range.

    From a wide one, numbers within the bounded values are drawn.
    """
    least, most = range_
    if most - least < _WIDE:
        return IntegerUse(least, most + 1)
    low = min(max(0, least), most)
    width = min((value.most for value in bounded), default=UNKNOWN.high)
    return IntegerUse(low, min(low + max(2, width), most) + 1, is_certain=False, least=least, most=most)
