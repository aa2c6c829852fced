"""Extraction of the search tasks of a program's native kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from intarsia.autoschedule.extraction.extracted_task import ExtractedTask
from intarsia.autoschedule.task import HardwareParams
from intarsia.build.kernel_requests import KernelRequest, kernel_requests
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source


def extract_tasks(mod: IRModule, target: Target | None = None) -> tuple[ExtractedTask, ...]:
    """Extract the kernels that native compiles when a program is built, each computation once.

    Args:
        mod: Typed module. Functions that are partitioned for native are taken as they are.
        target: Native target for the whole program, which is partitioned for it first (`partition_whole`).
            None for a
            program that is already partitioned.

    Returns:
        Tasks in the order in which the program first calls them. The sum of their weights is the number of
        kernels
        that the plans of its regions call.

    Raises:
        CompileError: An operator has no native kernel, or a shape is unknown.
    """
    partitioned = mod if target is None else partition_whole(mod, target)
    tasks: dict[tuple[str, int], ExtractedTask] = {}
    for request in kernel_requests(partitioned):
        if request.target.toolchain == Native.name:
            for task in _extract_from_region(request):
                key = task.key, task.task.hardware.num_cores
                earlier = tasks.get(key)
                tasks[key] = (
                    task if earlier is None else replace(earlier, weight=earlier.weight + task.weight)
                )
    return tuple(tasks.values())


def _extract_from_region(request: KernelRequest) -> Iterator[ExtractedTask]:
    """Yield the tasks of the region that a build compiles a function to."""
    native, target = Native(), request.target.with_options(schedules=None)
    source = onnx_kernel_source(native, request.function, target, request.module, newest_opset(native))
    planned = planned_region(source)
    calls = Counter((kernel.dag, kernel.threads or planned.threads) for kernel in planned.plan.kernels)
    kernels = {kernel.dag: kernel for kernel in reversed(planned.plan.kernels)}
    for (dag, threads), count in calls.items():
        kernel, host = kernels[dag], Target.for_toolchain(Native.name, target.kind, threads=threads)
        hardware = HardwareParams.of_isa(planned.isa, threads)
        task = ExtractedTask.of_kernel(dag, host, planned.isa, hardware, kernel.name, kernel.constants)
        yield replace(task, weight=count * request.calls)
