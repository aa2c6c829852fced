"""Values that are rounded to bfloat16 only to be widened again stay in float32.

    Cast(s, bfloat16) r, Transpose(r) t, Cast(t, float32) w, Conv(w)   ->   Transpose(s) t, Conv(t)

Convolutions of bfloat16 tensors without words of channels, such as depthwise ones, compute in float32. What
only they read would be stored in float32 as well, or in a kernel of its own. One rounding less is no error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators.selection import FLUSHING


def without_needless_roundings(line: StraightLine) -> StraightLine:
    """Return a region without roundings of values that are only read in float32. Linear in the region."""
    return _Widening(line).result()


@dataclass(eq=False)
class _Widening:
    """The roundings of a region, and what is read of them.

    Attributes:
        line: The region.
    """

    line: StraightLine

    def __post_init__(self) -> None:
        self._values = list(self.line.values)
        self._kept = {self._root(number) for number in self.line.results}
        self._readers: dict[int, list[KernelStep]] = {}
        for step in self.line.steps:
            for root in {self._root(arg) for arg in step.args if arg is not None}:
                self._readers.setdefault(root, []).append(step)
        self._moved: dict[int, int | None] = {}
        self._dropped: set[KernelStep] = set()
        self._renamed: dict[int, int] = {}

    def result(self) -> StraightLine:
        """Return the region without these roundings."""
        for step in self.line.steps:
            if step.call.attrs.get(FLUSHING, 0) and str(step.op) == "Cast":
                self._drop(step)
        if not self._dropped:
            return self.line
        self._retype()
        steps = [self._rewritten(step) for step in self.line.steps if step not in self._dropped]
        return StraightLine(self._values, steps, self.line.params, self.line.results)

    def _root(self, number: int) -> int:
        return self.line.values[number].same_as

    def _drop(self, rounding: KernelStep) -> None:
        """Drop a rounding and the casts to float32 of its result, moved or not, if all reads are these."""
        (sums,) = rounding.args
        assert sums is not None, "a rounding has an input"
        waiting, moved, widenings = [rounding.outputs[0]], list[int](), list[KernelStep]()
        while waiting:
            root = waiting.pop()
            moved.append(root)
            if root in self._kept:
                return
            for reader in self._readers.get(root, ()):
                (output,) = reader.outputs[:1]
                if str(reader.op) == "Cast" and self.line.values[output].type.dtype is DType.FLOAT32:
                    if output in self._kept:
                        return
                    widenings.append(reader)
                elif str(reader.op) == "Transpose":
                    waiting.append(output)
                else:
                    return
        self._moved |= dict.fromkeys(moved)
        self._moved[rounding.outputs[0]] = self._root(sums)
        self._dropped |= {rounding, *widenings}
        self._renamed[rounding.outputs[0]] = sums
        for widening in widenings:
            (arg,) = widening.args
            assert arg is not None, "a cast has an input"
            self._renamed[widening.outputs[0]] = arg

    def _retype(self) -> None:
        """Give all values that were to be rounded, and views of them, the type and memory of float32."""
        for number, value in enumerate(self.line.values):
            root = value.same_as
            if root in self._moved:
                memory = self._moved[root]
                type_ = TensorType(value.type.static_shape, DType.FLOAT32)
                same_as = root if memory is None else self._values[memory].same_as
                self._values[number] = RegionValue(type_, same_as)
            elif root in self._renamed:
                source = self._values[self._final(root)]
                self._values[number] = replace(value, same_as=source.same_as)

    def _final(self, number: int) -> int:
        """Return the number of the value that stands for another one."""
        while number in self._renamed:
            number = self._renamed[number]
        return number

    def _rewritten(self, step: KernelStep) -> KernelStep:
        args = tuple(None if arg is None else self._final(arg) for arg in step.args)
        if args == step.args and step.outputs[0] not in self._moved:
            return step
        if str(step.op) != "Transpose":
            return replace(step, args=args)
        (arg,) = args
        assert arg is not None, "a transposition has an input"
        given = Var(f"x{arg}", checked_type=self._values[arg].type)
        changed = replace(step.call, args=(given,), checked_type=self._values[step.outputs[0]].type)
        return replace(step, call=changed, args=args)
