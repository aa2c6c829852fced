"""From a program to the tasks of its native kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from intarsia.autoschedule.extraction.extracted_task import ExtractedTask
from intarsia.build.kernel_requests import KernelRequest, kernel_requests
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source


def extract_tasks(mod: IRModule, target: Target | None = None) -> tuple[ExtractedTask, ...]:
    """The kernels that native makes when a program is built, each computation once.

    Args:
        mod: Typed. Functions that are marked for native are taken as they are.
        target: Of native: all of the program is given to it first, as `partition_whole` does. None for a
            program that is partitioned already.

    Returns:
        In the order in which the program calls them first. The sum of their weights is the number of kernels
        that the plans of its regions call.

    Raises:
        CompileError: An operator has no native kernel, or a shape is not known.
    """
    given = mod if target is None else partition_whole(mod, target)
    found: dict[str, ExtractedTask] = {}
    for request in kernel_requests(given):
        if request.target.toolchain == Native.name:
            for each in _tasks(request):
                key = each.key
                known = found.get(key)
                found[key] = each if known is None else replace(known, weight=known.weight + each.weight)
    return tuple(found.values())


def _tasks(request: KernelRequest) -> Iterator[ExtractedTask]:
    """The kernels of the region that a build makes of a function."""
    native, target = Native(), request.target.with_options(schedules=None)
    source = onnx_kernel_source(native, request.function, target, request.module, newest_opset(native))
    planned = planned_region(source)
    calls = Counter(kernel.dag for kernel in planned.plan.kernels)
    kernels = {kernel.dag: kernel for kernel in reversed(planned.plan.kernels)}
    who = Target.for_toolchain(Native.name, target.kind, threads=planned.threads)
    for dag, count in calls.items():
        kernel = kernels[dag]
        made = ExtractedTask.of_kernel(dag, who, planned.isa, planned.threads, kernel.name, kernel.constants)
        yield replace(made, weight=count * request.calls)
