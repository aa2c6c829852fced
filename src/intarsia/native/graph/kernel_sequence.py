"""The kernels of a region in order, with those that change the layout of a value between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from intarsia.ir import TensorType
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.graph.blocked_dag import blocked_dag
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm, kernel_dag, with_placeholders
from intarsia.native.graph.region_plan import Array, KernelPlan, RegionValue
from intarsia.native.graph.straight_line import Step
from intarsia.native.te import placeholder
from intarsia.native.te.operators.blocked_layout import from_blocked, to_blocked

_KEY_LENGTH = 12
_NAMED_STEPS = 6


@dataclass(eq=False)
class KernelSequence:
    """What is planned so far.

    A value is blocked if the kernel that makes it is; what cannot read blocks reads a plain copy, made once.
    Plain values are copied into blocks in the same way. Values of one pixel with full blocks are both.

    Attributes:
        values: All values; those that a kernel makes in blocks say so.
        lanes: How many channels a block has; 0 if nothing is to be blocked.
        kernels: In order.
        joined: For a value that no kernel writes as a whole, the numbers of its parts.
    """

    values: list[RegionValue]
    lanes: int = 0
    kernels: list[KernelPlan] = field(default_factory=list)
    joined: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _plain: dict[int, int] = field(default_factory=dict)
    _blocked: dict[int, int] = field(default_factory=dict)
    _dags: dict[str, ComputeDAG] = field(default_factory=dict)

    def add(self, steps: Sequence[Step]) -> None:
        """Add the kernel of a group, blocked if that fits.

        Raises:
            NotCoveredError: A call has no rule, or its rule does not cover it.
        """
        outputs = steps[-1].outputs
        made = blocked_dag(steps, self.values, self.lanes) if self.lanes else None
        if made is None:
            made = kernel_dag(steps, self.values, outputs)
        else:
            self._block(outputs[0])
        self._append(made, [step.op.name.lower() for step in steps[:_NAMED_STEPS]], outputs)

    def join(self, step: Step) -> bool:
        """Take a Concat as done by what writes its arguments, if all have one layout; else say no."""
        parts = tuple(arg for arg in step.args if arg is not None)
        roots = tuple(self.values[part].same_as for part in parts)
        if any(self.values[root].lanes for root in roots):
            if parts != roots or not all(self._has_full_blocks(part) for part in parts):
                return False
            self._block(step.outputs[0])
        self.joined[step.outputs[0]] = roots
        return True

    def plain(self, number: int) -> int:
        """The number of a value as its type says; of a copy or of a view of it where it is blocked."""
        root = self.values[number].same_as
        if not self.values[root].lanes:
            return number
        if number not in self._plain:
            type_ = self.values[number].type
            self._plain[number] = (
                self._copied(number, 0) if number == root else self._view(type_, self.plain(root))
            )
        return self._plain[number]

    def drop_unneeded(self, results: Sequence[int]) -> None:
        """Leave out kernels that no result needs."""
        waiting = [self.values[number].same_as for number in results]
        needed: set[int] = set()
        kept = []
        for kernel in reversed(self.kernels):
            while waiting:
                root = waiting.pop()
                if root not in needed:
                    needed.add(root)
                    waiting += self.joined.get(root, ())
            if not needed.isdisjoint(kernel.outputs):
                kept.append(kernel)
                waiting += [self.values[number].same_as for number in kernel.inputs.values()]
        self.kernels = kept[::-1]

    def _block(self, number: int) -> None:
        self.values[number] = replace(self.values[number], lanes=self.lanes)

    def _has_full_blocks(self, number: int) -> bool:
        value = self.values[number]
        return value.lanes > 0 and value.type.static_shape[1] % value.lanes == 0

    def _in_blocks(self, number: int) -> int:
        if self.values[number].lanes:
            return number
        if number not in self._blocked:
            self._blocked[number] = self._copied(self.plain(number), self.lanes)
        return self._blocked[number]

    def _view(self, type_: TensorType, number: int, lanes: int = 0) -> int:
        """Another name for the memory of a value."""
        self.values.append(RegionValue(type_, self.values[number].same_as, lanes=lanes))
        return len(self.values) - 1

    def _copied(self, number: int, lanes: int) -> int:
        """A value with other blocks, by a kernel; of one pixel with full blocks, the same memory."""
        value = self.values[number]
        shape, channels = value.type.static_shape, value.type.static_shape[1]
        if all(extent == 1 for extent in shape[2:]) and channels % self.lanes == 0:
            return self._view(value.type, number, lanes)
        made = len(self.values)
        self.values.append(RegionValue(value.type, made, lanes=lanes))
        x = placeholder(value.stored_shape, value.type.dtype, "x0")
        result = to_blocked(x, lanes, "to_blocked") if lanes else from_blocked(x, channels, "from_blocked")
        self._append(
            with_placeholders((result,), {x: Source(number, SourceForm.AS_IT_IS)}), [result.op.name], (made,)
        )
        return made

    def _append(self, made: KernelDag, names: Sequence[str], outputs: tuple[int, ...]) -> None:
        inputs, constants = {}, {}
        key = structural_key(made.dag)
        dag = self._dags.setdefault(key, made.dag)
        for tensor, source in zip(dag.placeholders, made.sources, strict=True):
            constant = self._array(source)
            if constant is None:
                inputs[tensor.op.name] = self._read(source, tensor.shape)
            else:
                constants[tensor.op.name] = constant
        name = "_".join((*names, key[:_KEY_LENGTH]))
        self.kernels.append(KernelPlan(dag, inputs, constants, outputs, name))

    def _array(self, source: Source) -> Array | None:
        return self.values[source.number].constant if source.array is None else source.array

    def _read(self, source: Source, shape: tuple[int, ...]) -> int:
        """The number of the value that a placeholder is."""
        match source.form:
            case SourceForm.AS_IT_IS:
                return source.number
            case SourceForm.PLAIN:
                return self.plain(source.number)
            case SourceForm.BLOCKED:
                return self._in_blocks(source.number)
            case SourceForm.ONE_CHANNEL:
                plain = self.plain(source.number)
                return self._view(TensorType(shape, self.values[plain].type.dtype), plain)
