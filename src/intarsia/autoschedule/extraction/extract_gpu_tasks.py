"""Extraction of the search tasks of a program's native kernels for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from intarsia.autoschedule.extraction.extracted_task import ExtractedTask
from intarsia.autoschedule.task import HardwareParams
from intarsia.build.kernel_requests import KernelRequest, kernel_requests
from intarsia.ir import IRModule
from intarsia.native.gpu.static_cost import GpuFacts
from intarsia.native.machine.isa import Isa
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.native.gpu.compile_program import plan_for_gpu
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.onnx_compile import newest_opset, onnx_kernel_source


def extract_gpu_tasks(mod: IRModule, target: Target | None, facts: GpuFacts) -> tuple[ExtractedTask, ...]:
    """Extract the kernels that native compiles for a GPU, each computation once, those called most first.

    Args:
        mod: Typed module; functions that are partitioned for native on a GPU are taken as they are.
        target: Native target of a GPU for the whole program; None for a program that is partitioned.
        facts: Peaks of the GPU.

    Raises:
        CompileError: An operator has no native kernel, or a shape is unknown.
    """
    partitioned = mod if target is None else partition_whole(mod, target)
    tasks: dict[str, ExtractedTask] = {}
    for request in kernel_requests(partitioned):
        is_native = request.target.toolchain == Native.name
        if is_native and request.target.kind == DeviceType.CUDA.kind:
            for task in _tasks_of(request, facts):
                earlier = tasks.get(task.key)
                weight = task.weight + (0 if earlier is None else earlier.weight)
                tasks[task.key] = replace(earlier or task, weight=weight)
    return tuple(sorted(tasks.values(), key=lambda task: -task.weight))


def _tasks_of(request: KernelRequest, facts: GpuFacts) -> Iterator[ExtractedTask]:
    native, target = Native(), request.target.with_options(schedules=None)
    source = onnx_kernel_source(native, request.function, target, request.module, newest_opset(native))
    hardware, isa = HardwareParams.of_gpu(facts), Isa.host()
    for kernel in plan_for_gpu(source).plan.kernels:
        task = ExtractedTask.of_kernel(kernel.dag, target, isa, hardware, kernel.name, kernel.constants)
        yield replace(task, weight=request.calls)
