"""The entry points of a plan: its main block, and the variants that are run at some sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from intarsia.runtime.call_series import SeriesKernel
from intarsia.runtime.kernel import Value
from intarsia.runtime.plan import ExecutionPlan, PlanVariant, TensorInfo
from intarsia.runtime.runners import Runner
from intarsia.runtime.straight_line import StraightLine
from intarsia.runtime.tensor_info import is_tensor

_Axis: TypeAlias = tuple[int, int]
"""Number of an input, and of one of its axes."""


@dataclass(eq=False)
class EntryPoint:
    """A plan that starts at one block, with the runner that holds its buffers.

    Attributes:
        plan: The plan, with the block as "main" and without variants.
        make_runner: Function that returns a runner of a plan.
    """

    plan: ExecutionPlan
    make_runner: Callable[[ExecutionPlan], Runner]

    @cached_property
    def runner(self) -> Runner:
        """The runner; made for the first call, so that variants that are not used hold no buffers."""
        return self.make_runner(self.plan)


class EntryPoints:
    """Chooses the entry point for inputs by the sizes of their symbolic dimensions.

    The runner of the main block is made at once: what does not fit into memory fails before the first call.

    Args:
        plan: The plan, which was checked.
        make_runner: Function that returns a runner of a plan.

    Attributes:
        main: Entry point at the block "main".
    """

    def __init__(self, plan: ExecutionPlan, make_runner: Callable[[ExecutionPlan], Runner]) -> None:
        self.main = EntryPoint(main_plan(plan), make_runner)
        _ = self.main.runner
        self._axes = _axes(plan)
        self._by_sizes = {
            tuple(variant.sizes[name] for name in plan.variants[0].sizes): EntryPoint(
                variant_plan(plan, variant), make_runner
            )
            for variant in plan.variants
        }

    def of(self, inputs: Sequence[Value]) -> EntryPoint:
        """Return the entry point for inputs that fit the plan."""
        if not self._axes:
            return self.main
        sizes = tuple(inputs[number].shape[axis] for number, axis in self._axes)  # type: ignore[union-attr]  # _axes takes tensors only
        return self._by_sizes.get(sizes, self.main)

    def run_series(self, calls: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """Run calls one after the other, at once if the program can, and return the results of each.

        Args:
            calls: Inputs of each call, which were checked.
        """
        points = [self.of(inputs) for inputs in calls]
        kernel = _series_kernel(points[0]) if len(points) > 1 and len(set(points)) == 1 else None
        if kernel is None:
            return [point.runner.run(inputs) for point, inputs in zip(points, calls, strict=True)]
        return kernel.run(calls)

    @property
    def has_series(self) -> bool:
        """Whether calls at the main block can be run at once."""
        return _series_kernel(self.main) is not None


def _series_kernel(point: EntryPoint) -> SeriesKernel | None:
    runner = point.runner
    kernel = runner.series if isinstance(runner, StraightLine) else None
    return kernel if kernel is not None and kernel.is_usable else None


def main_plan(plan: ExecutionPlan) -> ExecutionPlan:
    """Return a plan without its variants."""
    if not plan.variants:
        return plan
    others = {variant.block for variant in plan.variants}
    blocks = {name: block for name, block in plan.blocks.items() if name not in others}
    return replace(plan, blocks=blocks, variants=())


def variant_plan(plan: ExecutionPlan, variant: PlanVariant) -> ExecutionPlan:
    """Return the plan of a variant: its block is "main", and inputs and outputs have its sizes."""
    block = plan.blocks[variant.block]
    blocks = {**main_plan(plan).blocks, "main": block}
    inputs = tuple(_sized(info, variant) for info in plan.inputs)
    results = (variant.slot_types[slot] for slot in block.results)
    outputs = tuple(
        info if result is None else replace(info, shape=result.shape)
        for info, result in zip(plan.outputs, results, strict=True)
    )
    return replace(
        plan, blocks=blocks, inputs=inputs, outputs=outputs, slot_types=variant.slot_types, variants=()
    )


def _sized(info: TensorInfo, variant: PlanVariant) -> TensorInfo:
    if info.shape is None:
        return info
    dims = tuple(variant.sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in info.shape)
    return replace(info, shape=dims)


def _axes(plan: ExecutionPlan) -> tuple[_Axis, ...]:
    """Return where the inputs have the dimensions by which variants are chosen."""
    names = plan.variants[0].sizes if plan.variants else ()
    return tuple(axis for name in names if (axis := find_dim(plan, name)) is not None)


def find_dim(plan: ExecutionPlan, name: str) -> _Axis | None:
    """Return the input and the axis where a symbolic dimension comes first; None if no tensor has it."""
    for number, info in enumerate(plan.inputs):
        for axis, dim in enumerate((info.shape or ()) if is_tensor(info) else ()):
            if dim == name:
                return number, axis
    return None
