"""Scalars of the loop language in the current lanes; int64 stay affine sums as long as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
from intarsia.native.emission.cast import cast, nearest_word, nibbles_as_floats
from intarsia.native.emission.checks import check_indices
from intarsia.native.emission.dot_products import dot_of_words, is_dot
from intarsia.native.emission.folding import folded
from intarsia.native.emission.half import flushed_bfloat
from intarsia.native.emission.intrinsics import intrinsic
from intarsia.native.emission.lane_pattern import lane_pattern
from intarsia.native.emission.memory import load
from intarsia.native.emission.shuffled_loads import load_column, load_pattern
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.transposed_rows import column_of_rows
from intarsia.native.emission.types import Value, constant, held_type, lane_numbers, literal, vector_type

Number = Value | AffineIndex
_OF_PARTS: Final = frozenset({ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.MIN, ArithOp.MAX})


@dataclass(slots=True)
class Scalars:
    """Evaluates scalars at the current point of a function."""

    state: FunctionState
    _instructions: dict[tuple[int, int], str] = field(default_factory=dict)

    def value(self, scalar: Scalar) -> Value:
        """Evaluate a scalar as a value."""
        return self.as_value(self.number(scalar))

    def number(self, scalar: Scalar) -> Number:
        """Evaluate a scalar: as an affine sum if possible, else as a value."""
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
                result = folded(scalar, args)
                if result is not None:
                    return self._lifted(result)
                return self._lifted(intrinsic(self.state.builder, self.state.kernel.isa, scalar, args))

    def as_value(self, number: Number) -> Value:
        """Convert a number to a value, emitting the additions of a sum."""
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
        number = literals.get(id(scalar))
        if number is None:
            is_int64 = scalar.dtype is DType.INT64
            number = AffineIndex(int(scalar.value)) if is_int64 else literal(scalar.value, scalar.dtype)
            literals[id(scalar)] = number
        return number

    def _cast(self, scalar: Cast) -> Number:
        match scalar:
            case Cast(Intrinsic(name="round_even", args=(exact,)), DType.INT32):
                whole = nearest_word(self.state.builder, self.state.kernel.isa, self.value(exact))
                if whole is not None:
                    return whole
            case Cast(
                Arith(
                    ArithOp.SUB,
                    (Intrinsic(name="bit_and", args=(word, Literal(15)), dtype=DType.INT32), Literal(middle)),
                ),
                DType.FLOAT32,
            ):
                isa = self.state.kernel.isa
                number = nibbles_as_floats(self.state.builder, isa, self.value(word), float(middle))
                if number is not None:
                    return number
            case Cast(Intrinsic(name="flushed", args=(exact,)), DType.BFLOAT16):
                value = self.value(exact)
                isa = self.state.kernel.isa
                text = flushed_bfloat(self.state.builder, value.text, value.lanes, isa)
                if text is not None:
                    return Value(text, DType.BFLOAT16, value.lanes)
        inside = self.number(scalar.value)
        if scalar.dtype is DType.INT64 and isinstance(inside, AffineIndex):
            return inside
        value = self.as_value(inside)
        result = folded(scalar, (value,))
        if result is not None:
            return self._lifted(result)
        return self._lifted(cast(self.state.builder, value, scalar.dtype, self.state.kernel.has_f16c))

    def _arith(self, scalar: Arith) -> Number:
        state, op = self.state, scalar.op
        builder = state.builder
        if op is ArithOp.SELECT:
            return self._select(scalar)
        if op is ArithOp.NOT:
            return bool_not(builder, self.value(scalar.operands[0]))
        match scalar:
            case Arith(op=ArithOp.ADD, operands=(sums, Intrinsic() as products)) if is_dot(products.name):
                return self._dot_onto(sums, products)
        left, right = self.number(scalar.operands[0]), self.number(scalar.operands[1])
        if isinstance(left, AffineIndex) and isinstance(right, AffineIndex):
            return self._of_sums(op, left, right)
        first, second = self.as_value(left), self.as_value(right)
        lanes = first.lanes or second.lanes
        result = None if lanes else folded(scalar, (first, second))
        if result is not None:
            return self._lifted(result)
        instruction = self._instruction(scalar, first.dtype, lanes)
        if not instruction:
            return self._lifted(binary(builder, op, first, second, state.kernel.has_f16c))
        left_text = first.text if first.lanes == lanes else builder.splat(first, lanes)
        right_text = second.text if second.lanes == lanes else builder.splat(second, lanes)
        if op is ArithOp.ADD and builder.contract and is_zero(left_text):
            return Value(right_text, first.dtype, lanes)
        return Value(builder.pure(f"{instruction} {left_text}, {right_text}"), first.dtype, lanes)

    def _dot_onto(self, sums: Scalar, products: Intrinsic) -> Value:
        """Add products of words to sums: one instruction where the machine has it."""
        values = [self.value(scalar) for scalar in (*products.args, sums)]
        lanes = max(value.lanes for value in values)
        builder, isa = self.state.builder, self.state.kernel.isa
        left, right, start = (builder.splat(value, lanes) for value in values)
        text = dot_of_words(builder, isa, products.name, (left, right), lanes, start)
        return Value(text, products.dtype, lanes)

    def _instruction(self, scalar: Arith, dtype: DType, lanes: int) -> str:
        """Return the instruction of a single-instruction operator, with its type; cached by scalar."""
        key = id(scalar), lanes
        typed = self._instructions.get(key)
        if typed is None:
            name = single_instruction(scalar.op, dtype, self.state.builder.contract)
            typed = f"{name} {held_type(dtype, lanes)}" if name else ""
            self._instructions[key] = typed
        return typed

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
                result = None if found is None else decided(op, found, left, right)
                if result is not None:
                    return result
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
        value_range = bounds(left, state.symbols.table, state.lanes)
        span = None
        if op is ArithOp.FLOOR_MOD:
            span = (0, divisor - 1)
        elif value_range is not None:
            span = (value_range[0] // divisor, value_range[1] // divisor)
        value = self.as_value(left)
        by = Value(constant(divisor, "i64", value.lanes), DType.INT64, value.lanes)
        if value_range is not None and value_range[0] >= 0:
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
        memory = state.memory[scalar.buffer.name]
        if self._may_have_pattern(scalar, memory):
            pattern = lane_pattern(state, scalar, self._index)
            if pattern is not None:
                return load_pattern(state, memory, pattern)
        flat = self.flat(scalar)
        if isinstance(flat, AffineIndex) and not memory.private_lanes:
            column = column_of_rows(state, scalar, flat)
            if column is not None:
                return load_column(state, memory, flat, column)
        return load(state, memory, flat)

    def _may_have_pattern(self, access: Load, memory: MemoryPlace) -> bool:
        """Return whether a read in lanes has indices that are no affine sums."""
        state = self.state
        is_whole = bool(state.lanes) and state.mask is None and not memory.private_lanes
        return is_whole and not state.kernel.bounds_checked and state.kernel.facts.plan(access) is None

    def flat(self, access: Load | Store) -> Number:
        """Return the offset of an element, in elements."""
        state = self.state
        plan = None if state.kernel.bounds_checked else state.kernel.facts.plan(access)
        if plan is not None:
            (const, used), lane, terms = plan, 0, list[tuple[int, int]]()
            env = state.env
            for name, coefficient in used:
                start, step, symbols = env[name]
                const += start * coefficient
                if step:
                    lane += step * coefficient
                for symbol, factor in symbols:
                    terms.append((symbol, factor * coefficient))
            if len(terms) > 1:
                terms.sort()
            return AffineIndex(const, lane, tuple(terms))
        indices = [self._index(index) for index in access.indices]
        if state.kernel.bounds_checked:
            check_indices(state, access, [self.as_value(index).text for index in indices], indices)
        return self._flattened(access.buffer.shape, indices)

    def _index(self, index: Scalar) -> Number:
        """Evaluate an index; arithmetic on equal counters is evaluated once."""
        if not isinstance(index, Arith):
            return self.number(index)
        facts, has_sizes = self.state.kernel.facts, False
        counters = facts.counters(index)
        if counters is None:
            counters, has_sizes = facts.counters_of_sized(index), True
        if counters is None:
            return self.number(index)
        env, builder = self.state.env, self.state.builder
        key = id(index), self.state.lanes, tuple([env[name] for name in counters])
        number: Number | None = builder.noted(key)
        if number is None:
            number = self._of_parts(index) if has_sizes else self.number(index)
            builder.note(key, number)
        return number

    def _of_parts(self, index: Arith) -> Number:
        """Evaluate an index with sizes; unrolled code has many that differ in one part only."""
        if index.op in _OF_PARTS:
            left, right = map(self._index, index.operands)
            if isinstance(left, AffineIndex) and isinstance(right, AffineIndex):
                return self._of_sums(index.op, left, right)
        return self.number(index)

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
        """Return the elements of a register buffer: first and count if consecutive, else one per lane."""
        state = self.state
        flat = self.flat(access)
        lanes = state.lanes
        register = state.registers.places[access.buffer.name]
        if isinstance(flat, AffineIndex) and not flat.terms:
            if not flat.lane or not lanes:
                return flat.const, 1
            if flat.lane == 1 and not register.private_lanes:
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
