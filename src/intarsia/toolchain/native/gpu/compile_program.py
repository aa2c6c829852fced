"""From the source of a kernel to a program of GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from intarsia.ir import Function, PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.builder import ModuleText
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.default_gpu_state import gpu_kernels, lower_to_kernels
from intarsia.native.gpu.emit_kernels import EmittedKernels, Launch, emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.graph import KernelPlan
from intarsia.native.schedule import ScheduleLog
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError, UsageError
from intarsia.target import Target
from intarsia.toolchain.native.build import RegionBuild, load_schedule_log, port_of, weights_by_memory
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.plan import PlannedRegion, planned_region
from intarsia.toolchain.native.region import Argument, ArgumentKind, RegionPort

ALIGNMENT: Final = 256
"""Alignment of a kernel's own buffers in the arena, in bytes: that of the driver's allocations."""
_PLAIN: Final[dict[str, str | int | bool | float | None]] = {
    "blocked": False,
    "convolutions": "direct",
    "threads": 1,
    "libs": None,
    "mcpu": None,
}
"""Target options of a plan without what is for CPUs.

These are blocked layouts, Winograd, threads and libraries.
"""

ImageMaker = Callable[[str, Sequence[Launch]], bytes]
"""Function from LLVM IR and the kernels in it to code that a driver loads."""


def plan_for_gpu(
    source: KernelSource, *, in_place: bool = True, program: Function | None = None
) -> PlannedRegion:
    """Return the plan of a source for a GPU, each kernel of which has a DAG.

    Args:
        source: Source of a native kernel; the options of its target that are about CPUs do not count.
        in_place: Whether values may be parts of others.
        program: Program that computes the same, of static shapes; that of the source if not given.
    """
    target = Target(source.target).with_options(**_PLAIN)
    return planned_region(
        replace(source, target=str(target)), in_place=in_place, program=program, for_gpu=True
    )


def compile_program(source: KernelSource, model: str, make_image: ImageMaker | None = None) -> GpuProgram:
    """Compile a source for a model of GPU.

    Args:
        source: Source of a native kernel; the options of its target that are about CPUs do not count.
        model: LLVM's name of the model, such as "sm_80"; later GPUs run it too.
        make_image: Function that makes the code; that of `image_maker` if not given.

    Raises:
        CompileError: An operator has no kernel, a shape is not known, results have sizes that are known at
            run time only, or the schedule log of the target is missing or damaged.
    """
    planned = plan_for_gpu(source)
    if planned.counted or planned.checks:
        raise CompileError("no GPU code for results whose sizes are known at run time only, or for checks")
    plan = planned.plan
    build = RegionBuild(plan, planned.threads, {}, weights_by_memory(source.weights))
    log = load_schedule_log(Target(source.target))
    program = _Program(build, model, log, -(-plan.arena_bytes // ALIGNMENT) * ALIGNMENT)
    launches = tuple(launch for kernel in plan.kernels for launch in program.launches_of(kernel))
    copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
    emitted = [launch for kernels in program.emitted.values() for launch in kernels.launches]
    image = image_of(program.module.text(), emitted, model, make_image)
    return GpuProgram(
        image,
        launches,
        build.constants,  # with those that are results
        tuple(
            port_of(name, plan.values[value]) for name, value in zip(planned.names, plan.params, strict=True)
        ),
        tuple(port_of(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results)),
        copies,
        program.arena_bytes,
    )


def compile_kernels(
    dag: ComputeDAG, function: PrimFunc, model: str, make_image: ImageMaker | None = None
) -> GpuProgram:
    """Compile the kernels of one DAG: a program from its placeholders to its outputs.

    Args:
        dag: The DAG.
        function: Its kernels, such as those of a schedule.
        model: LLVM's name of the model of GPU.
        make_image: Function that makes the code; that of `image_maker` if not given.

    Raises:
        CompileError: A kernel is too large for a GPU, or has no code for one.
    """
    emitted = emit_kernels(function, "k0", model)
    tensors = (*dag.placeholders, *dag.outputs)
    places = {tensor.buffer.name: Argument(ArgumentKind.SLOT, at) for at, tensor in enumerate(tensors)}
    workspace, end = workspace_places(emitted, 0)
    places |= workspace
    ports = [RegionPort(tensor.buffer.name, tensor.shape, tensor.dtype.numpy) for tensor in tensors]
    name, split = dag.outputs[0].buffer.name, len(dag.placeholders)
    image = image_of(emitted.text, emitted.launches, model, make_image)
    launches = tuple(_launch(launch, places, name) for launch in emitted.launches)
    return GpuProgram(image, launches, (), tuple(ports[:split]), tuple(ports[split:]), (), end)


def kernels_for(dag: ComputeDAG, log: ScheduleLog | None) -> PrimFunc:
    """Return the kernels of a DAG: those of its logged schedule, if there is one that can be lowered.

    Args:
        dag: DAG before any step.
        log: Schedules that a search has found; None for those of the rules.
    """
    state = None if log is None else log.lookup(dag)
    if state is not None:
        # Steps differ between versions. A schedule that is no longer possible only costs speed.
        with suppress(UsageError, CompileError):
            function = lower_to_kernels(dag, state)
            list_kernels(function)
            return function
    return gpu_kernels(dag)


def image_maker(model: str) -> ImageMaker:
    """Return the function that makes PTX for a model of GPU."""

    def make(text: str, launches: Sequence[Launch]) -> bytes:  # noqa: ARG001  # PTX has them by name
        return generate_ptx(text, model).encode() + b"\0"

    return make


def image_of(text: str, launches: Sequence[Launch], model: str, make_image: ImageMaker | None) -> bytes:
    """Return the code of kernels that a driver loads.

    Args:
        text: Their LLVM IR.
        launches: The kernels.
        model: LLVM's name of the model of GPU.
        make_image: Function that makes the code; that of `image_maker` if None.
    """
    return (image_maker(model) if make_image is None else make_image)(text, launches)


@dataclass(eq=False)
class _Program:
    """The kernels so far.

    Attributes:
        build: Constants and buffers of the plan.
        model: Model of GPU.
        log: Schedules of kernels; None for those of the rules.
        workspace: Offset of the kernels' own buffers in the arena; launches follow each other, so that all
            kernels share the memory.
        arena_bytes: Size of the arena so far.
        module: LLVM module of all kernels.
        emitted: Kernels of each computation.
    """

    build: RegionBuild
    model: str
    log: ScheduleLog | None
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
            function = kernels_for(kernel.dag, self.log)
            stem = f"k{len(self.emitted)}"
            emitted = self.emitted[kernel.dag] = emit_kernels(function, stem, self.model, self.module)
        buffers = self._buffers(kernel, emitted)
        return [
            _launch(launch, buffers, kernel.name, kernel.nodes, is_conversion=kernel.is_conversion)
            for launch in emitted.launches
        ]

    def _buffers(self, kernel: KernelPlan, emitted: EmittedKernels) -> dict[str, Argument]:
        """Return the place of each buffer of a kernel, by name."""
        workspace, end = workspace_places(emitted, self.workspace)
        self.arena_bytes = max(self.arena_bytes, end)
        return parameter_places(self.build, kernel) | workspace


def parameter_places(build: RegionBuild, kernel: KernelPlan) -> dict[str, Argument]:
    """Return the place of each parameter of a kernel of the plan, by the name of its buffer."""
    places = {}
    for tensor in kernel.dag.placeholders:
        name = tensor.op.name
        if name in kernel.inputs:
            places[tensor.buffer.name] = build.argument(build.plan.root(kernel.inputs[name]))
        else:
            places[tensor.buffer.name] = build.constant(kernel.constants[name], None)
    for tensor, value in zip(kernel.dag.outputs, kernel.outputs, strict=True):
        places[tensor.buffer.name] = build.argument(value)
    # Kernels that are written as loops name what they read by the operation.
    return {tensor.op.name: places[tensor.buffer.name] for tensor in kernel.dag.placeholders} | places


def workspace_places(
    emitted: EmittedKernels, offset: int, per_tile: Collection[str] = ()
) -> tuple[dict[str, Argument], int]:
    """Return the place in the arena of each buffer of kernels' own, from an offset on, and where they end.

    Args:
        emitted: The kernels.
        offset: Offset in bytes.
        per_tile: Names of buffers whose first axis is tiles of rows; they get the memory of one tile.
    """
    places = {}
    for buffer in emitted.workspace:
        places[buffer.name] = Argument(ArgumentKind.ARENA, offset)
        shape = buffer.shape[1:] if buffer.name in per_tile else buffer.shape
        size = max(1, prod(shape)) * stored_bytes(buffer.dtype)
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    return places, offset


def _launch(
    launch: Launch,
    places: Mapping[str, Argument],
    name: str,
    nodes: tuple[str, ...] = (),
    *,
    is_conversion: bool = False,
) -> GpuLaunch:
    """Return a launch on the buffers at their places."""
    arguments = tuple(places[buffer] for buffer in launch.arguments)
    return GpuLaunch(
        *(launch.name, launch.blocks, launch.threads, arguments, name, nodes, is_conversion),
        shared_bytes=launch.dynamic_bytes,
    )
