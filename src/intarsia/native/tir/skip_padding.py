"""SkipPadding: no products with elements that are known to be zero, such as the padding of an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, assert_never

from intarsia.ir import DType, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import Event, walk
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
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.affine import Affine, Range, affine, as_scalar, bounds
from intarsia.native.tir.rewriting import (
    block_like,
    flat,
    has_blocks,
    with_body,
    with_branches,
)
from intarsia.transform import PassContext, PrimFuncPass, register_pass

_LANES: Final = 8
"""Iterations of a vectorised loop that cost as much as one of another loop, about."""

_LEAST_SAVED: Final = 4.0
"""Stores that a guard must save on average each time that it is evaluated: it costs about as much as two."""

_MOST_COUNTED: Final = 1 << 14
"""Maximum number of values of the counters of a guard for which it is counted how often it skips."""


@register_pass
@dataclass(frozen=True)
class SkipPadding(PrimFuncPass):
    """Guards iterations of sums in which all products have a factor that is known to be zero.

    What is known are the borders of a buffer into which only zeros are stored, such as the padding of an
    image. A guard stands where it skips enough: taps of a dilated window that mostly leave the image, or
    those of the first and last rows of a small image. Products of padding with weights that are infinite or
    no numbers would be no numbers; they are skipped as well, as other libraries skip them.

    Before:
        def prim @f(x: Buffer[(8, 8), float32], w: Buffer[(3, 8, 8), float32], y: Buffer[(8, 8), float32]) {
          alloc p: Buffer[(20, 8), float32] {
            for i in 6 {
              for j in 8 {
                p[i, j] = 0.0f32;
              }
            }
            for i in 8 {
              for j in 8 {
                p[i + 6, j] = x[i, j];
              }
            }
            for i in 6 {
              for j in 8 {
                p[i + 14, j] = 0.0f32;
              }
            }
            for i in 8 {
              for t in 3 {
                for k in 8 {
                  for vectorized j in 8 {
                    y[i, j] = y[i, j] + p[i + t * 6, k] * w[t, k, j];
                  }
                }
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(8, 8), float32], w: Buffer[(3, 8, 8), float32], y: Buffer[(8, 8), float32]) {
          alloc p: Buffer[(20, 8), float32] {
            for i in 6 {
              for j in 8 {
                p[i, j] = 0.0f32;
              }
            }
            for i in 8 {
              for j in 8 {
                p[i + 6, j] = x[i, j];
              }
            }
            for i in 6 {
              for j in 8 {
                p[i + 14, j] = 0.0f32;
              }
            }
            for i in 8 {
              for t in 3 {
                if 5 < i + t * 6 and i + t * 6 < 14 {
                  for k in 8 {
                    for vectorized j in 8 {
                      y[i, j] = y[i, j] + p[i + t * 6, k] * w[t, k, j];
                    }
                  }
                }
              }
            }
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function with guards."""
        if has_blocks(function):
            return function  # it may not move accesses across barriers
        boxes = _padded_boxes(function.body)
        if not boxes:
            return function
        return with_prim_func_fields(function, body=_Walker(boxes).visit(function.body, {}))


_Box = tuple[Range, ...]
"""The least and the greatest index in each dimension of the elements that may be other than zero."""


def _padded_boxes(body: Statement) -> dict[Buffer, _Box]:
    """Return the boxes of the buffers that have zeros around them.

    Every element that is read was stored before, so one outside of the box of all other stores is zero.
    """
    ranges: dict[LoopVar, Range] = {}
    allocated: set[Buffer] = set()
    padded: set[Buffer] = set()
    boxes: dict[Buffer, _Box] = {}
    for visit in walk(body):
        if visit.event is not Event.ENTER:
            continue
        match visit.statement:
            case For(var=var, extent=extent):
                # Loops of one name follow each other: the walk is inside of the last one that it has entered.
                ranges[var] = (0, max(0, extent - 1))
            case Allocate(buffer=buffer):
                allocated.add(buffer)
            case Store(buffer=buffer, indices=indices, value=value):
                if isinstance(value, Literal) and value.value == 0:
                    padded.add(buffer)
                    continue
                box = tuple(bounds(affine(index), ranges) for index in indices)
                boxes[buffer] = _hull(boxes.get(buffer, box), box)
    return {
        buffer: boxes[buffer]
        for buffer in allocated & padded & boxes.keys()
        if any(
            low > 0 or high < dim - 1 for (low, high), dim in zip(boxes[buffer], buffer.shape, strict=True)
        )
    }


def _hull(left: _Box, right: _Box) -> _Box:
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(left, right, strict=True))


@dataclass(frozen=True, slots=True)
class _Reads:
    """What a statement reads of one buffer with zeros around it, in each iteration of the loops around.

    Attributes:
        buffer: The buffer; each store of the statement adds a product with an element of it.
        forms: For each dimension the common terms of the indices, and the range of the rest.
        work: Number of stores, those of a vectorised loop counted by vectors.
    """

    buffer: Buffer
    forms: tuple[tuple[Affine, Range], ...]
    work: float

    def around(self, loop: For) -> _Reads:
        """Return what all iterations of a loop read together."""
        here = {loop.var: (0, loop.extent - 1)}
        forms = []
        for form, (low, high) in self.forms:
            factor = form.factor_of(loop.var)
            least, greatest = bounds(Affine({loop.var: factor} if factor else {}), here)
            others = Affine({scalar: n for scalar, n in form.terms.items() if scalar != loop.var})
            forms.append((others, (low + least, high + greatest)))
        times = -(-loop.extent // _LANES) if loop.kind is ForKind.VECTORIZED else loop.extent
        return _Reads(self.buffer, tuple(forms), self.work * times)

    def beside(self, other: _Reads) -> _Reads | None:
        """Return what two statements read together; None if their indices have no common terms."""
        if self.buffer != other.buffer:
            return None
        forms = []
        for (form, span), (second, second_span) in zip(self.forms, other.forms, strict=True):
            if form.terms != second.terms:
                return None
            forms.append((form, (min(span[0], second_span[0]), max(span[1], second_span[1]))))
        return _Reads(self.buffer, tuple(forms), self.work + other.work)


@dataclass(slots=True)
class _Walker:
    boxes: dict[Buffer, _Box]
    _reads: dict[int, tuple[Statement, tuple[_Reads, ...]]] = field(default_factory=dict)

    def visit(self, statement: Statement, ranges: dict[LoopVar, Range]) -> Statement:
        match statement:
            case Store() | KernelStatement():
                return statement
            case Block():
                return block_like(statement, [self.visit(inner, ranges) for inner in flat(statement)])
            case For():
                return self.visit_loop(statement, {**ranges, statement.var: (0, statement.extent - 1)})
            case Allocate():
                return with_body(statement, self.visit(statement.body, ranges))
            case IfThenElse():
                other = statement.otherwise
                return with_branches(
                    statement,
                    self.visit(statement.then, ranges),
                    None if other is None else self.visit(other, ranges),
                )
            case _:
                assert_never(statement)

    def visit_loop(self, loop: For, ranges: dict[LoopVar, Range]) -> Statement:
        body = self.visit(loop.body, ranges)
        if loop.kind is ForKind.SERIAL:
            for reads in self.reads_in(loop.body):
                conditions = list(self.conditions(reads, loop.var, ranges))
                if conditions:
                    body = IfThenElse(_all_of(conditions), body)
                    break
        return with_body(loop, body)

    def conditions(self, reads: _Reads, var: LoopVar, ranges: dict[LoopVar, Range]) -> Iterator[Scalar]:
        """Yield the conditions for an iteration to read other elements than zeros, where they skip enough."""
        for (form, span), (low, high) in zip(reads.forms, self.boxes[reads.buffer], strict=True):
            if var not in form.terms:
                continue
            least, greatest = low - span[1], high - span[0]  # of the common terms
            if _skipped_share(form, (least, greatest), ranges) * reads.work < _LEAST_SAVED:
                continue
            first, last = bounds(form, ranges)
            scalar = as_scalar(form, DType.INT64)
            if first < least:
                yield Arith(ArithOp.LT, (Literal(least - 1, DType.INT64), scalar))
            if last > greatest:
                yield Arith(ArithOp.LT, (scalar, Literal(greatest + 1, DType.INT64)))

    def reads_in(self, statement: Statement) -> tuple[_Reads, ...]:
        """Return what each iteration reads, by buffer with zeros; empty unless it only adds such products."""
        cached = self._reads.get(id(statement))
        if cached is None:
            cached = self._reads[id(statement)] = statement, tuple(self._find_reads(statement))
        return cached[1]

    def _find_reads(self, statement: Statement) -> Sequence[_Reads]:
        match statement:
            case KernelStatement():
                return []
            case Store():
                return [
                    _Reads(
                        load.buffer, tuple((Affine(form.terms), (form.constant,) * 2) for form in forms), 1.0
                    )
                    for load in _added_factors(statement)
                    if load.buffer in self.boxes
                    for forms in [tuple(map(affine, load.indices))]
                ]
            case Block():
                return self._joined([self.reads_in(inner) for inner in statement.statements])
            case For():
                return [reads.around(statement) for reads in self.reads_in(statement.body)]
            case Allocate() | IfThenElse():
                return ()
            case _:
                assert_never(statement)

    @staticmethod
    def _joined(parts: Sequence[Sequence[_Reads]]) -> Sequence[_Reads]:
        if not parts:
            return ()
        joined = list(parts[0])
        for part in parts[1:]:
            joined = [both for left in joined for right in part if (both := left.beside(right)) is not None]
        return joined


def _added_factors(store: Store) -> Iterator[Load]:
    """Yield the loads that are factors of what a store adds to its element; none if it does anything else."""
    value = store.value
    element = Load(store.buffer, store.indices)
    if not isinstance(value, Arith) or value.op is not ArithOp.ADD or value.operands[0] != element:
        return
    pending = [value.operands[1]]
    while pending:
        factor = pending.pop()
        if isinstance(factor, Arith) and factor.op is ArithOp.MUL:
            pending += factor.operands
        elif isinstance(factor, Cast):
            pending.append(factor.value)
        elif isinstance(factor, Load):
            yield factor


def _skipped_share(form: Affine, kept: Range, ranges: dict[LoopVar, Range]) -> float:
    """Return the share of the values of some counters for which a sum is outside of a range."""
    spans = [ranges.get(scalar) if isinstance(scalar, LoopVar) else None for scalar in form.terms]
    bounded = [span for span in spans if span is not None]
    if len(bounded) < len(spans) or prod(high - low + 1 for low, high in bounded) > _MOST_COUNTED:
        return 0.0
    values = product(*(range(low, high + 1) for low, high in bounded))
    factors = tuple(form.terms.values())
    sums = [sum(n * value for n, value in zip(factors, point, strict=True)) for point in values]
    return sum(not kept[0] <= total <= kept[1] for total in sums) / len(sums)


def _all_of(conditions: Sequence[Scalar]) -> Scalar:
    result = conditions[0]
    for condition in conditions[1:]:
        result = Arith(ArithOp.AND, (result, condition))
    return result
