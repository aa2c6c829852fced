"""Reads whose lanes lie at known distances from one address, shuffled out of whole vectors.

    vectorized i in 16          3 vectors of 6, 5 and 5 elements, from x[0], x[5000] and x[10000] on,
      y[i] = x[i mod 3,    ->   and 2 shuffles, each of two vectors
               i floordiv 3]

Such an index is no affine sum of the lane, but in each lane a constant beyond one affine sum. Lane by lane,
it takes a division, a load and an insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, floordiv, mod, mul, sub
from types import MappingProxyType
from typing import Final, NamedTuple

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Load, LoopVar, Scalar
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.types import shuffle_mask, stored_bytes
from intarsia.native.machine.shuffled_vectors import most_shuffled_vectors

_ELEMENT_BYTES: Final = (2, 4)
"""Size of elements of which shuffles take any lane of two vectors, in bytes."""
_FEWEST_LANES: Final = 4

_OPERATIONS: Final[Mapping[ArithOp, Callable[[int, int], int]]] = MappingProxyType(
    {
        ArithOp.ADD: add,
        ArithOp.SUB: sub,
        ArithOp.MUL: mul,
        ArithOp.FLOOR_DIV: floordiv,
        ArithOp.FLOOR_MOD: mod,
        ArithOp.MIN: min,
        ArithOp.MAX: max,
    }
)
"""Arithmetic of indices on numbers."""

_Terms = Mapping[int, int]
"""Coefficients by the numbers of symbols."""


class LaneNumbers(NamedTuple):
    """An int64 in each lane: a sum that all lanes share, and a constant.

    Attributes:
        terms: Coefficients of the shared sum, by the number of the symbol; none is 0.
        numbers: Constant of each lane.
    """

    terms: _Terms
    numbers: tuple[int, ...]


class Window(NamedTuple):
    """Contiguous elements, from which lanes of a read are taken.

    Attributes:
        begin: Offset of the first element.
        length: Number of elements, at most those of a vector.
    """

    begin: int
    length: int


class LanePattern(NamedTuple):
    """A read in lanes.

    Attributes:
        base: Offset of all lanes in elements, without lanes.
        numbers: Distance of each lane's element from there.
        windows: Elements that contain them, in order.
    """

    base: AffineIndex
    numbers: tuple[int, ...]
    windows: tuple[Window, ...]


def lane_pattern(
    state: FunctionState, access: Load, shared: Callable[[Scalar], object]
) -> LanePattern | None:
    """Return the pattern of a read in few vectors; None for other reads.

    Args:
        state: State in the lanes of a vectorised loop, all of them active.
        access: The read.
        shared: Function that evaluates an index that all lanes share.
    """
    lanes, env = state.lanes, state.env
    if lanes < _FEWEST_LANES or stored_bytes(access.buffer.dtype) not in _ELEMENT_BYTES:
        return None
    total = LaneNumbers({}, (0,) * lanes)
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        counters = state.kernel.facts.counters(index)
        if counters is None:
            return None
        # Unrolled code evaluates equal indices at equal counters many times.
        key = id(index), lanes, tuple([env[name] for name in counters])
        noted = state.kernel.noted_lanes
        if key not in noted:
            noted[key] = numbers_of_lanes(index, env, lanes)
        number: LaneNumbers | None = noted[key]
        if number is None:
            if state.lane_var in counters:
                return None
            value = shared(index)
            if not isinstance(value, AffineIndex) or value.lane:
                return None
            number = _of_sum(value, lanes)
        total = _sum(LaneNumbers(*_scaled(total, extent)), number, 1)
    windows = windows_of(total.numbers, lanes)
    is_whole = all(window.length == lanes for window in windows)
    if len(windows) > most_shuffled_vectors(lanes) or not (is_whole or state.kernel.has_masks):
        return None
    terms = tuple(sorted(total.terms.items()))
    return LanePattern(AffineIndex(0, 0, terms), total.numbers, windows)


def numbers_of_lanes(index: Scalar, env: Mapping[str, AffineIndex], lanes: int) -> LaneNumbers | None:
    """Return an index in each lane; None unless that is one sum and a constant for each lane.

    Args:
        index: Arithmetic on loop variables.
        env: Values of the loop variables.
        lanes: Number of lanes.
    """
    match index:
        case LoopVar():
            return _of_sum(env[index.name], lanes)
        case Literal(value=int() as value, dtype=DType.INT64):
            return LaneNumbers({}, (value,) * lanes)
        case Arith(op=op, operands=(first, second)) if op in _OPERATIONS:
            left, right = numbers_of_lanes(first, env, lanes), numbers_of_lanes(second, env, lanes)
            return None if left is None or right is None else _combined(op, left, right)
    return None


def _of_sum(value: AffineIndex, lanes: int) -> LaneNumbers:
    return LaneNumbers(dict(value.terms), tuple(value.const + lane * value.lane for lane in range(lanes)))


def _combined(op: ArithOp, left: LaneNumbers, right: LaneNumbers) -> LaneNumbers | None:
    if op in (ArithOp.ADD, ArithOp.SUB):
        return _sum(left, right, 1 if op is ArithOp.ADD else -1)
    if op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD) and (right.terms or min(right.numbers) <= 0):
        return None
    if not left.terms and not right.terms:
        return LaneNumbers({}, tuple(map(_OPERATIONS[op], left.numbers, right.numbers)))
    if op is ArithOp.MUL and left.terms:
        left, right = right, left
    factor = right.numbers[0] if op is not ArithOp.MUL else left.numbers[0]
    match op:
        case ArithOp.MUL if not left.terms and set(left.numbers) == {factor}:
            return _scaled(right, factor)
        case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD if set(right.numbers) == {factor}:
            # Whole multiples of the divisor change the quotient by a whole number, and the remainder not.
            if any(coefficient % factor for coefficient in left.terms.values()):
                return None
            numbers = tuple(_OPERATIONS[op](number, factor) for number in left.numbers)
            if op is ArithOp.FLOOR_MOD:
                return LaneNumbers({}, numbers)
            terms = {symbol: coefficient // factor for symbol, coefficient in left.terms.items()}
            return LaneNumbers(terms, numbers)
    return None


def _sum(left: LaneNumbers, right: LaneNumbers, factor: int) -> LaneNumbers:
    """Return `left + factor * right`."""
    terms = dict(left.terms)
    for symbol, coefficient in right.terms.items():
        terms[symbol] = terms.get(symbol, 0) + factor * coefficient
    numbers = tuple(
        first + factor * second for first, second in zip(left.numbers, right.numbers, strict=True)
    )
    return LaneNumbers({symbol: item for symbol, item in terms.items() if item}, numbers)


def _scaled(value: LaneNumbers, factor: int) -> LaneNumbers:
    terms = {symbol: factor * item for symbol, item in value.terms.items() if factor}
    return LaneNumbers(terms, tuple(factor * number for number in value.numbers))


def windows_of(numbers: Sequence[int], lanes: int) -> tuple[Window, ...]:
    """Return the fewest windows of at most `lanes` elements that contain some elements, from the first on."""
    windows: list[Window] = []
    for number in sorted(set(numbers)):
        if windows and number < windows[-1].begin + lanes:
            windows[-1] = Window(windows[-1].begin, number - windows[-1].begin + 1)
        else:
            windows.append(Window(number, 1))
    return tuple(windows)


def gathered(builder: Builder, pattern: LanePattern, parts: Sequence[str], kind: str) -> str:
    """Return the vector of a pattern's elements.

    Args:
        builder: Builder of the function.
        pattern: The pattern.
        parts: Vector of each window, with its elements in the first lanes.
        kind: LLVM type of a vector.
    """
    lanes = len(pattern.numbers)
    first = pattern.windows[0]
    within = [number - first.begin for number in pattern.numbers]
    if len(parts) == 1:
        if within == list(range(lanes)):
            return parts[0]
        return builder.pure(f"shufflevector {kind} {parts[0]}, {kind} poison, {shuffle_mask(tuple(within))}")
    merged = parts[0]
    for position, (part, window) in enumerate(zip(parts[1:], pattern.windows[1:], strict=True), 1):
        places = []
        for lane, number in enumerate(pattern.numbers):
            if window.begin <= number < window.begin + window.length:
                places.append(lanes + number - window.begin)
            else:
                # Lanes of later windows are taken later; until then they may have anything.
                is_first = position == 1 and number < first.begin + first.length
                places.append(number - first.begin if is_first else lane)
        merged = builder.pure(f"shufflevector {kind} {merged}, {kind} {part}, {shuffle_mask(tuple(places))}")
    return merged
