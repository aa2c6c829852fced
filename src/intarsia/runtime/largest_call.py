"""Prepare kernels for the largest call that the ranges of a plan allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.ir import DimRange
from intarsia.runtime.kernel import GrowingKernel, Kernel
from intarsia.runtime.plan import ExecutionPlan, RunKernel, TensorInfo


def expect_largest_call(plan: ExecutionPlan, kernels: Sequence[Kernel]) -> None:
    """Let kernels of the main block take memory for the largest sizes of a plan in the background.

    Args:
        plan: The plan; nothing is done where it has no ranges of sizes.
        kernels: Compiled functions, by the numbers that the plan uses.
    """
    if not plan.dim_ranges:
        return
    block = plan.blocks["main"]
    types = list(plan.slot_types)
    for slot, info in zip(block.params, plan.inputs, strict=True):
        types[slot] = info
    for step in block.steps:
        kernel = kernels[step.kernel] if isinstance(step, RunKernel) else None
        if isinstance(step, RunKernel) and isinstance(kernel, GrowingKernel):
            kernel.expect_largest([_largest_shape(types[slot], plan.dim_ranges) for slot in step.inputs])


def _largest_shape(info: TensorInfo | None, ranges: Mapping[str, DimRange]) -> tuple[int, ...]:
    dims = () if info is None else info.shape or ()
    return tuple(_largest_extent(dim, ranges) for dim in dims)


def _largest_extent(dim: int | str, ranges: Mapping[str, DimRange]) -> int:
    if isinstance(dim, int):
        return max(1, dim)
    return ranges[dim].high if dim in ranges else 1
