"""The kernels of a program by the fusion group that they compute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from intarsia.build.kernel_requests import KernelRequest, kernel_requests
from intarsia.ir import IRModule
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.region_plan import RuleGroup
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError, UnsupportedModelError
from intarsia.target import Target
from intarsia.toolchain.native.plan import PlannedRegion, planned_region
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source
from intarsia.tune.target_options import marked_functions

_NAMED_STEPS: Final = 3
_KEY_LENGTH: Final = 6


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """A fusion group of native's rules, and all kernels that compute it in one run of the program.

    Attributes:
        key: Key of the group (`native.graph.group_key`).
        rule: Its calls.
        calls: Number of calls of its kernels, with those that convert layouts for it.
        flop: Floating-point operations of these.
        bytes_moved: Bytes of the tensors that these read and write.
        lanes: Number of channels of a block of its result; 0 if that is plain.
        threads: Number of threads of the region.
        vector_lanes: Number of float32 of a vector of the machine.
        costs: Costs of the machine by which its algorithm was estimated.
    """

    key: str
    rule: RuleGroup
    calls: int
    flop: int
    bytes_moved: int
    lanes: int
    threads: int
    vector_lanes: int
    costs: RelativeCosts = REFERENCE_COSTS

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators, in order."""
        return tuple(str(call.op).rpartition("::")[2] for call in self.rule.calls)

    @property
    def label(self) -> str:
        """Name of the group for people, different for different groups: "conv_relu 3f9a0c"."""
        names = [name.lower() for name in self.operators[:_NAMED_STEPS]]
        return f"{'_'.join(names)} {self.key[:_KEY_LENGTH]}"


def kernel_groups(mod: IRModule, target: str = "") -> tuple[KernelGroup, ...]:
    """Return the fusion groups of native's functions, those with most work first.

    Args:
        mod: Typed program.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.

    Returns:
        The groups; none if native has no function, or cannot plan it: a build reports that.
    """
    if not any(True for _ in marked_functions(mod)):
        if not target or Target.parse(target).toolchain != Native.name:
            return ()
        mod = partition_whole(mod, Target.parse(target))
    groups: dict[str, KernelGroup] = {}
    try:
        for request in kernel_requests(mod):
            if request.target.toolchain == Native.name:
                for group in _groups_of(request):
                    earlier = groups.get(group.key)
                    groups[group.key] = group if earlier is None else _joined(earlier, group)
    except (CompileError, UnsupportedModelError):
        return ()
    return tuple(sorted(groups.values(), key=lambda group: (-group.flop, -group.bytes_moved, group.key)))


def _groups_of(request: KernelRequest) -> Iterator[KernelGroup]:
    native = Native()
    source = onnx_kernel_source(
        native, request.function, request.target, request.module, newest_opset(native)
    )
    planned = planned_region(source)
    plan = planned.plan
    for kernel in plan.kernels:
        if kernel.rule_group:
            rule = plan.rule_groups[kernel.rule_group]
            lanes = plan.values[kernel.outputs[0]].lanes
            yield _group(kernel.rule_group, rule, kernel.dag, lanes, request.calls, planned)


def _group(
    key: str, rule: RuleGroup, dag: ComputeDAG, lanes: int, calls: int, planned: PlannedRegion
) -> KernelGroup:
    tensors = (*dag.placeholders, *dag.outputs)
    size = sum(prod(tensor.shape) * tensor.dtype.numpy.itemsize for tensor in tensors)
    flop = max(0, dag.lane_flop_ct)
    vector_lanes = planned.isa.vector_bytes // 4  # float32 has 4 bytes
    threads, costs = planned.threads, planned.plan.costs
    return KernelGroup(key, rule, calls, calls * flop, calls * size, lanes, threads, vector_lanes, costs)


def _joined(group: KernelGroup, other: KernelGroup) -> KernelGroup:
    return replace(
        group,
        calls=group.calls + other.calls,
        flop=group.flop + other.flop,
        bytes_moved=group.bytes_moved + other.bytes_moved,
        lanes=other.lanes,
    )
