"""Scalars of the loop language in the current lanes; int64 that lanes share stay sums as long as they can."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Load, LoopVar, Scalar, Store
from intarsia.ir.scalar_types import COMPARISONS
from intarsia.native.emission.affine_index import AffineIndex, add, bounds, decided, divided, scale
from intarsia.native.emission.arithmetic import (
    binary,
    bool_not,
    constant_mask,
    is_zero,
    select,
    single_instruction,
)
from intarsia.native.emission.cast import cast
from intarsia.native.emission.checks import check_indices
from intarsia.native.emission.intrinsics import intrinsic
from intarsia.native.emission.memory import load
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.types import Value, constant, held_type, lane_numbers, literal, vector_type

Number = Value | AffineIndex


@dataclass(slots=True)
class Scalars:
    """Evaluates scalars where a function stands."""

    state: FunctionState
    _instructions: dict[tuple[int, int], str] = field(default_factory=dict)

    def value(self, scalar: Scalar) -> Value:
        """A scalar as a value."""
        return self.as_value(self.number(scalar))

    def number(self, scalar: Scalar) -> Number:
        """A scalar: an int64 that is a sum as such a sum, all others as values."""
        match scalar:
            case Load():
                return self._lifted(self._load(scalar))
            case Arith():
                return self._arith(scalar)
            case Literal():
                return self._literal(scalar)
            case LoopVar():
                return self.state.env[scalar.name]
            case Cast():
                return self._cast(scalar)
            case Intrinsic():
                args = [self.value(arg) for arg in scalar.args]
                return self._lifted(intrinsic(self.state.builder, self.state.kernel.isa, scalar, args))

    def as_value(self, number: Number) -> Value:
        """A number as a value; a sum is added up."""
        if isinstance(number, Value):
            return number
        state = self.state
        if number.lane and state.lanes:
            return Value(self._lane_sum(number), DType.INT64, state.lanes)
        return Value(self.state.symbols.sum(number), DType.INT64, 0)

    def _lane_sum(self, number: AffineIndex) -> str:
        builder, lanes = self.state.builder, self.state.lanes
        numbers = lane_numbers(lanes, number.lane, number.const)
        if not number.terms:
            return numbers
        shared = builder.splat_text(self.state.symbols.sum(AffineIndex(0, 0, number.terms)), "i64", lanes)
        return builder.pure(f"add {vector_type('i64', lanes)} {shared}, {numbers}")

    def _lifted(self, value: Value, span: tuple[int, int] | None = None) -> Number:
        if value.dtype is DType.INT64 and not value.lanes:
            return self.state.symbols.opaque(value.text, span)
        return value

    def _literal(self, scalar: Literal) -> Number:
        literals = self.state.literals
        known = literals.get(id(scalar))
        if known is None:
            is_int64 = scalar.dtype is DType.INT64
            known = AffineIndex(int(scalar.value)) if is_int64 else literal(scalar.value, scalar.dtype)
            literals[id(scalar)] = known
        return known

    def _cast(self, scalar: Cast) -> Number:
        inside = self.number(scalar.value)
        if scalar.dtype is DType.INT64 and isinstance(inside, AffineIndex):
            return inside
        value = self.as_value(inside)
        return self._lifted(cast(self.state.builder, value, scalar.dtype, self.state.kernel.has_f16c))

    def _arith(self, scalar: Arith) -> Number:
        state, op = self.state, scalar.op
        builder = state.builder
        if op is ArithOp.SELECT:
            return self._select(scalar)
        if op is ArithOp.NOT:
            return bool_not(builder, self.value(scalar.operands[0]))
        left, right = self.number(scalar.operands[0]), self.number(scalar.operands[1])
        if isinstance(left, AffineIndex) and isinstance(right, AffineIndex):
            return self._of_sums(op, left, right)
        first, second = self.as_value(left), self.as_value(right)
        lanes = first.lanes or second.lanes
        instruction = self._instruction(scalar, first.dtype, lanes)
        if not instruction:
            return self._lifted(binary(builder, op, first, second, state.kernel.has_f16c))
        one = first.text if first.lanes == lanes else builder.splat(first, lanes)
        other = second.text if second.lanes == lanes else builder.splat(second, lanes)
        if op is ArithOp.ADD and builder.contract and is_zero(one):
            return Value(other, first.dtype, lanes)
        return Value(builder.pure(f"{instruction} {one}, {other}"), first.dtype, lanes)

    def _instruction(self, scalar: Arith, dtype: DType, lanes: int) -> str:
        """The instruction of an operator that is just one, with its type; found once for each place."""
        key = id(scalar), lanes
        known = self._instructions.get(key)
        if known is None:
            found = single_instruction(scalar.op, dtype, self.state.builder.contract)
            known = f"{found} {held_type(dtype, lanes)}" if found else ""
            self._instructions[key] = known
        return known

    def _of_sums(self, op: ArithOp, left: AffineIndex, right: AffineIndex) -> Number:
        table, lanes = self.state.symbols.table, self.state.lanes
        match op:
            case ArithOp.ADD:
                return add(left, right)
            case ArithOp.SUB:
                return add(left, right, -1)
            case ArithOp.MUL if not left.terms and not left.lane:
                return scale(right, left.const)
            case ArithOp.MUL if not right.terms and not right.lane:
                return scale(left, right.const)
            case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD if (
                not right.terms and not right.lane and right.const > 0
            ):
                return self._divided(op, left, right.const)
            case _ if op in COMPARISONS or op in (ArithOp.MIN, ArithOp.MAX):
                difference = add(left, right, -1)
                found = bounds(difference, table, lanes)
                known = None if found is None else decided(op, found, left, right)
                if known is not None:
                    return known
                if op in COMPARISONS and not difference.terms:
                    return self._constant_mask(op, difference)
        return self._computed(op, left, right)

    def _constant_mask(self, op: ArithOp, difference: AffineIndex) -> Value:
        lanes = self.state.lanes
        numbers = [difference.const + lane * difference.lane for lane in range(lanes)]
        tests = {
            ArithOp.LT: [number < 0 for number in numbers],
            ArithOp.LE: [number <= 0 for number in numbers],
            ArithOp.EQ: [number == 0 for number in numbers],
            ArithOp.NE: [number != 0 for number in numbers],
        }
        return constant_mask(tuple(tests[op]))

    def _computed(self, op: ArithOp, left: AffineIndex, right: AffineIndex) -> Number:
        state = self.state
        value = binary(state.builder, op, self.as_value(left), self.as_value(right), state.kernel.has_f16c)
        if op not in (ArithOp.MIN, ArithOp.MAX):
            return self._lifted(value)
        choose = min if op is ArithOp.MIN else max
        first = bounds(left, state.symbols.table, state.lanes)
        second = bounds(right, state.symbols.table, state.lanes)
        span = None
        if first is not None and second is not None:
            span = choose(first[0], second[0]), choose(first[1], second[1])
        return self._lifted(value, span)

    def _divided(self, op: ArithOp, left: AffineIndex, divisor: int) -> Number:
        state = self.state
        parts = divided(left, divisor, state.symbols.table, state.lanes)
        if parts is not None:
            return parts[0] if op is ArithOp.FLOOR_DIV else parts[1]
        found = bounds(left, state.symbols.table, state.lanes)
        span = None
        if op is ArithOp.FLOOR_MOD:
            span = (0, divisor - 1)
        elif found is not None:
            span = (found[0] // divisor, found[1] // divisor)
        value = self.as_value(left)
        by = Value(constant(divisor, "i64", value.lanes), DType.INT64, value.lanes)
        if found is not None and found[0] >= 0:
            name = "udiv" if op is ArithOp.FLOOR_DIV else "urem"
            text = state.builder.pure(f"{name} {held_type(DType.INT64, value.lanes)} {value.text}, {by.text}")
            return self._lifted(Value(text, DType.INT64, value.lanes), span)
        return self._lifted(binary(state.builder, op, value, by, state.kernel.has_f16c), span)

    def _select(self, scalar: Arith) -> Number:
        cond = self.value(scalar.operands[0])
        first, second = self.number(scalar.operands[1]), self.number(scalar.operands[2])
        if cond.text in ("true", "false"):
            return first if cond.text == "true" else second
        return self._lifted(select(self.state.builder, cond, self.as_value(first), self.as_value(second)))

    def _load(self, scalar: Load) -> Value:
        state = self.state
        register = state.registers.places.get(scalar.buffer.name)
        if register is not None:
            elements = self.elements(scalar)
            if isinstance(elements, list):
                return state.registers.read_each(register, elements)
            return state.registers.read(register, elements[0], elements[1])
        place = state.memory[scalar.buffer.name]
        return load(state, place, self.flat(scalar))

    def flat(self, access: Load | Store) -> Number:
        """The place of an element, counted in elements."""
        state = self.state
        plan = None if state.kernel.bounds_checked else state.kernel.facts.plan(access)
        if plan is not None:
            const, lane, terms = plan.const, 0, list[tuple[int, int]]()
            env = state.env
            for name, coefficient in plan.terms:
                found = env[name]
                const += found[0] * coefficient
                if found[1]:
                    lane += found[1] * coefficient
                for symbol, factor in found[2]:
                    terms.append((symbol, factor * coefficient))
            if len(terms) > 1:
                terms.sort()
            return AffineIndex(const, lane, tuple(terms))
        indices = [self._index(index) for index in access.indices]
        if state.kernel.bounds_checked:
            check_indices(state, access, [self.as_value(index).text for index in indices], indices)
        return self._flattened(access.buffer.shape, indices)

    def _index(self, index: Scalar) -> Number:
        """An index; arithmetic on counters is done once where they have the same values."""
        if not isinstance(index, Arith):
            return self.number(index)
        counters = self.state.kernel.facts.counters(index)
        if counters is None:
            return self.number(index)
        env, builder = self.state.env, self.state.builder
        key = id(index), self.state.lanes, tuple([env[name] for name in counters])
        found: Number | None = builder.noted(key)
        if found is None:
            found = self.number(index)
            builder.note(key, found)
        return found

    def _flattened(self, shape: tuple[int, ...], indices: list[Number]) -> Number:
        total: AffineIndex | None = AffineIndex(0)
        for index, extent in zip(indices, shape, strict=True):
            if isinstance(index, Value) or total is None:
                total = None
                break
            total = add(index, scale(total, extent))
        if total is not None:
            return total
        return self._flattened_lanes(shape, indices)

    def _flattened_lanes(self, shape: tuple[int, ...], indices: list[Number]) -> Value:
        builder, lanes = self.state.builder, self.state.lanes
        kind, text = vector_type("i64", lanes), ""
        for index, extent in zip(indices, shape, strict=True):
            part = builder.splat(self.as_value(index), lanes)
            if text:
                text = builder.pure(f"mul {kind} {text}, {constant(extent, 'i64', lanes)}")
            text = builder.pure(f"add {kind} {text}, {part}") if text else part
        return Value(text, DType.INT64, lanes)

    def elements(self, access: Load | Store) -> tuple[int, int] | list[int]:
        """The elements of a register buffer: first and number of consecutive ones, or one for each lane."""
        state = self.state
        flat = self.flat(access)
        lanes = state.lanes
        place = state.registers.places[access.buffer.name]
        if isinstance(flat, AffineIndex) and not flat.terms:
            if not flat.lane or not lanes:
                return flat.const, 1
            if flat.lane == 1 and not place.private_lanes:
                return flat.const, lanes
            return [flat.const + lane * flat.lane for lane in range(lanes)]
        return [self._element_of_lane(access, lane) for lane in range(lanes)]

    def _element_of_lane(self, access: Load | Store, lane: int) -> int:
        state = self.state
        lanes, variable = state.lanes, state.lane_var
        assert variable is not None  # only lanes make an index of a register buffer differ
        around = state.env[variable]
        state.env[variable], state.lanes = AffineIndex(around.const + lane * around.lane), 0
        flat = self.flat(access)
        state.env[variable], state.lanes = around, lanes
        assert isinstance(flat, AffineIndex)  # so it was when the buffer was found fit for registers
        assert not flat.terms
        return flat.const
