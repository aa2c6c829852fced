"""From the source of a kernel to a program of GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.builder import ModuleText
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.gpu.emit_kernels import EmittedKernels, Launch, emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.graph import KernelPlan
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.build import RegionBuild, port_of, weights_by_memory
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.region import Argument, ArgumentKind

_ALIGNMENT: Final = 256
"""Alignment of a kernel's own buffers in the arena, in bytes: that of the driver's allocations."""
_PLAIN: Final[dict[str, str | int | bool | float | None]] = {
    "blocked": False,
    "convolutions": "direct",
    "attention": False,
}
"""Target options of a plan without what is for CPUs: blocked layouts, Winograd, attention in one nest."""

ImageMaker = Callable[[str, Iterable[Launch]], bytes]
"""Function from LLVM IR and the kernels in it to code that a driver loads."""


def compile_program(source: KernelSource, model: str, make_image: ImageMaker | None = None) -> GpuProgram:
    """Compile a source for a model of GPU.

    Args:
        source: Source of a native kernel; the options of its target that are about CPUs do not count.
        model: LLVM's name of the model, such as "sm_80"; later GPUs run it too.
        make_image: Function that makes the code; PTX if not given.

    Raises:
        CompileError: An operator has no kernel, a shape is not known, or results have sizes that are known at
            run time only.
    """
    target = Target(source.target).with_options(**_PLAIN)
    planned = planned_region(replace(source, target=str(target)))
    if planned.counted or planned.checks:
        raise CompileError("no GPU code for results whose sizes are known at run time only, or for checks")
    plan = planned.plan
    build = RegionBuild(plan, planned.threads, {}, weights_by_memory(source.weights))
    program = _Program(build, model, -(-plan.arena_bytes // _ALIGNMENT) * _ALIGNMENT)
    launches = tuple(launch for kernel in plan.kernels for launch in program.launches_of(kernel))
    emitted = [launch for kernels in program.emitted.values() for launch in kernels.launches]
    image = (_ptx_image(model) if make_image is None else make_image)(program.module.text(), emitted)
    return GpuProgram(
        image,
        launches,
        build.constants,
        tuple(
            port_of(name, plan.values[value]) for name, value in zip(planned.names, plan.params, strict=True)
        ),
        tuple(port_of(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results)),
        tuple((position, build.argument(root)) for position, root in plan.copied_results),
        program.arena_bytes,
    )


def _ptx_image(model: str) -> ImageMaker:
    def make(text: str, launches: Iterable[Launch]) -> bytes:  # noqa: ARG001  # PTX has them by name
        return generate_ptx(text, model).encode() + b"\0"

    return make


@dataclass(eq=False)
class _Program:
    """The kernels so far.

    Attributes:
        build: Constants and buffers of the plan.
        model: Model of GPU.
        workspace: Offset of the kernels' own buffers in the arena; launches follow each other, so that all
            kernels share the memory.
        arena_bytes: Size of the arena so far.
        module: LLVM module of all kernels.
        emitted: Kernels of each computation.
    """

    build: RegionBuild
    model: str
    workspace: int
    module: ModuleText = field(default_factory=ModuleText)
    emitted: dict[ComputeDAG, EmittedKernels] = field(default_factory=dict)
    arena_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.arena_bytes = self.workspace

    def launches_of(self, kernel: KernelPlan) -> list[GpuLaunch]:
        """Return the launches of a kernel of the plan."""
        emitted = self.emitted.get(kernel.dag)
        if emitted is None:
            function = lower_to_kernels(kernel.dag, default_gpu_state(kernel.dag))
            stem = f"k{len(self.emitted)}"
            emitted = self.emitted[kernel.dag] = emit_kernels(function, stem, self.model, self.module)
        buffers = self._buffers(kernel, emitted)
        return [
            GpuLaunch(
                *(launch.name, launch.blocks, launch.threads),
                tuple(buffers[name] for name in launch.arguments),
                kernel.name,
            )
            for launch in emitted.launches
        ]

    def _buffers(self, kernel: KernelPlan, emitted: EmittedKernels) -> dict[str, Argument]:
        """Return the place of each buffer of a kernel, by name."""
        build, places = self.build, {}
        for tensor in kernel.dag.placeholders:
            name = tensor.op.name
            if name in kernel.inputs:
                places[tensor.buffer.name] = build.argument(build.plan.root(kernel.inputs[name]))
            else:
                places[tensor.buffer.name] = build.constant(kernel.constants[name], None)
        for tensor, value in zip(kernel.dag.outputs, kernel.outputs, strict=True):
            places[tensor.buffer.name] = build.argument(value)
        offset = self.workspace
        for buffer in emitted.workspace:
            places[buffer.name] = Argument(ArgumentKind.ARENA, offset)
            size = max(1, prod(buffer.shape)) * stored_bytes(buffer.dtype)
            offset += -(-size // _ALIGNMENT) * _ALIGNMENT
        self.arena_bytes = max(self.arena_bytes, offset)
        return places
