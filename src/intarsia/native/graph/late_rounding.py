"""Roundings of sums to bfloat16 behind the elementwise operators that read them.

    BfloatStep s, Cast(s, bfloat16) y, Add(y, x) z   ->   BfloatStep s, Add(s, x) a, Cast(a, bfloat16) z

An operator on bfloat16 numbers would round its result once more, without an instruction for it. Behind Clip
and Relu, which choose one of their numbers, results are the same; of others one rounding is left out. Sums
that are read farther away as well are rounded at once, as they are stored in half of the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from intarsia.ir import Call, DType, TensorType, Var
from intarsia.native.graph.blocked_steps import POINTWISE
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators.selection import FLUSHING
from intarsia.op import call
from intarsia.op.onnx_types import elem_type_of


def flushing_cast(given: Var) -> Call:
    """Return a Cast to bfloat16 that may round subnormal numbers to 0, as their products do."""
    casting = call("Cast", given, to=elem_type_of(DType.BFLOAT16))
    return replace(casting, attrs=casting.attrs.updated(**{FLUSHING: 1}))


def with_late_roundings(line: StraightLine) -> StraightLine:
    """Return a region whose roundings of sums stand behind activations. Linear in the region."""
    moving = _Moving(line)
    for position, step in enumerate(line.steps):
        moving.add(position, step)
    return StraightLine(moving.values, moving.steps, line.params, line.results)


@dataclass(eq=False)
class _Moving:
    """The region as it is written again.

    Attributes:
        line: Region as it was read.
        values: Values, with those that are added.
        steps: Steps written so far.
    """

    line: StraightLine
    values: list[RegionValue] = field(init=False)
    steps: list[KernelStep] = field(default_factory=list)
    _kept: frozenset[int] = field(init=False)
    _last_readers: dict[int, int] = field(init=False)
    _others_before: list[int] = field(init=False)
    _held_back: dict[int, KernelStep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)
        self._kept = frozenset(self.values[number].same_as for number in self.line.results)
        self._last_readers = {
            self.values[number].same_as: position
            for position, step in enumerate(self.line.steps)
            for number in step.args
            if number is not None
        }
        others = (not self._is_elementwise(step) for step in self.line.steps)
        self._others_before = list(accumulate(others, initial=0))

    def add(self, position: int, step: KernelStep) -> None:
        """Add the step at a position of the region, behind the roundings of what it reads."""
        reads_sums = any(number in self._held_back for number in step.args)
        if reads_sums and self._is_elementwise(step):
            step = self._in_float32(step)
        for number in step.args:
            if number is not None:
                self._release(number)
        if self._waits(position, step):
            self._held_back[step.outputs[0]] = step
        else:
            self.steps.append(step)

    def _waits(self, position: int, step: KernelStep) -> bool:
        """Return whether a step rounds sums that only the elementwise operators right behind it read."""
        output = step.outputs[0]
        is_rounding = bool(step.call.attrs.get(FLUSHING, 0)) and str(step.op) == "Cast"
        if not is_rounding or output in self._kept:
            return False
        others, last = self._others_before, self._last_readers.get(output, position)
        return last > position and others[last + 1] == others[position + 1]

    def _is_elementwise(self, step: KernelStep) -> bool:
        """Return whether a step is an elementwise operator that reads and writes bfloat16 numbers only."""
        numbers = (*step.args, *step.outputs)
        return str(step.op) in POINTWISE and all(
            number is None or self.values[number].type.dtype is DType.BFLOAT16 for number in numbers
        )

    def _in_float32(self, step: KernelStep) -> KernelStep:
        """Add an operator on unrounded sums, and return the step that rounds its result."""
        (output,) = step.outputs
        wide = tuple(None if number is None else self._widened(number) for number in step.args)
        computed = self._add(TensorType(self.values[output].type.static_shape, DType.FLOAT32))
        given = (
            expr if number is None else self._variable(number)
            for number, expr in zip(wide, step.call.args, strict=True)
        )
        computing = replace(step.call, args=tuple(given), checked_type=self.values[computed].type)
        self.steps.append(KernelStep(computing, wide, (computed,)))
        return KernelStep(flushing_cast(self._variable(computed)), (computed,), (output,))

    def _widened(self, number: int) -> int:
        """Return the number of a value in float32: of the sums that were to be rounded, if it has any."""
        rounding, value = self._held_back.get(number), self.values[number]
        if rounding is not None:
            (sums,) = rounding.args
            assert sums is not None, "a rounding has an input"
            return sums
        type_ = TensorType(value.type.static_shape, DType.FLOAT32)
        if value.constant is not None:
            return self._add(type_, value.constant.astype(np.float32))
        self._release(number)
        widening, wide = (
            call("Cast", self._variable(number), to=elem_type_of(DType.FLOAT32)),
            self._add(type_),
        )
        self.steps.append(KernelStep(widening, (number,), (wide,)))
        return wide

    def _release(self, number: int) -> None:
        """Add the rounding that a step waits for."""
        rounding = self._held_back.pop(self.values[number].same_as, None)
        if rounding is not None:
            self.steps.append(rounding)

    def _variable(self, number: int) -> Var:
        return Var(f"x{number}", checked_type=self.values[number].type)

    def _add(self, type_: TensorType, constant: Array | None = None) -> int:
        self.values.append(RegionValue(type_, len(self.values), constant))
        return len(self.values) - 1
