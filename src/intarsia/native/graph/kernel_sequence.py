"""The kernels of a region in order, with kernels that convert layouts between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from intarsia.ir import TensorType
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.graph.blocked_dag import BlockedDag, blocked_dag
from intarsia.native.graph.blocked_steps import lanes_read
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.channel_shuffle import ChannelShuffle
from intarsia.native.graph.channels_first import is_faster_plain
from intarsia.native.graph.convolution_algorithm import (
    BY_ESTIMATE,
    ConvolutionAlgorithms,
    algorithm_names,
)
from intarsia.native.graph.joined_rows import joined_rows_dag
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm, kernel_dag
from intarsia.native.graph.kernel_decisions import BY_RULE, KernelDecision
from intarsia.native.graph.layout_conversion import converted
from intarsia.native.graph.library_product import LibraryProduct
from intarsia.native.graph.library_use import NO_LIBRARY, LibraryUse
from intarsia.native.graph.matrix_packing import with_packing
from intarsia.native.graph.merged_dimensions import merged_dimensions_dag
from intarsia.native.graph.merged_padding import merged_padding_dag
from intarsia.native.graph.merged_reduction import merged_reduction_dag
from intarsia.native.graph.merged_scan import merged_scan_dag
from intarsia.native.graph.merged_slice import merged_slice_dag
from intarsia.native.graph.merged_transposition import merged_transposition_dag
from intarsia.native.graph.narrow_dag import narrow_dag
from intarsia.native.graph.picked_input import picked_input, without_strides
from intarsia.native.graph.pointwise_dag import pointwise_dag
from intarsia.native.graph.region_plan import Array, KernelPlan, RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.graph.weight_storage import WeightStore
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts

_KEY_LENGTH = 12
_NAMED_STEPS = 6


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """The group that kernels are added for.

    Attributes:
        key: Key of the group.
        rule_key: Key of the group that the rules would make of its last step.
        decision: Decision on the group.
    """

    key: str = ""
    rule_key: str = ""
    decision: KernelDecision = BY_RULE


_NO_GROUP = PlannedGroup()


@dataclass(eq=False)
class KernelSequence:
    """Builder of the sequence of kernels.

    A value is blocked if its kernel computes blocks. Kernels that cannot read blocks read a plain copy, which
    is made once; plain values are copied into blocks likewise. A value of one pixel with full blocks is both.

    Attributes:
        values: Values of the region; the order of a blocked value is set.
        lanes: Number of channels of a block; 0 to block nothing.
        alignment: Alignment of the parts of a Concat, in bytes.
        algorithms: Algorithms of convolutions that Winograd can compute.
        weights: Compressed weights.
        libraries: Products that a library computes.
        read_plain: Numbers of the values that nothing reads in blocks.
        costs: Costs of the machine, for the estimates of algorithms.
        kernels: Kernels in the order in which they run.
        joined: Numbers of the parts of each value that no kernel writes as a whole.
        cut: Number of the whole and offset in bytes of each value that is a piece of another one.
    """

    values: list[RegionValue]
    lanes: int = 0
    alignment: int = 1
    algorithms: ConvolutionAlgorithms = BY_ESTIMATE
    weights: WeightStore = field(default_factory=WeightStore)
    libraries: LibraryUse = NO_LIBRARY
    read_plain: frozenset[int] = frozenset()
    costs: RelativeCosts = REFERENCE_COSTS
    kernels: list[KernelPlan] = field(default_factory=list)
    joined: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cut: dict[int, tuple[int, int]] = field(default_factory=dict)
    _plain: dict[int, int] = field(default_factory=dict)
    _blocked: dict[tuple[int, ChannelOrder], int] = field(default_factory=dict)
    _dags: dict[str, ComputeDAG] = field(default_factory=dict)
    _group: PlannedGroup = _NO_GROUP

    def add(self, steps: Sequence[KernelStep], group: PlannedGroup = _NO_GROUP) -> None:
        """Add the kernel of a group, blocked if possible.

        Args:
            steps: Steps of the group.
            group: Key of the group, and what is decided about it.

        Raises:
            NotCoveredError: A call has no rule, or its rule does not cover it.
        """
        self._group, outputs = group, steps[-1].outputs
        lanes = self._lanes_of(steps)
        steps = self._with_picked_input(steps) if lanes else steps
        kernel = self._with_stored_weights(steps)
        product = (
            self.libraries.product(steps[0], self.values) if kernel is None and len(steps) == 1 else None
        )
        if product is not None:
            kernel = kernel_dag(steps, self.values, outputs)
        ends_plain = outputs[0] in self.read_plain and group.decision.lanes is None
        if lanes > 0 and kernel is None and ends_plain:
            kernel = pointwise_dag(steps, self.values, outputs)
        blocked = self._blocked_dag(steps, lanes, ends_plain) if lanes > 0 and kernel is None else None
        if blocked is None:
            kernel = kernel or (narrow_dag(steps, self.values, lanes) if lanes else None)
            kernel = (
                kernel
                or joined_rows_dag(steps, self.values)
                or merged_dimensions_dag(steps, self.values, outputs)
                or merged_reduction_dag(steps, self.values, outputs)
                or merged_scan_dag(steps, self.values, outputs)
                or merged_transposition_dag(steps, self.values, outputs)
                or merged_padding_dag(steps, self.values, outputs)
                or merged_slice_dag(steps, self.values, outputs)
                or kernel_dag(steps, self.values, outputs)
            )
        else:
            kernel = blocked.kernel
            self.values[outputs[0]] = replace(self.values[outputs[0]], order=blocked.order)
        if group.decision.packing and blocked is None and product is None:
            kernel = replace(kernel, dag=with_packing(kernel.dag, group.decision.packing))
        names = [step.op.name.lower() for step in steps[:_NAMED_STEPS]]
        nodes = tuple(dict.fromkeys(step.call.span.node for step in steps if step.call.span is not None))
        self._append(kernel, names if product is None else [*names, product.library], outputs, product, nodes)

    def join_in_place(self, step: KernelStep) -> bool:
        """Let kernels write the arguments of a Concat in place, if all have one layout.

        Return whether they do.
        """
        parts = tuple(arg for arg in step.args if arg is not None)
        roots = tuple(self.values[part].same_as for part in parts)
        orders = [order for order in (self.values[root].order for root in roots) if order]
        if orders and (
            parts != roots or len(orders) < len(parts) or len({item.lanes for item in orders}) > 1
        ):
            return False
        if any(begin % self.alignment for begin in self._begins(roots)):
            return False
        if orders:
            whole = step.outputs[0]
            self.values[whole] = replace(self.values[whole], order=ChannelOrder.joined(orders))
        self.joined[step.outputs[0]] = roots
        return True

    def cut_in_place(self, step: KernelStep, begin: int) -> bool:
        """Let a Slice share the memory of its source, if the source is not blocked; return whether it does.

        Args:
            step: Slice step.
            begin: Offset of its first element in the source, in elements.
        """
        assert step.args[0] is not None
        source, root = self.values[step.args[0]], self.values[step.args[0]].same_as
        offset = begin * source.type.dtype.numpy.itemsize
        if source.order or self.values[root].order or offset % self.alignment:
            return False
        self.cut[step.outputs[0]] = root, offset
        return True

    def permute_in_place(self, shuffle: ChannelShuffle) -> bool:
        """Let a channel shuffle share the memory of its source, if that is blocked.

        Return whether it does.
        """
        source = self.values[shuffle.source]
        if source.order is None:
            return False
        order = source.order.permuted(shuffle.channels)
        for number in shuffle.results:
            self.values[number] = replace(self.values[number], same_as=source.same_as, order=order)
        return True

    @property
    def part_offsets(self) -> dict[int, tuple[int, int]]:
        """Number of the whole and offset in bytes, for each part of a joined or cut value."""
        joined = {
            part: (whole, begin)
            for whole, parts in self.joined.items()
            for part, begin in zip(parts, self._begins(parts), strict=True)
        }
        return joined | self.cut

    def plain_results(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of the region's results in the plain layout; no group has their conversions."""
        self._group = _NO_GROUP
        return tuple(map(self.plain, numbers))

    def plain(self, number: int) -> int:
        """Return the number of the plain value: the value itself, or a copy or view of a blocked one."""
        value = self.values[number]
        if value.order is None and self.values[value.same_as].order is None:
            return number
        if number not in self._plain:
            is_blocked = value.order is not None
            self._plain[number] = (
                self._copied(number, None)
                if is_blocked
                else self._view(value.type, self.plain(value.same_as))
            )
        return self._plain[number]

    def drop_unneeded(self, results: Sequence[int]) -> None:
        """Remove kernels that no result needs."""
        waiting = [self.values[number].same_as for number in results]
        needed: set[int] = set()
        kept = []
        for kernel in reversed(self.kernels):
            while waiting:
                root = waiting.pop()
                if root not in needed:
                    needed.add(root)
                    waiting += self.joined.get(root, ())
                    waiting += self.cut.get(root, ())[:1]
            if not needed.isdisjoint(kernel.outputs):
                kept.append(kernel)
                waiting += [self.values[number].same_as for number in kernel.inputs.values()]
        self.kernels = kept[::-1]

    def _lanes_of(self, steps: Sequence[KernelStep]) -> int:
        """Return the number of channels of a block for a group; 0 to block nothing."""
        decided = self._group.decision.lanes
        if not self.lanes or decided is not None:
            return decided or 0
        return lanes_read(steps, self.values, self.lanes)

    def _blocked_dag(self, steps: Sequence[KernelStep], lanes: int, ends_plain: bool) -> BlockedDag | None:
        """Return the kernel of a group on blocked tensors; None if plain ones are better."""
        decision = self._group.decision
        if decision.lanes is None and not decision.form:
            is_plain = is_faster_plain(
                steps, self.values, lanes, self.algorithms, self.costs, ends_plain=ends_plain
            )
            if is_plain:
                return None
        return blocked_dag(steps, self.values, lanes, self.algorithms, decision.form, self.costs)

    def _with_picked_input(self, steps: Sequence[KernelStep]) -> Sequence[KernelStep]:
        """Return steps that read a copy of the pixels that strides leave of a plain value, where it pays."""
        first = steps[0]
        copy = picked_input(first, self.values)
        if copy is None or any(source == first.args[0] for source, _ in self._blocked):
            return steps
        (output,), picked = copy.dag.outputs, len(self.values)
        type_ = TensorType(output.shape, output.dtype)
        self.values.append(RegionValue(type_, picked))
        self._append(copy, ["picked"], (picked,), is_conversion=True)
        return (without_strides(first, picked, type_), *steps[1:])

    def _with_stored_weights(self, steps: Sequence[KernelStep]) -> KernelDag | None:
        """Return the kernel of a group that reads compressed weights; None if it has none."""
        weights, sources = self.weights.declared(steps, self.values)
        return kernel_dag(steps, self.values, steps[-1].outputs, weights, sources) if weights else None

    def _begins(self, parts: Sequence[int]) -> list[int]:
        """Return the offsets of consecutive parts, in bytes."""
        sizes = [self.values[part].size_bytes for part in parts]
        return [sum(sizes[:position]) for position in range(len(sizes))]

    def _in_blocks(self, number: int, order: ChannelOrder) -> int:
        """Return the number of a value, or of its copy, with channels in an order."""
        given = self.values[number]
        if given.order == order:
            return number
        if (number, order) not in self._blocked:
            if given.order is None and order.groups is None:
                blocked = self._in_blocks(self._in_blocks(number, self._natural(number)), order)
            elif given.order is None:
                blocked = self._copied(self.plain(number), order)
            else:
                blocked = self._copied(number, order)
            self._blocked[number, order] = blocked
        return self._blocked[number, order]

    def _natural(self, number: int) -> ChannelOrder:
        return ChannelOrder.natural(self.values[number].type.static_shape[1], self.lanes)

    def _view(self, type_: TensorType, number: int, order: ChannelOrder | None = None) -> int:
        """Add a view of the memory of a value, and return its number."""
        self.values.append(RegionValue(type_, self.values[number].same_as, order=order))
        return len(self.values) - 1

    def _copied(self, number: int, order: ChannelOrder | None) -> int:
        """Add a kernel that copies a value into another layout.

        One pixel in natural order needs only a view.
        """
        value = self.values[number]
        orders = [item for item in (value.order, order) if item]
        if all(extent == 1 for extent in value.type.static_shape[2:]) and all(
            item.places == tuple(range(item.channels)) for item in orders
        ):
            return self._view(value.type, number, order)
        copy = len(self.values)
        self.values.append(RegionValue(value.type, copy, order=order))
        conversion = converted(value, number, order)
        self._append(conversion, [conversion.dag.outputs[0].op.name], (copy,), is_conversion=True)
        return copy

    def _append(
        self,
        kernel: KernelDag,
        names: Sequence[str],
        outputs: tuple[int, ...],
        product: LibraryProduct | None = None,
        nodes: tuple[str, ...] = (),
        *,
        is_conversion: bool = False,
    ) -> None:
        inputs, constants = {}, {}
        key = structural_key(kernel.dag)
        dag = self._dags.setdefault(key, kernel.dag)
        for tensor, source in zip(dag.placeholders, kernel.sources, strict=True):
            constant = self._array(source)
            if constant is None:
                inputs[tensor.op.name] = self._read(source, tensor.shape)
            else:
                constants[tensor.op.name] = constant
        name, group = "_".join((*names, *algorithm_names(dag), key[:_KEY_LENGTH])), self._group
        threads = group.decision.threads
        self.kernels.append(
            KernelPlan(
                dag,
                inputs,
                constants,
                outputs,
                name,
                product,
                group.key,
                group.rule_key,
                threads,
                nodes,
                is_conversion,
            )
        )

    def _array(self, source: Source) -> Array | None:
        return self.values[source.number].constant if source.array is None else source.array

    def _read(self, source: Source, shape: tuple[int, ...]) -> int:
        """Return the number of the value that a placeholder reads, in its layout."""
        match source.form:
            case SourceForm.AS_IT_IS:
                return source.number
            case SourceForm.PLAIN:
                return self.plain(source.number)
            case SourceForm.BLOCKED:
                return self._in_blocks(source.number, source.order or self._natural(source.number))
            case SourceForm.ONE_CHANNEL:
                plain = self.plain(source.number)
                return self._view(TensorType(shape, self.values[plain].type.dtype), plain)
