"""Random valid loop functions of every kind of statement, operator and type, that have a defined result.

Every index lies inside its buffer, every allocated buffer is filled first, and no divisor is zero. Kinds of
loops are drawn at random: what they promise does not hold, so run them in order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from tests.properties.random_kernels import CPU_KINDS

from intarsia.ir import Attrs, DType, PrimFunc, Span
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import ARITHMETIC, COMPARISONS, INTRINSICS, LOOP_DTYPES

NAMES = ("x", "y", "i", "x_1", "for", "min", "float32", "nan", "7", 'say "hi"', "größe", "a.b")
DTYPES = sorted(LOOP_DTYPES)
EXTENTS = st.integers(1, 3)
CPU_SCOPES = [scope for scope in MemoryScope if scope is not MemoryScope.SHARED]


@st.composite
def loop_functions(draw: st.DrawFn) -> PrimFunc:
    """A loop function with up to three parameters."""
    writer = _Writer(draw)
    params = tuple(writer.new_buffer() for _ in range(draw(st.integers(0, 3))))
    writer.buffers.extend(params)
    body = writer.statement(draw(st.integers(1, 4)))
    attrs = draw(st.sampled_from([Attrs(), Attrs({"threads": 2, "note": 'a "b"'})]))
    return PrimFunc(params, body, attrs, draw(st.sampled_from([None, Span("model.onnx", "Conv_0", "Conv")])))


@dataclass
class _Writer:
    draw: st.DrawFn
    buffers: list[Buffer] = field(default_factory=list)
    loops: list[tuple[LoopVar, int]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def new_buffer(self) -> Buffer:
        shape = tuple(self.draw(st.lists(EXTENTS, max_size=2)))
        return Buffer(self._name(self.names), shape, self.draw(st.sampled_from(DTYPES)))

    def _name(self, taken: set[str]) -> str:
        name = stem = self.draw(st.sampled_from(NAMES))
        while name in taken:
            name = f"{stem}{len(taken)}_{len(name)}"
        taken.add(name)
        return name

    def statement(self, depth: int) -> Statement:
        choices: list[Callable[[int], Statement]] = [self._block, self._allocate]
        if self.buffers:
            choices.append(self._store)
        if depth > 0:
            choices += [self._for, self._if, self._block]
        return self.draw(st.sampled_from(choices))(depth - 1)

    def _block(self, depth: int) -> Block:
        count = self.draw(st.integers(0, 3)) if depth >= 0 else 0
        return Block(tuple(self.statement(depth) for _ in range(count)))

    def _store(self, _: int) -> Store:
        buffer = self.draw(st.sampled_from(self.buffers))
        return Store(buffer, self._place(buffer), self.scalar(buffer.dtype, 3))

    def _for(self, depth: int) -> For:
        var, extent = LoopVar(self._name({var.name for var, _ in self.loops})), self.draw(EXTENTS)
        kind = self.draw(st.sampled_from(CPU_KINDS))
        self.loops.append((var, extent))
        body = self.statement(depth)
        self.loops.pop()
        return For(var, extent, body, kind)

    def _if(self, depth: int) -> IfThenElse:
        otherwise = self.statement(depth) if self.draw(st.booleans()) else None
        return IfThenElse(self.scalar(DType.BOOL, 2), self.statement(depth), otherwise)

    def _allocate(self, depth: int) -> Allocate:
        buffer = replace(self.new_buffer(), scope=self.draw(st.sampled_from(CPU_SCOPES)))
        fill = self._filled(buffer)
        self.buffers.append(buffer)
        rest = self.statement(depth) if depth >= 0 else Block(())
        self.buffers.pop()
        return Allocate(buffer, Block((fill, rest)))

    def _filled(self, buffer: Buffer) -> Statement:
        outside = len(self.loops)
        for extent in buffer.shape:
            self.loops.append((LoopVar(self._name({var.name for var, _ in self.loops})), extent))
        place = self.loops[outside:]
        fill: Statement = Store(buffer, tuple(var for var, _ in place), self.scalar(buffer.dtype, 1))
        for var, extent in reversed(place):
            fill = For(var, extent, fill)
        del self.loops[outside:]
        return fill

    def _place(self, buffer: Buffer) -> tuple[Scalar, ...]:
        return tuple(self._index(extent) for extent in buffer.shape)

    def _index(self, extent: int) -> Scalar:
        """An index below an extent: a number, a counter, or the remainder of anything."""
        counters: list[Scalar] = [var for var, limit in self.loops if limit <= extent]
        inside: list[Scalar] = [*counters, Literal(extent - 1, DType.INT64)]
        if self.draw(st.integers(0, 3)):
            return self.draw(st.sampled_from(inside))
        whole = self.scalar(DType.INT64, 1)
        return Arith(ArithOp.FLOOR_MOD, (whole, Literal(extent, DType.INT64)))

    def scalar(self, dtype: DType, depth: int) -> Scalar:
        choices: list[Callable[[DType, int], Scalar]] = [self._literal]
        if depth > 0:
            choices += [self._arithmetic, self._arithmetic, self._select, self._cast]
            choices += [self._comparison] * 2 if dtype is DType.BOOL else [self._intrinsic]
        if any(buffer.dtype is dtype for buffer in self.buffers):
            choices += [self._load] * 2
        if dtype is DType.INT64 and self.loops:
            choices += [self._counter] * 2
        return self.draw(st.sampled_from(choices))(dtype, depth - 1)

    def _counter(self, _: DType, __: int) -> LoopVar:
        return self.draw(st.sampled_from(self.loops))[0]

    def _literal(self, dtype: DType, _: int) -> Literal:
        if dtype.is_float:
            return Literal(self.draw(st.floats()), dtype)
        if dtype is DType.BOOL:
            return Literal(self.draw(st.booleans()), dtype)
        return Literal(self.draw(st.integers(0 if dtype.value.startswith("u") else -128, 127)), dtype)

    def _load(self, dtype: DType, _: int) -> Load:
        buffer = self.draw(st.sampled_from([buffer for buffer in self.buffers if buffer.dtype is dtype]))
        return Load(buffer, self._place(buffer))

    def _arithmetic(self, dtype: DType, depth: int) -> Scalar:
        fitting = [
            op
            for op, signature in ARITHMETIC.items()
            if op not in COMPARISONS and op is not ArithOp.SELECT and signature.kind.holds(dtype)
        ]
        op = self.draw(st.sampled_from(fitting))
        operands = [self.scalar(dtype, depth) for _ in range(ARITHMETIC[op].arity)]
        if op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD):
            operands[1] = Literal(self.draw(st.integers(1, 9)), dtype)
        return Arith(op, tuple(operands))

    def _comparison(self, _: DType, depth: int) -> Scalar:
        op = self.draw(st.sampled_from(sorted(COMPARISONS)))
        fitting = [dtype for dtype in DTYPES if ARITHMETIC[op].kind.holds(dtype)]
        dtype = self.draw(st.sampled_from(fitting))
        return Arith(op, (self.scalar(dtype, depth), self.scalar(dtype, depth)))

    def _select(self, dtype: DType, depth: int) -> Scalar:
        cond = self.scalar(DType.BOOL, depth)
        return Arith(ArithOp.SELECT, (cond, self.scalar(dtype, depth), self.scalar(dtype, depth)))

    def _cast(self, dtype: DType, depth: int) -> Scalar:
        source = self.draw(
            st.sampled_from([one for one in DTYPES if not (one.is_float and dtype.is_integer)])
        )
        return Cast(self.scalar(source, depth), dtype)

    def _intrinsic(self, dtype: DType, depth: int) -> Scalar:
        # Products of bfloat16 numbers of random bits are mostly NaN or 0.
        fitting = [
            name
            for name, signature in INTRINSICS.items()
            if signature.kind.holds(dtype) and signature.result is None
        ]
        name = self.draw(st.sampled_from(fitting))
        args = [self.scalar(dtype, depth) for _ in range(INTRINSICS[name].arity)]
        if name.startswith("shift"):
            args[1] = Literal(self.draw(st.integers(0, 7)), dtype)
        return Intrinsic(name, tuple(args), dtype)
