"""Random loop functions such as schedules make them: every element of a buffer is computed by one iteration.

A function is a row of stages. A stage computes a buffer from those before it, with its loops split (with
guards where the split leaves a rest), fused, reordered, and marked at random: what the marks promise holds.
Elements are small whole numbers at first, and sums of them later.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from intarsia.ir import Attrs, DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)

I64 = DType.INT64
DTYPES = (DType.FLOAT32, DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.UINT8, DType.BFLOAT16)


CPU_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)


@dataclass(frozen=True)
class Loop:
    """A loop around what is inside."""

    var: LoopVar
    extent: int
    kind: ForKind = ForKind.SERIAL


@st.composite
def kernels(draw: st.DrawFn) -> PrimFunc:
    """A loop function of one to three stages; the last one computes its last parameter."""
    writer = _Writer(draw, draw(st.sampled_from(DTYPES)))
    given = tuple(writer.new_buffer() for _ in range(draw(st.integers(1, 2))))
    writer.readable.extend(given)
    made = [writer.new_buffer() for _ in range(draw(st.integers(0, 2)))]
    out = writer.new_buffer()
    body: Statement = Block(())
    stages = []
    for buffer in [*made, out]:
        stages.append(writer.stage(buffer))
        writer.readable.append(buffer)
    body = stages[-1]
    for buffer, stage in reversed(list(zip(made, stages, strict=False))):
        body = Allocate(buffer, Block((stage, body)))
    return PrimFunc((*given, out), body, Attrs())


def number(value: int) -> Literal:
    return Literal(value, I64)


def binary(op: ArithOp, left: Scalar, right: Scalar) -> Arith:
    return Arith(op, (left, right))


@dataclass
class _Writer:
    draw: st.DrawFn
    dtype: DType
    readable: list[Buffer] = field(default_factory=list)
    count: int = 0

    def new_buffer(self) -> Buffer:
        shape = tuple(self.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)))
        return Buffer(f"b{self.next()}", shape, self.dtype)

    def next(self) -> int:
        self.count += 1
        return self.count

    def loop(self, extent: int, kinds: tuple[ForKind, ...] = CPU_KINDS) -> Loop:
        return Loop(LoopVar(f"i{self.next()}"), extent, self.draw(st.sampled_from(kinds)))

    def stage(self, buffer: Buffer) -> Statement:
        loops, place, guards = self.space(buffer.shape)
        choice = self.draw(st.integers(0, 3))
        if choice == 0:
            return nest(loops, guarded(guards, Store(buffer, place, self.value(place, 2))))
        if choice == 1:
            return nest(loops, guarded(guards, self.in_scalar(buffer, place)))
        if choice == 2:
            return nest(loops, guarded(guards, self.in_array(buffer, place)))
        return self.in_place(buffer)

    def space(self, shape: tuple[int, ...]) -> tuple[list[Loop], tuple[Scalar, ...], list[Scalar]]:
        """Loops that visit every element once, its indices, and guards around iterations that have none."""
        if len(shape) == 2 and self.draw(st.booleans()):
            flat = self.loop(shape[0] * shape[1])
            width = number(shape[1])
            both = (binary(ArithOp.FLOOR_DIV, flat.var, width), binary(ArithOp.FLOOR_MOD, flat.var, width))
            return [flat], both, []
        loops: list[Loop] = []
        place: list[Scalar] = []
        guards: list[Scalar] = []
        for extent in shape:
            factor = self.draw(st.sampled_from([1, 1, 2, 3, 4, 8]))
            if factor == 1:
                loops.append(self.loop(extent))
                place.append(loops[-1].var)
                continue
            outer, inner = self.loop(-(-extent // factor)), self.loop(factor)
            index = binary(ArithOp.ADD, binary(ArithOp.MUL, outer.var, number(factor)), inner.var)
            loops += [outer, inner]
            place.append(index)
            if extent % factor:
                guards.append(binary(ArithOp.LT, index, number(extent)))
        return self.draw(st.permutations(loops)), tuple(place), guards

    def value(self, place: tuple[Scalar, ...], depth: int) -> Scalar:
        choice = self.draw(st.integers(0, 4 if depth else 1))
        if choice == 0:
            return Literal(self.draw(st.integers(0, 5)), self.dtype)
        if choice in (1, 2):
            return self.load(place)
        if choice == 3:
            return Cast(Cast(self.value(place, depth - 1), DType.FLOAT64), self.dtype)
        op = self.draw(st.sampled_from([ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.MIN, ArithOp.MAX]))
        if self.dtype is DType.UINT8 and op is ArithOp.SUB:
            op = ArithOp.ADD  # a difference below zero has no place in a uint8 when it is cast
        return binary(op, self.value(place, depth - 1), self.value(place, depth - 1))

    def load(self, place: tuple[Scalar, ...]) -> Load:
        """An element of a buffer that is ready, near the place or by its remainder."""
        buffer = self.draw(st.sampled_from(self.readable))
        indices = [self.draw(st.sampled_from(place)) for _ in buffer.shape]
        wrapped = (
            binary(ArithOp.FLOOR_MOD, i, number(n)) for i, n in zip(indices, buffer.shape, strict=True)
        )
        return Load(buffer, tuple(wrapped))

    def window(self, place: tuple[Scalar, ...]) -> tuple[Loop, Scalar, Scalar]:
        """A serial loop, a guard, and a load that is in its buffer where the guard holds."""
        step = self.loop(self.draw(st.integers(1, 4)), (ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED))
        buffer = self.draw(st.sampled_from(self.readable))
        dimension = self.draw(st.integers(0, len(buffer.shape) - 1))
        reach = number(self.draw(st.integers(0, 2)))
        start = self.draw(st.sampled_from(place))
        index = binary(ArithOp.SUB, binary(ArithOp.ADD, start, step.var), reach)
        inside = binary(
            ArithOp.AND,
            binary(ArithOp.LE, number(0), index),
            binary(ArithOp.LT, index, number(buffer.shape[dimension])),
        )
        indices: list[Scalar] = [number(0)] * len(buffer.shape)
        indices[dimension] = index
        return step, inside, Load(buffer, tuple(indices))

    def in_scalar(self, buffer: Buffer, place: tuple[Scalar, ...]) -> Statement:
        """A sum over a window, in a scalar of its own."""
        total = Buffer(f"total{self.next()}", (), self.dtype)
        step, inside, load = self.window(place)
        add = Store(total, (), binary(ArithOp.ADD, Load(total, ()), load))
        steps: tuple[Statement, ...] = (
            Store(total, (), Literal(0, self.dtype)),
            nest([step], IfThenElse(inside, add)),
            Store(buffer, place, Load(total, ())),
        )
        return Allocate(total, Block(steps))

    def in_array(self, buffer: Buffer, place: tuple[Scalar, ...]) -> Statement:
        """A few values in an array of its own, then their sum."""
        extent = self.draw(st.integers(1, 4))
        some, total = (
            Buffer(f"some{self.next()}", (extent,), self.dtype),
            Buffer(f"total{self.next()}", (), self.dtype),
        )
        first, second = self.loop(extent), self.loop(extent, (ForKind.SERIAL, ForKind.UNROLLED))
        fill = nest([first], Store(some, (first.var,), self.value((*place, first.var), 1)))
        add = Store(total, (), binary(ArithOp.ADD, Load(total, ()), Load(some, (second.var,))))
        last = Store(buffer, place, Load(total, ()))
        rest = Block((Store(total, (), Literal(0, self.dtype)), nest([second], add), last))
        if self.draw(st.booleans()):
            return Allocate(some, Block((fill, Allocate(total, rest))))
        return Allocate(total, Allocate(some, Block((fill, rest))))

    def in_place(self, buffer: Buffer) -> Statement:
        """A sum in the buffer itself: first zeros, then a serial loop somewhere among the others."""
        loops, place, guards = self.space(buffer.shape)
        zeros = nest(loops, guarded(guards, Store(buffer, place, Literal(0, self.dtype))))
        loops, place, guards = self.space(buffer.shape)
        step = self.loop(self.draw(st.integers(1, 5)), (ForKind.SERIAL,))
        at = self.draw(st.integers(0, len(loops)))
        load = self.load((*place, step.var))
        add = Store(buffer, place, binary(ArithOp.ADD, Load(buffer, place), load))
        return Block((zeros, nest([*loops[:at], step, *loops[at:]], guarded(guards, add))))


def guarded(guards: list[Scalar], statement: Statement) -> Statement:
    for guard in guards:
        statement = IfThenElse(guard, statement)
    return statement


def nest(loops: list[Loop], statement: Statement) -> Statement:
    for loop in reversed(loops):
        statement = For(loop.var, loop.extent, statement, loop.kind)
    return statement
