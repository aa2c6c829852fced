"""What integers that a program is given are used for: which numbers they may be.

A random index must be one of the table's, a mask is 0 or 1, a length is within its axis. The program says so:
each parameter is followed through operators to those that make demands (`integer_demands`). Where values are
only moved on the way, the demand is the parameter's own. Where something is computed of them, as of positions
that are cumulative sums of a mask, numbers are sought for which interval arithmetic shows that every demand
is met (`index_ranges`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Expr, Function, Op, TensorType, TupleGetItem, Var, children, post_order
from intarsia.measure.inputs.index_ranges import WIDEST, Place, Range, can_be_met, meeting_ranges
from intarsia.measure.inputs.integer_demands import MOVING, Demand, demand_of
from intarsia.toolchain.openvino.integer_ranges import type_interval
from intarsia.toolchain.openvino.integer_rules import RULES

_POSITIONS: Final = frozenset({"Shape", "Size", "NonZero", "ArgMax", "ArgMin", "Unique", "TopK"})
"""Operators whose integers are positions or counts, whatever their arguments are."""

_SUMS: Final = frozenset(
    {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceProd", "CumSum", "MatMul", "Gemm", "Einsum"}
)
"""Operators that sum or multiply many integers."""

_SUMMED_BITS: Final = 12
"""Bits that sums may have more than their terms. Where sums overflow, engines wrap or saturate."""

_LONG_SUM: Final = 2**33 + 1
"""The largest of 64-bit terms: beyond 32 bits, and onnxruntime sums in float64, exact below 2**53."""

_WIDE: Final = 2**20
"""Numbers in a range from which small ones are drawn ordinarily."""


@dataclass(frozen=True, slots=True)
class IntegerUse:
    """Which integers an input may hold.

    Attributes:
        low: The least one that is drawn ordinarily.
        high: The first that is too large for that.
        is_certain: Whether others are wrong; if not, any number may do, and these are harmless.
        least: The least number that may do, if others do; None if that is not known.
        most: The largest one; None if that is not known.
    """

    low: int
    high: int
    is_certain: bool = True
    least: int | None = None
    most: int | None = None


UNKNOWN: Final = IntegerUse(0, 8, is_certain=False)
REAL: Final = IntegerUse(0, 8, is_certain=False, least=-1000, most=1000)
"""For what floating-point numbers are computed of: sums of larger ones cancel, and rounding decides."""

HARMLESS: Final = IntegerUse(0, 2, is_certain=False, least=0, most=1)
"""For indices that are computed in a way that nothing is known of."""


def integer_uses(function: Function) -> dict[str, IntegerUse]:
    """How each integer parameter of a function is used, by name."""
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
    for param, found in paths.items():
        own = _intersection(_own_demands(found))
        uses[param.name] = _free_use(param, found) if own is None else _use(own)
    return uses | _computed_uses(paths)


def _computed_uses(paths: Mapping[Var, Sequence[_Path]]) -> dict[str, IntegerUse]:
    """The uses of parameters that indices or sizes are computed of."""
    places = {param: found for param, items in paths.items() if (found := _computed_places(items))}
    limits = {param: _limits(param, _intersection(_own_demands(paths[param]))) for param in places}
    distinct = dict.fromkeys(place for items in places.values() for place in items)
    met = {place: can_be_met(limits, place) for place in distinct}
    unclear = {param for param, items in places.items() if not all(met[place] for place in items)}
    limits |= dict.fromkeys(unclear, (0, 1))
    ranges = meeting_ranges(limits, [place for place in distinct if met[place]])
    return {
        param.name: HARMLESS if ranges is None or param in unclear else _use(ranges[param], items)
        for param, items in places.items()
    }


@dataclass(frozen=True, slots=True)
class _Path:
    """A way from a parameter to an operator that makes a demand, computes real numbers, or sums integers.

    Attributes:
        value: The operator's argument.
        demand: What it demands, if it does.
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
                for place in (place for place, argument in enumerate(user.args) if argument is value):
                    demand = demand_of(user, place, users)
                    is_to_real = demand is None and _is_real(user) and not _is_real(value)
                    is_to_sum = demand is None and user.op.name in _SUMS
                    if demand is not None or is_to_real or is_to_sum:
                        yield _Path(value, demand, is_moved, is_to_real, is_to_sum)
                    if place in MOVING.get(user.op.name, ()) or _keeps_integers(user):
                        waiting.append((user, is_moved))
                    elif _computes(user):
                        waiting.append((user, False))


def _computes(call: Call) -> bool:
    """Whether a result is computed of the numbers of an argument, rather than looked up or counted."""
    assert isinstance(call.op, Op)
    type_ = call.checked_type
    if call.op.name in _POSITIONS or call.op.name in MOVING or not isinstance(type_, TensorType):
        return False
    return type_.dtype.is_integer or call.op.name in RULES or call.op.name == "Cast"


def _is_real(expr: Expr) -> bool:
    type_ = expr.checked_type
    return isinstance(type_, TensorType) and type_.dtype.is_float


def _keeps_integers(call: Call) -> bool:
    """Whether it is a Cast to another type of integers: what follows uses the same numbers."""
    type_ = call.checked_type
    is_cast = isinstance(call.op, Op) and call.op.name == "Cast"
    return is_cast and isinstance(type_, TensorType) and type_.dtype.is_integer


def _free_use(param: Var, paths: Sequence[_Path]) -> IntegerUse:
    """The use of a parameter of which nothing is demanded."""
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
    """Numbers that meet all demands, if there are demands; those that are only sensible give way."""
    chosen: Range | None = None
    for demand in sorted(demands, key=lambda demand: not demand.is_needed):
        least, most = demand.low, demand.high - 1
        if chosen is not None:
            least, most = max(least, chosen[0]), min(most, chosen[1])
        if least <= most:
            chosen = least, most
    return chosen


def _computed_places(paths: Sequence[_Path]) -> tuple[Place, ...]:
    return tuple(
        Place(path.value, path.demand.low, path.demand.high - 1)
        for path in paths
        if path.demand is not None and path.demand.is_needed and not path.is_moved
    )


def _limits(param: Var, own: Range | None) -> Range:
    """What the range of a parameter may be widened to."""
    if own is not None:
        return own
    least, most = type_interval(param) or WIDEST
    return int(max(least, WIDEST[0])), int(min(most, WIDEST[1]))


def _use(range_: Range, places: Sequence[Place] = ()) -> IntegerUse:
    """The use of a parameter that has to be in a range; in a wide one, numbers like the places' are drawn."""
    least, most = range_
    if most - least < _WIDE:
        return IntegerUse(least, most + 1)
    low = min(max(0, least), most)
    width = min((place.most for place in places), default=UNKNOWN.high)
    return IntegerUse(low, min(low + max(2, width), most) + 1, is_certain=False, least=least, most=most)
