"""Concats of float32 that is quantised behind them as Concats of bytes.

    QuantizeLinear(Concat(a, b))   ->   Concat(QuantizeLinear(a), QuantizeLinear(b))

Both are the same numbers, as each element is quantised on its own. The kernels that compute the parts store
bytes then, often where they are in the whole, and nothing is copied in float32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from intarsia.ir import Call, DType, TensorType, Var
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine


def with_joined_bytes(line: StraightLine) -> StraightLine:
    """Return a region whose Concats join bytes where nothing else reads what they join. Linear in the region.

    Args:
        line: Region as it was read.
    """
    rewriting = _Rewriting.of(line)
    quantising = {number: step for step in line.steps if (number := rewriting.joined_by(step)) is not None}
    if not quantising:
        return line
    steps: list[KernelStep] = []
    for step in line.steps:
        number = step.outputs[0]
        if number in quantising:
            steps += rewriting.joined(step, quantising[number])
        elif step not in quantising.values():
            steps.append(step)
    return StraightLine(rewriting.values, steps, line.params, line.results)


@dataclass(eq=False)
class _Rewriting:
    """The region as it is written again.

    Attributes:
        values: Values, with those that are added.
        concats: Results of Concats that only one step reads.
    """

    values: list[RegionValue]
    concats: frozenset[int]

    @classmethod
    def of(cls, line: StraightLine) -> _Rewriting:
        """Return the rewriting of a region."""
        values = line.values
        read = Counter(number for step in line.steps for number in step.args)
        views = {value.same_as for number, value in enumerate(values) if value.same_as != number}
        kept = {values[number].same_as for number in line.results} | views
        concats = (step.outputs[0] for step in line.steps if str(step.op) == "Concat")
        return cls(list(values), frozenset(number for number in concats if read[number] == 1) - kept)

    def joined_by(self, step: KernelStep) -> int | None:
        """Return the Concat that a step quantises by one scale; None for other steps."""
        number = step.args[0] if step.args else None
        if str(step.op) != "QuantizeLinear" or number is None or number not in self.concats:
            return None
        parameters = [self.values[arg] for arg in step.args[1:] if arg is not None]
        is_uniform = all(value.constant is not None and value.constant.size == 1 for value in parameters)
        is_float = self.values[number].type.dtype is DType.FLOAT32
        return number if is_uniform and is_float and not step.call.attrs.get("block_size", 0) else None

    def joined(self, concat: KernelStep, quantising: KernelStep) -> Iterable[KernelStep]:
        """Return steps that quantise the parts of a Concat, and join them."""
        dtype = self.values[quantising.outputs[0]].type.dtype
        parts: dict[int, int] = {}
        for part in concat.args:
            if part is not None and part not in parts:
                parts[part] = len(self.values)
                type_ = TensorType(self.values[part].type.static_shape, dtype)
                self.values.append(RegionValue(type_, parts[part]))
                yield self._step(quantising.call, (part, *quantising.args[1:]), parts[part])
        args = tuple(parts[part] for part in concat.args if part is not None)
        yield self._step(concat.call, args, quantising.outputs[0])

    def _step(self, pattern: Call, args: tuple[int | None, ...], output: int) -> KernelStep:
        """Return a call like another one of other arguments."""
        given = (Var(f"x{arg}", checked_type=self.values[arg].type) for arg in args if arg is not None)
        called = replace(pattern, args=tuple(given), checked_type=self.values[output].type)
        return KernelStep(called, args, (output,))
